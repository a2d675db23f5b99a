use bbr3::raw::{CallEvent, State as RawState};
use congestion::Bandwidth;
use congestion::bbr3::{AckPhase, Mode, State};

use super::{Made, extend, recovery};

/// `NO_MODE` of state.h.
const NO_MODE: u8 = 7;

/// The library's form of what the program remembers. `near` is a value of `delivered` with the times it has wrapped.
pub(super) fn to_state(raw: &RawState, near: u64) -> State {
    let bw = Bandwidth::from_raw;
    let mode = |number: u8| Mode::ALL.get(usize::from(number)).copied();
    let ack_phases = [
        AckPhase::Init,
        AckPhase::Refilling,
        AckPhase::ProbeStarting,
        AckPhase::ProbeFeedback,
        AckPhase::ProbeStopping,
    ];
    State {
        random: raw.random,
        pacing_gain: raw.pacing_gain,
        cwnd_gain: raw.cwnd_gain,
        min_rtt_stamp: raw.min_rtt_stamp,
        probe_rtt_min_stamp: raw.probe_rtt_min_stamp,
        probe_rtt_done_stamp: raw.probe_rtt_done_stamp,
        cycle_stamp: raw.cycle_stamp,
        ack_epoch_stamp: raw.ack_epoch_stamp,
        bw_hi: raw.bw_hi.map(bw),
        bw_lo: bw(raw.bw_lo),
        bw_latest: bw(raw.bw_latest),
        full_bw: bw(raw.full_bw),
        inflight_hi: raw.inflight_hi,
        inflight_lo: raw.inflight_lo,
        inflight_latest: raw.inflight_latest,
        extra_acked: raw.extra_acked,
        ack_epoch_acked: raw.ack_epoch_acked,
        min_rtt_us: raw.min_rtt_us,
        probe_rtt_min_us: raw.probe_rtt_min_us,
        cap_min_rtt_us: raw.cap_min_rtt_us,
        next_round_delivered: extend(near, raw.next_round_delivered),
        loss_round_delivered: extend(near, raw.loss_round_delivered),
        probe_wait_us: raw.probe_wait_us,
        probe_up_cnt: raw.probe_up_cnt,
        probe_up_acked: raw.probe_up_acked,
        prior_cwnd: raw.prior_cwnd,
        undo_bw_lo: bw(raw.undo_bw_lo),
        undo_inflight_lo: raw.undo_inflight_lo,
        undo_inflight_hi: raw.undo_inflight_hi,
        undo_mode: mode(raw.undo_mode),
        init_cwnd: raw.init_cwnd,
        mode: mode(raw.mode).unwrap_or_default(),
        ack_phase: ack_phases.get(usize::from(raw.ack_phase)).copied().unwrap_or_default(),
        prev_recovery: recovery(raw.prev_ca_state),
        full_bw_count: raw.full_bw_count,
        drain_rounds: raw.drain_rounds,
        rounds_since_probe: raw.rounds_since_probe,
        probe_up_rounds: raw.probe_up_rounds,
        extra_acked_rounds: raw.extra_acked_rounds,
        extra_acked_slot: raw.extra_acked_slot,
        loss_events_in_round: raw.loss_events_in_round,
        round_start: raw.round_start != 0,
        loss_round_start: raw.loss_round_start != 0,
        loss_in_round: raw.loss_in_round != 0,
        loss_in_episode: raw.loss_in_episode != 0,
        full_bw_reached: raw.full_bw_reached != 0,
        full_bw_now: raw.full_bw_now != 0,
        bw_probe_samples: raw.bw_probe_samples != 0,
        prev_probe_too_high: raw.prev_probe_too_high != 0,
        stopped_risky_probe: raw.stopped_risky_probe != 0,
        probe_rtt_round_done: raw.probe_rtt_round_done != 0,
        idle_restart: raw.idle_restart != 0,
        has_seen_rtt: raw.has_seen_rtt != 0,
    }
}

/// Decisions and fields of the state that came out differently: name, as recorded, as made here. Left out are only those that belong to the
/// kernel program's telemetry and to its view of the transport.
pub(super) fn differences<'a>(
    call: &'a CallEvent,
    made: &Made,
    state: &'a State,
) -> impl Iterator<Item = (&'static str, u64, u64)> + use<'a> {
    let decisions = [
        ("pacing_rate", call.pacing_rate, made.pacing_rate),
        ("cwnd", call.cwnd.into(), made.cwnd.into()),
        ("ssthresh", call.ssthresh.into(), made.ssthresh.into()),
        ("app_limited", call.app_limited.into(), made.app_limited.into()),
        ("answer", call.answer.into(), made.answer.into()),
    ];
    decisions.into_iter().chain(states(&call.after, state)).filter(|(_, recorded, made)| recorded != made)
}

fn states(raw: &RawState, state: &State) -> impl Iterator<Item = (&'static str, u64, u64)> + use<> {
    macro_rules! same {
        ($($field:ident)+) => { [$((stringify!($field), u64::from(raw.$field), u64::from(state.$field)),)+] };
    }
    macro_rules! bandwidths {
        ($($field:ident)+) => { [$((stringify!($field), u64::from(raw.$field), u64::from(state.$field.raw())),)+] };
    }
    let numbers = same! {
        random pacing_gain cwnd_gain min_rtt_stamp probe_rtt_min_stamp probe_rtt_done_stamp cycle_stamp ack_epoch_stamp
        inflight_hi inflight_lo inflight_latest ack_epoch_acked min_rtt_us probe_rtt_min_us cap_min_rtt_us probe_wait_us
        probe_up_cnt probe_up_acked prior_cwnd undo_inflight_lo undo_inflight_hi init_cwnd full_bw_count drain_rounds
        rounds_since_probe probe_up_rounds extra_acked_rounds extra_acked_slot loss_events_in_round round_start
        loss_round_start loss_in_round loss_in_episode full_bw_reached full_bw_now bw_probe_samples prev_probe_too_high
        stopped_risky_probe probe_rtt_round_done idle_restart has_seen_rtt
    };
    let rates = bandwidths! { bw_lo bw_latest full_bw undo_bw_lo };
    let others = [
        ("bw_hi[0]", raw.bw_hi[0].into(), state.bw_hi[0].raw().into()),
        ("bw_hi[1]", raw.bw_hi[1].into(), state.bw_hi[1].raw().into()),
        ("extra_acked[0]", raw.extra_acked[0].into(), state.extra_acked[0].into()),
        ("extra_acked[1]", raw.extra_acked[1].into(), state.extra_acked[1].into()),
        // Here they do not wrap.
        ("next_round_delivered", raw.next_round_delivered.into(), u64::from(state.next_round_delivered as u32)),
        ("loss_round_delivered", raw.loss_round_delivered.into(), u64::from(state.loss_round_delivered as u32)),
        ("mode", raw.mode.into(), state.mode as u64),
        ("undo_mode", raw.undo_mode.into(), state.undo_mode.map_or(u64::from(NO_MODE), |mode| mode as u64)),
        ("ack_phase", raw.ack_phase.into(), state.ack_phase as u64),
        ("prev_ca_state", raw.prev_ca_state.into(), state.prev_recovery as u64),
    ];
    numbers.into_iter().chain(rates).chain(others)
}
