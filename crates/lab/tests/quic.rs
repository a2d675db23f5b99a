//! QUIC over an emulated path: the controllers of the `congestion` crate in quinn, beside quinn's own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as Clock};

use congestion::CubicParams;
use congestion::bbr3::Params;
use congestion::quinn::Factory;
use linerate_lab::session::{DataFrom, FIRST_PORT, Session, Setup};
use linerate_lab::world::SERVER;
use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use units::{Bytes, Duration, Probability, Rate};

/// One transfer at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn link(rate: RateModel, queue: u64, loss_percent: u32) -> LinkConfig {
    let loss = match loss_percent {
        0 => LossModel::None,
        percent => LossModel::Independent(Probability::from_ppb(percent * 10_000_000)),
    };
    LinkConfig {
        rate,
        delay: Duration::from_millis(30),
        flow_delay: vec![],
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(Bytes::new(queue)),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

/// Windows that never limit.
fn transport(congestion: Arc<dyn ControllerFactory + Send + Sync>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(32 << 20);
    transport.congestion_controller_factory(congestion);
    transport.receive_window(window).stream_receive_window(window).send_window(32 << 20);
    Arc::new(transport)
}

fn configs(congestion: Arc<dyn ControllerFactory + Send + Sync>) -> (ServerConfig, ClientConfig) {
    let certified = rcgen::generate_simple_self_signed(["server".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = certified.signing_key.serialize_der();
    let transport = transport(congestion);
    let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key.try_into().unwrap()).unwrap();
    server.transport_config(Arc::clone(&transport));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    client.transport_config(transport);
    (server, client)
}

/// What arrives of one stream that is sent for `seconds` over 50 Mbit/s and 60 ms with a queue of one BDP, from its third second on.
fn goodput(congestion: Arc<dyn ControllerFactory + Send + Sync>, loss_percent: u32, seconds: u64) -> Rate {
    let (server_config, client_config) = configs(congestion);
    let session = Session::start(Setup {
        forward: &link(RateModel::Constant(Rate::from_mbps(50)), 375_000, loss_percent),
        back: &link(RateModel::Unlimited, 1 << 30, 0),
        data_from: DataFrom::Client,
        seed: 7,
        mtu: 1500,
        sysctls: &[],
        flows: 1,
        probe: false,
        log_packets: false,
        capture: None,
    })
    .unwrap();
    let address = SocketAddr::from((SERVER, FIRST_PORT));
    let server_socket = session.world.server.run(|| UdpSocket::bind(address).unwrap()).unwrap();
    let client_socket = session.world.client.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let measured = runtime.block_on(async move {
        let endpoint = |config: Option<ServerConfig>, socket| {
            Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime)).unwrap()
        };
        let server = endpoint(Some(server_config), server_socket);
        let receiver = tokio::spawn(async move {
            let connection = server.accept().await.unwrap().await.unwrap();
            let mut stream = connection.accept_uni().await.unwrap();
            let (mut buffer, mut counted, mut since) = (vec![0; 1 << 17], 0, Clock::now());
            let begun = since;
            let mut is_counting = false;
            while let Some(bytes) = stream.read(&mut buffer).await.unwrap() {
                if !is_counting && begun.elapsed() >= StdDuration::from_secs(2) {
                    (is_counting, since) = (true, Clock::now());
                } else if is_counting {
                    counted += bytes as u64;
                }
                if begun.elapsed() >= StdDuration::from_secs(seconds) {
                    break;
                }
            }
            let took = Duration::from(since.elapsed());
            connection.close(VarInt::from_u32(0), b"enough");
            server.wait_idle().await;
            Rate::from_transfer(Bytes::new(counted), took)
        });
        let mut client = endpoint(None, client_socket);
        client.set_default_client_config(client_config);
        let connection = client.connect(address, "server").unwrap().await.unwrap();
        let mut stream = connection.open_uni().await.unwrap();
        let data = vec![0; 1 << 16];
        // The receiver ends it.
        while stream.write_all(&data).await.is_ok() {}
        receiver.await.unwrap()
    });
    drop(runtime);
    let (_, outcome) = session.finish();
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    measured
}

fn bbr3() -> Arc<Factory> {
    Arc::new(Factory::bbr3(Params::default(), 1).unwrap())
}

#[test]
fn at_one_percent_loss_bbr3_carries_at_least_five_times_what_quinns_cubic_does() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let ours = goodput(bbr3(), 1, 12);
    let cubic = goodput(Arc::new(CubicConfig::default()), 1, 12);
    println!("BBRv3 {ours}, quinn's CUBIC {cubic}");
    assert!(ours.as_bps() >= 5 * cubic.as_bps(), "BBRv3 {ours}, quinn's CUBIC {cubic}");
}

/// For docs/congestion.md, on a machine that does nothing else: `cargo test -p linerate-lab --test quic -- --ignored --nocapture`.
fn print_all(loss_percent: u32) {
    let _one = alone();
    let all: [(&str, Arc<dyn ControllerFactory + Send + Sync>); 7] = [
        ("bbr3", bbr3()),
        ("bbr1", Arc::new(Factory::bbr1(1))),
        ("cubic", Arc::new(Factory::cubic(CubicParams::default()))),
        ("reno", Arc::new(Factory::reno())),
        ("quinn's cubic", Arc::new(CubicConfig::default())),
        ("quinn's new reno", Arc::new(NewRenoConfig::default())),
        ("quinn's bbr", Arc::new(BbrConfig::default())),
    ];
    for (name, congestion) in all {
        println!("{loss_percent} % {name}: {}", goodput(congestion, loss_percent, 8));
    }
}

#[test]
#[ignore = "takes a minute and only prints"]
fn every_control_without_loss() {
    testkit::require_root_or_skip!();
    print_all(0);
}

#[test]
#[ignore = "takes a minute and only prints"]
fn every_control_at_one_percent_loss() {
    testkit::require_root_or_skip!();
    print_all(1);
}
