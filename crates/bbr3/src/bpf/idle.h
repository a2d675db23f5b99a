/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Restarting from idle. draft, "Actions when Restarting from Idle".
 */
#ifndef BBR3_IDLE_H
#define BBR3_IDLE_H

#include "ack_aggregation.h"
#include "app_limited.h"
#include "conn.h"
#include "pacing.h"
#include "probe_rtt.h"
#include "state.h"
#include "telemetry.h"

/* draft, HandleRestartFromIdle(): the first packet with nothing in flight is about to be sent. */
static __always_inline void on_tx_start(struct conn *c, struct bbr3_state *b)
{
	if (!is_conn_app_limited(c, b))
		return;
	count(COUNT_IDLE_RESTART);
	b->idle_restart = true;
	start_ack_epoch(b, c->now_us);
	if (is_in_probe_bw(b))
		set_pacing_rate(c, b, UNIT);
	else if (b->mode == PROBE_RTT)
		check_probe_rtt_done(c, b);
}

#endif
