//! The structures that the BPF program and Rust share, as they lie in memory: C's definition is the one in `src/bpf`, with the
//! unit of every field. Tests hold these against the type information of the compiled program, and those that only go through its ring
//! buffer (which leaves no type information) against what the C compiler says in bbr3-native.
//! Fractions are in 1/256.

#![allow(missing_docs)]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Ring entries, `RING_ENTRIES` of ring.h.
pub const RING_ENTRIES: usize = 240;

/// A field of a shared structure: its name, and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// As in C.
    pub name: &'static str,
    /// Bytes from the start of the structure.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// Defines a structure and the list of its fields, by which a test compares it with C's.
macro_rules! shared {
    ($(#[$about:meta])* $name:ident = $c:literal { $($field:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        pub struct $name {
            $(pub $field: $type,)+
        }

        impl $name {
            /// The structure's name in C.
            pub const C_NAME: &'static str = $c;
            /// Its fields in order.
            pub const FIELDS: &'static [Field] = &[$(Field {
                name: stringify!($field),
                offset: std::mem::offset_of!(Self, $field),
                size: size_of::<$type>(),
            },)+];
        }

        impl Default for $name {
            /// All zeros.
            fn default() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }
        }
    };
}

shared! {
    /// `struct bbr3_knobs` of params.h, where each field is described; [`crate::Knobs`] is the typed form.
    RawKnobs = "bbr3_knobs" {
        loss_thresh: u32,
        startup_loss_thresh: u32,
        bw_lo_loss_thresh: u32,
        inflight_lo_loss_thresh: u32,
        beta: u32,
        headroom: u32,
        probe_wait_base_us: u32,
        probe_wait_random_us: u32,
        probe_max_rounds: u32,
        probe_rtt_interval_us: u32,
        probe_rtt_duration_us: u32,
        min_rtt_window_us: u32,
        pacing_margin_percent: u32,
        startup_full_loss_count: u32,
    }
}

shared! {
    /// `struct bbr3_features` of params.h.
    Features = "bbr3_features" {
        cong_control_four_args: u32,
        app_limited_writable: u32,
    }
}

shared! {
    /// `struct conn` of conn.h: the connection as the algorithm sees it.
    Conn = "conn" {
        pacing_rate: u64,
        cwnd: u32,
        ssthresh: u32,
        app_limited: u32,
        mss: u32,
        now_us: u64,
        delivered_us: u64,
        departure_ns: u64,
        clock_ns: u64,
        max_pacing_rate: u64,
        cwnd_clamp: u32,
        prior_cwnd: u32,
        in_flight: u32,
        delivered: u32,
        lost: u32,
        lost_out: u32,
        retrans_out: u32,
        data_segs_out: u32,
        snd_nxt: u32,
        snd_una: u32,
        unsent_bytes: u32,
        queued_bytes: i32,
        srtt_us: u32,
        kernel_min_rtt_us: u32,
        tlp_high_seq: u32,
        ca_state: u8,
        pacing_shift: u8,
        is_cwnd_limited: u8,
        has_sack: u8,
        tlp_retrans: u8,
        reord_seen: u8,
        reo_wnd_steps: u8,
        reserved: [u8; 5],
    }
}

shared! {
    /// `struct ack` of conn.h: one ACK.
    Ack = "ack" {
        interval_us: i64,
        rtt_us: i64,
        delivered: i32,
        prior_delivered: u32,
        acked_sacked: u32,
        losses: i32,
        prior_in_flight: u32,
        last_end_seq: u32,
        has_packet: u8,
        is_app_limited: u8,
        is_retrans: u8,
        is_ack_delayed: u8,
        reserved: [u8; 4],
    }
}

shared! {
    /// `struct sample` of state.h: what an ACK told.
    Sample = "sample" {
        rtt_us: i64,
        bw: u32,
        prior_delivered: u32,
        delivered: u32,
        acked_sacked: u32,
        newly_lost: u32,
        ack_losses: u32,
        prior_in_flight: u32,
        tx_in_flight: u32,
        lost: u32,
        has_packet: u8,
        has_interval: u8,
        is_app_limited: u8,
        is_ack_delayed: u8,
        is_tlp_ack: u8,
        reserved: [u8; 7],
    }
}

