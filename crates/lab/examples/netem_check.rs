//! Holds a path by netem against what was asked for. Run by `tests/vm/netem-test` in virtual machines, since it needs a kernel with
//! netem: `netem_check` makes every check, `netem_check absent` wants the refusal on a kernel without it.

use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use host::netns::NetNs;
use linerate_lab::netem::{NetemError, NetemOutcome, NetemSession};
use linerate_lab::session::{DataFrom, FIRST_PORT, Setup};
use linerate_lab::world::{CLIENT, DEVICE, SERVER};
use nix::sys::socket::{setsockopt, sockopt};
use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use units::{Bytes, Duration, Probability, Rate};

/// Payload that makes a packet of 1500 bytes.
const PAYLOAD: usize = 1_472;
/// Packets that a sender hands over as one.
const BURST: u32 = 44;
const QUIET: StdDuration = StdDuration::from_millis(1_500);
/// A normal variable leaves this many standard deviations once in 10,000 times.
const SIGMAS: f64 = 3.89;

fn main() -> ExitCode {
    let mut report = Report::default();
    if std::env::args().nth(1).as_deref() == Some("absent") {
        let free = free();
        let refusal = start(&free, &free, DataFrom::Client, 1).err().map(|error| error.to_string()).unwrap_or_default();
        report.check(
            "a kernel without netem is refused with the command that loads it",
            refusal.contains("modprobe sch_netem"),
            refusal,
        );
        return report.end();
    }
    let before = devices();
    rate(&mut report);
    round_trip(&mut report);
    independent_loss(&mut report);
    burst_loss(&mut report);
    seeds(&mut report);
    single_packets(&mut report);
    full_queue(&mut report);
    tcp(&mut report);
    let after = devices();
    report.check("no device is left in the first namespace", before == after, format!("{before:?}, then {after:?}"));
    report.end()
}

#[derive(Default)]
struct Report {
    passed: u32,
    failed: u32,
}

impl Report {
    fn check(&mut self, sentence: &str, holds: bool, figures: impl Display) {
        if holds {
            self.passed += 1;
            println!("ok: {sentence}: {figures}");
        } else {
            self.failed += 1;
            println!("FAILED: {sentence}: {figures}");
        }
    }

    /// What every path must satisfy: nothing is lost but at the bottlenecks, and the hops agree on what passed.
    fn sound(&mut self, what: &str, outcome: &NetemOutcome) {
        let lost = outcome.device_dropped + outcome.up.delay_line_dropped + outcome.down.delay_line_dropped;
        let passed_on = [&outcome.up, &outcome.down]
            .iter()
            .all(|direction| direction.sent_packets == direction.delivered_packets + direction.on_their_way_packets);
        let figures = format!(
            "{lost} lost elsewhere, {} of {} and {} of {} delivered",
            outcome.up.delivered_packets,
            outcome.up.sent_packets,
            outcome.down.delivered_packets,
            outcome.down.sent_packets
        );
        self.check(&format!("{what}: packets are lost at the bottleneck only"), lost == 0 && passed_on, figures);
    }

