//! The page's web server, inside a network namespace: HTTP/1.1 in clear, or HTTP/2 over TLS.
//!
//! It is hyper on one thread. The listening socket is opened inside the namespace with the congestion control asked for; accepted
//! sockets inherit both, wherever the thread runs, and what they inherited is read back from each.
//!
//! Responses are sent in the order in which HTTP/2's streams get their turn; the priorities a client signals (RFC 9218) are not
//! followed, as in many servers. The page does not depend on them: what blocks rendering is asked for first.

mod counted;
mod tls;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use host::cc::CcVersion;
use host::netns::NetNs;
use host::tcp::set_congestion_control;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes as Body, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use units::{Bytes, Duration};

use crate::{Page, Protocol, WebError};
use counted::{Counted, Counters};
use tls::Tls;

/// Where the page posts its measurements.
pub const BEACON_PATH: &str = "/beacon";
/// The page's report is a few kilobytes; more than this is not one.
const MAX_BEACON: usize = 256 << 10;

/// What to serve, and how.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The address to listen on, one of the namespace's own.
    pub address: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// Which HTTP.
    pub protocol: Protocol,
    /// The congestion control of accepted connections; `None` for the namespace's default.
    pub congestion_control: Option<String>,
}

/// What happened on one connection, once it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Read back from the accepted socket.
    pub congestion_control: CcVersion,
    /// Handed to the kernel, with HTTP headers and TLS, without TCP and IP headers and retransmissions.
    pub sent: Bytes,
    /// Taken from the kernel, likewise.
    pub received: Bytes,
    /// Requests answered, the page's report among them.
    pub requests: u64,
    /// Segments that TCP sent again.
    pub retransmitted_segments: u64,
}

/// A running server. It stops when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    protocol: Protocol,
    key_pin: Option<String>,
    connections: Arc<Mutex<Vec<Arc<Counters>>>>,
    beacons: Receiver<io::Result<Vec<u8>>>,
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    /// End all connections with a reset, then say so.
    Reset(SyncSender<()>),
}

impl Server {
    /// Starts to serve `page` inside `namespace`; returns when the socket listens.
    ///
    /// # Errors
    /// [`WebError::PortInUse`], [`WebError::Listen`], [`WebError::CongestionControl`], [`WebError::NetNs`], [`WebError::Tls`].
    pub fn start(namespace: &NetNs, page: &'static Page, config: &ServerConfig) -> Result<Self, WebError> {
        let tls = match config.protocol {
            Protocol::Http1 => None,
            Protocol::Http2 => Some(Tls::new(config.address)?),
        };
        let listener = namespace.run(|| listen(config))??;
        let address = listener.local_addr().map_err(WebError::Server)?;
        let (beacon, beacons) = channel();
        let (commands, orders) = unbounded_channel();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let key_pin = tls.as_ref().map(|tls| tls.key_pin.clone());
        let service =
            Service { page, acceptor: tls.map(|tls| tls.acceptor), beacon, connections: Arc::clone(&connections) };
        let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(WebError::Server)?;
        let thread = Builder::new().name("web-server".into()).spawn(move || {
            // A failed accept has to reach whoever waits for the page.
            if let Err(error) = runtime.block_on(serve(listener, &service, orders)) {
                let _ = service.beacon.send(Err(error));
            }
        });
        let thread = Some(thread.map_err(WebError::Server)?);
        Ok(Self { address, protocol: config.protocol, key_pin, connections, beacons, commands, thread })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The document's address; with `run`, the page measures itself and reports under that name.
    pub fn url(&self, run: Option<&str>) -> String {
        let scheme = match self.protocol {
            Protocol::Http1 => "http",
            Protocol::Http2 => "https",
        };
        let query = run.map(|run| format!("?run={run}")).unwrap_or_default();
        format!("{scheme}://{}/{query}", self.address)
    }

    /// SHA-256 of the certificate's public key in base64, where the server speaks TLS: what a client may pin.
    pub fn key_pin(&self) -> Option<&str> {
        self.key_pin.as_deref()
    }

    /// Waits for the page's next report, as it was posted. `None` when `wait` is over.
    ///
    /// # Errors
    /// [`WebError::Server`] when the server has stopped working.
    pub fn next_beacon(&self, wait: Duration) -> Result<Option<Vec<u8>>, WebError> {
        match self.beacons.recv_timeout(wait.into()) {
            Ok(beacon) => beacon.map(Some).map_err(WebError::Server),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(WebError::Server(io::Error::other("its thread ended"))),
        }
    }

    /// What all connections have sent since the last [`Self::end_connections`].
    pub fn sent(&self) -> Bytes {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        Bytes::new(connections.iter().map(|counters| counters.sent.load(Ordering::Relaxed)).sum())
    }

    /// Ends all connections with a reset, so that nothing of them is on the path afterwards; what they were, in the order in
    /// which they were accepted.
    ///
    /// # Errors
    /// [`WebError::Server`] when the server has stopped working.
    pub fn end_connections(&self) -> Result<Vec<Connection>, WebError> {
        let stopped = || WebError::Server(io::Error::other("its thread ended"));
        let (done, wait) = sync_channel(1);
        self.commands.send(Command::Reset(done)).map_err(|_| stopped())?;
        wait.recv().map_err(|_| stopped())?;
        let ended = std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner));
        // A report that came after its load was given up belongs to no other load.
        while self.beacons.try_recv().is_ok() {}
        Ok(ended.iter().map(|counters| connection(counters)).collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The thread ends when nobody can command it any more; its listener and connections close with it.
        self.commands = unbounded_channel().0;
        if let Some(thread) = self.thread.take() {
            // A panic there has shown itself as a server that stopped.
            let _ = thread.join();
        }
    }
}

