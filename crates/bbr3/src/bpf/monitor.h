/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The monitor record: this connection's state in the layout of struct tcp_bbr_info.
 */
#ifndef BBR3_MONITOR_H
#define BBR3_MONITOR_H

#include "ack_aggregation.h"
#include "conn.h"
#include "model.h"
#include "pacing.h"
#include "state.h"

#define MONITOR_VERSION 3

/* bbr_mode and bbr_phase of struct tcp_bbr_info, one byte each, for each enum bbr3_mode. */
static __always_inline u8 monitor_mode(u32 mode)
{
	return mode == PROBE_RTT ? 3 : mode >= PROBE_BW_DOWN ? 2 : mode;
}

static __always_inline u8 monitor_phase(u32 mode)
{
	switch (mode) {
	case STARTUP:
		return 1;
	case DRAIN:
		return 2;
	case PROBE_RTT:
		return 3;
	case PROBE_BW_UP:
		return 4;
	case PROBE_BW_DOWN:
		return 5;
	case PROBE_BW_CRUISE:
		return 6;
	default: /* PROBE_BW_REFILL */
		return 7;
	}
}

static __always_inline void update_monitor(struct conn *c, struct bbr3_state *b)
{
	struct bbr3_monitor *m = &b->monitor;
	u64 bw = bytes_per_second(bounded_bw(b), c->mss, UNIT, 0);
	u64 bw_hi = bytes_per_second(max_bw(b), c->mss, UNIT, 0);
	u64 bw_lo = b->bw_lo == INFINITE ? ~0ULL : bytes_per_second(b->bw_lo, c->mss, UNIT, 0);

	m->bw_low = (u32)bw;
	m->bw_high = (u32)(bw >> 32);
	m->min_rtt_us = b->min_rtt_us;
	m->pacing_gain = b->pacing_gain;
	m->cwnd_gain = b->cwnd_gain;
	m->bw_hi_low = (u32)bw_hi;
	m->bw_hi_high = (u32)(bw_hi >> 32);
	m->bw_lo_low = (u32)bw_lo;
	m->bw_lo_high = (u32)(bw_lo >> 32);
	m->mode = monitor_mode(b->mode);
	m->phase = monitor_phase(b->mode);
	m->unused = 0;
	m->version = MONITOR_VERSION;
	m->inflight_lo = b->inflight_lo;
	m->inflight_hi = b->inflight_hi;
	m->extra_acked = extra_acked(b);
}

#endif
