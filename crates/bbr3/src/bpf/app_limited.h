/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Application-limited phases. draft, "Detecting application-limited phases".
 *
 * The kernel marks a connection application-limited only as the application writes; the draft wants the test at every ACK too. And PROBE_RTT
 * marks the connection itself, so that low samples are not believed. Where the kernel's mark may not be written (before 6.4) the
 * marked packets are remembered here.
 */
#ifndef BBR3_APP_LIMITED_H
#define BBR3_APP_LIMITED_H

#include "conn.h"
#include "params.h"
#include "state.h"

/* Less than the true size of the smallest packet that holds data: nothing but pure ACKs waits below TCP. Bytes. */
#define SMALLEST_SKB_TRUESIZE 576

/* draft, MarkConnectionAppLimited(): all that is sent until `in_flight` packets more than `delivered` are delivered. */
static __always_inline void mark_app_limited(struct conn *c, struct bbr3_state *b, u32 delivered, u32 in_flight)
{
	u32 until = delivered + in_flight;

	if (features.app_limited_writable) {
		c->app_limited = until ? until : 1;
		return;
	}
	if (!b->app_limited_mark) {
		b->app_limited_mark = true;
		b->app_limited_from = delivered;
	}
	b->app_limited_until = until;
}

/* Is the connection application-limited now? */
static __always_inline bool is_conn_app_limited(struct conn *c, const struct bbr3_state *b)
{
	return c->app_limited || b->app_limited_mark;
}

/* Was a packet sent at this value of `delivered` application-limited? Only for the mark kept here. */
static __always_inline bool is_marked_app_limited(const struct bbr3_state *b, u32 prior_delivered)
{
	return b->app_limited_mark && !before(prior_delivered, b->app_limited_from) &&
	       !before(b->app_limited_until, prior_delivered);
}

/* The bubble has passed once something sent after it is delivered. */
static __always_inline void expire_app_limited(struct bbr3_state *b, u32 prior_delivered)
{
	if (b->app_limited_mark && before(b->app_limited_until, prior_delivered))
		b->app_limited_mark = false;
}

/*
 * draft, CheckIfApplicationLimited(), as at the beginning of this ACK: no data to send, nothing below TCP, room in the window, and
 * all that was lost is sent again.
 */
static __always_inline void check_app_limited(struct conn *c, struct bbr3_state *b, const struct sample *s)
{
	u32 lost_before = c->lost_out > s->ack_losses ? c->lost_out - s->ack_losses : 0;

	if (c->unsent_bytes < c->mss &&
	    c->queued_bytes < SMALLEST_SKB_TRUESIZE &&
	    s->prior_in_flight < c->cwnd && lost_before <= c->retrans_out)
		mark_app_limited(c, b, c->delivered - s->acked_sacked, s->prior_in_flight);
}

#endif
