//! What the program costs on this machine: nanoseconds per ACK in the kernel, and processor time of whole transfers against the kernel's own
//! BBR. Root; nothing else should run.
//!
//! `cargo run --release -p linerate-bbr3 --example cost [GIGABYTES] [REPEATS]`

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use bbr3::Running;
use common::{connect, load, shaped, transfer};
use testkit::Ends;

/// Sends `bytes` over one connection.
fn send(ends: &Ends, control: &str, bytes: u64) -> Duration {
    let server = ends.server.run(|| TcpListener::bind(SocketAddr::new(ends.server_addr, 0)).unwrap()).unwrap();
    let address = server.local_addr().unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut connection, _) = server.accept().unwrap();
        let mut buffer = vec![0; 1 << 18];
        while connection.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
    });
    let mut connection = ends.client.run(|| connect(address, control)).unwrap();
    let data = vec![0; 1 << 17];
    let start = Instant::now();
    for _ in 0..bytes / data.len() as u64 {
        connection.write_all(&data).unwrap();
    }
    drop(connection);
    receiver.join().unwrap();
    start.elapsed()
}

/// Processor time of everything since boot, interrupts included, in seconds.
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<f64> = text.lines().next().unwrap().split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    // user nice system idle iowait irq softirq steal
    (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / 100.0
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Switches the kernel's statistics on while this lives.
fn statistics() -> OwnedFd {
    // SAFETY: no pointer is passed; the descriptor is new and nobody else's.
    unsafe {
        let fd = libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME);
        assert!(fd >= 0, "switch BPF statistics on: {}", std::io::Error::from_raw_os_error(-fd));
        OwnedFd::from_raw_fd(fd)
    }
}

fn per_ack(title: &str, run: impl FnOnce(&str)) {
    let loaded = load(|_| {});
    let running = Running::find(loaded.name()).unwrap();
    let on = statistics();
    run(loaded.name());
    drop(on);
    let cost = running.cost();
    let each = |name: &str| {
        let of = cost.iter().find(|program| program.name == name).expect("the callback");
        (of.nanos as f64 / of.runs as f64, of.runs)
    };
    // The callback before each ACK does next to nothing: what is left is the kernel's reading of the clock.
    let ((per_ack, acks), (empty, _)) = (each("bbr3_cong_contr"), each("bbr3_in_ack"));
    println!("{title}: {per_ack:.0} ns per ACK ({acks} ACKs); an almost empty callback {empty:.0} ns");
}

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    // 0 repeats: no comparison.
    let (gigabytes, repeats) = (words.first().copied().unwrap_or(4), words.get(1).copied().unwrap_or(7));
    let bytes = gigabytes * 1_000_000_000;

    per_ack("in the program, 100 Mbit/s link with losses", |name| {
        transfer(&shaped("100mbit", 100_000), name, Duration::from_secs(8), || {});
    });
    let ends = Ends::over_veth();
    per_ack("in the program, unshaped veth pair", |name| {
        send(&ends, name, bytes);
    });

    if repeats == 0 {
        return;
    }
    let loaded = load(|_| {});
    let mut ratios = Vec::new();
    let mut all = [Vec::new(), Vec::new()];
    for repeat in 0..=repeats {
        let mut each = [0.0; 2];
        // Whoever comes second might find a warmer machine: take turns.
        let mut order = [0, 1];
        order.rotate_left((repeat % 2) as usize);
        for index in order {
            let control = [loaded.name(), "bbr"][index];
            let before = busy();
            let took = send(&ends, control, bytes);
            each[index] = (busy() - before) / gigabytes as f64;
            let name = ["bbr3", "bbr (kernel's)"][index];
            let rate = bytes as f64 * 8.0 / 1e9 / took.as_secs_f64();
            let note = if repeat == 0 { ", to warm up: not counted" } else { "" };
            println!("{name}: {:.3} s of processor time per GB at {rate:.1} Gbit/s{note}", each[index]);
        }
        if repeat > 0 {
            ratios.push(each[0] / each[1]);
            all[0].push(each[0]);
            all[1].push(each[1]);
        }
    }
    let [ours, kernels] = &mut all;
    println!("median: bbr3 {:.3} s/GB, the kernel's bbr {:.3} s/GB", median(ours), median(kernels));
    let middle = median(&mut ratios);
    println!("ratio, pair by pair: median {middle:.3}, {:.3} to {:.3}", ratios[0], ratios[ratios.len() - 1]);
}
