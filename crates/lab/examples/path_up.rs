//! Brings a path up and runs a shell command at its client end; for trying things by hand.
//! `cargo run --release -p linerate-lab --example path_up -- 1gbit 80ms 0% 1000 'iperf3 -c 198.18.0.2'` (queue in ms of RTT milli-BDP).

use linerate_lab::session::{DataFrom, Session, Setup};
use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use units::{Bytes, Duration, Probability, Rate};

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let rate: Rate = a[1].parse().unwrap();
    let rtt: Duration = a[2].parse().unwrap();
    let loss: Probability = a[3].parse().unwrap();
    let bdp_milli: u64 = a[4].parse().unwrap();
    let link = |rate: RateModel, loss: Probability, limit: u64| LinkConfig {
        rate,
        delay: rtt / 2,
        flow_delay: vec![],
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: if loss == Probability::ZERO { LossModel::None } else { LossModel::Independent(loss) },
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(Bytes::new(limit)),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    };
    let forward = link(RateModel::Constant(rate), loss, rate.bdp(rtt).as_u64() * bdp_milli / 1000);
    let back = link(RateModel::Unlimited, Probability::ZERO, 1 << 30);
    let sysctls: Vec<(String, String)> = [
        ("net.ipv4.tcp_rmem", "4096 131072 268435456"),
        ("net.ipv4.tcp_wmem", "4096 16384 268435456"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into();
    let session = Session::start(Setup {
        forward: &forward,
        back: &back,
        data_from: DataFrom::Client,
        seed: 1,
        mtu: 1500,
        sysctls: &sysctls,
        flows: 1,
        probe: true,
        log_packets: false,
        capture: None,
    })
    .unwrap();
    session.world.set_default_control("cubic").unwrap();
    let mut server = session.world.server.command("iperf3").args(["-s"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let _ = session.world.client.command("sh").args(["-c", &a[5]]).status();
    server.kill().unwrap();
    server.wait().unwrap();
    let (world, outcome) = session.finish();
    for (name, d) in [("up", &outcome.up), ("down", &outcome.down)] {
        println!("{name}: {:?}", d.counters);
        println!(
            "  lateness p50 {} p99 {} p99.9 {} max {}; intake p99.9 {} max {}; outside {:?}",
            d.lateness.quantile(0.5), d.lateness.quantile(0.99), d.lateness.quantile(0.999), d.lateness.max(),
            d.intake.quantile(0.999), d.intake.max(), d.outside,
        );
    }
    println!("device drops {}; realtime {}; memory {} MiB; error {:?}", world.device_drops().unwrap(), outcome.realtime, outcome.memory_bytes >> 20, outcome.error);
}
