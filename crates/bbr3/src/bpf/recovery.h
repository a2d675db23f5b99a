/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Loss recovery as the kernel tells of it: its begin and end, retransmission timeouts, tail loss probes, and recoveries that turn out to
 * have been spurious. draft, "Modulating cwnd in Loss Recovery", "Updating the Model Upon Detecting a Spurious Loss Recovery".
 */
#ifndef BBR3_RECOVERY_H
#define BBR3_RECOVERY_H

#include "app_limited.h"
#include "bounds.h"
#include "cwnd.h"
#include "full_bw.h"
#include "conn.h"
#include "loss.h"
#include "mode.h"
#include "pacing.h"
#include "probe_bw.h"
#include "ring.h"
#include "state.h"
#include "telemetry.h"

/* A tail loss probe repaired a loss: counts as one lost packet at the end of the latest flight. */
static __always_inline void handle_tlp_recovery(struct conn *c, struct bbr3_state *b)
{
	u32 tx_in_flight = b->inflight_latest + 1;

	count(COUNT_TLP_RECOVERY);
	note_loss(b, c->delivered);
	if (b->bw_probe_samples && is_inflight_too_high(c, 1, tx_in_flight, knobs.loss_thresh))
		handle_inflight_too_high(c, b, tx_in_flight, is_conn_app_limited(c, b), c->cwnd);
}

/*
 * Packets that a timer has marked lost, the oldest outstanding first: the group of those sent before ends here. `cwnd` is the window
 * before it.
 */
static __always_inline void handle_losses_of_timer(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring, u32 cwnd)
{
	u32 newly_lost = c->lost - b->seen_lost;
	struct losses losses;

	save_state_upon_loss(b, cwnd);
	if (!newly_lost)
		return;
	ring_close_group(c, b, ring, c->delivered, b->seen_lost, c->in_flight + newly_lost);
	note_loss(b, c->delivered);
	losses.entry = ring_find_sequence(ring, c->snd_una);
	losses.end = c->snd_una + c->mss;
	losses.count = newly_lost;
	losses.lost_before = b->seen_lost;
	losses.is_app_limited = is_conn_app_limited(c, b);
	losses.cwnd = cwnd;
	handle_lost_packets(c, b, ring, &losses);
	b->seen_lost = c->lost;
}

/*
 * A retransmission timeout: the kernel has marked the whole flight lost and has cut the window to one. So the window before it is
 * wanted.
 */
static __always_inline void handle_rto(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring)
{
	count(COUNT_RTO);
	handle_losses_of_timer(c, b, ring, max_u32(c->cwnd, c->prior_cwnd));
	b->prev_ca_state = TCP_CA_Loss;
	reset_full_bw(b, 0);
	/* adapt_lower_bounds() would start from a window of one. */
	if (!is_probing_bw(b) && b->inflight_lo == INFINITE)
		b->inflight_lo = max_u32(c->cwnd, b->prior_cwnd);
}

/* draft, OnEnterFastRecovery(). The kernel asks for a slow start threshold at this moment; BBR has no use for one. */
static __always_inline u32 on_ssthresh(struct conn *c, struct bbr3_state *b)
{
	save_state_upon_loss(b, c->cwnd);
	return c->ssthresh;
}

/* Before the kernel changes its recovery state. */
static __always_inline void on_set_state(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring, u32 new_state)
{
	if (new_state == TCP_CA_CWR && b->tlp_retrans_pending) {
		b->tlp_retrans_pending = false;
		handle_tlp_recovery(c, b);
	}
	/* RACK's timer: nothing was delivered since the last ACK. */
	if (new_state == TCP_CA_Recovery && c->delivered == ring->seen_delivered)
		handle_losses_of_timer(c, b, ring, c->cwnd);
	if (new_state == TCP_CA_Loss) {
		handle_rto(c, b, ring);
	} else if (b->prev_ca_state == TCP_CA_Loss) {
		/* The kernel may do without cong_control on this ACK: bound the restored window here. */
		restore_cwnd(c, b);
		c->cwnd = bound_cwnd(c, b, c->cwnd);
	}
	if (new_state < TCP_CA_Recovery)
		b->loss_in_episode = false;
}

/* A retransmitted tail loss probe may be repaired by this ACK; afterwards the kernel has forgotten it. */
static __always_inline bool has_tlp_retrans(struct conn *c)
{
	return c->tlp_high_seq && c->tlp_retrans;
}

/* draft, HandleSpuriousLossDetection(). Returns the window. */
static __always_inline u32 on_undo(struct conn *c, struct bbr3_state *b)
{
	count(COUNT_UNDO);
	b->loss_in_round = false;
	b->loss_round_start = false;
	b->loss_round_delivered = c->delivered;
	b->loss_events_in_round = 0;
	reset_full_bw(b, 0);
	b->bw_lo = max_u32(b->bw_lo, b->undo_bw_lo);
	b->inflight_lo = max_u32(b->inflight_lo, b->undo_inflight_lo);
	b->inflight_hi = max_u32(b->inflight_hi, b->undo_inflight_hi);
	if (b->undo_mode == STARTUP && b->mode != STARTUP) {
		b->full_bw_reached = false;
		if (b->mode != PROBE_RTT)
			enter(c, b, STARTUP);
	} else if (b->undo_mode == PROBE_BW_UP && b->mode != PROBE_BW_UP && b->mode != PROBE_RTT) {
		start_refill(c, b);
	}
	b->undo_mode = NO_MODE;
	/* The kernel does without cong_control where the ACK is an old one. */
	update_gains(b);
	set_pacing_rate(c, b, b->pacing_gain);
	return bound_cwnd(c, b, max_u32(c->cwnd, b->prior_cwnd));
}

#endif