shared! {
    /// `struct bbr3_state` of state.h: all the algorithm remembers of a connection, but for the ring.
    State = "bbr3_state" {
        monitor: [u32; 13],
        traced: u32,
        flow: u64,
        recorded: u32,
        random: u32,
        pacing_gain: u32,
        cwnd_gain: u32,
        min_rtt_stamp: u64,
        probe_rtt_min_stamp: u64,
        probe_rtt_done_stamp: u64,
        cycle_stamp: u64,
        ack_epoch_stamp: u64,
        bw_hi: [u32; 2],
        bw_lo: u32,
        bw_latest: u32,
        full_bw: u32,
        inflight_hi: u32,
        inflight_lo: u32,
        inflight_latest: u32,
        extra_acked: [u32; 2],
        ack_epoch_acked: u32,
        min_rtt_us: u32,
        probe_rtt_min_us: u32,
        cap_min_rtt_us: u32,
        next_round_delivered: u32,
        loss_round_delivered: u32,
        probe_wait_us: u32,
        probe_up_cnt: u32,
        probe_up_acked: u32,
        prior_cwnd: u32,
        undo_bw_lo: u32,
        undo_inflight_lo: u32,
        undo_inflight_hi: u32,
        seen_lost: u32,
        seen_data_segs_out: u32,
        app_limited_from: u32,
        app_limited_until: u32,
        init_cwnd: u32,
        acks: u32,
        mode: u8,
        undo_mode: u8,
        ack_phase: u8,
        full_bw_count: u8,
        drain_rounds: u8,
        rounds_since_probe: u8,
        probe_up_rounds: u8,
        extra_acked_rounds: u8,
        extra_acked_slot: u8,
        loss_events_in_round: u8,
        prev_ca_state: u8,
        round_start: u8,
        loss_round_start: u8,
        loss_in_round: u8,
        loss_in_episode: u8,
        full_bw_reached: u8,
        full_bw_now: u8,
        bw_probe_samples: u8,
        prev_probe_too_high: u8,
        stopped_risky_probe: u8,
        probe_rtt_round_done: u8,
        idle_restart: u8,
        has_seen_rtt: u8,
        app_limited_mark: u8,
        tlp_retrans_pending: u8,
        reserved: [u8; 3],
    }
}

shared! {
    /// `struct ring_entry` of ring.h.
    RingEntry = "ring_entry" {
        delivered: u32,
        lost: u32,
        in_flight: u32,
        snd_nxt: u32,
    }
}

shared! {
    /// `struct bbr3_ring` of ring.h.
    Ring = "bbr3_ring" {
        newest: u32,
        used: u32,
        found: u32,
        seen_delivered: u32,
        entries: [RingEntry; RING_ENTRIES],
    }
}

shared! {
    /// `struct bbr3_event` of events.h: first in every event.
    EventHead = "bbr3_event" {
        kind: u32,
        size: u32,
        flow: u64,
        time_ns: u64,
    }
}

shared! {
    /// `struct bbr3_flow_event` of events.h.
    FlowEvent = "bbr3_flow_event" {
        event: EventHead,
        cookie: u64,
        inode: u64,
        netns: u32,
        family: u16,
        local_port: u16,
        remote_port: u16,
        reserved: [u16; 3],
        local: [u8; 16],
        remote: [u8; 16],
    }
}

shared! {
    /// `struct bbr3_transition_event` of events.h.
    TransitionEvent = "bbr3_transition_event" {
        event: EventHead,
        pacing_rate: u64,
        from: u32,
        to: u32,
        mss: u32,
        bw: u32,
        max_bw: u32,
        bw_lo: u32,
        min_rtt_us: u32,
        in_flight: u32,
        cwnd: u32,
        inflight_hi: u32,
        inflight_lo: u32,
        delivered: u32,
        lost: u32,
        ca_state: u32,
    }
}

shared! {
    /// `struct bbr3_snapshot_event` of events.h.
    SnapshotEvent = "bbr3_snapshot_event" {
        event: EventHead,
        state: State,
        ring: Ring,
    }
}

shared! {
    /// `struct bbr3_call_event` of events.h.
    CallEvent = "bbr3_call_event" {
        event: EventHead,
        call: u32,
        argument: u32,
        answer: u32,
        reserved: u32,
        before: Conn,
        ack: Ack,
        pacing_rate: u64,
        cwnd: u32,
        ssthresh: u32,
        app_limited: u32,
        reserved_too: u32,
        after: State,
    }
}

shared! {
    /// `struct bbr3_reader` of events.h: who reads events, and which.
    Reader = "bbr3_reader" {
        until_ns: u64,
        session: u32,
        pid: u32,
        wants_calls: u32,
        netns: u32,
        port: u16,
        family: u16,
        reserved: u32,
        remote: [u8; 16],
    }
}
