/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Lost packets, one at a time: did this one take the loss of its flight above the threshold? draft, "Probing for Bandwidth In ProbeBW".
 *
 * A stock kernel calls no one as it marks a packet lost. But the marks of an ACK are known as its cong_control runs, and RACK marks what
 * was sent right before the packet just delivered: that packet's ring entry stands for theirs.
 */
#ifndef BBR3_LOSS_H
#define BBR3_LOSS_H

#include "bounds.h"
#include "cwnd.h"
#include "conn.h"
#include "model.h"
#include "params.h"
#include "probe_bw.h"
#include "ring.h"
#include "state.h"

/* draft, SaveStateUponLoss(): once for each recovery episode, before anything is cut. */
static __always_inline void save_state_upon_loss(struct bbr3_state *b, u32 cwnd)
{
	if (b->loss_in_episode)
		return;
	b->loss_in_episode = true;
	save_cwnd(b, cwnd);
	b->undo_mode = NO_MODE;
	b->undo_bw_lo = b->bw_lo;
	b->undo_inflight_lo = b->inflight_lo;
	b->undo_inflight_hi = b->inflight_hi;
}

/* draft, NoteLoss(): the first loss of a round starts the loss clock, at this value of `delivered`. */
static __always_inline void note_loss(struct bbr3_state *b, u32 delivered)
{
	if (!b->loss_in_round)
		b->loss_round_delivered = delivered;
	b->loss_in_round = true;
}

/*
 * draft, InflightAtLoss(): packets in flight as the loss rate crossed the threshold, for a lost packet sent as the last of
 * `tx_in_flight`, `lost` packets of which are lost. Solves (lost before + x) / (in flight before + x) = threshold.
 */
static __always_inline u32 inflight_at_loss(u32 tx_in_flight, u32 lost)
{
	u32 before_it = tx_in_flight - 1, lost_before_it = lost - 1;
	u32 budget = (u32)(((u64)before_it * knobs.loss_thresh + UNIT - 1) >> UNIT_SHIFT);

	if (lost_before_it >= budget || knobs.loss_thresh >= UNIT)
		return before_it;
	return before_it + (u32)(((u64)(budget - lost_before_it) << UNIT_SHIFT) / (UNIT - knobs.loss_thresh));
}

/* Packets that became known as lost at the same time: in a row, as far as is known. */
struct losses {
	struct ring_entry *entry; /* group of the first */
	u32 end;                  /* where the first ends; 0: not known */
	u32 count;
	u32 lost_before;          /* conn.lost without them */
	u32 is_app_limited;
	u32 cwnd;                 /* window as they were lost */
};

/* draft, HandleLostPacket(), for each of `losses`: finds the one that takes its flight above the threshold. */
static __always_inline void handle_lost_packets(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring,
						const struct losses *losses)
{
	struct ring_entry *entry = losses->entry;
	u32 end = losses->end, tx_in_flight, lost_before, tolerated, needed;

	if (!b->bw_probe_samples || !entry)
		return;
	tx_in_flight = end ? ring_tx_in_flight(c, entry, end) : entry->in_flight;
	if (!tx_in_flight)
		return;
	lost_before = losses->lost_before - entry->lost;
	tolerated = c->has_sack ? scale(tx_in_flight, knobs.loss_thresh) : 0;
	needed = lost_before > tolerated ? 1 : tolerated - lost_before + 1;
	if (needed > losses->count)
		return;
	if (end && needed > 1) {
		/* That one was sent later than the first. */
		end += (needed - 1) * c->mss;
		entry = ring_find_sequence(ring, end - 1);
		if (entry) {
			tx_in_flight = ring_tx_in_flight(c, entry, end);
			lost_before = losses->lost_before - entry->lost;
		}
	}
	handle_inflight_too_high(c, b, inflight_at_loss(tx_in_flight, lost_before + needed), losses->is_app_limited,
				 losses->cwnd);
}

/* How much earlier than the packet just delivered a packet marked lost may have been sent: RACK's reordering window, microseconds. */
static __always_inline u32 reordering_window_us(struct conn *c)
{
	if (!c->reord_seen)
		return 0;
	return (u32)min_u64((u64)(c->kernel_min_rtt_us >> 2) * c->reo_wnd_steps, c->srtt_us >> 3);
}

/*
 * Where the first packet that this ACK has marked lost ends: the one before the hole's end. Recovery begins with the oldest packet
 * outstanding. In recovery RACK does not wait: it marks what was sent right before the packets just delivered. 0: not known.
 */
static __always_inline u32 first_lost_end(struct conn *c, const struct bbr3_state *b, const struct ack *ack, const struct sample *s)
{
	u32 end;

	if (b->prev_ca_state < TCP_CA_Recovery)
		return c->snd_una + c->mss;
	if (!ack->has_packet || ack->is_retrans || reordering_window_us(c))
		return 0;
	end = ack->last_end_seq - c->mss * (s->acked_sacked + s->newly_lost - 1);
	return before(c->snd_una, end) ? end : 0;
}

/* For each ACK with news of loss. */
static __always_inline void handle_losses_of_ack(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring,
						 const struct ack *ack, const struct sample *s)
{
	/* In recovery timers mark between ACKs too: the clock then starts where it stood. */
	bool by_timer = s->newly_lost > s->ack_losses;
	struct losses losses;
	u32 earlier;

	save_state_upon_loss(b, c->cwnd);
	note_loss(b, by_timer ? c->delivered - s->acked_sacked : c->delivered);
	if (!b->bw_probe_samples)
		return;
	losses.count = s->newly_lost;
	losses.lost_before = c->lost - s->newly_lost;
	losses.is_app_limited = s->is_app_limited;
	losses.cwnd = c->cwnd;
	losses.end = first_lost_end(c, b, ack, s);
	if (losses.end) {
		losses.entry = ring_find_sequence(ring, losses.end - 1);
	} else {
		/* As of the group of the packet just delivered, or of one earlier by what RACK waits. */
		if (!ack->has_packet)
			return;
		earlier = (u32)((u64)bounded_bw(b) * reordering_window_us(c) >> BW_SHIFT);
		losses.entry = ring_find(ring, s->prior_delivered - earlier);
	}
	handle_lost_packets(c, b, ring, &losses);
}

#endif
