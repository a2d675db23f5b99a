/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BBRv3 as a BPF struct_ops congestion control: the callbacks the kernel knows, the maps, and nothing of the algorithm.
 */
#include "algorithm.h"
#include "kernel.h"
#include "trace.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* struct tcp_congestion_ops, include/net/tcp.h, as far as it is filled in. Members are matched by name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*cwnd_event_tx_start)(struct sock *sk); /* 7.1 and later, instead of the event */
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/* Reno, for sockets that can't have storage. */
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct bbr3_state);
} bbr3_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct bbr3_ring);
} bbr3_ring SEC(".maps");

_Static_assert(sizeof(struct bbr3_monitor) == 52, "the layout of struct tcp_bbr_info");
_Static_assert(sizeof(struct bbr3_state) <= 512, "small enough for every kernel's socket storage");
_Static_assert(sizeof(struct bbr3_ring) <= 4112, "kernels from 7.1 on allocate no more");

/* The only variable in .bss: the map's value is this. */
struct bbr3_totals totals;

/*
 * icsk_ca_priv[0]: zero as the kernel hands over the socket. On active opens the SYN-ACK runs cong_control before init: then nothing is
 * to be done.
 */
#define SOCKET_NEW 0
#define SOCKET_READY 1
#define SOCKET_DEGRADED 2
/* ACKs between two attempts to get storage after all. Upper half of icsk_ca_priv[0]. icsk_ca_priv[1] is the socket's number. */
#define RETRY_ACKS 64

static __always_inline void count(u32 what)
{
	if (what < COUNTS)
		__sync_fetch_and_add(&totals.counts[what], 1);
}

static __always_inline void report_transition(struct conn *c, struct bbr3_state *b, u32 from, u32 to)
{
	if (to < NO_MODE)
		__sync_fetch_and_add(&totals.transitions[to], 1);
	trace_transition(c, b, from, to);
}

static __always_inline u32 socket_status(struct tcp_sock *tp)
{
	return (u32)tp->inet_conn.icsk_ca_priv[0];
}

static __always_inline struct bbr3_state *state_of(struct tcp_sock *tp)
{
	if (socket_status(tp) != SOCKET_READY)
		return NULL;
	return bpf_sk_storage_get(&bbr3_state, tp, NULL, 0);
}

static __always_inline struct bbr3_ring *ring_of(struct tcp_sock *tp)
{
	return bpf_sk_storage_get(&bbr3_ring, tp, NULL, 0);
}

/* Gives the socket its storage and starts the algorithm; false where there is none to be had. */
static __always_inline bool start(struct tcp_sock *tp)
{
	struct bbr3_state *b = bpf_sk_storage_get(&bbr3_state, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct bbr3_ring *ring;
	struct conn c;

	if (!b)
		return false;
	ring = bpf_sk_storage_get(&bbr3_ring, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!ring) {
		bpf_sk_storage_delete(&bbr3_state, tp);
		return false;
	}
	read_conn(tp, &c);
	on_init(&c, b, ring);
	b->flow = tp->inet_conn.icsk_ca_priv[1];
	if (unlikely(is_traced(tp, &c, b))) {
		/* There was nothing before. */
		b->recorded = reader.session;
		end_call(tp, &c, b, &(struct call){ CALL_INIT, 0, 0 }, NULL);
	}
	update_monitor(&c, b);
	write_conn(tp, &c);
	if (tcp_to_sock(tp)->sk_pacing_status == SK_PACING_NONE)
		tcp_to_sock(tp)->sk_pacing_status = SK_PACING_NEEDED;
	tp->inet_conn.icsk_ca_priv[0] = SOCKET_READY;
	return true;
}

/* The kernel leaves the window alone because cong_control exists: Reno then has to run from there. */
static __noinline void degraded_ack(struct tcp_sock *tp, const struct rate_sample *rs)
{
	u64 acks = tp->inet_conn.icsk_ca_priv[0] >> 32;
	u32 state = read_bits(tp, inet_conn.icsk_ca_state);

	if (acks >= RETRY_ACKS && start(tp)) {
		count(COUNT_RECOVERED);
		return;
	}
	acks = acks >= RETRY_ACKS ? 0 : acks + 1;
	tp->inet_conn.icsk_ca_priv[0] = SOCKET_DEGRADED | acks << 32;
	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		tp->snd_cwnd = max_u32(min_u32(tp->snd_cwnd, tp->snd_ssthresh), 2);
	else
		tcp_reno_cong_avoid(tcp_to_sock(tp), 0, rs->acked_sacked);
}

SEC("struct_ops/bbr3_init")
int bbr3_init(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];

	tp->inet_conn.icsk_ca_priv[1] = __sync_fetch_and_add(&totals.counts[COUNT_INIT], 1) + 1;
	if (!start(tp)) {
		tp->inet_conn.icsk_ca_priv[0] = SOCKET_DEGRADED;
		count(COUNT_DEGRADED);
	}
	return 0;
}

