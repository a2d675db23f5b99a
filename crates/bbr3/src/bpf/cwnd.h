/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The congestion window. draft, "Congestion Window". Everything in packets.
 */
#ifndef BBR3_CWND_H
#define BBR3_CWND_H

#include "ack_aggregation.h"
#include "conn.h"
#include "model.h"
#include "params.h"
#include "state.h"

/*
 * draft, ProbeRTTCwnd(). From the minimum RTT believed before PROBE_RTT (or a lower one measured in it): where both filters run out
 * together after idleness, the new minimum is a queue's, and half of a BDP computed from it would not drain that queue
 * (draft issue 109).
 */
static __always_inline u32 probe_rtt_cwnd(const struct bbr3_state *b)
{
	u64 packets = bdp_multiple(b, bounded_bw(b), PROBE_RTT_CWND_GAIN);

	if (b->cap_min_rtt_us < b->min_rtt_us && b->min_rtt_us != INFINITE)
		packets = packets * b->cap_min_rtt_us / b->min_rtt_us;
	return max_u32((u32)packets, MIN_PIPE_CWND);
}

/* draft, BoundCwndForModel(). */
static __always_inline u32 bound_cwnd_for_model(const struct bbr3_state *b, u32 cwnd)
{
	u32 cap = INFINITE;

	if (b->mode == PROBE_RTT || b->mode == PROBE_BW_CRUISE)
		cap = inflight_with_headroom(b);
	else if (is_in_probe_bw(b))
		cap = b->inflight_hi;
	cap = min_u32(cap, b->inflight_lo);
	cap = max_u32(cap, MIN_PIPE_CWND);
	return min_u32(cwnd, cap);
}

/* Every upper bound on `cwnd`: the socket's, PROBE_RTT's and the model's. */
static __always_inline u32 bound_cwnd(struct conn *c, const struct bbr3_state *b, u32 cwnd)
{
	cwnd = min_u32(cwnd, c->cwnd_clamp);
	if (b->mode == PROBE_RTT)
		cwnd = min_u32(cwnd, probe_rtt_cwnd(b));
	return bound_cwnd_for_model(b, cwnd);
}

/* draft, UpdateMaxInflight(): BBR.max_inflight. */
static __always_inline u32 max_inflight(struct conn *c, const struct bbr3_state *b)
{
	u32 packets = bdp_multiple(b, bounded_bw(b), b->cwnd_gain);

	return quantization_budget(c, b, (u32)min_u64((u64)packets + aggregation_cwnd(b), INFINITE));
}

/* draft, SetCwnd(). */
static __always_inline void set_cwnd(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	u32 cwnd = c->cwnd;

	if (s->acked_sacked) {
		u32 target = max_inflight(c, b);

		if (b->full_bw_reached)
			cwnd = min_u32(cwnd + s->acked_sacked, target);
		else if (cwnd < target || cwnd < 2 * b->init_cwnd)
			cwnd += s->acked_sacked;
		cwnd = max_u32(cwnd, MIN_PIPE_CWND);
	}
	c->cwnd = bound_cwnd(c, b, cwnd);
}

/* draft, RestoreCwnd(). */
static __always_inline void restore_cwnd(struct conn *c, struct bbr3_state *b)
{
	c->cwnd = max_u32(c->cwnd, b->prior_cwnd);
}

/* draft, SaveCwnd(): the last window that neither recovery nor PROBE_RTT had cut. */
static __always_inline void save_cwnd(struct bbr3_state *b, u32 cwnd)
{
	if (b->prev_ca_state < TCP_CA_Recovery && b->mode != PROBE_RTT)
		b->prior_cwnd = cwnd;
	else
		b->prior_cwnd = max_u32(b->prior_cwnd, cwnd);
}

#endif
