//! All connections at one look, summed.

use core::net::IpAddr;
use std::collections::{HashMap, HashSet};

use facts::observed::{Bdp, Connections, PortUse};
use facts::socket::{self, Info, Sample};

/// Destinations beyond this many are not told apart: a host with so many spreads its ports well.
const MOST_DESTINATIONS: usize = 65_536;
/// What stands in the report.
const SHOWN: usize = 5;
/// Less than this was sent: the delivery rate says nothing about the path.
const LEAST_SENT: u64 = 100_000;

/// Adds up samples. It keeps nothing of a single connection.
#[derive(Debug)]
pub struct Tally {
    sums: Connections,
    /// The range of ephemeral ports.
    range: (u16, u16),
    /// Ports with listeners: connections there are incoming.
    listening: HashSet<u16>,
    /// By our address, and the destination's address and port: ports in use, and of them in TIME_WAIT.
    destinations: HashMap<(IpAddr, IpAddr, u16), (u64, u64)>,
    /// `tcp_rmem`'s third value.
    largest_receive_buffer: u64,
}

impl Tally {
    /// Starts at nothing. `range`: `ip_local_port_range`; `listening`: ports with listeners; `largest_receive_buffer`: the third value
    /// of `tcp_rmem`, in bytes, `u64::MAX` where it isn't known.
    pub fn new(range: (u16, u16), listening: impl IntoIterator<Item = u16>, largest_receive_buffer: u64) -> Self {
        Self {
            sums: Connections::default(),
            range,
            listening: listening.into_iter().collect(),
            destinations: HashMap::new(),
            largest_receive_buffer,
        }
    }

    /// Adds one socket.
    pub fn add(&mut self, sample: &Sample) {
        *self.sums.states.entry(state(sample.state).to_owned()).or_default() += 1;
        if sample.state == socket::LISTEN {
            return;
        }
        let control = sample.control_name();
        if !control.is_empty() {
            match self.sums.controls.get_mut(control) {
                Some(count) => *count += 1,
                None => drop(self.sums.controls.insert(control.to_owned(), 1)),
            }
        }
        self.port(sample);
        if sample.remote.ip().is_loopback() {
            return;
        }
        if let Some(info) = &sample.info {
            self.connection(sample, info);
        }
    }

    fn port(&mut self, sample: &Sample) {
        let port = sample.local.port();
        if !(self.range.0..=self.range.1).contains(&port) || self.listening.contains(&port) {
            return;
        }
        let key = (sample.local.ip(), sample.remote.ip(), sample.remote.port());
        if !self.destinations.contains_key(&key) && self.destinations.len() >= MOST_DESTINATIONS {
            return;
        }
        let (used, waiting) = self.destinations.entry(key).or_default();
        *used += 1;
        *waiting += u64::from(sample.state == socket::TIME_WAIT);
    }

    fn connection(&mut self, sample: &Sample, info: &Info) {
        let sums = &mut self.sums;
        if sample.state == socket::ESTABLISHED {
            let has = |bit: u8| u64::from(info.options & bit != 0);
            sums.remote_established += 1;
            sums.timestamps += has(socket::OPTION_TIMESTAMPS);
            sums.sack += has(socket::OPTION_SACK);
            sums.window_scaling += has(socket::OPTION_WINDOW_SCALING);
            sums.ecn += has(socket::OPTION_ECN);
            sums.ecn_seen += has(socket::OPTION_ECN_SEEN);
        }
        sums.held.busy_us = sums.held.busy_us.saturating_add(info.busy_us);
        sums.held.rwnd_limited_us = sums.held.rwnd_limited_us.saturating_add(info.rwnd_limited_us);
        sums.held.sndbuf_limited_us = sums.held.sndbuf_limited_us.saturating_add(info.sndbuf_limited_us);
        if let Some(bytes) = send_bdp(info).filter(|_| info.bytes_acked >= LEAST_SENT)
            && sums.largest_bdp.as_ref().is_none_or(|largest| bytes > largest.bytes)
        {
            sums.largest_bdp = Some(Bdp {
                bytes,
                rate_bps: info.delivery_rate.saturating_mul(8),
                min_rtt_us: info.min_rtt_us.unwrap_or(0),
                port: sample.local.port(),
                remote: sample.remote.ip(),
            });
        }
        let full = sample.memory.is_some_and(|memory| u64::from(memory.receive_buffer) >= self.largest_receive_buffer);
        sums.receive_buffers_full += u64::from(full && info.bytes_received >= LEAST_SENT);
    }

