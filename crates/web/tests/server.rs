//! The server by itself, over `lo` in a namespace of the test's own, against clients that are not this crate's.

mod common;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

use host::netns::NetNs;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes as Body;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use linerate_web::page::{Kind, Page, Resource};
use linerate_web::server::{Connection, Server, ServerConfig};
use linerate_web::{Protocol, WebError};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use units::{Bytes, Duration};

const LO: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SOON: Duration = Duration::from_secs(10);

/// A small page: what is served is not this file's subject.
fn page() -> &'static Page {
    let parts = [("/", Kind::Html, 3_000), ("/a.css", Kind::Css, 20_000), ("/a.jpg", Kind::Picture, 300_000)];
    let file = |length| (0..length).map(|at: u32| (at % 251) as u8).collect::<Vec<_>>().into();
    let resource = |(path, kind, length): (&str, Kind, u32)| Resource { path: path.into(), kind, body: file(length) };
    Box::leak(Box::new(Page::new(parts.map(resource).to_vec())))
}

fn config(protocol: Protocol, congestion_control: Option<&str>) -> ServerConfig {
    ServerConfig { address: LO, port: 0, protocol, congestion_control: congestion_control.map(str::to_owned) }
}

/// A client's connection from inside the namespace.
fn connect(namespace: &NetNs, address: SocketAddr) -> TcpStream {
    let stream = namespace.run(|| TcpStream::connect(address)).expect("the namespace").expect("a connection");
    stream.set_read_timeout(Some(SOON.into())).expect("a timeout");
    stream
}

/// Sends one request in HTTP/1.1 and reads one response: status, headers in small letters, body.
fn exchange(stream: &mut BufReader<TcpStream>, request: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    stream.get_mut().write_all(request.as_bytes()).expect("send a request");
    stream.get_mut().write_all(body).expect("send its body");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(
            stream.read_line(&mut head).expect("a line of the response"),
            0,
            "the connection ended after {head:?}"
        );
    }
    let head = head.to_lowercase();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |l| l.parse().expect("a length"));
    let mut content = vec![0; length];
    stream.read_exact(&mut content).expect("the body");
    (status, head, content)
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: page\r\n\r\n")
}

#[test]
fn every_file_comes_whole_over_one_http1_connection_with_the_congestion_control_asked_for() {
    let Some(namespace) = common::namespace() else { return };
    let server = Server::start(&namespace, page(), &config(Protocol::Http1, Some("reno"))).expect("a server");
    assert_eq!(server.url(Some("7")), format!("http://{}/?run=7", server.address()));
    assert_eq!(server.key_pin(), None);
    let mut stream = BufReader::new(connect(&namespace, server.address()));
    for resource in page().resources() {
        let (status, head, body) = exchange(&mut stream, &get(&resource.path), &[]);
        assert_eq!(status, 200);
        assert!(head.contains(&format!("content-type: {}", resource.media_type())), "{head}");
        assert!(body == resource.body, "{} differs", resource.path);
    }
    let connections = server.end_connections().expect("connections");
    let [connection] = connections.as_slice() else { panic!("one connection, not {connections:?}") };
    assert_eq!(connection.requests, 3);
    assert_eq!(connection.congestion_control.name, "reno");
    let headers = connection.sent.saturating_sub(page().size());
    assert!(connection.sent > page().size() && headers < Bytes::new(1_000), "{headers} of headers for three files");
    let asked: usize = page().resources().iter().map(|resource| get(&resource.path).len()).sum();
    assert_eq!(connection.received, Bytes::new(asked as u64));
    assert_eq!(server.end_connections().expect("connections"), [], "they are told once");
}

#[test]
fn without_a_congestion_control_asked_for_the_namespace_decides() {
    let Some(namespace) = common::namespace() else { return };
    let default = namespace.run(host::cc::default_control).expect("the namespace").expect("a default");
    assert_ne!(default, "reno", "else the test above shows nothing");
    let server = Server::start(&namespace, page(), &config(Protocol::Http1, None)).expect("a server");
    let mut stream = BufReader::new(connect(&namespace, server.address()));
    exchange(&mut stream, &get("/"), &[]);
    assert_eq!(server.end_connections().expect("connections")[0].congestion_control.name, default);
}

#[test]
fn the_page_s_report_reaches_the_caller_and_wrong_requests_are_answered_as_such() {
    let Some(namespace) = common::namespace() else { return };
    let server = Server::start(&namespace, page(), &config(Protocol::Http1, None)).expect("a server");
    let mut stream = BufReader::new(connect(&namespace, server.address()));
    let mut status = |request: &str, body: &[u8]| exchange(&mut stream, request, body).0;
    assert_eq!(status(&get("/?run=1"), &[]), 200, "the query is the page's own");
    assert_eq!(status(&get("/missing.png"), &[]), 404);
    assert_eq!(status(&get("/beacon"), &[]), 405);
    assert_eq!(status("POST /a.css HTTP/1.1\r\nHost: page\r\nContent-Length: 0\r\n\r\n", &[]), 405);
    assert_eq!(server.next_beacon(Duration::ZERO).expect("a server"), None);
    assert_eq!(status("POST /beacon HTTP/1.1\r\nHost: page\r\nContent-Length: 5\r\n\r\n", b"hello"), 204);
    assert_eq!(server.next_beacon(SOON).expect("a server").as_deref(), Some(&b"hello"[..]));
    let long = vec![b'x'; (256 << 10) + 1];
    let head = format!("POST /beacon HTTP/1.1\r\nHost: page\r\nContent-Length: {}\r\n\r\n", long.len());
    assert_eq!(status(&head, &long), 413);
    assert_eq!(server.next_beacon(Duration::ZERO).expect("a server"), None);
}

