/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The order of things: what happens at the start of a connection and at each ACK.
 *
 * draft-ietf-ccwg-bbr, "Algorithm Organization". The whole algorithm is in the headers included here, and compiles for the kernel (BPF)
 * and natively; who includes this defines the functions of telemetry.h.
 */
#ifndef BBR3_ALGORITHM_H
#define BBR3_ALGORITHM_H

#include "ack_aggregation.h"
#include "app_limited.h"
#include "bounds.h"
#include "cwnd.h"
#include "drain.h"
#include "full_bw.h"
#include "idle.h"
#include "conn.h"
#include "loss.h"
#include "mode.h"
#include "model.h"
#include "monitor.h"
#include "pacing.h"
#include "params.h"
#include "platform.h"
#include "probe_bw.h"
#include "probe_rtt.h"
#include "recovery.h"
#include "ring.h"
#include "startup.h"
#include "state.h"
#include "telemetry.h"

/* draft, OnInit(). Storage may come from an earlier use of the socket: every field is set. */
static __always_inline void on_init(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring)
{
	u64 now = c->now_us;

	__builtin_memset(b, 0, sizeof(*b));
	ring->newest = 0;
	ring->used = 0;
	ring->found = 0;
	ring->seen_delivered = c->delivered;

	b->random = random_seed() | 1;
	b->mode = STARTUP;
	b->undo_mode = NO_MODE;
	b->ack_phase = ACKS_INIT;
	b->init_cwnd = min_u32(c->cwnd, MAX_INIT_CWND);
	b->min_rtt_us = c->kernel_min_rtt_us;
	b->min_rtt_stamp = now;
	b->probe_rtt_min_us = b->min_rtt_us;
	b->probe_rtt_min_stamp = now;
	b->cap_min_rtt_us = b->min_rtt_us;
	b->ack_epoch_stamp = now;
	b->next_round_delivered = c->delivered;
	b->loss_round_delivered = c->delivered + 1;
	b->inflight_hi = INFINITE;
	b->probe_up_cnt = INFINITE;
	b->seen_lost = c->lost;
	b->seen_data_segs_out = c->data_segs_out;
	reset_congestion_signals(b);
	reset_lower_bounds(b);
	reset_full_bw(b, 0);
	update_gains(b);

	c->ssthresh = TCP_INFINITE_SSTHRESH;
	init_pacing_rate(c, b);
}

/* draft, GenerateRateSample(), as far as the kernel has not done it; and what happened since the last ACK. */
SUBPROGRAM int take_sample(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring, const struct ack *ack, struct sample *s)
{
	RETURN_IF_NULL(c);
	RETURN_IF_NULL(b);
	RETURN_IF_NULL(ring);
	RETURN_IF_NULL(ack);
	RETURN_IF_NULL(s);

	s->rtt_us = ack->rtt_us;
	s->prior_delivered = ack->prior_delivered;
	s->delivered = ack->delivered > 0 ? ack->delivered : 0;
	s->acked_sacked = ack->acked_sacked;
	s->ack_losses = ack->losses > 0 ? ack->losses : 0;
	s->prior_in_flight = ack->prior_in_flight;
	s->has_packet = ack->has_packet && ack->delivered > 0;
	s->has_interval = ack->interval_us > 0 && ack->delivered >= 0;
	s->is_ack_delayed = ack->is_ack_delayed;
	s->is_tlp_ack = has_tlp_retrans(c) && c->snd_una == c->tlp_high_seq;
	s->bw = 0;
	if (s->has_interval) {
		u64 interval_us = ack->interval_us;

		s->bw = (u32)min_u64((((u64)s->delivered << BW_SHIFT) + interval_us - 1) / interval_us, INFINITE - 1);
	}

	ring_close_group(c, b, ring, c->delivered - s->acked_sacked, c->lost - s->ack_losses, s->prior_in_flight);
	ring_look_up(c, ring, ack, s);
	s->newly_lost = c->lost - b->seen_lost;
	b->seen_lost = c->lost;

	check_app_limited(c, b, s);
	s->is_app_limited = ack->is_app_limited;
	if (!features.app_limited_writable && s->has_packet) {
		s->is_app_limited = s->is_app_limited || is_marked_app_limited(b, s->prior_delivered);
		expire_app_limited(b, s->prior_delivered);
	}
	if (unlikely(s->newly_lost))
		handle_losses_of_ack(c, b, ring, ack, s);
	b->tlp_retrans_pending = false;
	ring->seen_delivered = c->delivered;
	return 0;
}

/* draft, UpdateRound(). */
static __always_inline void update_round(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	b->round_start = s->has_interval && !before(s->prior_delivered, b->next_round_delivered);
	if (!b->round_start)
		return;
	start_round(c, b);
	if (b->rounds_since_probe < 255)
		b->rounds_since_probe++;
}

/* draft, UpdateModelAndState(), its first half: what is known of the path. */
SUBPROGRAM int update_path_model(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	RETURN_IF_NULL(c);
	RETURN_IF_NULL(b);
	RETURN_IF_NULL(s);

	update_round(c, b, s);
	update_latest_delivery_signals(c, b, s);
	update_congestion_signals(c, b, s);
	update_ack_aggregation(c, b, s);
	check_startup_high_loss(c, b, s);
	check_full_bw_reached(b, s);
	return 0;
}

/* draft, UpdateModelAndState(), its second half: the state machine. */
SUBPROGRAM int update_state_machine(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	RETURN_IF_NULL(c);
	RETURN_IF_NULL(b);
	RETURN_IF_NULL(s);

	check_startup_done(c, b);
	check_drain_done(c, b);
	update_probe_bw(c, b, s);
	check_probe_rtt(c, b, s, update_min_rtt(c, b, s));
	return 0;
}

/* draft, UpdateControlParameters(). The kernel sizes bursts itself. */
SUBPROGRAM int update_control(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	RETURN_IF_NULL(c);
	RETURN_IF_NULL(b);
	RETURN_IF_NULL(s);

	update_gains(b);
	set_pacing_rate(c, b, b->pacing_gain);
	set_cwnd(c, b, s);
	return 0;
}

/* draft, UpdateOnACK(). `s` is the caller's to look at afterwards. */
static __always_inline void on_ack(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring, const struct ack *ack,
				   struct sample *s)
{
	__builtin_memset(s, 0, sizeof(*s));
	take_sample(c, b, ring, ack, s);
	update_path_model(c, b, s);
	update_state_machine(c, b, s);
	update_control(c, b, s);
	advance_latest_delivery_signals(b, s);
	b->prev_ca_state = c->ca_state;
	b->acks++;
}

#endif
