/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How much more than expected is acknowledged at once. draft, "BBR.extra_acked".
 */
#ifndef BBR3_ACK_AGGREGATION_H
#define BBR3_ACK_AGGREGATION_H

#include "conn.h"
#include "model.h"
#include "params.h"
#include "state.h"

/* BBR.extra_acked: packets. */
static __always_inline u32 extra_acked(const struct bbr3_state *b)
{
	return max_u32(b->extra_acked[0], b->extra_acked[1]);
}

/* What aggregation adds to the window: packets, at most 100 ms of the bandwidth. */
static __always_inline u32 aggregation_cwnd(const struct bbr3_state *b)
{
	u64 most = (u64)bounded_bw(b) * EXTRA_ACKED_MAX_US >> BW_SHIFT;

	return (u32)min_u64(extra_acked(b), most);
}

static __always_inline void start_ack_epoch(struct bbr3_state *b, u64 now)
{
	b->ack_epoch_stamp = now;
	b->ack_epoch_acked = 0;
}

/* A new slot of the two-slot maximum after enough rounds. */
static __always_inline void rotate_extra_acked(struct bbr3_state *b)
{
	u32 window = b->full_bw_reached ? EXTRA_ACKED_ROUNDS : STARTUP_EXTRA_ACKED_ROUNDS;

	b->extra_acked_rounds = min_u32(b->extra_acked_rounds + 1, 31);
	if (b->extra_acked_rounds < window)
		return;
	b->extra_acked_rounds = 0;
	b->extra_acked_slot = !b->extra_acked_slot;
	b->extra_acked[b->extra_acked_slot & 1] = 0;
}

/* draft, UpdateACKAggregation(). */
static __always_inline void update_ack_aggregation(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	u64 elapsed_us, expected;
	u32 extra, *slot;

	if (!is_valid(s))
		return;
	if (b->round_start)
		rotate_extra_acked(b);

	elapsed_us = c->delivered_us > b->ack_epoch_stamp ? c->delivered_us - b->ack_epoch_stamp : 0;
	expected = (u64)bounded_bw(b) * elapsed_us >> BW_SHIFT;
	if (b->ack_epoch_acked <= expected || b->ack_epoch_acked + s->acked_sacked >= ACK_EPOCH_RESET) {
		start_ack_epoch(b, c->delivered_us);
		expected = 0;
	}
	b->ack_epoch_acked = min_u32(b->ack_epoch_acked + s->acked_sacked, ACK_EPOCH_MAX);
	/* Not below zero: an epoch that goes on had more acknowledged than expected. */
	extra = min_u32(b->ack_epoch_acked - (u32)expected, c->cwnd);
	slot = &b->extra_acked[b->extra_acked_slot & 1];
	*slot = max_u32(*slot, extra);
}

#endif