    fn end(self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn devices() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

fn link(rate: RateModel, delay: Duration, packets: u32) -> LinkConfig {
    LinkConfig {
        rate,
        delay,
        flow_delay: vec![],
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::None,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Packets(packets),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

fn free() -> LinkConfig {
    link(RateModel::Unlimited, Duration::from_millis(1), 1)
}

fn start(forward: &LinkConfig, back: &LinkConfig, data_from: DataFrom, seed: u64) -> Result<NetemSession, NetemError> {
    NetemSession::start(Setup {
        forward,
        back,
        data_from,
        seed,
        mtu: 1_500,
        sysctls: &[],
        flows: 1,
        probe: false,
        log_packets: false,
        capture: None,
    })
}

/// Both ends, data's first, with the far one's address.
fn ends(session: &NetemSession, data_from: DataFrom) -> (NetNs, NetNs, SocketAddr) {
    let (client, server) = (session.client.clone(), session.server.clone());
    match data_from {
        DataFrom::Client => (client, server, SocketAddr::from((SERVER, FIRST_PORT))),
        DataFrom::Server => (server, client, SocketAddr::from((CLIENT, FIRST_PORT))),
    }
}

/// A datagram that arrived: its number, and when.
type Arrival = (u32, StdInstant);

/// Receives numbered datagrams until nothing comes any more.
fn receive(namespace: &NetNs, at: SocketAddr) -> JoinHandle<Vec<Arrival>> {
    let socket = namespace.run(|| UdpSocket::bind(at).unwrap()).unwrap();
    socket.set_read_timeout(Some(QUIET)).unwrap();
    setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20)).unwrap();
    std::thread::spawn(move || {
        let mut arrivals = Vec::new();
        let mut buffer = [0; 2_048];
        while socket.recv(&mut buffer).is_ok() {
            arrivals.push((u32::from_le_bytes(buffer[..4].try_into().unwrap()), StdInstant::now()));
        }
        arrivals
    })
}

fn sender(namespace: &NetNs, to: SocketAddr) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    socket.connect(to).unwrap();
    socket
}

/// Sends `count` numbered datagrams, some at a time with a pause between, and returns those that arrived.
fn numbered(
    session: &NetemSession,
    data_from: DataFrom,
    count: u32,
    payload: usize,
    at_a_time: u32,
    pause: StdDuration,
) -> Vec<Arrival> {
    let (from, to, address) = ends(session, data_from);
    let receiver = receive(&to, address);
    let socket = sender(&from, address);
    let mut datagram = vec![0; payload];
    for number in 0..count {
        datagram[..4].copy_from_slice(&number.to_le_bytes());
        socket.send(&datagram).unwrap();
        if number % at_a_time == at_a_time - 1 {
            std::thread::sleep(pause);
        }
    }
    receiver.join().unwrap()
}

/// Sends numbered datagrams of full size in bursts of `BURST`, each handed over as one, and returns those that arrived.
fn in_bursts(session: &NetemSession, data_from: DataFrom, bursts: u32) -> Vec<Arrival> {
    let (from, to, address) = ends(session, data_from);
    let receiver = receive(&to, address);
    let socket = sender(&from, address);
    setsockopt(&socket, sockopt::UdpGsoSegment, &(PAYLOAD as i32)).unwrap();
    let mut burst = vec![0; BURST as usize * PAYLOAD];
    for first in (0..bursts).map(|burst| burst * BURST) {
        for (number, datagram) in (first..).zip(burst.chunks_mut(PAYLOAD)) {
            datagram[..4].copy_from_slice(&number.to_le_bytes());
        }
        socket.send(&burst).unwrap();
    }
    receiver.join().unwrap()
}

fn rate(report: &mut Report) {
    for (data_from, overhead, name) in [
        (DataFrom::Client, 0, "from the client"),
        (DataFrom::Client, 38, "from the client, 38 bytes of overhead"),
        (DataFrom::Server, 0, "from the server"),
    ] {
        // Slow, so that a busy machine too hands over all packets long before the last one leaves.
        let mut forward = link(RateModel::Constant(Rate::from_mbps(2)), Duration::from_millis(10), 10_000);
        forward.overhead = Bytes::new(overhead);
        let session = start(&forward, &free(), data_from, 1).unwrap();
        let arrivals = in_bursts(&session, data_from, 25);
        let outcome = session.finish().unwrap();
        let data = if data_from == DataFrom::Client { &outcome.up } else { &outcome.down };
        // A busy virtual machine is late for some packets and early for none: the quickest ones of the first and of the last
        // quarter show the link's own pace.
        let packet_time = (1_500 + overhead) as f64 * 8.0 / 2e6;
        let offset = |(number, at): &Arrival| (*at - arrivals[0].1).as_secs_f64() - f64::from(*number) * packet_time;
        let quickest = |part: &[Arrival]| part.iter().map(offset).fold(f64::INFINITY, f64::min);
        let quarter = arrivals.len() / 4;
        let drift = quickest(&arrivals[3 * quarter..]) - quickest(&arrivals[..quarter]);
        let error = -drift / (3.0 * quarter as f64 * packet_time);
        let figures = format!("{:+.3} %, {} packets", error * 100.0, arrivals.len());
        report.check(&format!("the rate {name} is within 1 %"), error.abs() < 0.01 && arrivals.len() == 1_100, figures);
        let counted = data.sent_packets == 1_100 && data.sent_bytes == Bytes::new(1_500 * 1_100) && data.dropped == 0;
        let figures = format!("{} packets, {}, {} dropped", data.sent_packets, data.sent_bytes, data.dropped);
        report.check("every packet and its IP bytes are counted", counted, figures);
        report.sound(name, &outcome);
    }
}

/// Round trips over an otherwise idle path, shortest first.
fn round_trips(report: &mut Report, forward: Duration, back: Duration) -> Vec<StdDuration> {
    let [forward, back] = [forward, back].map(|delay| link(RateModel::Unlimited, delay, 1));
    let session = start(&forward, &back, DataFrom::Client, 1).unwrap();
    let echo = session.server.run(|| UdpSocket::bind((SERVER, FIRST_PORT)).unwrap()).unwrap();
    echo.set_read_timeout(Some(QUIET)).unwrap();
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((len, from)) = echo.recv_from(&mut buffer) {
            echo.send_to(&buffer[..len], from).unwrap();
        }
    });
    let socket = sender(&session.client, SocketAddr::from((SERVER, FIRST_PORT)));
    socket.set_read_timeout(Some(QUIET)).unwrap();
    let mut times: Vec<StdDuration> = (0..200)
        .map(|_| {
            let sent = StdInstant::now();
            socket.send(&[0; 64]).unwrap();
            socket.recv(&mut [0; 64]).unwrap();
            sent.elapsed()
        })
        .collect();
    echo.join().unwrap();
    report.sound("round trips", &session.finish().unwrap());
    times.sort();
    times
}

