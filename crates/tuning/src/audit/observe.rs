//! Many looks at all connections, summed over an interval: what held them, how far away the others are, how fast data was delivered.
//!
//! Of each connection some hundred bytes are kept, of each group a distribution in a few kilobytes; neither grows with time.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::{HashMap, HashSet};

use facts::observed::{Group, Held, Observed};
use facts::socket::{Info, Sample};
use facts::{Counters, socket};
use units::Duration;

use super::histogram::Histogram;
use super::tally::send_bdp;

/// Groups that are kept apart; what comes later counts only in the total.
const MOST_PORTS: usize = 1_024;
const MOST_NETWORKS: usize = 4_096;
/// What stands in the report.
const SHOWN: usize = 20;
/// Sending at least so many segments of a delivery rate makes it one of the path, not of a burst.
const LEAST_SENT: u64 = 100_000;

/// What is remembered of a connection from one look to the next.
#[derive(Debug, Clone, Copy)]
struct Before {
    busy_us: u64,
    rwnd_limited_us: u64,
    sndbuf_limited_us: u64,
    bytes_acked: u64,
    bytes_received: u64,
    data_segments: u32,
    retransmitted: u32,
    spurious: u32,
    look: u32,
    port: u32,
    network: u32,
}

/// The place in which groups beyond the limit have no entry.
const NO_GROUP: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Sums {
    group: Group,
    rtt: Histogram,
    min_rtt: Histogram,
    rate: Histogram,
}

/// What one connection did between two looks.
struct Step {
    held: Held,
    sent: u64,
    received: u64,
    data: u64,
    retransmitted: u64,
    spurious: u64,
    receive_rate: Option<u64>,
    window_full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Port {
    /// Others connect to it.
    Own(u16),
    /// We connect to it.
    Other(u16),
}

/// Takes looks at all sockets and adds them up.
#[derive(Debug)]
pub struct Observer {
    listening: HashSet<u16>,
    largest_receive_buffer: u64,
    sockets: HashMap<u64, Before>,
    total: Sums,
    ports: Vec<Sums>,
    port_numbers: HashMap<Port, u32>,
    networks: Vec<Sums>,
    network_numbers: HashMap<IpAddr, u32>,
    networks_left_out: u64,
    looks: u32,
    now: Duration,
    before: Option<Duration>,
    failed: u64,
    failure: Option<String>,
}

impl Observer {
    /// Starts at nothing. `listening`: ports with listeners; `largest_receive_buffer`: the third value of `tcp_rmem`, in bytes.
    pub fn new(listening: impl IntoIterator<Item = u16>, largest_receive_buffer: u64) -> Self {
        Self {
            listening: listening.into_iter().collect(),
            largest_receive_buffer,
            sockets: HashMap::new(),
            total: Sums::default(),
            ports: Vec::new(),
            port_numbers: HashMap::new(),
            networks: Vec::new(),
            network_numbers: HashMap::new(),
            networks_left_out: 0,
            looks: 0,
            now: Duration::ZERO,
            before: None,
            failed: 0,
            failure: None,
        }
    }

    /// A look begins, so long after the first one.
    pub fn begin(&mut self, now: Duration) {
        self.before = (self.looks > 0).then_some(self.now);
        self.now = now;
        self.looks += 1;
    }

    /// The look is over: connections that it did not show are gone.
    pub fn end(&mut self) {
        let look = self.looks;
        self.sockets.retain(|_, before| before.look == look);
    }

    /// The look failed: what it did not show is not gone.
    pub fn failed(&mut self, why: String) {
        self.failed += 1;
        self.failure = Some(why);
    }

    /// How many looks there were.
    pub fn looks(&self) -> u64 {
        u64::from(self.looks)
    }

    /// Connections that the last look showed, those over `lo` not counted.
    pub fn open(&self) -> usize {
        self.sockets.len()
    }

    /// Busy time so far, and what held it.
    pub fn held(&self) -> Held {
        self.total.group.held
    }

    /// Adds one socket. Those over `lo`, and those that carry no data, are passed over.
    pub fn add(&mut self, sample: &Sample) {
        let Some(info) = &sample.info else { return };
        if sample.remote.ip().is_loopback() || sample.state == socket::LISTEN {
            return;
        }
        let known = self.sockets.get(&sample.cookie).copied();
        if known.is_some_and(|before| before.look == self.looks) {
            // The kernel showed it twice: it moved between two of its lists.
            return;
        }
        let before = match known {
            Some(before) => before,
            None => self.first(sample, info),
        };
        let step = self.step(sample, info, &before, known.is_some());
        let mut to: Vec<&mut Sums> = vec![&mut self.total];
        to.extend(self.ports.get_mut(before.port as usize));
        to.extend(self.networks.get_mut(before.network as usize));
        for sums in to {
            sums.group.connections += u64::from(known.is_none());
            sums.add(info, &step);
        }
        let now = Before {
            busy_us: info.busy_us,
            rwnd_limited_us: info.rwnd_limited_us,
            sndbuf_limited_us: info.sndbuf_limited_us,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            data_segments: info.data_segments_out,
            retransmitted: info.retransmitted_segments,
            spurious: info.spurious_segments,
            look: self.looks,
            ..before
        };
        self.sockets.insert(sample.cookie, now);
    }

