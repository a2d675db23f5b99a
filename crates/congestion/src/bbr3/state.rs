use super::{AckPhase, Mode};
use crate::Recovery;
use crate::fixed::{Bandwidth, INFINITE};

/// Everything that BBRv3 remembers of one connection, named as in linerate's kernel program.
///
/// "Packets" are of [`Connection::mss`] bytes, "delivered" is a value of [`Connection::delivered`], a "stamp" a time in microseconds since
/// [`Instant::ZERO`], gains are in 1/256. [`u32::MAX`]: no bound, or nothing measured.
///
/// [`Connection::mss`]: crate::Connection::mss
/// [`Connection::delivered`]: crate::Connection::delivered
/// [`Instant::ZERO`]: units::Instant::ZERO
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Generator of random waits. Not 0.
    pub random: u32,

    /// Gain of pacing in force.
    pub pacing_gain: u32,
    /// Gain of the window in force.
    pub cwnd_gain: u32,

    /// When `min_rtt_us` was measured.
    pub min_rtt_stamp: u64,
    /// When `probe_rtt_min_us` was measured.
    pub probe_rtt_min_stamp: u64,
    /// Earliest end of PROBE_RTT; 0: the window is not low yet.
    pub probe_rtt_done_stamp: u64,
    /// Start of the current PROBE_BW cycle, or of its UP phase.
    pub cycle_stamp: u64,
    /// Start of the current epoch of ACK aggregation.
    pub ack_epoch_stamp: u64,

    /// Highest delivery rate of the previous and of the current probing cycle.
    pub bw_hi: [Bandwidth; 2],
    /// Short-term bound (draft: bw_shortterm).
    pub bw_lo: Bandwidth,
    /// Highest of the current round.
    pub bw_latest: Bandwidth,
    /// Baseline of the plateau test.
    pub full_bw: Bandwidth,

    /// Packets: long-term bound (draft: inflight_longterm).
    pub inflight_hi: u32,
    /// Packets: short-term bound (draft: inflight_shortterm).
    pub inflight_lo: u32,
    /// Packets: most delivered in one round trip, this round.
    pub inflight_latest: u32,
    /// Packets: aggregation, most of each of two slots of rounds.
    pub extra_acked: [u32; 2],
    /// Packets acknowledged in the current epoch of aggregation.
    pub ack_epoch_acked: u32,
    /// Microseconds.
    pub min_rtt_us: u32,
    /// Minimum since the last PROBE_RTT, microseconds.
    pub probe_rtt_min_us: u32,
    /// `min_rtt_us` as PROBE_RTT began.
    pub cap_min_rtt_us: u32,

    /// Delivered: a packet sent at or after this ends the round trip.
    pub next_round_delivered: u64,
    /// The same for the rounds of loss.
    pub loss_round_delivered: u64,

    /// Microseconds from one probe to the next.
    pub probe_wait_us: u32,
    /// Packets to acknowledge for each packet `inflight_hi` grows.
    pub probe_up_cnt: u32,
    /// Packets acknowledged since it grew.
    pub probe_up_acked: u32,

    /// Packets: the window to go back to after PROBE_RTT or recovery.
    pub prior_cwnd: u32,
    /// Bounds to go back to where a recovery was spurious.
    pub undo_bw_lo: Bandwidth,
    /// See `undo_bw_lo`.
    pub undo_inflight_lo: u32,
    /// See `undo_bw_lo`.
    pub undo_inflight_hi: u32,
    /// What loss ended in this recovery: STARTUP, UP or nothing.
    pub undo_mode: Option<Mode>,

    /// The initial window, packets.
    pub init_cwnd: u32,

    /// What it does.
    pub mode: Mode,
    /// What arriving ACKs tell of.
    pub ack_phase: AckPhase,
    /// State of recovery after the last ACK.
    pub prev_recovery: Recovery,

    /// Rounds without growth.
    pub full_bw_count: u8,
    /// Rounds in DRAIN.
    pub drain_rounds: u8,
    /// Rounds since the last probe; saturates.
    pub rounds_since_probe: u8,
    /// Doublings of the growth of `inflight_hi`.
    pub probe_up_rounds: u8,
    /// Rounds in the current slot of aggregation.
    pub extra_acked_rounds: u8,
    /// 0 or 1.
    pub extra_acked_slot: u8,
    /// ACKs with news of loss; saturates at 15.
    pub loss_events_in_round: u8,

    /// This ACK began a round trip.
    pub round_start: bool,
    /// This ACK ended a round trip of the loss clock.
    pub loss_round_start: bool,
    /// Loss was seen since the loss clock's round began.
    pub loss_in_round: bool,
    /// The state to undo to is saved.
    pub loss_in_episode: bool,
    /// The pipe was full once: STARTUP is over.
    pub full_bw_reached: bool,
    /// The pipe is full, as the current plateau test found.
    pub full_bw_now: bool,
    /// ACKs tell about packets sent while probing.
    pub bw_probe_samples: bool,
    /// The last probe met loss above the threshold.
    pub prev_probe_too_high: bool,
    /// It was stopped before it could again.
    pub stopped_risky_probe: bool,
    /// A round trip with the low window has passed in PROBE_RTT.
    pub probe_rtt_round_done: bool,
    /// Restarting from idle.
    pub idle_restart: bool,
    /// Pacing knows an RTT.
    pub has_seen_rtt: bool,
}

