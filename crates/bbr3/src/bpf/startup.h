/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * STARTUP: double the rate each round trip until the pipe is full. draft, "Startup".
 */
#ifndef BBR3_STARTUP_H
#define BBR3_STARTUP_H

#include "bounds.h"
#include "conn.h"
#include "mode.h"
#include "model.h"
#include "params.h"
#include "state.h"
#include "telemetry.h"

#define MAX_LOSS_EVENTS 15

/*
 * draft, "Exiting Startup Based on Packet Loss": a whole round of fast recovery with enough separate losses, and a flight that lost
 * too much. Without SACK any loss in recovery is enough.
 */
static __always_inline bool is_startup_loss_high(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	if (c->ca_state != TCP_CA_Recovery)
		return false;
	if (!c->has_sack)
		return s->ack_losses > 0 || s->lost > 0;
	return b->loss_round_start && b->loss_events_in_round >= knobs.startup_full_loss_count &&
	       is_inflight_too_high(c, s->lost, s->tx_in_flight, knobs.startup_loss_thresh);
}

/* draft, CheckStartupHighLoss(). */
static __always_inline void check_startup_high_loss(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	if (b->full_bw_reached)
		return;
	if (s->ack_losses && b->loss_events_in_round < MAX_LOSS_EVENTS)
		b->loss_events_in_round++;
	if (unlikely(is_startup_loss_high(c, b, s))) {
		count(COUNT_STARTUP_LOSS);
		b->undo_mode = STARTUP;
		b->full_bw_reached = true;
		b->inflight_hi = max_u32(inflight(c, b, max_bw(b), UNIT), b->inflight_latest);
	}
	if (b->loss_round_start)
		b->loss_events_in_round = 0;
}

#endif
