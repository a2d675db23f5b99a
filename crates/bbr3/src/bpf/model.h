/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The path model: how fast (max_bw, bw) and how much (BDP and what follows from it).
 *
 * draft, "BBR.max_bw: Estimated Maximum Bandwidth", "Computing BBR.max_inflight", "BBR.offload_budget".
 */
#ifndef BBR3_MODEL_H
#define BBR3_MODEL_H

#include "conn.h"
#include "params.h"
#include "state.h"

/* BBR.max_bw: the highest delivery rate of this probing cycle and the one before. */
static __always_inline u32 max_bw(const struct bbr3_state *b)
{
	return max_u32(b->bw_hi[0], b->bw_hi[1]);
}

/* draft, BoundBWForModel(): BBR.bw. */
static __always_inline u32 bounded_bw(const struct bbr3_state *b)
{
	return min_u32(max_bw(b), b->bw_lo);
}

/* draft, UpdateMaxBw(): an application-limited sample counts only where it shows more than was known. */
static __always_inline void update_max_bw(struct bbr3_state *b, const struct sample *s)
{
	if (!s->is_app_limited || s->bw >= max_bw(b))
		b->bw_hi[1] = max_u32(b->bw_hi[1], s->bw);
}

/* draft, AdvanceMaxBwFilter(). A cycle without a sample does not push out the one before. */
static __always_inline void advance_max_bw_filter(struct bbr3_state *b)
{
	if (!b->bw_hi[1])
		return;
	b->bw_hi[0] = b->bw_hi[1];
	b->bw_hi[1] = 0;
}

/* draft, BDPMultiple(): packets, rounded up. `bw` times `gain`/256 over the minimum RTT. */
static __always_inline u32 bdp_multiple(const struct bbr3_state *b, u32 bw, u32 gain)
{
	u64 product, packets;

	if (b->min_rtt_us == INFINITE)
		return b->init_cwnd;
	product = (u64)bw * b->min_rtt_us;
	/* The second form gives up eight bits that no real path misses, so that the product fits. */
	if (product < 1ULL << 54)
		product = product * gain >> UNIT_SHIFT;
	else
		product = (product >> UNIT_SHIFT) * gain;
	packets = (product + BW_UNIT - 1) >> BW_SHIFT;
	return (u32)min_u64(packets, INFINITE);
}

/* Packets in one burst at the current pacing rate, as the kernel's TCP sizes it. draft, SetSendQuantum(). */
static __always_inline u32 send_quantum(struct conn *c, const struct bbr3_state *b)
{
	u64 bytes = c->pacing_rate >> (c->pacing_shift & 63);
	u32 halvings = b->min_rtt_us >> TSO_RTT_SHIFT;
	u32 mss = c->mss;

	if (halvings < 32)
		bytes += TSO_MAX_BYTES >> halvings;
	bytes = min_u64(bytes, TSO_MAX_BYTES - TSO_HEADER_BYTES);
	return max_u32(mss ? (u32)bytes / mss : 0, MIN_TSO_PACKETS);
}

/* draft, QuantizationBudget(): what bursts and delayed ACKs need at least. */
static __always_inline u32 quantization_budget(struct conn *c, const struct bbr3_state *b, u32 packets)
{
	packets = max_u32(packets, OFFLOAD_QUANTA * send_quantum(c, b));
	packets = max_u32(packets, MIN_PIPE_CWND);
	if (b->mode == PROBE_BW_UP && packets < INFINITE - 2)
		packets += 2;
	return packets;
}

/* draft, Inflight(): packets that fill the path at `bw` times `gain`/256. */
static __always_inline u32 inflight(struct conn *c, const struct bbr3_state *b, u32 bw, u32 gain)
{
	return quantization_budget(c, b, bdp_multiple(b, bw, gain));
}

/* draft, TargetInflight(): the estimated BDP, unless congestion cut the window, `cwnd`, below it. */
static __always_inline u32 target_inflight(struct conn *c, const struct bbr3_state *b, u32 cwnd)
{
	return min_u32(inflight(c, b, bounded_bw(b), UNIT), cwnd);
}

/* draft, InflightWithHeadroom(). */
static __always_inline u32 inflight_with_headroom(const struct bbr3_state *b)
{
	u32 headroom;

	if (b->inflight_hi == INFINITE)
		return INFINITE;
	headroom = max_u32(scale(b->inflight_hi, knobs.headroom), 1);
	if (b->inflight_hi <= headroom)
		return MIN_PIPE_CWND;
	return max_u32(b->inflight_hi - headroom, MIN_PIPE_CWND);
}

/*
 * Packets still in the network when the next one departs, of `in_flight` now. Pacing has fixed departure times in the future: until
 * then the path delivers at bw; and while pacing above bw the next burst is about to join.
 */
static __always_inline u32 in_net_at_departure(struct conn *c, const struct bbr3_state *b, u32 in_flight)
{
	u64 now_ns = c->clock_ns;
	u64 departure_ns = max_u64(c->departure_ns, now_ns);
	u64 wait_us = (departure_ns - now_ns) / NSEC_PER_USEC;
	u64 delivered = (u64)bounded_bw(b) * wait_us >> BW_SHIFT;

	if (b->pacing_gain > UNIT)
		in_flight += send_quantum(c, b);
	return delivered < in_flight ? in_flight - (u32)delivered : 0;
}

#endif