fn round_trip(report: &mut Report) {
    // What the machine itself takes for two timers, all the hops and both programs, under software emulation up to a
    // millisecond, is in both and falls out of their difference.
    let short = round_trips(report, Duration::from_millis(5), Duration::from_millis(5));
    let long = round_trips(report, Duration::from_millis(30), Duration::from_millis(10));
    let [ten, forty] = [10, 40].map(StdDuration::from_millis);
    let error = (long[0].as_secs_f64() - short[0].as_secs_f64() - 0.030) * 1e3;
    let figures = format!(
        "difference {error:+.3} ms; {:.2?}, {:.2?}, {:.2?} of 40 ms and {:.2?}, {:.2?}, {:.2?} of 10 ms (least, median, most)",
        long[0], long[100], long[199], short[0], short[100], short[199]
    );
    report.check("round-trip times are within 1 ms", error.abs() < 1.0 && long[0] >= forty && short[0] >= ten, figures);
}

fn lossy(loss: LossModel, seed: u64, count: u32) -> (Vec<u32>, NetemOutcome) {
    let forward = LinkConfig { loss, ..free() };
    let session = start(&forward, &free(), DataFrom::Client, seed).unwrap();
    let arrivals = numbered(&session, DataFrom::Client, count, 64, 50, StdDuration::from_millis(2));
    (arrivals.into_iter().map(|(number, _)| number).collect(), session.finish().unwrap())
}