impl State {
    /// Of a connection that has not begun. `random` is not zero.
    pub fn new(random: u32) -> Self {
        let (pacing_gain, cwnd_gain) = Mode::Startup.gains();
        Self {
            random: random.max(1),
            pacing_gain,
            cwnd_gain,
            min_rtt_stamp: 0,
            probe_rtt_min_stamp: 0,
            probe_rtt_done_stamp: 0,
            cycle_stamp: 0,
            ack_epoch_stamp: 0,
            bw_hi: [Bandwidth::ZERO; 2],
            bw_lo: Bandwidth::INFINITE,
            bw_latest: Bandwidth::ZERO,
            full_bw: Bandwidth::ZERO,
            inflight_hi: INFINITE,
            inflight_lo: INFINITE,
            inflight_latest: 0,
            extra_acked: [0; 2],
            ack_epoch_acked: 0,
            min_rtt_us: INFINITE,
            probe_rtt_min_us: INFINITE,
            cap_min_rtt_us: INFINITE,
            next_round_delivered: 0,
            loss_round_delivered: 0,
            probe_wait_us: 0,
            probe_up_cnt: INFINITE,
            probe_up_acked: 0,
            prior_cwnd: 0,
            undo_bw_lo: Bandwidth::ZERO,
            undo_inflight_lo: 0,
            undo_inflight_hi: 0,
            undo_mode: None,
            init_cwnd: 0,
            mode: Mode::Startup,
            ack_phase: AckPhase::Init,
            prev_recovery: Recovery::Open,
            full_bw_count: 0,
            drain_rounds: 0,
            rounds_since_probe: 0,
            probe_up_rounds: 0,
            extra_acked_rounds: 0,
            extra_acked_slot: 0,
            loss_events_in_round: 0,
            round_start: false,
            loss_round_start: false,
            loss_in_round: false,
            loss_in_episode: false,
            full_bw_reached: false,
            full_bw_now: false,
            bw_probe_samples: false,
            prev_probe_too_high: false,
            stopped_risky_probe: false,
            probe_rtt_round_done: false,
            idle_restart: false,
            has_seen_rtt: false,
        }
    }

    /// BBR.max_bw: the highest delivery rate of this probing cycle and the one before.
    pub fn max_bw(&self) -> Bandwidth {
        self.bw_hi[0].max(self.bw_hi[1])
    }

    /// draft, BoundBWForModel(): BBR.bw.
    pub fn bw(&self) -> Bandwidth {
        self.max_bw().min(self.bw_lo)
    }

    /// BBR.extra_acked: packets.
    pub fn extra_acked(&self) -> u32 {
        self.extra_acked[0].max(self.extra_acked[1])
    }
}