SEC("struct_ops/bbr3_release")
int bbr3_release(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct bbr3_state *b = state_of(tp);
	struct conn c;

	/* Older kernels (6.12, not 6.18) release sockets too that init never saw: listeners, and those that never connected. */
	if (socket_status(tp) != SOCKET_NEW)
		count(COUNT_RELEASE);
	if (b) {
		__sync_fetch_and_add(&totals.counts[COUNT_ACK], b->acks);
		read_conn(tp, &c);
		trace_transition(&c, b, b->mode, NO_MODE);
	}
	bpf_sk_storage_delete(&bbr3_ring, tp);
	bpf_sk_storage_delete(&bbr3_state, tp);
	return 0;
}

/* By itself, as degraded_ack(): neither then has the other's variables on its stack. */
static __noinline void ready_ack(struct tcp_sock *tp, const struct rate_sample *rs)
{
	struct bbr3_state *b = state_of(tp);
	struct bbr3_ring *ring;
	struct conn c;
	bool traced;
	struct ack ack;
	struct sample s;

	if (!b)
		return;
	ring = ring_of(tp);
	if (!ring)
		return;
	read_conn(tp, &c);
	traced = is_traced(tp, &c, b);
	read_ack(rs, &ack);
	if (unlikely(traced))
		begin_call(&c, b, ring);
	on_ack(&c, b, ring, &ack, &s);
	if (unlikely(traced))
		end_call(tp, &c, b, &(struct call){ CALL_ACK, 0, 0 }, &ack);
	write_conn(tp, &c);
	if (b->round_start) {
		update_monitor(&c, b);
		__sync_fetch_and_add(&totals.counts[COUNT_ACK], b->acks);
		b->acks = 0;
	}
}

SEC("struct_ops/bbr3_cong_control")
int bbr3_cong_control(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	const struct rate_sample *rs;
	u32 status = socket_status(tp);

	/* The barriers keep the compiler from merging the loads into arithmetic on ctx, which the verifier refuses. */
	if (features.cong_control_four_args) {
		rs = (const struct rate_sample *)ctx[3];
		barrier_var(rs);
	} else {
		rs = (const struct rate_sample *)ctx[1];
		barrier_var(rs);
	}
	if (status == SOCKET_READY)
		ready_ack(tp, rs);
	else if (status == SOCKET_DEGRADED)
		degraded_ack(tp, rs);
	return 0;
}

SEC("struct_ops/bbr3_in_ack")
int bbr3_in_ack(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct bbr3_state *b;
	struct conn c;
	bool traced;

	if (!tp->tlp_high_seq || !read_bits(tp, tlp_retrans))
		return 0;
	b = state_of(tp);
	if (!b)
		return 0;
	read_conn(tp, &c);
	traced = is_traced(tp, &c, b);
	if (unlikely(traced))
		begin_call(&c, b, ring_of(tp));
	b->tlp_retrans_pending = true;
	if (unlikely(traced))
		end_call(tp, &c, b, &(struct call){ CALL_IN_ACK, 0, 0 }, NULL);
	return 0;
}