fn independent_loss(report: &mut Report) {
    for (probability, count) in [(0.03, 30_000), (0.5, 5_000)] {
        let loss = LossModel::Independent(Probability::from_ppb((probability * 1e9) as u32));
        let (arrived, outcome) = lossy(loss, 11, count);
        let lost = f64::from(count) - arrived.len() as f64;
        let expected = f64::from(count) * probability;
        let interval = SIGMAS * (expected * (1.0 - probability)).sqrt();
        let figures = format!("{lost} of {count} lost, {expected} ± {interval:.0} expected");
        report.check("random loss is inside its binomial interval", (lost - expected).abs() < interval, figures);
        report.check("the qdisc counts the same losses", outcome.up.dropped as f64 == lost, outcome.up.dropped);
        report.check("packets keep their order", arrived.is_sorted(), arrived.len());
        report.sound("random loss", &outcome);
    }
}

fn burst_loss(report: &mut Report) {
    let (average, length, count) = (0.02, 5.0, 60_000_u32);
    let loss = LossModel::Burst { average: Probability::from_ppb(20_000_000), mean_burst_milli: 5_000 };
    let (arrived, outcome) = lossy(loss, 12, count);
    let bursts = arrived.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let lost = f64::from(count) - arrived.len() as f64;
    let expected = f64::from(count) * average;
    // Losses come in bursts of geometric length: their count varies by (2 x mean - 1) times what it would alone.
    let interval = SIGMAS * (expected * (2.0 * length - 1.0)).sqrt();
    let mean = lost / bursts as f64;
    // A geometric length varies by about its mean.
    let mean_interval = SIGMAS * length / (expected / length).sqrt();
    report.check(
        "loss in bursts has its average",
        (lost - expected).abs() < interval,
        format!("{lost} of {count} lost, {expected} ± {interval:.0} expected"),
    );
    report.check(
        "loss in bursts has its mean length",
        (mean - length).abs() < mean_interval,
        format!("{mean:.2} packets in {bursts} bursts, {length} ± {mean_interval:.2} expected"),
    );
    report.sound("bursts", &outcome);
}

fn seeds(report: &mut Report) {
    let loss = || LossModel::Independent(Probability::from_ppb(50_000_000));
    let (first, outcome) = lossy(loss(), 21, 3_000);
    let (again, _) = lossy(loss(), 21, 3_000);
    let (other, _) = lossy(loss(), 22, 3_000);
    let seeded = outcome.up.seeded;
    let figures = format!("seeded: {seeded}, same seed same losses: {}", first == again);
    report.check(
        "a seed repeats the losses where the kernel takes one",
        (first == again) == seeded && first != other,
        figures,
    );
}

/// Packets that a device of a namespace sent.
fn device_sent(namespace: &NetNs) -> u64 {
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':')).unwrap();
    line.split_whitespace().nth(9).unwrap().parse().unwrap()
}

fn single_packets(report: &mut Report) {
    for data_from in [DataFrom::Client, DataFrom::Server] {
        let forward = link(RateModel::Constant(Rate::from_mbps(10)), Duration::from_millis(5), 200);
        let session = start(&forward, &free(), data_from, 1).unwrap();
        let (from, _, _) = ends(&session, data_from);
        let before = device_sent(&from);
        let arrived = in_bursts(&session, data_from, 1).len();
        let whole = device_sent(&from) - before;
        let outcome = session.finish().unwrap();
        let data = if data_from == DataFrom::Client { &outcome.up } else { &outcome.down };
        let figures =
            format!("{whole} left the sender, {} passed the bottleneck, {arrived} arrived", data.sent_packets);
        report.check(
            "a burst of 44 packets in one is 44 packets at the bottleneck",
            (whole, data.sent_packets, arrived) == (1, 44, 44),
            figures,
        );
        report.sound("a burst", &outcome);
    }
    let forward = link(RateModel::Constant(Rate::from_mbps(50)), Duration::from_millis(5), 1_000);
    let session = start(&forward, &free(), DataFrom::Client, 1).unwrap();
    session.set_default_control("cubic").unwrap();
    let before = device_sent(&session.client);
    let (_, control) = transfer(&session, 64 << 10);
    let whole = device_sent(&session.client) - before;
    let outcome = session.finish().unwrap();
    // 46 segments of 1448 bytes, SYN, the handshake's last ACK and FIN; the ACK of the other side's FIN; FIN may ride along.
    let packets = outcome.up.sent_packets;
    let figures = format!("{packets} packets at the bottleneck, {whole} left the sender");
    report.check(
        "64 KiB of TCP are MTU packets at the bottleneck",
        (48..=51).contains(&packets) && whole < packets,
        figures,
    );
    report.check("the congestion control that was set for the ends is used", control == "cubic", control);
    report.sound("TCP, 64 KiB", &outcome);
}

