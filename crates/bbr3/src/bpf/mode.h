/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Changing state, and the gains of each. draft, "Summary of Control Behavior in the State Machine".
 */
#ifndef BBR3_MODE_H
#define BBR3_MODE_H

#include "conn.h"
#include "params.h"
#include "state.h"
#include "telemetry.h"

/* The only place where the mode changes. */
static __always_inline void enter(struct conn *c, struct bbr3_state *b, u32 mode)
{
	u32 from = b->mode;

	b->mode = mode;
	report_transition(c, b, from, mode);
}

/* draft, StartRound(): a round trip ends with the delivery of something sent from now on. */
static __always_inline void start_round(struct conn *c, struct bbr3_state *b)
{
	b->next_round_delivered = c->delivered;
}

static __always_inline void update_gains(struct bbr3_state *b)
{
	b->cwnd_gain = CWND_GAIN;
	switch (b->mode) {
	case STARTUP:
		b->pacing_gain = STARTUP_PACING_GAIN;
		break;
	case DRAIN:
		b->pacing_gain = DRAIN_PACING_GAIN;
		break;
	case PROBE_BW_DOWN:
		b->pacing_gain = DOWN_PACING_GAIN;
		break;
	case PROBE_BW_UP:
		b->pacing_gain = UP_PACING_GAIN;
		b->cwnd_gain = UP_CWND_GAIN;
		break;
	case PROBE_RTT:
		/* The window is capped at PROBE_RTT_CWND_GAIN besides. */
		b->pacing_gain = UNIT;
		b->cwnd_gain = UNIT;
		break;
	default: /* PROBE_BW_CRUISE, PROBE_BW_REFILL */
		b->pacing_gain = UNIT;
		break;
	}
}

#endif
