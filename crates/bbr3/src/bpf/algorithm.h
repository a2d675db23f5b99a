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
#include "kernel.h"
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
static __always_inline void on_init(struct tcp_sock *tp, struct bbr3_state *b, struct bbr3_ring *ring)
{
	u64 now = tp->tcp_mstamp;

	__builtin_memset(b, 0, sizeof(*b));
	ring->newest = 0;
	ring->used = 0;

	b->mode = STARTUP;
	b->undo_mode = NO_MODE;
	b->ack_phase = ACKS_INIT;
	b->init_cwnd = min_u32(tp->snd_cwnd, MAX_INIT_CWND);
	b->min_rtt_us = kernel_min_rtt(tp);
	b->min_rtt_stamp = now;
	b->probe_rtt_min_us = b->min_rtt_us;
	b->probe_rtt_min_stamp = now;
	b->cap_min_rtt_us = b->min_rtt_us;
	b->ack_epoch_stamp = now;
	b->next_round_delivered = tp->delivered;
	b->loss_round_delivered = tp->delivered + 1;
	b->inflight_hi = INFINITE;
	b->probe_up_cnt = INFINITE;
	b->seen_lost = tp->lost;
	b->seen_data_segs_out = tp->data_segs_out;
	reset_congestion_signals(b);
	reset_lower_bounds(b);
	reset_full_bw(b, 0);
	update_gains(b);

	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	init_pacing_rate(tp, b);
	if (tcp_to_sock(tp)->sk_pacing_status == SK_PACING_NONE)
		tcp_to_sock(tp)->sk_pacing_status = SK_PACING_NEEDED;
	update_monitor(tp, b);
}

/* draft, GenerateRateSample(), as far as the kernel has not done it. */
static __always_inline void take_sample(struct tcp_sock *tp, struct bbr3_state *b, struct bbr3_ring *ring, const struct rate_sample *rs,
					struct sample *s)
{
	long interval_us = rs->interval_us;
	s32 delivered = rs->delivered;

	s->has_packet = rs->prior_mstamp && delivered > 0;
	s->has_interval = interval_us > 0 && delivered >= 0;
	s->prior_delivered = rs->prior_delivered;
	s->delivered = delivered > 0 ? delivered : 0;
	s->acked_sacked = rs->acked_sacked;
	s->ack_losses = rs->losses > 0 ? rs->losses : 0;
	s->prior_in_flight = rs->prior_in_flight;
	s->rtt_us = rs->rtt_us;
	s->is_ack_delayed = rs->is_ack_delayed;
	s->last_end_seq = rs->last_end_seq;
	s->is_retrans = rs->is_retrans;
	s->is_tlp_ack = has_tlp_retrans(tp) && tp->snd_una == tp->tlp_high_seq;
	s->bw = 0;
	if (s->has_interval) {
		u64 bw = (((u64)s->delivered << BW_SHIFT) + (u64)interval_us - 1) / (u64)interval_us;

		s->bw = (u32)min_u64(bw, INFINITE - 1);
	}

	ring_close_group(tp, b, ring, tp->delivered - s->acked_sacked, tp->lost - s->ack_losses, s->prior_in_flight);
	ring_look_up(tp, ring, s);
	s->newly_lost = tp->lost - b->seen_lost;
	b->seen_lost = tp->lost;

	check_app_limited(tp, b, s);
	s->is_app_limited = rs->is_app_limited;
	if (!features.app_limited_writable && s->has_packet) {
		s->is_app_limited = s->is_app_limited || is_marked_app_limited(b, s->prior_delivered);
		expire_app_limited(b, s->prior_delivered);
	}
}

/* draft, UpdateRound(). */
static __always_inline void update_round(struct tcp_sock *tp, struct bbr3_state *b, const struct sample *s)
{
	b->round_start = s->has_interval && !before(s->prior_delivered, b->next_round_delivered);
	if (!b->round_start)
		return;
	start_round(tp, b);
	if (b->rounds_since_probe < 255)
		b->rounds_since_probe++;
}

/* draft, UpdateModelAndState(). */
static __always_inline void update_model(struct tcp_sock *tp, struct bbr3_state *b, const struct sample *s)
{
	update_round(tp, b, s);
	update_latest_delivery_signals(tp, b, s);
	update_congestion_signals(tp, b, s);
	update_ack_aggregation(tp, b, s);
	check_startup_high_loss(tp, b, s);
	check_full_bw_reached(b, s);
	check_startup_done(tp, b);
	check_drain_done(tp, b);
	update_probe_bw(tp, b, s);
	check_probe_rtt(tp, b, s, update_min_rtt(tp, b, s));
}

/* draft, UpdateOnACK(). */
static __always_inline void on_ack(struct tcp_sock *tp, struct bbr3_state *b, struct bbr3_ring *ring, const struct rate_sample *rs)
{
	struct sample s;

	take_sample(tp, b, ring, rs, &s);
	if (s.newly_lost)
		handle_losses_of_ack(tp, b, ring, &s);
	b->tlp_retrans_pending = false;

	update_model(tp, b, &s);
	update_gains(b);
	set_pacing_rate(tp, b, b->pacing_gain);
	set_cwnd(tp, b, &s);

	advance_latest_delivery_signals(b, &s);
	b->prev_ca_state = ca_state(tp);
	b->acks++;
}

#endif
