/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The minimum RTT and PROBE_RTT. draft, "ProbeRTT Logic" and "BBR.min_rtt Min Filter".
 */
#ifndef BBR3_PROBE_RTT_H
#define BBR3_PROBE_RTT_H

#include "app_limited.h"
#include "bounds.h"
#include "cwnd.h"
#include "conn.h"
#include "mode.h"
#include "params.h"
#include "probe_bw.h"
#include "state.h"

/*
 * draft, UpdateMinRTT(). True: the RTT filter has run out. A delayed ACK does not open a new window, and an equal RTT refreshes
 * the stamp, as in Linux.
 */
static __always_inline bool update_min_rtt(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	u64 now = c->now_us;
	bool probe_rtt_expired = now > b->probe_rtt_min_stamp + knobs.probe_rtt_interval_us;

	if (s->rtt_us >= 0 &&
	    (s->rtt_us < b->probe_rtt_min_us || (probe_rtt_expired && !s->is_ack_delayed))) {
		b->probe_rtt_min_us = (u32)s->rtt_us;
		b->probe_rtt_min_stamp = now;
	}
	if (b->mode != PROBE_RTT)
		b->cap_min_rtt_us = b->min_rtt_us;
	if (b->probe_rtt_min_us <= b->min_rtt_us || now > b->min_rtt_stamp + knobs.min_rtt_window_us) {
		b->min_rtt_us = b->probe_rtt_min_us;
		b->min_rtt_stamp = b->probe_rtt_min_stamp;
	}
	return probe_rtt_expired;
}

/* draft, ExitProbeRTT(). The queue is empty: no need to stay in DOWN. */
static __always_inline void exit_probe_rtt(struct conn *c, struct bbr3_state *b)
{
	reset_lower_bounds(b);
	if (b->full_bw_reached) {
		start_down(c, b);
		start_cruise(c, b);
	} else {
		enter(c, b, STARTUP);
	}
}

/* draft, CheckProbeRTTDone(). */
static __always_inline void check_probe_rtt_done(struct conn *c, struct bbr3_state *b)
{
	if (!b->probe_rtt_done_stamp || c->now_us <= b->probe_rtt_done_stamp)
		return;
	b->probe_rtt_min_stamp = c->now_us; /* when the next one is due */
	restore_cwnd(c, b);
	exit_probe_rtt(c, b);
}

/* draft, HandleProbeRTT(). */
static __always_inline void handle_probe_rtt(struct conn *c, struct bbr3_state *b)
{
	u32 in_flight = c->in_flight;

	mark_app_limited(c, b, c->delivered, in_flight);
	if (!b->probe_rtt_done_stamp) {
		if (in_flight > probe_rtt_cwnd(b))
			return;
		b->probe_rtt_done_stamp = c->now_us + knobs.probe_rtt_duration_us;
		b->probe_rtt_round_done = false;
		start_round(c, b);
		return;
	}
	if (b->round_start)
		b->probe_rtt_round_done = true;
	if (b->probe_rtt_round_done)
		check_probe_rtt_done(c, b);
}

/* draft, CheckProbeRTT(). */
static __always_inline void check_probe_rtt(struct conn *c, struct bbr3_state *b, const struct sample *s, bool expired)
{
	if (unlikely(expired && !b->idle_restart && b->mode != PROBE_RTT)) {
		save_cwnd(b, c->cwnd);
		b->probe_rtt_done_stamp = 0;
		b->ack_phase = ACKS_PROBE_STOPPING;
		start_round(c, b);
		enter(c, b, PROBE_RTT);
	}
	if (unlikely(b->mode == PROBE_RTT))
		handle_probe_rtt(c, b);
	if (s->has_packet)
		b->idle_restart = false;
}

#endif
