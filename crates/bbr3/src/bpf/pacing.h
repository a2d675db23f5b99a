/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pacing rate. draft, "Pacing Rate: C.pacing_rate". The kernel's TCP keeps to it by itself where no fq qdisc does.
 */
#ifndef BBR3_PACING_H
#define BBR3_PACING_H

#include "conn.h"
#include "model.h"
#include "params.h"
#include "state.h"

/* Bytes per second of `bw`. The order of operations keeps 64 bits enough up to 2.9 Tbit/s. */
static __always_inline u64 bytes_per_second(u32 bw, u32 mss, u32 gain, u32 margin_percent)
{
	u64 rate = (u64)bw * mss;

	rate = rate * gain >> UNIT_SHIFT;
	return rate * (USEC_PER_SEC / 100 * (100 - margin_percent)) >> BW_SHIFT;
}

static __always_inline u64 pacing_rate(struct conn *c, u32 bw, u32 gain)
{
	u64 rate = bytes_per_second(bw, c->mss, gain, knobs.pacing_margin_percent);

	return min_u64(rate, c->max_pacing_rate);
}

/* draft, InitPacingRate(): one window per round trip, or per millisecond as long as no round trip was measured. */
static __always_inline void init_pacing_rate(struct conn *c, struct bbr3_state *b)
{
	u32 rtt_us = USEC_PER_MSEC;

	if (c->srtt_us) {
		rtt_us = max_u32(c->srtt_us >> 3, 1);
		b->has_seen_rtt = true;
	}
	c->pacing_rate =
		pacing_rate(c, (u32)min_u64(((u64)c->cwnd << BW_SHIFT) / rtt_us, INFINITE), STARTUP_PACING_GAIN);
}

/* draft, SetPacingRateWithGain(): not downwards before the pipe was full, because samples may be application-limited. */
static __always_inline void set_pacing_rate(struct conn *c, struct bbr3_state *b, u32 gain)
{
	u64 rate = pacing_rate(c, bounded_bw(b), gain);

	if (!b->has_seen_rtt && c->srtt_us)
		init_pacing_rate(c, b);
	if (b->full_bw_reached || rate > c->pacing_rate)
		c->pacing_rate = rate;
}

#endif