    /// The sums.
    pub fn finish(mut self) -> Connections {
        let mut ports: Vec<PortUse> = self
            .destinations
            .into_iter()
            .map(|((local, remote, remote_port), (used, time_wait))| PortUse {
                local,
                remote,
                remote_port,
                used,
                time_wait,
            })
            .collect();
        ports.sort_by_key(|port| (core::cmp::Reverse(port.used), port.remote, port.remote_port, port.local));
        ports.truncate(SHOWN);
        self.sums.ports = ports;
        self.sums
    }
}

/// Delivery rate x least round-trip time: what was in flight without a queue.
pub(super) fn send_bdp(info: &Info) -> Option<u64> {
    let rtt = info.min_rtt_us?;
    Some((u128::from(info.delivery_rate) * u128::from(rtt) / 1_000_000) as u64)
}

/// include/net/tcp_states.h
fn state(number: u8) -> &'static str {
    match number {
        1 => "established",
        2 => "syn-sent",
        3 | 12 => "syn-recv",
        4 => "fin-wait-1",
        5 => "fin-wait-2",
        6 => "time-wait",
        7 => "closed",
        8 => "close-wait",
        9 => "last-ack",
        10 => "listen",
        11 => "closing",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn ports_count_by_destination_and_connections_to_listeners_do_not() {
        let mut tally = Tally::new((32_768, 60_999), [40_000], u64::MAX);
        for port in 50_000..50_010u16 {
            let state = if port < 50_004 { socket::TIME_WAIT } else { socket::ESTABLISHED };
            tally.add(&Sample::new(state, at(&format!("192.0.2.1:{port}")), at("198.51.100.1:5432")));
        }
        tally.add(&Sample::new(1, at("192.0.2.1:40000"), at("198.51.100.1:5432")));
        tally.add(&Sample::new(1, at("192.0.2.1:443"), at("198.51.100.1:5432")));
        tally.add(&Sample::new(1, at("192.0.2.1:50001"), at("198.51.100.2:5432")));
        let sums = tally.finish();
        assert_eq!((sums.ports[0].used, sums.ports[0].time_wait, sums.ports[0].remote_port), (10, 4, 5432));
        assert_eq!(sums.ports.len(), 2);
        assert_eq!((sums.states["established"], sums.states["time-wait"]), (9, 4));
    }

    #[test]
    fn options_and_limits_are_those_of_connections_to_elsewhere() {
        let mut tally = Tally::new((1, 0), [], 1_000_000);
        let info = Info {
            options: socket::OPTION_TIMESTAMPS | socket::OPTION_ECN,
            busy_us: 100,
            sndbuf_limited_us: 40,
            min_rtt_us: Some(80_000),
            delivery_rate: 12_500_000,
            bytes_acked: 1 << 20,
            ..Info::default()
        };
        let remote = Sample { info: Some(info), ..Sample::new(1, at("192.0.2.1:443"), at("198.51.100.1:5432")) };
        let local = Sample { remote: at("127.0.0.1:1"), ..remote };
        tally.add(&remote);
        tally.add(&local);
        let sums = tally.finish();
        assert_eq!((sums.remote_established, sums.timestamps, sums.ecn, sums.sack), (1, 1, 1, 0));
        assert_eq!((sums.held.busy_us, sums.held.sndbuf_limited_us), (100, 40));
        // 100 Mbit/s x 80 ms.
        assert_eq!(sums.largest_bdp.unwrap().bytes, 1_000_000);
    }
}