    /// A connection that is new: opened since the last look, and then all it did counts, or there from before.
    fn first(&mut self, sample: &Sample, info: &Info) -> Before {
        let port = sample.local.port();
        let port = if self.listening.contains(&port) { Port::Own(port) } else { Port::Other(sample.remote.port()) };
        let port_name = match port {
            Port::Own(port) => format!("port {port}"),
            Port::Other(port) => format!("to port {port}"),
        };
        let network = network(sample.remote.ip());
        let prefix = if network.is_ipv4() { 24 } else { 48 };
        let fresh = Before {
            busy_us: 0,
            rwnd_limited_us: 0,
            sndbuf_limited_us: 0,
            bytes_acked: 0,
            bytes_received: 0,
            data_segments: 0,
            retransmitted: 0,
            spurious: 0,
            look: 0,
            port: number(&mut self.ports, &mut self.port_numbers, MOST_PORTS, port, port_name).unwrap_or(NO_GROUP),
            network: number(
                &mut self.networks,
                &mut self.network_numbers,
                MOST_NETWORKS,
                network,
                format!("{network}/{prefix}"),
            )
            .unwrap_or_else(|| {
                self.networks_left_out += 1;
                NO_GROUP
            }),
        };
        // A look may have missed it: what is older than the interval is not new.
        if self.before.is_some() && info.busy_us <= self.now.as_micros() {
            return fresh;
        }
        Before {
            busy_us: info.busy_us,
            rwnd_limited_us: info.rwnd_limited_us,
            sndbuf_limited_us: info.sndbuf_limited_us,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            data_segments: info.data_segments_out,
            retransmitted: info.retransmitted_segments,
            spurious: info.spurious_segments,
            ..fresh
        }
    }

    fn step(&self, sample: &Sample, info: &Info, before: &Before, is_known: bool) -> Step {
        let busy = info.busy_us.saturating_sub(before.busy_us);
        let rwnd = info.rwnd_limited_us.saturating_sub(before.rwnd_limited_us);
        let sndbuf = info.sndbuf_limited_us.saturating_sub(before.sndbuf_limited_us);
        let more_to_send = info.unsent > 0 || info.unacked_segments >= info.cwnd_segments.max(1);
        let rest = busy.saturating_sub(rwnd).saturating_sub(sndbuf);
        let received = info.bytes_received.saturating_sub(before.bytes_received);
        let elapsed = self.before.filter(|_| is_known).map_or(0, |before| self.now.saturating_sub(before).as_micros());
        let receive_rate = (elapsed > 0 && received > 0)
            .then(|| (u128::from(received) * 1_000_000 / u128::from(elapsed)).min(u128::from(u64::MAX)) as u64);
        let full = sample.memory.is_some_and(|memory| u64::from(memory.receive_buffer) >= self.largest_receive_buffer);
        let filled = receive_rate.and_then(|rate| receive_bdp(info, rate));
        // Half of the window in each round trip: the other half is on its way back as acknowledgements.
        let window_full = full
            && info.receive_window > 0
            && filled.is_some_and(|bytes| bytes.saturating_mul(2) >= u64::from(info.receive_window));
        Step {
            held: Held {
                busy_us: busy,
                rwnd_limited_us: rwnd,
                sndbuf_limited_us: sndbuf,
                cwnd_limited_us: if more_to_send && !info.app_limited { rest } else { 0 },
            },
            sent: info.bytes_acked.saturating_sub(before.bytes_acked),
            received,
            data: u64::from(info.data_segments_out.wrapping_sub(before.data_segments)),
            retransmitted: u64::from(info.retransmitted_segments.wrapping_sub(before.retransmitted)),
            spurious: u64::from(info.spurious_segments.wrapping_sub(before.spurious)),
            receive_rate,
            window_full,
        }
    }

