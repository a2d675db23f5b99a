//! The C structures of `crates/bbr3/src/bpf`, field by field; their meaning and units are described there. Checked against the C
//! compiler's layout by [`tests`].

#![allow(missing_docs)]

use bbr3::raw::RawKnobs;

/// `struct conn` of conn.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conn {
    pub pacing_rate: u64,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub app_limited: u32,
    pub mss: u32,
    pub now_us: u64,
    pub delivered_us: u64,
    pub departure_ns: u64,
    pub clock_ns: u64,
    pub max_pacing_rate: u64,
    pub cwnd_clamp: u32,
    pub prior_cwnd: u32,
    pub in_flight: u32,
    pub delivered: u32,
    pub lost: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub data_segs_out: u32,
    pub snd_nxt: u32,
    pub snd_una: u32,
    pub unsent_bytes: u32,
    pub queued_bytes: i32,
    pub srtt_us: u32,
    pub kernel_min_rtt_us: u32,
    pub tlp_high_seq: u32,
    pub ca_state: u8,
    pub pacing_shift: u8,
    pub is_cwnd_limited: u8,
    pub has_sack: u8,
    pub tlp_retrans: u8,
    pub reord_seen: u8,
    pub reo_wnd_steps: u8,
    pub reserved: [u8; 5],
}

/// `struct ack` of conn.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ack {
    pub interval_us: i64,
    pub rtt_us: i64,
    pub delivered: i32,
    pub prior_delivered: u32,
    pub acked_sacked: u32,
    pub losses: i32,
    pub prior_in_flight: u32,
    pub last_end_seq: u32,
    pub has_packet: u8,
    pub is_app_limited: u8,
    pub is_retrans: u8,
    pub is_ack_delayed: u8,
    pub reserved: [u8; 4],
}

/// `struct sample` of state.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    pub rtt_us: i64,
    pub bw: u32,
    pub prior_delivered: u32,
    pub delivered: u32,
    pub acked_sacked: u32,
    pub newly_lost: u32,
    pub ack_losses: u32,
    pub prior_in_flight: u32,
    pub tx_in_flight: u32,
    pub lost: u32,
    pub has_packet: u8,
    pub has_interval: u8,
    pub is_app_limited: u8,
    pub is_ack_delayed: u8,
    pub is_tlp_ack: u8,
    pub reserved: [u8; 7],
}

/// `struct bbr3_state` of state.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub monitor: [u32; 13],
    pub pacing_gain: u32,
    pub cwnd_gain: u32,
    pub min_rtt_stamp: u64,
    pub probe_rtt_min_stamp: u64,
    pub probe_rtt_done_stamp: u64,
    pub cycle_stamp: u64,
    pub ack_epoch_stamp: u64,
    pub bw_hi: [u32; 2],
    pub bw_lo: u32,
    pub bw_latest: u32,
    pub full_bw: u32,
    pub inflight_hi: u32,
    pub inflight_lo: u32,
    pub inflight_latest: u32,
    pub extra_acked: [u32; 2],
    pub ack_epoch_acked: u32,
    pub min_rtt_us: u32,
    pub probe_rtt_min_us: u32,
    pub cap_min_rtt_us: u32,
    pub next_round_delivered: u32,
    pub loss_round_delivered: u32,
    pub probe_wait_us: u32,
    pub probe_up_cnt: u32,
    pub probe_up_acked: u32,
    pub prior_cwnd: u32,
    pub undo_bw_lo: u32,
    pub undo_inflight_lo: u32,
    pub undo_inflight_hi: u32,
    pub seen_lost: u32,
    pub seen_data_segs_out: u32,
    pub app_limited_from: u32,
    pub app_limited_until: u32,
    pub init_cwnd: u32,
    pub acks: u32,
    pub mode: u8,
    pub undo_mode: u8,
    pub ack_phase: u8,
    pub full_bw_count: u8,
    pub drain_rounds: u8,
    pub rounds_since_probe: u8,
    pub probe_up_rounds: u8,
    pub extra_acked_rounds: u8,
    pub extra_acked_slot: u8,
    pub loss_events_in_round: u8,
    pub prev_ca_state: u8,
    pub round_start: u8,
    pub loss_round_start: u8,
    pub loss_in_round: u8,
    pub loss_in_episode: u8,
    pub full_bw_reached: u8,
    pub full_bw_now: u8,
    pub bw_probe_samples: u8,
    pub prev_probe_too_high: u8,
    pub stopped_risky_probe: u8,
    pub probe_rtt_round_done: u8,
    pub idle_restart: u8,
    pub has_seen_rtt: u8,
    pub app_limited_mark: u8,
    pub tlp_retrans_pending: u8,
}