#[test]
fn ending_connections_resets_them_and_dropping_the_server_frees_its_port() {
    let Some(namespace) = common::namespace() else { return };
    let server = Server::start(&namespace, page(), &config(Protocol::Http1, None)).expect("a server");
    let address = server.address();
    let mut stream = BufReader::new(connect(&namespace, address));
    exchange(&mut stream, &get("/"), &[]);
    assert_eq!(server.end_connections().expect("connections").len(), 1);
    let reset = stream.read(&mut [0]).expect_err("a reset, not an orderly end");
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    // A new connection is served as before.
    let mut stream = BufReader::new(connect(&namespace, address));
    assert_eq!(exchange(&mut stream, &get("/"), &[]).0, 200);

    let same_port = ServerConfig { port: address.port(), ..config(Protocol::Http1, None) };
    let error = Server::start(&namespace, page(), &same_port).expect_err("the port is taken");
    assert!(matches!(error, WebError::PortInUse { address: taken } if taken == address), "{error}");
    assert!(error.to_string().contains(&format!("port {} is in use", address.port())), "{error}");
    drop(server);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)), "the connection ended");
    let refused = namespace.run(|| TcpStream::connect(address)).expect("the namespace").expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    Server::start(&namespace, page(), &same_port).expect("the port is free again");
}

#[test]
fn what_can_not_be_served_is_refused_with_the_reason() {
    let Some(namespace) = common::namespace() else { return };
    let unknown =
        Server::start(&namespace, page(), &config(Protocol::Http1, Some("nosuchcc"))).expect_err("no such control");
    assert!(matches!(unknown, WebError::CongestionControl(_)), "{unknown}");
    assert!(unknown.to_string().contains("reno"), "it lists what there is: {unknown}");
    let elsewhere = ServerConfig { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), ..config(Protocol::Http1, None) };
    let error = Server::start(&namespace, page(), &elsewhere).expect_err("not an address of the namespace");
    assert!(matches!(error, WebError::Listen { .. }) && error.to_string().contains("192.0.2.1"), "{error}");
}

/// What a client sees of a server over HTTP/2: for each path its status and body.
fn fetch_http2(
    namespace: &NetNs,
    address: SocketAddr,
    alpn: &[u8],
    paths: &[&str],
) -> Result<Vec<(StatusCode, Body)>, String> {
    let mut tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let stream = connect(namespace, address);
    stream.set_nonblocking(true).expect("a non-blocking socket");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::from_std(stream).map_err(|error| error.to_string())?;
        let name = ServerName::from(LO);
        let stream =
            TlsConnector::from(Arc::new(tls)).connect(name, stream).await.map_err(|error| error.to_string())?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for path in paths {
            let request = Request::builder()
                .method(Method::GET)
                .uri(format!("https://{address}{path}"))
                .body(Full::<Body>::default())
                .expect("a request");
            let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
            answers.push((status, body));
        }
        Ok(answers)
    })
}

#[test]
fn http2_serves_the_same_files_over_one_tls_connection() {
    let Some(namespace) = common::namespace() else { return };
    let server = Server::start(&namespace, page(), &config(Protocol::Http2, Some("reno"))).expect("a server");
    assert!(server.url(None).starts_with("https://"));
    assert_eq!(server.key_pin().map(str::len), Some(44), "SHA-256 in base64");
    let answers =
        fetch_http2(&namespace, server.address(), b"h2", &["/", "/a.css", "/a.jpg", "/none"]).expect("answers");
    for (resource, (status, body)) in page().resources().iter().zip(&answers) {
        assert_eq!((*status, body == &resource.body), (StatusCode::OK, true), "{}", resource.path);
    }
    assert_eq!(answers[3].0, StatusCode::NOT_FOUND);
    let connections = server.end_connections().expect("connections");
    let [Connection { requests: 4, congestion_control, sent, .. }] = connections.as_slice() else {
        panic!("one connection with four requests, not {connections:?}")
    };
    assert_eq!(congestion_control.name, "reno");
    assert!(*sent > page().size());
}

#[test]
fn a_tls_client_that_only_speaks_http1_is_turned_away_in_the_handshake() {
    let Some(namespace) = common::namespace() else { return };
    let server = Server::start(&namespace, page(), &config(Protocol::Http2, None)).expect("a server");
    let error = fetch_http2(&namespace, server.address(), b"http/1.1", &["/"]).expect_err("no common protocol");
    assert!(error.to_lowercase().contains("applicationprotocol"), "{error}");
    let connections = server.end_connections().expect("connections");
    assert_eq!(connections.iter().map(|connection| connection.requests).sum::<u64>(), 0);
}

/// Accepts the server's self-made certificate; the browser does it by the key's hash.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