    /// What it came to. `took`: the interval; `wanted`: how long it should have been; `counters`: how much the protocols' counters grew.
    pub fn finish(self, took: Duration, wanted: Duration, counters: Counters) -> Observed {
        let groups = |all: Vec<Sums>| {
            let mut groups: Vec<Group> = all.into_iter().map(Sums::group).collect();
            let weight = |group: &Group| (group.held.busy_us, group.sent_bytes.saturating_add(group.received_bytes));
            groups.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| a.name.cmp(&b.name)));
            groups
        };
        let (mut ports, mut networks) = (groups(self.ports), groups(self.networks));
        let left_out = self.networks_left_out + networks.len().saturating_sub(SHOWN) as u64;
        ports.truncate(SHOWN);
        networks.truncate(SHOWN);
        let mut total = self.total.group();
        total.name = "all".to_owned();
        Observed {
            seconds: took.as_secs_f64(),
            wanted_seconds: wanted.as_secs_f64(),
            // The last look is at the interval's end, give or take a look's own time.
            partial: took < wanted,
            looks: u64::from(self.looks),
            failed_looks: self.failed,
            failure: self.failure,
            connections: total.connections,
            total,
            ports,
            networks,
            networks_left_out: left_out,
            counters,
        }
    }
}

impl Sums {
    fn add(&mut self, info: &Info, step: &Step) {
        let group = &mut self.group;
        group.held.busy_us += step.held.busy_us;
        group.held.rwnd_limited_us += step.held.rwnd_limited_us;
        group.held.sndbuf_limited_us += step.held.sndbuf_limited_us;
        group.held.cwnd_limited_us += step.held.cwnd_limited_us;
        group.sent_bytes = group.sent_bytes.saturating_add(step.sent);
        group.received_bytes = group.received_bytes.saturating_add(step.received);
        group.data_segments += step.data;
        group.retransmitted_segments += step.retransmitted;
        group.spurious_segments += step.spurious;
        if step.held.busy_us > 0 || step.received > 0 {
            if info.rtt_us > 0 {
                self.rtt.add(info.rtt_us.into());
            }
            if let Some(rtt) = info.min_rtt_us {
                self.min_rtt.add(rtt.into());
            }
        }
        if step.sent > 0 && !info.app_limited && info.delivery_rate > 0 && info.bytes_acked >= LEAST_SENT {
            self.rate.add(info.delivery_rate.saturating_mul(8));
            let bdp = send_bdp(info);
            group.send_bdp_bytes = group.send_bdp_bytes.max(bdp);
        }
        if let Some(rate) = step.receive_rate {
            group.receiving_looks += 1;
            group.receive_window_limited_looks += u64::from(step.window_full);
            group.receive_bdp_bytes = group.receive_bdp_bytes.max(receive_bdp(info, rate));
        }
    }

    fn group(self) -> Group {
        Group {
            rtt_us: self.rtt.spread(),
            min_rtt_us: self.min_rtt.spread(),
            delivery_rate_bps: self.rate.spread(),
            ..self.group
        }
    }
}

/// What comes in within one round trip. The handshake's time is the path's; the receiver's own estimate is longer where a queue is.
fn receive_bdp(info: &Info, rate: u64) -> Option<u64> {
    let rtt = info.min_rtt_us.or_else(|| (info.receiver_rtt_us > 0).then_some(info.receiver_rtt_us))?;
    Some((u128::from(rate) * u128::from(rtt) / 1_000_000) as u64)
}

/// The number of a group, which is made where there is room.
fn number<K: core::hash::Hash + Eq>(
    groups: &mut Vec<Sums>,
    numbers: &mut HashMap<K, u32>,
    most: usize,
    key: K,
    name: String,
) -> Option<u32> {
    if let Some(number) = numbers.get(&key) {
        return Some(*number);
    }
    if groups.len() >= most {
        return None;
    }
    let number = groups.len() as u32;
    groups.push(Sums { group: Group { name, ..Group::default() }, ..Sums::default() });
    numbers.insert(key, number);
    Some(number)
}

