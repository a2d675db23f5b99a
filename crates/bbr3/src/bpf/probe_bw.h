/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * PROBE_BW: DOWN, CRUISE, REFILL, UP, and the long-term bound inflight_hi (the draft's inflight_longterm).
 *
 * draft, "ProbeBW Algorithm Details", "Time Scale for Bandwidth Probing", "Precautionary Bandwidth Probing".
 */
#ifndef BBR3_PROBE_BW_H
#define BBR3_PROBE_BW_H

#include "bounds.h"
#include "full_bw.h"
#include "conn.h"
#include "mode.h"
#include "model.h"
#include "params.h"
#include "state.h"

/* draft, PickProbeWait(): random, so that flows that share a path probe at different times. */
static __always_inline void pick_probe_wait(struct bbr3_state *b)
{
	b->rounds_since_probe = random_below(&b->random, 2);
	b->probe_wait_us = knobs.probe_wait_base_us + random_below(&b->random, knobs.probe_wait_random_us);
}

/* draft, StartProbeBW_DOWN(). */
static __always_inline void start_down(struct conn *c, struct bbr3_state *b)
{
	reset_congestion_signals(b);
	b->probe_up_cnt = INFINITE;
	pick_probe_wait(b);
	b->cycle_stamp = c->now_us;
	b->ack_phase = ACKS_PROBE_STOPPING;
	start_round(c, b);
	enter(c, b, PROBE_BW_DOWN);
}

/* draft, StartProbeBW_CRUISE(). Like Linux, a short-term bound does not stay above the long-term one. */
static __always_inline void start_cruise(struct conn *c, struct bbr3_state *b)
{
	if (b->inflight_lo != INFINITE)
		b->inflight_lo = min_u32(b->inflight_lo, b->inflight_hi);
	enter(c, b, PROBE_BW_CRUISE);
}

/* draft, StartProbeBW_REFILL(). */
static __always_inline void start_refill(struct conn *c, struct bbr3_state *b)
{
	reset_lower_bounds(b);
	b->probe_up_rounds = 0;
	b->probe_up_acked = 0;
	b->stopped_risky_probe = false;
	b->ack_phase = ACKS_REFILLING;
	start_round(c, b);
	enter(c, b, PROBE_BW_REFILL);
}

/* draft, RaiseInflightLongtermSlope(): one packet more per round trip, then two, four, ... */
static __always_inline void raise_inflight_hi_slope(struct conn *c, struct bbr3_state *b)
{
	u32 rounds = min_u32(b->probe_up_rounds, MAX_PROBE_UP_ROUNDS);

	b->probe_up_rounds = min_u32(rounds + 1, MAX_PROBE_UP_ROUNDS);
	b->probe_up_cnt = max_u32(c->cwnd >> rounds, 1);
}

/* draft, StartProbeBW_UP(). */
static __always_inline void start_up(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	b->ack_phase = ACKS_PROBE_STARTING;
	start_round(c, b);
	b->cycle_stamp = c->now_us;
	reset_full_bw(b, s->bw);
	enter(c, b, PROBE_BW_UP);
	raise_inflight_hi_slope(c, b);
}

/* draft, ProbeInflightLongtermUpward(). */
static __always_inline void probe_inflight_hi_upward(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	u32 step = b->probe_up_cnt, grown;

	if (!c->is_cwnd_limited || c->cwnd < b->inflight_hi)
		return;
	b->probe_up_acked += s->acked_sacked;
	if (step && b->probe_up_acked >= step) {
		grown = b->probe_up_acked / step;
		b->probe_up_acked -= grown * step;
		b->inflight_hi = (u32)min_u64((u64)b->inflight_hi + grown, INFINITE - 1);
	}
	if (b->round_start)
		raise_inflight_hi_slope(c, b);
}

/*
 * draft, HandleInflightTooHigh(): the flight of `tx_in_flight` packets lost too much. Not below what one step of multiplicative decrease
 * gives, from the window `cwnd`. An application-limited flight tells nothing about how much is safe, only that the probe is over.
 */
static __always_inline void handle_inflight_too_high(struct conn *c, struct bbr3_state *b, u32 tx_in_flight,
						     bool is_app_limited, u32 cwnd)
{
	count(COUNT_TOO_HIGH);
	b->prev_probe_too_high = true;
	b->bw_probe_samples = false;
	if (!is_app_limited)
		b->inflight_hi = max_u32(tx_in_flight, scale(target_inflight(c, b, cwnd), UNIT - knobs.beta));
	if (b->mode == PROBE_BW_UP) {
		b->undo_mode = PROBE_BW_UP;
		start_down(c, b);
	}
}

/* draft, AdaptLongTermModel(). True: it has changed the phase. */
static __always_inline bool adapt_long_term_model(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	if (b->ack_phase == ACKS_PROBE_STARTING && b->round_start)
		b->ack_phase = ACKS_PROBE_FEEDBACK;
	if (b->ack_phase == ACKS_PROBE_STOPPING && b->round_start) {
		b->bw_probe_samples = false;
		b->ack_phase = ACKS_INIT;
		if (is_in_probe_bw(b) && !s->is_app_limited)
			advance_max_bw_filter(b);
		if (is_in_probe_bw(b) && b->stopped_risky_probe && !b->prev_probe_too_high) {
			start_refill(c, b);
			return true;
		}
	}

	if (unlikely(is_inflight_too_high(c, s->lost, s->tx_in_flight, knobs.loss_thresh))) {
		if (b->bw_probe_samples)
			handle_inflight_too_high(c, b, s->tx_in_flight, s->is_app_limited, c->cwnd);
		return false;
	}
	if (b->inflight_hi == INFINITE)
		return false;
	b->inflight_hi = max_u32(b->inflight_hi, s->tx_in_flight);
	if (b->mode == PROBE_BW_UP)
		probe_inflight_hi_upward(c, b, s);
	return false;
}

/* draft, IsTimeToProbeBW(): after two to three seconds, or as often as Reno would fill the same pipe. */
static __always_inline bool is_time_to_probe_bw(struct conn *c, struct bbr3_state *b)
{
	return c->now_us > b->cycle_stamp + b->probe_wait_us ||
	       b->rounds_since_probe >= min_u32(knobs.probe_max_rounds, target_inflight(c, b, c->cwnd));
}

/* draft, IsTimeToCruise(). */
static __always_inline bool is_time_to_cruise(struct conn *c, struct bbr3_state *b, u32 in_net)
{
	return in_net <= inflight_with_headroom(b) && in_net <= inflight(c, b, max_bw(b), UNIT);
}

/* draft, IsTimeToGoDown(). */
static __always_inline bool is_time_to_go_down(struct conn *c, struct bbr3_state *b, const struct sample *s, u32 in_net)
{
	if (b->prev_probe_too_high && in_net >= b->inflight_hi) {
		b->stopped_risky_probe = true;
		return true;
	}
	if (c->is_cwnd_limited && c->cwnd >= b->inflight_hi) {
		/* The bandwidth is limited by the bound, not by the path. */
		reset_full_bw(b, s->bw);
		return false;
	}
	return b->full_bw_now;
}

/* draft, UpdateProbeBWCyclePhase(). */
static __always_inline void update_probe_bw(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	u32 in_net;

	if (!b->full_bw_reached)
		return;
	if (adapt_long_term_model(c, b, s) || !is_in_probe_bw(b))
		return;

	in_net = in_net_at_departure(c, b, s->prior_in_flight);
	switch (b->mode) {
	case PROBE_BW_DOWN:
		if (unlikely(is_time_to_probe_bw(c, b)))
			start_refill(c, b);
		else if (is_time_to_cruise(c, b, in_net))
			start_cruise(c, b);
		break;
	case PROBE_BW_CRUISE:
		if (unlikely(is_time_to_probe_bw(c, b)))
			start_refill(c, b);
		break;
	case PROBE_BW_REFILL:
		if (b->round_start) {
			b->bw_probe_samples = true;
			start_up(c, b, s);
		}
		break;
	default: /* PROBE_BW_UP */
		if (unlikely(is_time_to_go_down(c, b, s, in_net))) {
			b->prev_probe_too_high = false;
			start_down(c, b);
		}
		break;
	}
}

#endif
