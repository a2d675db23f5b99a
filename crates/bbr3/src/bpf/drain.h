/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * DRAIN: empty the queue that STARTUP built. draft, "Drain".
 */
#ifndef BBR3_DRAIN_H
#define BBR3_DRAIN_H

#include "bounds.h"
#include "conn.h"
#include "mode.h"
#include "model.h"
#include "params.h"
#include "probe_bw.h"
#include "state.h"

/* draft, CheckStartupDone() and EnterDrain(). snd_ssthresh is set for those who look at it: BBR does not use it. */
static __always_inline void check_startup_done(struct conn *c, struct bbr3_state *b)
{
	if (b->mode != STARTUP || !b->full_bw_reached)
		return;
	b->drain_rounds = 0;
	c->ssthresh = inflight(c, b, max_bw(b), UNIT);
	reset_congestion_signals(b);
	enter(c, b, DRAIN);
}

/* draft, CheckDrainDone(): when the queue is gone, or when it has had more rounds than it should need. */
static __always_inline void check_drain_done(struct conn *c, struct bbr3_state *b)
{
	if (b->mode != DRAIN)
		return;
	if (b->round_start)
		b->drain_rounds++;
	if (b->drain_rounds > MAX_DRAIN_ROUNDS ||
	    in_net_at_departure(c, b, c->in_flight) <= inflight(c, b, max_bw(b), UNIT))
		start_down(c, b);
}

#endif
