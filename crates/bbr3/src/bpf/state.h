/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What BBRv3 remembers of one connection. Lives in socket storage: the 104 bytes of icsk_ca_priv are too few.
 *
 * Units: "bw" is a bandwidth in packets per microsecond << 24, "packets" are segments of mss_cache bytes, "stamp" is a
 * time in microseconds on the clock of conn.now_us, "delivered" is a value of conn.delivered (packets, wraps), gains and fractions are /256.
 */
#ifndef BBR3_STATE_H
#define BBR3_STATE_H

#include "platform.h"

/* draft, "State Machine". PROBE_BW's four phases are states of their own. */
enum bbr3_mode {
	STARTUP = 0,
	DRAIN = 1,
	PROBE_BW_DOWN = 2,
	PROBE_BW_CRUISE = 3,
	PROBE_BW_REFILL = 4,
	PROBE_BW_UP = 5,
	PROBE_RTT = 6,
	/* Only as undo_mode: nothing to go back to. */
	NO_MODE = 7,
};

/* draft, "ProbeBW State": what the arriving ACKs tell about the last bandwidth probe. */
enum bbr3_ack_phase {
	ACKS_INIT = 0,
	ACKS_REFILLING = 1,
	ACKS_PROBE_STARTING = 2,
	ACKS_PROBE_FEEDBACK = 3,
	ACKS_PROBE_STOPPING = 4,
};

/*
 * The monitor record: laid out like the 52 bytes of struct tcp_bbr_info that BBRv2 and BBRv3 kernels return for
 * TCP_CC_INFO, so that tools can share a decoder. First in the storage value.
 */
struct bbr3_monitor {
	u32 bw_low;  /* bytes per second, lower and upper word */
	u32 bw_high;
	u32 min_rtt_us;
	u32 pacing_gain;
	u32 cwnd_gain;
	u32 bw_hi_low; /* bytes per second: the long-term maximum */
	u32 bw_hi_high;
	u32 bw_lo_low; /* bytes per second: the short-term bound, all ones: none */
	u32 bw_lo_high;
	u8 mode;  /* 0 STARTUP 1 DRAIN 2 PROBE_BW 3 PROBE_RTT */
	u8 phase; /* 1 STARTUP 2 DRAIN 3 PROBE_RTT 4 UP 5 DOWN 6 CRUISE 7 REFILL */
	u8 unused;
	u8 version;      /* 3 */
	u32 inflight_lo; /* packets, all ones: none */
	u32 inflight_hi;
	u32 extra_acked;
};

struct bbr3_state {
	struct bbr3_monitor monitor;

	/* The socket's telemetry, events.h. The algorithm looks at none of it. */
	u32 traced;   /* of the reader this socket was introduced to: its session << 1, and 1 where it wants this socket */
	u64 flow;     /* the socket's number */
	u32 recorded; /* session of the reader that has every call so far; 0: none */

	u32 random; /* state of the generator of random waits; not 0 */

	/* Control parameters in force. */
	u32 pacing_gain;
	u32 cwnd_gain;

	/* Times. */
	u64 min_rtt_stamp;        /* when min_rtt_us was measured */
	u64 probe_rtt_min_stamp;  /* when probe_rtt_min_us was measured */
	u64 probe_rtt_done_stamp; /* earliest end of PROBE_RTT; 0: the window is not low yet */
	u64 cycle_stamp;          /* start of the current PROBE_BW cycle (or of its UP phase) */
	u64 ack_epoch_stamp;      /* start of the current ACK aggregation epoch */

	/* Path model: rates. */
	u32 bw_hi[2];  /* bw: maximum of the previous and of the current probing cycle */
	u32 bw_lo;     /* bw: short-term bound, or INFINITE */
	u32 bw_latest; /* bw: maximum of the current round */
	u32 full_bw;   /* bw: baseline of the plateau test */

	/* Path model: volumes. */
	u32 inflight_hi;     /* packets: long-term bound, or INFINITE */
	u32 inflight_lo;     /* packets: short-term bound, or INFINITE */
	u32 inflight_latest; /* packets: maximum delivered in one round trip, this round */
	u32 extra_acked[2];  /* packets: aggregation, maximum of two slots of rounds */
	u32 ack_epoch_acked; /* packets acknowledged in the current aggregation epoch */
	u32 min_rtt_us;
	u32 probe_rtt_min_us; /* minimum RTT since the last PROBE_RTT */
	u32 cap_min_rtt_us;   /* min_rtt_us as PROBE_RTT began */