/// `struct bbr3_ring` of ring.h.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    pub newest: u32,
    pub used: u32,
    pub reserved: [u32; 2],
    pub entries: [[u32; 4]; 240],
}

/// `struct environment` of native.c.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Environment {
    pub knobs: RawKnobs,
    pub four_arguments: u32,
    pub app_limited_writable: u32,
    pub random: u64,
    pub scripted: [u32; 2],
    pub scripted_left: u32,
    pub transition_count: u32,
    pub transitions: [[u8; 2]; 16],
    pub counts: [u64; 12],
    pub entries: [u64; 7],
}

/// `struct connection` of native.c.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    pub state: State,
    pub ring: Ring,
    pub environment: Environment,
}

unsafe extern "C" {
    #[cfg(test)]
    pub(crate) safe static bbr3_native_layout: [u32; 14];
    pub(crate) safe static bbr3_native_default_knobs: RawKnobs;

    pub(crate) fn bbr3_native_init(connection: *mut Connection, conn: *mut Conn);
    pub(crate) fn bbr3_native_ack(connection: *mut Connection, conn: *mut Conn, ack: *const Ack, sample: *mut Sample);
    pub(crate) fn bbr3_native_ssthresh(connection: *mut Connection, conn: *mut Conn) -> u32;
    pub(crate) fn bbr3_native_set_state(connection: *mut Connection, conn: *mut Conn, state: u8);
    pub(crate) fn bbr3_native_in_ack(connection: *mut Connection, conn: *mut Conn);
    pub(crate) fn bbr3_native_undo(connection: *mut Connection, conn: *mut Conn) -> u32;
    pub(crate) fn bbr3_native_tx_start(connection: *mut Connection, conn: *mut Conn);
    pub(crate) fn bbr3_native_bdp_multiple(connection: *mut Connection, bw: u32, gain: u32) -> u32;
    pub(crate) safe fn bbr3_native_bytes_per_second(bw: u32, mss: u32, gain: u32, margin_percent: u32) -> u64;
    pub(crate) fn bbr3_native_inflight_at_loss(connection: *mut Connection, tx_in_flight: u32, lost: u32) -> u32;
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_c_compiler_lays_the_structures_out_as_they_are_here() {
        let here = [
            size_of::<Conn>(),
            size_of::<Ack>(),
            size_of::<Sample>(),
            size_of::<State>(),
            size_of::<Ring>(),
            size_of::<Environment>(),
            size_of::<Connection>(),
            offset_of!(Conn, reo_wnd_steps),
            offset_of!(Ack, is_ack_delayed),
            offset_of!(Sample, is_tlp_ack),
            offset_of!(State, min_rtt_stamp),
            offset_of!(State, acks),
            offset_of!(State, tlp_retrans_pending),
            offset_of!(Environment, counts),
        ];
        assert_eq!(bbr3_native_layout.map(|size| size as usize), here);
    }

    #[test]
    fn both_languages_have_the_same_default_knobs() {
        assert_eq!(bbr3_native_default_knobs, bbr3::Knobs::default().to_raw().unwrap());
    }
}
