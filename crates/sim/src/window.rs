//! The receive window: how much the receiver takes, and how it grows (dynamic right-sizing).
//!
//! After Linux 6.18's `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`, `tcp_grow_window` and `__tcp_select_window`, with the application
//! always reading at once.

use units::{Bytes, Duration, Instant};

/// Socket buffers of an end, as `net.ipv4.tcp_rmem` and `tcp_wmem` set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// `tcp_rmem`, second value: the receive buffer at the start.
    pub receive_initial: Bytes,
    /// `tcp_rmem`, third value: what it can grow to.
    pub receive_most: Bytes,
    /// `tcp_wmem`, third value: what the send buffer can grow to.
    pub send_most: Bytes,
    /// How many of 256 bytes of buffer hold payload; the rest is the kernel's overhead (`scaling_ratio` in Linux).
    pub payload_per_256: u32,
}

impl Default for Buffers {
    /// Linux's own, on a machine with enough memory.
    fn default() -> Self {
        Self {
            receive_initial: Bytes::new(131_072),
            receive_most: Bytes::new(6_291_456),
            send_most: Bytes::new(4_194_304),
            payload_per_256: PAYLOAD_PER_256,
        }
    }
}

/// Fitted to Linux 6.18 in the lab. It is 169 where each segment lies in a buffer of its own (2304 bytes for 1448), and more where bursts come in
/// one piece; a constant of 213 is within 3 % of what BBRv1 gets in five cells that the receive window limits (docs/measurements/sim.md).
pub const PAYLOAD_PER_256: u32 = 213;
/// The first window that Linux offers: what a receive buffer of 128 KiB is taken to hold before there was data.
const FIRST_WINDOW: u64 = 65_535;
/// Initial window of the sender in segments (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;

#[derive(Debug)]
pub(crate) struct Window {
    mss: u64,
    buffers: Buffers,
    /// The receive buffer now.
    buffer: u64,
    /// `rcv_ssthresh`: what may be offered so far; grows with what arrives.
    offered_most: u64,
    /// First segment not offered; never goes back.
    right_edge: u64,
    /// Receiver's estimate of the round-trip time, smoothed.
    round_trip_ns: u64,
    /// Bytes read in the best round trip so far, and the one going on.
    best: u64,
    read: u64,
    since: Instant,
    /// Segments beyond the first hole, for the span they cover.
    held: u64,
}

impl Window {
    pub fn new(buffers: Buffers, mss: u32) -> Self {
        let buffer = buffers.receive_initial.as_u64().min(buffers.receive_most.as_u64());
        let mss = u64::from(mss.max(1));
        let mut window = Self {
            mss,
            buffers,
            buffer,
            offered_most: 0,
            right_edge: 0,
            round_trip_ns: 0,
            best: INITIAL_SEGMENTS * mss,
            read: 0,
            since: Instant::ZERO,
            held: 0,
        };
        window.offered_most = window.capacity().min(FIRST_WINDOW);
        window.right_edge = (window.offered_most / mss).max(1);
        window
    }

    pub fn right_edge(&self) -> u64 {
        self.right_edge
    }

    pub fn round_trip(&self) -> Duration {
        Duration::from_nanos(self.round_trip_ns)
    }

    /// `tcp_win_from_space`.
    fn capacity(&self) -> u64 {
        (u128::from(self.buffer) * u128::from(self.buffers.payload_per_256) / 256) as u64
    }

    /// `tcp_rcv_rtt_measure_ts`: the segment echoes the timestamp of an ACK sent at `echo`.
    #[inline]
    pub fn note_round_trip(&mut self, now: Instant, echo: Instant) {
        if echo == Instant::MAX {
            return;
        }
        let sample = now.since(echo).as_nanos();
        self.round_trip_ns =
            if self.round_trip_ns == 0 { sample } else { self.round_trip_ns - self.round_trip_ns / 8 + sample / 8 };
    }

    /// Payload became readable and was read; `held` segments still wait behind a hole.
    #[inline]
    pub fn in_order(&mut self, now: Instant, payload: u64, held: u64) {
        self.held = held;
        self.read += payload;
        self.allow(2 * payload);
        if self.round_trip_ns > 0 && now.since(self.since).as_nanos() >= self.round_trip_ns {
            self.adjust();
            self.read = 0;
            self.since = now;
        }
    }

    /// A segment arrived behind a hole; `held` wait there now.
    pub fn out_of_order(&mut self, held: u64) {
        self.held = held;
        self.allow(2 * self.mss);
    }

    /// `tcp_grow_window`.
    fn allow(&mut self, more: u64) {
        let most = self.capacity();
        if self.offered_most < most {
            self.offered_most = (self.offered_most + more).min(most);
        }
    }

    /// `tcp_rcvbuf_grow`.
    fn adjust(&mut self) {
        if self.read <= self.best {
            return;
        }
        let (old, new) = (self.best.max(1), self.read);
        self.best = new;
        let double = new.saturating_mul(2);
        let grow = u128::from(double) * u128::from(new - old) / u128::from(old);
        let wanted = u128::from(double) + 2 * grow + u128::from(self.held * self.mss);
        let space = wanted * 256 / u128::from(self.buffers.payload_per_256.max(1));
        let space = u64::try_from(space).unwrap_or(u64::MAX).min(self.buffers.receive_most.as_u64());
        self.buffer = self.buffer.max(space);
    }

    /// `__tcp_select_window`: what is held behind holes takes room, and what was offered stays offered.
    pub fn advertise(&mut self, cumulative: u64, held: u64) -> u64 {
        let free = self.capacity().saturating_sub(held * self.mss).min(self.offered_most);
        let segments = free / self.mss;
        // A buffer smaller than a segment still takes one at a time.
        let segments = if held == 0 { segments.max(1) } else { segments };
        self.right_edge = self.right_edge.max(cumulative + segments);
        self.right_edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(most: u64) -> Window {
        Window::new(Buffers { receive_most: Bytes::new(most), ..Buffers::default() }, 1448)
    }

    /// Reads `payload` in each of `rounds` round trips of 100 ms.
    fn read(window: &mut Window, rounds: u64, payload: impl Fn(u64) -> u64) {
        for round in 1..=rounds {
            let now = Instant::from_nanos(round * 100_000_000);
            window.note_round_trip(now, Instant::from_nanos((round - 1) * 100_000_000));
            window.in_order(now, payload(round), 0);
        }
    }

    #[test]
    fn it_grows_to_twice_what_is_read_in_a_round_trip_and_no_further_than_the_limit() {
        let mut steady = window(64 << 20);
        read(&mut steady, 50, |round| (20_000 << round.min(20)).min(1_000_000));
        let offered = steady.advertise(0, 0) * 1448;
        assert!((2_000_000..8_000_000).contains(&offered), "{offered}");

        let mut rising = window(6 << 20);
        read(&mut rising, 30, |round| 20_000 << round.min(20));
        let offered = rising.advertise(0, 0) * 1448;
        let most = (6u64 << 20) * u64::from(PAYLOAD_PER_256) / 256;
        assert!(offered <= most && offered > most - 1448, "{offered} of {most}");
    }

    #[test]
    fn what_waits_behind_a_hole_takes_room_and_nothing_offered_is_taken_back() {
        let mut window = window(6 << 20);
        read(&mut window, 30, |_| 4_000_000);
        let free = window.advertise(0, 0);
        assert_eq!(window.advertise(0, 1000), free);
        assert_eq!(window.advertise(1500, 1000), free + 500);
    }
}