fn full_queue(report: &mut Report) {
    // 120 ms a packet: all of the burst comes while the first one is being sent.
    let forward = link(RateModel::Constant(Rate::from_bps(100_000)), Duration::from_millis(5), 30);
    let session = start(&forward, &free(), DataFrom::Client, 1).unwrap();
    let arrived = in_bursts(&session, DataFrom::Client, 1).len();
    let outcome = session.finish().unwrap();
    let figures =
        format!("{arrived} arrived, {} dropped, most queued {}", outcome.up.dropped, outcome.up.backlog_max_packets);
    let seen = (25..=30).contains(&outcome.up.backlog_max_packets);
    report.check("a queue of 30 packets takes 30 of 44", (arrived, outcome.up.dropped) == (30, 14) && seen, figures);
    report.sound("a full queue", &outcome);
}

/// Sends `bytes` by TCP from the client, and returns how long it took until the last one was read, and the congestion control.
fn transfer(session: &NetemSession, bytes: usize) -> (StdDuration, String) {
    let listener = session.server.run(|| TcpListener::bind((SERVER, FIRST_PORT)).unwrap()).unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 17];
        let (mut got, mut first) = (0, None);
        while got < bytes {
            let len = stream.read(&mut buffer).unwrap();
            assert!(len > 0, "the sender ended after {got} of {bytes}");
            first.get_or_insert_with(StdInstant::now);
            got += len;
        }
        first.unwrap().elapsed()
    });
    let mut stream = session.client.run(|| TcpStream::connect((SERVER, FIRST_PORT)).unwrap()).unwrap();
    let control = nix::sys::socket::getsockopt(&stream, sockopt::TcpCongestion).unwrap();
    stream.write_all(&vec![0; bytes]).unwrap();
    let time = receiver.join().unwrap();
    // Both sides close; wait for the last byte that the other one sends, its FIN.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    (time, control.to_string_lossy().into_owned())
}

fn tcp(report: &mut Report) {
    // 5 Mbit/s x 40 ms, four BDP of queue: 66 packets.
    let forward = link(RateModel::Constant(Rate::from_mbps(5)), Duration::from_millis(20), 66);
    let back = link(RateModel::Unlimited, Duration::from_millis(20), 1);
    let bytes = 3_000_000;
    let goodput = (1..=3).map(|_| {
        let session = start(&forward, &back, DataFrom::Client, 1).unwrap();
        session.set_default_control("bbr").unwrap();
        let (time, control) = transfer(&session, bytes);
        let outcome = session.finish().unwrap();
        let goodput = bytes as f64 * 8.0 / time.as_secs_f64() / 1e6;
        println!(
            "    {control}: {goodput:.2} Mbit/s in {time:.1?}, {} packets, {} dropped, most queued {}",
            outcome.up.sent_packets, outcome.up.dropped, outcome.up.backlog_max_packets
        );
        report.check("the congestion control that was set for the ends is used", control == "bbr", control);
        report.sound("TCP", &outcome);
        goodput
    });
    let best = goodput.fold(0.0, f64::max);
    // 1448 of 1500 bytes are data: 4.83 Mbit/s at most. How near TCP comes is up to the machine: one that gets no processor time
    // for a while makes it wait.
    report.check(
        "TCP gets what the path has, and no more",
        best > 0.0 && best < 4.85,
        format!("{best:.2} Mbit/s of 4.83"),
    );
}
