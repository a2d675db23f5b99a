//! `struct tcp_info`, as the kernel copies it out.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use units::{Bytes, Duration, Rate};

/// `struct tcp_info` of Linux 6.18 (include/uapi/linux/tcp.h), field by field; older kernels copy out a shorter one.
///
/// Times are in microseconds, rates in bytes per second, windows in segments, unless a field says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct RawTcpInfo {
    /// `TCP_ESTABLISHED` is 1 (include/net/tcp_states.h).
    pub state: u8,
    /// `enum tcp_ca_state`: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
    pub ca_state: u8,
    /// Retransmission timeouts in a row, without an acknowledgement between.
    pub retransmits: u8,
    /// Unanswered zero-window probes.
    pub probes: u8,
    /// Exponent of the retransmission timer's back-off.
    pub backoff: u8,
    /// `TCPI_OPT_*` bits.
    pub options: u8,
    /// Window scale shifts: ours towards the peer in the low four bits, the peer's in the high ones (on little-endian machines).
    pub wscale: u8,
    /// Bit 0: the delivery rate was limited by the application; bits 1 and 2: why Fast Open failed.
    pub flags: u8,
    /// Retransmission timeout.
    pub rto: u32,
    /// Delayed-acknowledgement timeout.
    pub ato: u32,
    /// Bytes of payload in a full segment sent.
    pub snd_mss: u32,
    /// Bytes of payload in a full segment received, as estimated.
    pub rcv_mss: u32,
    /// Segments sent and not acknowledged cumulatively.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments presumed lost now.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged now.
    pub retrans: u32,
    /// Not used any more.
    pub fackets: u32,
    /// Milliseconds since data was sent.
    pub last_data_sent: u32,
    /// Not kept by the kernel.
    pub last_ack_sent: u32,
    /// Milliseconds since data was received.
    pub last_data_recv: u32,
    /// Milliseconds since an acknowledgement was received.
    pub last_ack_recv: u32,
    /// Bytes: path MTU.
    pub pmtu: u32,
    /// Bytes: receive window limit of slow start.
    pub rcv_ssthresh: u32,
    /// Smoothed round-trip time.
    pub rtt: u32,
    /// Its mean deviation.
    pub rttvar: u32,
    /// Slow start threshold; 0x7fffffff: none.
    pub snd_ssthresh: u32,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// Bytes: the segment size announced.
    pub advmss: u32,
    /// Reordering distance, in segments.
    pub reordering: u32,
    /// Round-trip time as the receiver estimates it.
    pub rcv_rtt: u32,
    /// Bytes read per round trip, by which the receive buffer is tuned.
    pub rcv_space: u32,
    /// Segments retransmitted since the start.
    pub total_retrans: u32,
    /// Pacing rate; all ones: not paced.
    pub pacing_rate: u64,
    /// Upper limit of the pacing rate; all ones: none.
    pub max_pacing_rate: u64,
    /// Bytes acknowledged cumulatively since the start.
    pub bytes_acked: u64,
    /// Bytes received in order since the start.
    pub bytes_received: u64,
    /// Segments sent, acknowledgements included.
    pub segs_out: u32,
    /// Segments received, acknowledgements included.
    pub segs_in: u32,
    /// Bytes in the send queue, not sent.
    pub notsent_bytes: u32,
    /// Minimum round-trip time; all ones: none yet.
    pub min_rtt: u32,
    /// Segments with data received.
    pub data_segs_in: u32,
    /// Segments with data sent, retransmissions included.
    pub data_segs_out: u32,
    /// Most recent delivery rate.
    pub delivery_rate: u64,
    /// Time with data outstanding.
    pub busy_time: u64,
    /// Part of it limited by the receiver's window.
    pub rwnd_limited: u64,
    /// Part of it limited by the send buffer.
    pub sndbuf_limited: u64,
    /// Segments delivered, out of order ones included (Linux 4.18).
    pub delivered: u32,
    /// Those that a CE mark was reported for (Linux 4.18).
    pub delivered_ce: u32,
    /// Payload bytes sent, retransmissions included (Linux 4.19).
    pub bytes_sent: u64,
    /// Payload bytes retransmitted (Linux 4.19).
    pub bytes_retrans: u64,
    /// Duplicate SACKs received (Linux 4.19).
    pub dsack_dups: u32,
    /// Reordering events seen (Linux 4.19).
    pub reord_seen: u32,
    /// Segments received out of order (Linux 5.4).
    pub rcv_ooopack: u32,
    /// Bytes: the peer's receive window (Linux 5.4).
    pub snd_wnd: u32,
    /// Bytes: our receive window (Linux 6.2).
    pub rcv_wnd: u32,
    /// Times the flow's hash was changed to find another path (Linux 6.2).
    pub rehash: u32,
    /// Retransmission timeouts since the start (Linux 6.7).
    pub total_rto: u16,
    /// Recoveries by timeout (Linux 6.7).
    pub total_rto_recoveries: u16,
    /// Milliseconds spent in them (Linux 6.7).
    pub total_rto_time: u32,
    /// Segments received with a CE mark (Linux 6.18, as all that follow: accurate ECN).
    pub received_ce: u32,
    /// Bytes delivered with ECT(1).
    pub delivered_e1_bytes: u32,
    /// Bytes delivered with ECT(0).
    pub delivered_e0_bytes: u32,
    /// Bytes delivered with a CE mark.
    pub delivered_ce_bytes: u32,
    /// Bytes received with ECT(1).
    pub received_e1_bytes: u32,
    /// Bytes received with ECT(0).
    pub received_e0_bytes: u32,
    /// Bytes received with a CE mark.
    pub received_ce_bytes: u32,
    /// Why accurate ECN was given up.
    pub accecn_fail_mode: u16,
    /// Which accurate ECN options were seen.
    pub accecn_opt_seen: u16,
}