/// The first 24 bits of an IPv4 address, the first 48 of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            Ipv4Addr::new(a, b, c, 0).into()
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cookie: u64, info: Info) -> Sample {
        let at = |text: &str| text.parse().unwrap();
        Sample { cookie, info: Some(info), ..Sample::new(1, at("192.0.2.1:443"), at("198.51.100.7:5000")) }
    }

    fn busy(busy_us: u64, sndbuf: u64, rwnd: u64) -> Info {
        Info { busy_us, sndbuf_limited_us: sndbuf, rwnd_limited_us: rwnd, cwnd_segments: 10, ..Info::default() }
    }

    fn look(observer: &mut Observer, at_ms: u64, samples: &[Sample]) {
        observer.begin(Duration::from_millis(at_ms));
        samples.iter().for_each(|sample| observer.add(sample));
        observer.end();
    }

    fn finish(observer: Observer) -> Observed {
        observer.finish(Duration::from_secs(2), Duration::from_secs(2), Counters::default())
    }

    #[test]
    fn only_what_happens_between_looks_counts() {
        let mut observer = Observer::new([443], 1 << 20);
        look(&mut observer, 0, &[sample(1, busy(9_000_000, 9_000_000, 0))]);
        look(&mut observer, 1_000, &[sample(1, busy(9_800_000, 9_200_000, 300_000))]);
        let seen = finish(observer);
        let held = seen.total.held;
        assert_eq!((held.busy_us, held.sndbuf_limited_us, held.rwnd_limited_us), (800_000, 200_000, 300_000));
        assert_eq!((seen.connections, seen.ports[0].name.as_str()), (1, "port 443"));
        assert_eq!(seen.networks[0].name, "198.51.100.0/24");
        assert!(!seen.partial);
    }

    #[test]
    fn a_connection_opened_in_between_counts_whole_and_one_that_was_missed_does_not() {
        let mut observer = Observer::new([], 1 << 20);
        look(&mut observer, 0, &[]);
        look(&mut observer, 1_000, &[sample(1, busy(500_000, 0, 0)), sample(2, busy(7_000_000, 0, 0))]);
        let seen = finish(observer);
        assert_eq!(seen.total.held.busy_us, 500_000);
        assert_eq!((seen.connections, seen.ports[0].name.as_str()), (2, "to port 5000"));
    }

    #[test]
    fn the_congestion_window_holds_only_while_there_is_more_to_send() {
        let at_second = |unsent: u32, app_limited: bool| {
            let mut observer = Observer::new([], 1 << 20);
            look(&mut observer, 0, &[sample(1, busy(0, 0, 0))]);
            let info = Info { unsent, app_limited, ..busy(1_000_000, 100_000, 100_000) };
            look(&mut observer, 1_000, &[sample(1, info)]);
            finish(observer).total.held.cwnd_limited_us
        };
        assert_eq!(at_second(5_000, false), 800_000);
        assert_eq!(at_second(0, false), 0);
        assert_eq!(at_second(5_000, true), 0);
    }

    #[test]
    fn a_full_receive_window_is_seen_by_what_comes_in_a_round_trip() {
        let run = |received: u64, buffer: u32| {
            let mut observer = Observer::new([], 6_291_456);
            let with = |bytes| {
                let info = Info {
                    bytes_received: bytes,
                    min_rtt_us: Some(100_000),
                    receive_window: 3_000_000,
                    ..Info::default()
                };
                let memory = facts::Memory { receive_buffer: buffer, ..facts::Memory::default() };
                Sample { memory: Some(memory), ..sample(1, info) }
            };
            look(&mut observer, 0, &[with(0)]);
            look(&mut observer, 1_000, &[with(received)]);
            let total = finish(observer).total;
            (total.receive_window_limited_looks, total.receiving_looks, total.receive_bdp_bytes)
        };
        assert_eq!(run(25_000_000, 6_291_456), (1, 1, Some(2_500_000)));
        assert_eq!(run(10_000_000, 6_291_456), (0, 1, Some(1_000_000)), "a third of the window");
        assert_eq!(run(25_000_000, 1_000_000), (0, 1, Some(2_500_000)), "the buffer can still grow");
    }

    #[test]
    fn the_same_socket_twice_in_a_look_counts_once_and_lo_does_not() {
        let mut observer = Observer::new([], 1);
        let local = Sample { remote: "127.0.0.1:1".parse().unwrap(), ..sample(9, busy(1, 0, 0)) };
        look(&mut observer, 0, &[]);
        look(&mut observer, 1_000, &[sample(1, busy(10, 0, 0)), sample(1, busy(20, 0, 0)), local]);
        let seen = finish(observer);
        assert_eq!((seen.connections, seen.total.held.busy_us), (1, 10));
    }

    #[test]
    fn many_networks_are_counted_and_not_kept() {
        let mut observer = Observer::new([], 1);
        observer.begin(Duration::ZERO);
        for number in 0..5_000u32 {
            let remote = core::net::SocketAddr::new(Ipv4Addr::from(number << 8 | 0x0a00_0001).into(), 80);
            observer.add(&Sample { remote, cookie: number.into(), ..sample(0, busy(1, 0, 0)) });
        }
        observer.end();
        let seen = finish(observer);
        assert_eq!((seen.connections, seen.networks.len()), (5_000, SHOWN));
        assert_eq!(seen.networks_left_out, 5_000 - SHOWN as u64);
    }
}