fn connection(counters: &Counters) -> Connection {
    Connection {
        congestion_control: counters.congestion_control.clone(),
        sent: Bytes::new(counters.sent.load(Ordering::Relaxed)),
        received: Bytes::new(counters.received.load(Ordering::Relaxed)),
        requests: counters.requests.load(Ordering::Relaxed),
        retransmitted_segments: counters.retransmitted.load(Ordering::Relaxed),
    }
}

/// Runs inside the namespace.
fn listen(config: &ServerConfig) -> Result<TcpListener, WebError> {
    let address = SocketAddr::new(config.address, config.port);
    let listener = TcpListener::bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => WebError::PortInUse { address },
        _ => WebError::Listen { address, source },
    })?;
    if let Some(name) = &config.congestion_control {
        set_congestion_control(&listener, name)?;
    }
    listener.set_nonblocking(true).map_err(|source| WebError::Listen { address, source })?;
    Ok(listener)
}

struct Service {
    page: &'static Page,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    beacon: Sender<io::Result<Vec<u8>>>,
    connections: Arc<Mutex<Vec<Arc<Counters>>>>,
}

/// Accepts until nobody holds the other end of `orders`.
async fn serve(listener: TcpListener, service: &Service, mut orders: UnboundedReceiver<Command>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => service.connect(stream, &mut running),
                // accept(2): the connection was gone before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            },
            order = orders.recv() => match order {
                Some(Command::Reset(done)) => {
                    service.mark_for_reset();
                    running.shutdown().await;
                    // Nobody waits where the caller is gone.
                    let _ = done.send(());
                }
                None => {
                    service.mark_for_reset();
                    running.shutdown().await;
                    return Ok(());
                }
            },
            Some(_) = running.join_next() => {}
        }
    }
}

impl Service {
    fn mark_for_reset(&self) {
        for counters in self.connections.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            counters.reset.store(true, Ordering::Relaxed);
        }
    }

    fn connect(&self, stream: tokio::net::TcpStream, running: &mut JoinSet<()>) {
        // Small writes at the end of a response must not wait for acknowledgements; every web server sets it.
        let _ = stream.set_nodelay(true);
        // The peer may be gone already, and then there is nothing to serve.
        let Ok(stream) = Counted::new(stream) else { return };
        let counters = Arc::clone(stream.counters());
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counters));
        let (page, beacon) = (self.page, self.beacon.clone());
        let service = service_fn(move |request| respond(page, beacon.clone(), Arc::clone(&counters), request));
        // How a connection ends is the client's business; what was missing shows in the page's report.
        match self.acceptor.clone() {
            None => running.spawn(async move {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            }),
            Some(acceptor) => running.spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let builder = http2::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                }
            }),
        };
    }
}

async fn respond(
    page: &'static Page,
    beacon: Sender<io::Result<Vec<u8>>>,
    counters: Arc<Counters>,
    request: Request<Incoming>,
) -> hyper::Result<Response<Full<Body>>> {
    counters.requests.fetch_add(1, Ordering::Relaxed);
    let is_beacon = request.uri().path() == BEACON_PATH;
    let mut response = Response::new(Full::default());
    match *request.method() {
        Method::POST if is_beacon => match Limited::new(request.into_body(), MAX_BEACON).collect().await {
            Ok(report) => {
                // The receiver is gone only while the server is being dropped.
                let _ = beacon.send(Ok(report.to_bytes().to_vec()));
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            Err(_) => *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE,
        },
        Method::GET | Method::HEAD if !is_beacon => match page.get(request.uri().path()) {
            Some(resource) => {
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(resource.media_type()));
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
                *response.body_mut() = Full::new(resource.body.clone());
            }
            None => *response.status_mut() = StatusCode::NOT_FOUND,
        },
        _ => {
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            let allowed = if is_beacon { "POST" } else { "GET, HEAD" };
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        }
    }
    Ok(response)
}
