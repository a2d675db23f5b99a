/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Writes the events of events.h. Only for the kernel. While nobody reads, each callback pays one comparison.
 */
#ifndef BBR3_TRACE_H
#define BBR3_TRACE_H

#include "events.h"
#include "kernel.h"
#include "model.h"
#include "telemetry.h"

#define AF_INET 2
#define AF_INET6 10

/* Bytes: half a second of every ACK of a 100 Mbit/s flow. A power of two, and a multiple of every page size. */
#define EVENTS_BYTES (1 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENTS_BYTES);
} bbr3_events SEC(".maps");

/* The map's value is this. */
volatile struct bbr3_reader reader SEC(".data.reader") = {};

static __always_inline bool somebody_reads(struct conn *c)
{
	return reader.until_ns > c->clock_ns;
}

/* state.traced of a socket that this reader wants, and of one it does not. */
static __always_inline u32 wanted(void)
{
	return reader.session << 1 | 1;
}

static __always_inline u32 unwanted(void)
{
	return reader.session << 1;
}

static __always_inline void head(struct bbr3_event *event, u32 kind, u32 size, struct conn *c, const struct bbr3_state *b)
{
	event->kind = kind;
	event->size = size;
	event->flow = b->flow;
	event->time_ns = c->clock_ns;
}