	/* Rounds, as values of `delivered`. */
	u32 next_round_delivered;
	u32 loss_round_delivered;

	/* Bandwidth probing. */
	u32 probe_wait_us;
	u32 probe_up_cnt;   /* packets to acknowledge for each packet inflight_hi grows, or INFINITE */
	u32 probe_up_acked; /* packets acknowledged since inflight_hi grew */

	/* To go back to after PROBE_RTT, after recovery, or where a recovery was spurious. */
	u32 prior_cwnd;
	u32 undo_bw_lo;
	u32 undo_inflight_lo;
	u32 undo_inflight_hi;

	/* conn counters as they were after the last look. */
	u32 seen_lost;
	u32 seen_data_segs_out;

	/* Kernels where app_limited can't be written: packets sent at these values of `delivered` were application-limited. */
	u32 app_limited_from;
	u32 app_limited_until;

	u32 init_cwnd; /* packets */
	u32 acks;      /* ACKs processed since the global counter was last raised */

	/* enum bbr3_mode, enum bbr3_ack_phase. */
	u8 mode;
	u8 undo_mode;
	u8 ack_phase;

	/* Small counts. */
	u8 full_bw_count;        /* rounds without growth */
	u8 drain_rounds;         /* rounds in DRAIN */
	u8 rounds_since_probe;   /* saturates */
	u8 probe_up_rounds;      /* doublings of the growth of inflight_hi */
	u8 extra_acked_rounds;   /* rounds in the current aggregation slot */
	u8 extra_acked_slot;     /* 0 or 1 */
	u8 loss_events_in_round; /* ACKs with news of loss; saturates at 15 */
	u8 prev_ca_state;        /* ca_state after the last ACK */

	/* Flags. */
	u8 round_start;           /* this ACK began a round trip */
	u8 loss_round_start;      /* this ACK ended a round trip of the loss clock */
	u8 loss_in_round;         /* loss was seen since the loss clock's round began */
	u8 loss_in_episode;       /* the state to undo to is saved */
	u8 full_bw_reached;       /* the pipe was full once: STARTUP is over */
	u8 full_bw_now;           /* the pipe is full, found by the current plateau test */
	u8 bw_probe_samples;      /* ACKs tell about packets sent while probing */
	u8 prev_probe_too_high;   /* the last probe met loss above the threshold */
	u8 stopped_risky_probe;   /* the last probe ended early at inflight_hi */
	u8 probe_rtt_round_done;  /* a round trip passed at the low window */
	u8 idle_restart;          /* nothing delivered since the connection was idle */
	u8 has_seen_rtt;          /* pacing started from a measured RTT */
	u8 app_limited_mark;      /* app_limited_from and app_limited_until are in force */
	u8 tlp_retrans_pending;   /* in_ack_event saw a retransmitted tail loss probe outstanding */
	u8 reserved[3];
};

/* What the newest packet delivered by this ACK tells. draft, "Per-ACK Rate Sample State". */
struct sample {
	s64 rtt_us;          /* below 0: none */
	u32 bw;              /* bw: delivery rate; 0: no valid sample */
	u32 prior_delivered; /* `delivered` when the packet was sent */
	u32 delivered;       /* packets delivered since then */
	u32 acked_sacked;    /* packets newly delivered */
	u32 newly_lost;      /* packets marked lost since the last ACK, by timers too */
	u32 ack_losses;      /* packets marked lost by this ACK */
	u32 prior_in_flight; /* packets in flight before this ACK */
	u32 tx_in_flight;    /* packets in flight right after the packet was sent; 0: unknown */
	u32 lost;            /* packets marked lost since the packet was sent */
	u8 has_packet;       /* something was newly delivered */
	u8 has_interval;     /* the delivery rate is valid */
	u8 is_app_limited;
	u8 is_ack_delayed;
	u8 is_tlp_ack;       /* acknowledges exactly a retransmitted tail loss probe */
	u8 reserved[7];
};

/* Both conditions the model asks for before it believes a sample. */
static __always_inline bool is_valid(const struct sample *s)
{
	return s->has_interval && s->acked_sacked > 0;
}

static __always_inline bool is_in_probe_bw(const struct bbr3_state *b)
{
	return b->mode >= PROBE_BW_DOWN && b->mode <= PROBE_BW_UP;
}

/* draft, IsProbingBW(). */
static __always_inline bool is_probing_bw(const struct bbr3_state *b)
{
	return b->mode == STARTUP || b->mode == PROBE_BW_REFILL || b->mode == PROBE_BW_UP;
}

#endif