SEC("struct_ops/bbr3_ssthresh")
int bbr3_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct bbr3_state *b = state_of(tp);
	struct conn c;
	bool traced;
	u32 answer;

	if (!b)
		return tcp_reno_ssthresh(tcp_to_sock(tp));
	read_conn(tp, &c);
	traced = is_traced(tp, &c, b);
	if (unlikely(traced))
		begin_call(&c, b, ring_of(tp));
	answer = on_ssthresh(&c, b);
	if (unlikely(traced))
		end_call(tp, &c, b, &(struct call){ CALL_SSTHRESH, 0, answer }, NULL);
	return answer;
}

SEC("struct_ops/bbr3_set_state")
int bbr3_set_state(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	u8 new_state = (u8)ctx[1];
	struct bbr3_state *b = state_of(tp);
	struct bbr3_ring *ring;
	struct conn c;
	bool traced;

	if (!b)
		return 0;
	ring = ring_of(tp);
	if (!ring)
		return 0;
	read_conn(tp, &c);
	traced = is_traced(tp, &c, b);
	if (unlikely(traced))
		begin_call(&c, b, ring);
	on_set_state(&c, b, ring, new_state);
	if (unlikely(traced))
		end_call(tp, &c, b, &(struct call){ CALL_SET_STATE, new_state, 0 }, NULL);
	write_conn(tp, &c);
	return 0;
}

SEC("struct_ops/bbr3_undo_cwnd")
int bbr3_undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct bbr3_state *b = state_of(tp);
	struct conn c;
	bool traced;
	u32 answer;

	if (!b)
		return tcp_reno_undo_cwnd(tcp_to_sock(tp));
	read_conn(tp, &c);
	traced = is_traced(tp, &c, b);
	if (unlikely(traced))
		begin_call(&c, b, ring_of(tp));
	answer = on_undo(&c, b);
	if (unlikely(traced))
		end_call(tp, &c, b, &(struct call){ CALL_UNDO, 0, answer }, NULL);
	write_conn(tp, &c);
	return answer;
}

static __always_inline void tx_start(struct tcp_sock *tp)
{
	struct bbr3_state *b = state_of(tp);
	struct conn c;
	bool traced;

	if (!b)
		return;
	read_conn(tp, &c);
	traced = is_traced(tp, &c, b);
	if (unlikely(traced))
		begin_call(&c, b, ring_of(tp));
	on_tx_start(&c, b);
	if (unlikely(traced))
		end_call(tp, &c, b, &(struct call){ CALL_TX_START, 0, 0 }, NULL);
	write_conn(tp, &c);
}

SEC("struct_ops/bbr3_cwnd_event")
int bbr3_cwnd_event(u64 *ctx)
{
	if ((u32)ctx[1] == CA_EVENT_TX_START)
		tx_start((struct tcp_sock *)ctx[0]);
	return 0;
}

SEC("struct_ops/bbr3_tx_start")
int bbr3_tx_start(u64 *ctx)
{
	tx_start((struct tcp_sock *)ctx[0]);
	return 0;
}

SEC("struct_ops/bbr3_sndbuf")
int bbr3_sndbuf(u64 *ctx)
{
	return SNDBUF_EXPAND;
}

/*
 * One program, two ways to register it: by link (6.4 and later; goes when the last pin or holder goes, and can be replaced at
 * once) or by map. The loader keeps the one that fits.
 */
#define BBR3_OPS                                                                                                       \
	{                                                                                                              \
		.init = (void *)bbr3_init, .release = (void *)bbr3_release, .ssthresh = (void *)bbr3_ssthresh,         \
		.set_state = (void *)bbr3_set_state, .cong_control = (void *)bbr3_cong_control,                        \
		.undo_cwnd = (void *)bbr3_undo_cwnd, .in_ack_event = (void *)bbr3_in_ack,                              \
		.cwnd_event = (void *)bbr3_cwnd_event, .cwnd_event_tx_start = (void *)bbr3_tx_start,                   \
		.sndbuf_expand = (void *)bbr3_sndbuf, .flags = TCP_CONG_NON_RESTRICTED, .name = "bbr3",                \
	}

SEC(".struct_ops.link")
struct tcp_congestion_ops bbr3_by_link = BBR3_OPS;

SEC(".struct_ops")
struct tcp_congestion_ops bbr3_by_map = BBR3_OPS;
