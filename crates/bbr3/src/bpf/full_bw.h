/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The plateau test: is the pipe full? draft, "Exiting Acceleration Based on Bandwidth Plateau".
 *
 * Like Linux and unlike the draft's text, growth is looked for on every ACK; only its absence is counted once a round.
 */
#ifndef BBR3_FULL_BW_H
#define BBR3_FULL_BW_H

#include "params.h"
#include "state.h"

/* draft, ResetFullBW(), with the baseline to grow from. */
static __always_inline void reset_full_bw(struct bbr3_state *b, u32 baseline)
{
	b->full_bw = baseline;
	b->full_bw_count = 0;
	b->full_bw_now = false;
}

/* draft, CheckFullBWReached(). */
static __always_inline void check_full_bw_reached(struct bbr3_state *b, const struct sample *s)
{
	if (b->full_bw_now || s->is_app_limited)
		return;
	if (s->bw >= (u64)b->full_bw * FULL_BW_GROWTH >> UNIT_SHIFT) {
		reset_full_bw(b, s->bw);
		return;
	}
	if (!b->round_start)
		return;
	b->full_bw_count++;
	if (b->full_bw_count >= FULL_BW_ROUNDS) {
		b->full_bw_now = true;
		b->full_bw_reached = true;
	}
}

#endif
