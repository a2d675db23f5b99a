/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Loss rounds and the short-term bounds. draft, "When not Probing for Bandwidth" and "Probing for Bandwidth In ProbeBW".
 *
 * bw_lo and inflight_lo are the draft's bw_shortterm and inflight_shortterm; inflight_hi is its inflight_longterm.
 */
#ifndef BBR3_BOUNDS_H
#define BBR3_BOUNDS_H

#include "conn.h"
#include "model.h"
#include "params.h"
#include "state.h"

/* More lost of the flight than `thresh`/256 of it? */
static __always_inline bool exceeds(u32 lost, u32 tx_in_flight, u32 thresh)
{
	return lost > scale(tx_in_flight, thresh);
}

/* draft, IsInflightTooHigh(). A connection without SACK sees one loss per round trip at most: any is too many. */
static __always_inline bool is_inflight_too_high(struct conn *c, u32 lost, u32 tx_in_flight, u32 thresh)
{
	if (!lost)
		return false;
	if (!c->has_sack)
		return true;
	return tx_in_flight && exceeds(lost, tx_in_flight, thresh);
}

/* draft, ResetCongestionSignals(). */
static __always_inline void reset_congestion_signals(struct bbr3_state *b)
{
	b->loss_in_round = false;
	b->bw_latest = 0;
	b->inflight_latest = 0;
}

/* draft, ResetShortTermModel(). */
static __always_inline void reset_lower_bounds(struct bbr3_state *b)
{
	b->bw_lo = INFINITE;
	b->inflight_lo = INFINITE;
}

/* draft, UpdateLatestDeliverySignals(). */
static __always_inline void update_latest_delivery_signals(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	b->loss_round_start = false;
	if (!is_valid(s))
		return;
	b->bw_latest = max_u32(b->bw_latest, s->bw);
	b->inflight_latest = max_u32(b->inflight_latest, s->delivered);
	if (!before(s->prior_delivered, b->loss_round_delivered)) {
		b->loss_round_delivered = c->delivered;
		b->loss_round_start = true;
	}
}

/*
 * draft, AdvanceLatestDeliverySignals(). What a tail loss probe repaired says nothing of how much the path delivers: the round
 * before it is remembered.
 */
static __always_inline void advance_latest_delivery_signals(struct bbr3_state *b, const struct sample *s)
{
	if (!b->loss_round_start || s->is_tlp_ack)
		return;
	b->bw_latest = s->bw;
	b->inflight_latest = s->delivered;
}

/* draft, InitLowerBounds() and LossLowerBounds(): adapt once per round with loss, each bound by its own threshold. */
static __always_inline void adapt_lower_bounds(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	if (is_probing_bw(b) || !b->loss_in_round)
		return;
	if (!knobs.bw_lo_loss_thresh || exceeds(s->lost, s->tx_in_flight, knobs.bw_lo_loss_thresh)) {
		if (b->bw_lo == INFINITE)
			b->bw_lo = max_bw(b);
		b->bw_lo = max_u32(b->bw_latest, scale(b->bw_lo, UNIT - knobs.beta));
		b->bw_lo = max_u32(b->bw_lo, 1);
	}
	if (!knobs.inflight_lo_loss_thresh || exceeds(s->lost, s->tx_in_flight, knobs.inflight_lo_loss_thresh)) {
		if (b->inflight_lo == INFINITE)
			b->inflight_lo = c->cwnd;
		b->inflight_lo = max_u32(b->inflight_latest, scale(b->inflight_lo, UNIT - knobs.beta));
	}
}

/* draft, UpdateCongestionSignals(). */
static __always_inline void update_congestion_signals(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	if (!is_valid(s))
		return;
	update_max_bw(b, s);
	if (s->ack_losses)
		b->loss_in_round = true;
	if (!unlikely(b->loss_round_start))
		return;
	adapt_lower_bounds(c, b, s);
	b->loss_in_round = false;
}

#endif