/// The size of [`RawTcpInfo`]: what Linux 6.18 copies out.
const FULL: usize = size_of::<RawTcpInfo>();
/// What Linux 4.10 copies out, up to `sndbuf_limited`: nothing older is read.
const LEAST: usize = 192;

const _: () = assert!(FULL == 280);
const _: () = assert!(std::mem::offset_of!(RawTcpInfo, pacing_rate) == 104);
const _: () = assert!(std::mem::offset_of!(RawTcpInfo, delivered) == LEAST);
const _: () = assert!(std::mem::offset_of!(RawTcpInfo, rcv_wnd) == 232);
const _: () = assert!(std::mem::offset_of!(RawTcpInfo, accecn_opt_seen) == 278);

/// The state of one TCP socket, with units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    raw: RawTcpInfo,
    length: usize,
}

/// What the sender believes about the path: `enum tcp_ca_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaState {
    /// Nothing unusual.
    Open,
    /// Duplicate acknowledgements or SACKs came; not judged yet.
    Disorder,
    /// The window is being reduced after an ECN mark or a local drop.
    Cwr,
    /// Fast retransmission.
    Recovery,
    /// A retransmission timeout.
    Loss,
    /// A number this version does not know.
    Unknown(u8),
}

impl TcpInfo {
    /// Reads it from a socket (`TCP_INFO`, tcp(7)).
    ///
    /// # Errors
    /// What getsockopt(2) says (`ENOPROTOOPT` where the socket is not TCP), or `InvalidData` from a kernel older than 4.10.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0; FULL];
        let length = super::option_bytes(socket.as_fd().as_raw_fd(), libc::TCP_INFO, &mut bytes)?;
        Self::from_bytes(&bytes[..length]).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the kernel's tcp_info has {length} bytes, {LEAST} are needed"),
            )
        })
    }

    /// From the bytes that a kernel copied out: shorter ones leave the newer fields zero, longer ones are cut.
    /// `None` where even the fields of Linux 4.10 are not there.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < LEAST {
            return None;
        }
        let length = bytes.len().min(FULL);
        let mut raw = RawTcpInfo::default();
        // SAFETY: `raw` is FULL bytes of plain integers without padding (the sizes above add up), so that any bytes are a valid
        // value; `length` is at most FULL and at most the length of `bytes`; the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut raw).cast::<u8>(), length) };
        Some(Self { raw, length })
    }

    /// Every field as the kernel has it. Fields that this kernel does not have are zero.
    pub fn raw(&self) -> &RawTcpInfo {
        &self.raw
    }

    /// A field, unless this kernel's structure ends before `end`.
    fn known<T>(&self, end: usize, value: T) -> Option<T> {
        (self.length >= end).then_some(value)
    }

    /// Smoothed round-trip time; `None` before the first measurement.
    pub fn srtt(&self) -> Option<Duration> {
        (self.raw.rtt != 0).then(|| micros(self.raw.rtt.into()))
    }

    /// Mean deviation of the round-trip time.
    pub fn rttvar(&self) -> Duration {
        micros(self.raw.rttvar.into())
    }

    /// The least round-trip time of the last 300 s (sysctl `tcp_min_rtt_wlen`); `None` before the first measurement.
    pub fn min_rtt(&self) -> Option<Duration> {
        (self.raw.min_rtt != u32::MAX).then(|| micros(self.raw.min_rtt.into()))
    }

    /// The pacing rate; `None` where nothing is paced. The kernel counts payload and headers.
    pub fn pacing_rate(&self) -> Option<Rate> {
        (self.raw.pacing_rate != u64::MAX).then(|| rate(self.raw.pacing_rate))
    }

    /// The latest delivery rate sample (payload bytes).
    pub fn delivery_rate(&self) -> Rate {
        rate(self.raw.delivery_rate)
    }

    /// Whether that sample was limited by the application rather than the path.
    pub fn delivery_rate_app_limited(&self) -> bool {
        self.raw.flags & 1 != 0
    }

    /// The slow start threshold in segments; `None` where there is none yet.
    pub fn ssthresh_segments(&self) -> Option<u32> {
        // TCP_INFINITE_SSTHRESH, include/net/tcp.h
        (self.raw.snd_ssthresh < 0x7fff_ffff).then_some(self.raw.snd_ssthresh)
    }

    /// What the sender believes about the path.
    pub fn ca_state(&self) -> CaState {
        match self.raw.ca_state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            4 => CaState::Loss,
            other => CaState::Unknown(other),
        }
    }

    /// Payload of a full segment.
    pub fn mss(&self) -> Bytes {
        Bytes::new(self.raw.snd_mss.into())
    }

    /// Payload acknowledged cumulatively since the start.
    pub fn bytes_acked(&self) -> Bytes {
        Bytes::new(self.raw.bytes_acked)
    }

    /// Payload received in order since the start.
    pub fn bytes_received(&self) -> Bytes {
        Bytes::new(self.raw.bytes_received)
    }

    /// Payload in the send queue that was never sent.
    pub fn unsent(&self) -> Bytes {
        Bytes::new(self.raw.notsent_bytes.into())
    }

    /// Time with data outstanding.
    pub fn busy(&self) -> Duration {
        micros(self.raw.busy_time)
    }

    /// Part of [`busy`](Self::busy) that the receiver's window limited.
    pub fn rwnd_limited(&self) -> Duration {
        micros(self.raw.rwnd_limited)
    }

    /// Part of [`busy`](Self::busy) that the send buffer limited.
    pub fn sndbuf_limited(&self) -> Duration {
        micros(self.raw.sndbuf_limited)
    }

    /// Segments delivered, out of order ones included; `None` before Linux 4.18.
    pub fn delivered_segments(&self) -> Option<u32> {
        self.known(196, self.raw.delivered)
    }

    /// Payload retransmitted since the start; `None` before Linux 4.19.
    pub fn bytes_retrans(&self) -> Option<Bytes> {
        self.known(216, Bytes::new(self.raw.bytes_retrans))
    }

    /// Reordering events seen; `None` before Linux 4.19.
    pub fn reordering_seen(&self) -> Option<u32> {
        self.known(224, self.raw.reord_seen)
    }

    /// The peer's receive window; `None` before Linux 5.4.
    pub fn send_window(&self) -> Option<Bytes> {
        self.known(232, Bytes::new(self.raw.snd_wnd.into()))
    }

    /// Our receive window; `None` before Linux 6.2.
    pub fn receive_window(&self) -> Option<Bytes> {
        self.known(236, Bytes::new(self.raw.rcv_wnd.into()))
    }

    /// Retransmission timeouts since the start; `None` before Linux 6.7.
    pub fn timeouts(&self) -> Option<u16> {
        self.known(242, self.raw.total_rto)
    }
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn rate(bytes_per_second: u64) -> Rate {
    Rate::from_bps(bytes_per_second.saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a kernel might copy out: byte k is the field's offset, so that a mix-up of fields shows.
    fn sample(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let mut put = |at: usize, value: &[u8]| {
            if at + value.len() <= length {
                bytes[at..at + value.len()].copy_from_slice(value);
            }
        };
        put(1, &[3]);
        put(7, &[1]);
        put(16, &1448u32.to_ne_bytes());
        put(68, &80_123u32.to_ne_bytes());
        put(76, &0x7fff_ffffu32.to_ne_bytes());
        put(80, &6_900u32.to_ne_bytes());
        put(104, &125_000_000u64.to_ne_bytes());
        put(120, &(5u64 << 32).to_ne_bytes());
        put(148, &80_000u32.to_ne_bytes());
        put(168, &1_500_000u64.to_ne_bytes());
        put(192, &77u32.to_ne_bytes());
        put(208, &14_480u64.to_ne_bytes());
        put(220, &9u32.to_ne_bytes());
        put(228, &65_535u32.to_ne_bytes());
        put(232, &131_072u32.to_ne_bytes());
        put(240, &2u16.to_ne_bytes());
        put(278, &0x0102u16.to_ne_bytes());
        bytes
    }

    #[test]
    fn every_field_is_read_at_the_offset_the_kernel_puts_it() {
        let info = TcpInfo::from_bytes(&sample(FULL)).unwrap();
        assert_eq!(info.ca_state(), CaState::Recovery);
        assert!(info.delivery_rate_app_limited());
        assert_eq!(info.mss(), Bytes::new(1448));
        assert_eq!(info.srtt(), Some(Duration::from_micros(80_123)));
        assert_eq!(info.min_rtt(), Some(Duration::from_millis(80)));
        assert_eq!(info.ssthresh_segments(), None);
        assert_eq!(info.raw().snd_cwnd, 6_900);
        assert_eq!(info.pacing_rate(), Some(Rate::from_mbps(1_000)));
        assert_eq!(info.bytes_acked(), Bytes::new(5 << 32));
        assert_eq!(info.busy(), Duration::from_millis(1_500));
        assert_eq!(info.delivered_segments(), Some(77));
        assert_eq!(info.bytes_retrans(), Some(Bytes::new(14_480)));
        assert_eq!(info.reordering_seen(), Some(9));
        assert_eq!(info.send_window(), Some(Bytes::new(65_535)));
        assert_eq!(info.receive_window(), Some(Bytes::new(131_072)));
        assert_eq!(info.timeouts(), Some(2));
        assert_eq!(info.raw().accecn_opt_seen, 0x0102);
    }

    #[test]
    fn an_older_kernels_shorter_structure_leaves_newer_fields_unknown() {
        // 192: Linux 4.10, 224: 4.19, 232: 5.4 to 6.1, 240: 6.2, 248: 6.7
        let at = |length| TcpInfo::from_bytes(&sample(length)).unwrap();
        assert_eq!(at(192).busy(), Duration::from_millis(1_500));
        assert_eq!(at(192).delivered_segments(), None);
        assert_eq!(at(224).reordering_seen(), Some(9));
        assert_eq!(at(224).send_window(), None);
        assert_eq!(at(232).send_window(), Some(Bytes::new(65_535)));
        assert_eq!(at(232).receive_window(), None);
        assert_eq!(at(240).receive_window(), Some(Bytes::new(131_072)));
        assert_eq!(at(240).timeouts(), None);
        assert_eq!(at(248).timeouts(), Some(2));
    }

    #[test]
    fn a_newer_kernels_longer_structure_is_cut_and_a_too_short_one_is_refused() {
        let mut longer = sample(FULL);
        longer.extend([0xff; 64]);
        assert_eq!(TcpInfo::from_bytes(&longer), TcpInfo::from_bytes(&sample(FULL)));
        assert_eq!(TcpInfo::from_bytes(&sample(191)), None);
        assert_eq!(TcpInfo::from_bytes(&[]), None);
    }

    #[test]
    fn values_that_mean_none_are_none() {
        let mut bytes = sample(FULL);
        bytes[68..72].copy_from_slice(&0u32.to_ne_bytes());
        bytes[104..112].copy_from_slice(&u64::MAX.to_ne_bytes());
        bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        bytes[76..80].copy_from_slice(&20u32.to_ne_bytes());
        bytes[1] = 9;
        let info = TcpInfo::from_bytes(&bytes).unwrap();
        assert_eq!(info.srtt(), None);
        assert_eq!(info.pacing_rate(), None);
        assert_eq!(info.min_rtt(), None);
        assert_eq!(info.ssthresh_segments(), Some(20));
        assert_eq!(info.ca_state(), CaState::Unknown(9));
    }
}