static __always_inline void read_addresses(struct sock_common *common, struct bbr3_flow_event *event)
{
	u32 *local = (u32 *)event->local, *remote = (u32 *)event->remote;

	event->family = common->skc_family;
	event->local_port = common->skc_num;
	event->remote_port = __builtin_bswap16(common->skc_dport);
	if (event->family == AF_INET6) {
		for (int word = 0; word < 4; word++) {
			local[word] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[word];
			remote[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
		}
		return;
	}
	for (int word = 0; word < 4; word++) {
		local[word] = word ? 0 : common->skc_rcv_saddr;
		remote[word] = word ? 0 : common->skc_daddr;
	}
}

/* Is it a socket that the reader asked for? */
static __always_inline bool matches(const struct bbr3_flow_event *event)
{
	const volatile u64 *asked = (const volatile u64 *)reader.remote;
	const u64 *remote = (const u64 *)event->remote;

	if (reader.netns && reader.netns != event->netns)
		return false;
	if (reader.port && reader.port != event->local_port && reader.port != event->remote_port)
		return false;
	return !reader.family || (reader.family == event->family && asked[0] == remote[0] && asked[1] == remote[1]);
}

static __always_inline void event_dropped(void)
{
	count(COUNT_EVENT_DROPPED);
}

/* A socket's first callback for this reader: says who it is, where the reader wants it. */
static __noinline int introduce(struct tcp_sock *tp, struct conn *c, struct bbr3_state *b)
{
	struct sock *sk = tcp_to_sock(tp);
	struct bbr3_flow_event *event = bpf_ringbuf_reserve(&bbr3_events, sizeof(*event), 0);

	if (!event) {
		event_dropped();
		return 0;
	}
	head(&event->event, EVENT_FLOW, sizeof(*event), c, b);
	event->cookie = sk->__sk_common.skc_cookie.counter;
	event->inode = sk->sk_socket->file->f_inode->i_ino;
	event->netns = sk->__sk_common.skc_net.net->ns.inum;
	event->reserved[0] = 0;
	event->reserved[1] = 0;
	event->reserved[2] = 0;
	read_addresses(&sk->__sk_common, event);
	if (matches(event)) {
		b->traced = wanted();
		bpf_ringbuf_submit(event, 0);
	} else {
		b->traced = unwanted();
		bpf_ringbuf_discard(event, 0);
	}
	return 0;
}

/* At the start of each callback, so that transitions within it are known to be wanted or not. */
static __always_inline bool is_traced(struct tcp_sock *tp, struct conn *c, struct bbr3_state *b)
{
	if (!unlikely(somebody_reads(c)))
		return false;
	if (b->traced >> 1 != reader.session)
		introduce(tp, c, b);
	return b->traced == wanted();
}

SUBPROGRAM int write_transition(struct conn *c, struct bbr3_state *b, u32 from, u32 to)
{
	struct bbr3_transition_event *event;

	RETURN_IF_NULL(c);
	RETURN_IF_NULL(b);
	event = bpf_ringbuf_reserve(&bbr3_events, sizeof(*event), 0);
	if (!event) {
		event_dropped();
		return 0;
	}
	head(&event->event, EVENT_TRANSITION, sizeof(*event), c, b);
	event->pacing_rate = c->pacing_rate;
	event->from = from;
	event->to = to;
	event->mss = c->mss;
	event->bw = bounded_bw(b);
	event->max_bw = max_bw(b);
	event->bw_lo = b->bw_lo;
	event->min_rtt_us = b->min_rtt_us;
	event->in_flight = c->in_flight;
	event->cwnd = c->cwnd;
	event->inflight_hi = b->inflight_hi;
	event->inflight_lo = b->inflight_lo;
	event->delivered = c->delivered;
	event->lost = c->lost;
	event->ca_state = c->ca_state;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

static __always_inline void trace_transition(struct conn *c, struct bbr3_state *b, u32 from, u32 to)
{
	if (unlikely(somebody_reads(c)) && b->traced == wanted())
		write_transition(c, b, from, to);
}

/* Everything the algorithm remembers of a socket. False: no room. */
static __noinline int write_snapshot(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring)
{
	struct bbr3_snapshot_event *event = bpf_ringbuf_reserve(&bbr3_events, sizeof(*event), 0);

	if (!event) {
		event_dropped();
		return false;
	}
	head(&event->event, EVENT_SNAPSHOT, sizeof(*event), c, b);
	event->state = *b;
	event->ring.newest = ring->newest;
	event->ring.used = ring->used;
	event->ring.found = ring->found;
	event->ring.seen_delivered = ring->seen_delivered;
	for (int index = 0; index < RING_ENTRIES; index++)
		event->ring.entries[index] = ring->entries[index];
	bpf_ringbuf_submit(event, 0);
	return true;
}

/*
 * Before a callback of a recorded socket: what it remembers, where a recording of it begins or goes on after a gap. `ring` may be
 * NULL.
 */
static __noinline int begin_call(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring)
{
	if (reader.wants_calls && b->recorded != reader.session && ring && write_snapshot(c, b, ring))
		b->recorded = reader.session;
	return 0;
}

/* As in struct bbr3_call_event. */
struct call {
	u32 call;
	u32 argument;
	u32 answer;
};

/*
 * After it, and before the connection is changed: all it was given and made of it. The algorithm changes four fields of `c`; their
 * values of before are still in the socket. `ack` may be NULL. (No record is held while the algorithm runs: kernels before 6.4 lose track of it.)
 */
static __noinline int end_call(struct tcp_sock *tp, struct conn *c, struct bbr3_state *b, const struct call *call,
			       const struct ack *ack)
{
	struct bbr3_call_event *event;

	if (!reader.wants_calls || b->recorded != reader.session)
		return 0;
	event = bpf_ringbuf_reserve(&bbr3_events, sizeof(*event), 0);
	if (!event) {
		/* A gap: what follows it begins with a snapshot. */
		b->recorded = 0;
		event_dropped();
		return 0;
	}
	head(&event->event, EVENT_CALL, sizeof(*event), c, b);
	event->call = call->call;
	event->argument = call->argument;
	event->answer = call->answer;
	event->reserved = 0;
	event->before = *c;
	event->before.pacing_rate = tcp_to_sock(tp)->sk_pacing_rate;
	event->before.cwnd = tp->snd_cwnd;
	event->before.ssthresh = tp->snd_ssthresh;
	event->before.app_limited = tp->app_limited;
	if (ack)
		event->ack = *ack;
	else
		__builtin_memset(&event->ack, 0, sizeof(event->ack));
	event->pacing_rate = c->pacing_rate;
	event->cwnd = c->cwnd;
	event->ssthresh = c->ssthresh;
	event->app_limited = c->app_limited;
	event->reserved_too = 0;
	event->after = *b;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

#endif
