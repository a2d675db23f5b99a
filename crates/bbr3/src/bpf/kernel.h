/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The fields of the kernel's structures that BBRv3 reads or writes: a hand-written counterpart of a generated vmlinux.h. And the copies
 * between them and struct conn and struct ack.
 *
 * Only names matter here. Every access carries a CO-RE relocation, so offsets and the place inside nested structures come from
 * the running kernel's BTF.
 */
#ifndef BBR3_KERNEL_H
#define BBR3_KERNEL_H

#include "conn.h"
#include "params.h"
#include "platform.h"

/* enum tcp_ca_event, include/net/tcp.h: first transmit with nothing in flight. */
#define CA_EVENT_TX_START 0

/* enum sk_pacing, include/net/sock.h. */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

/* include/net/tcp.h: any user in any namespace may choose this congestion control. */
#define TCP_CONG_NON_RESTRICTED 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct socket {
	struct file *file;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport; /* network byte order */
	u16 skc_num;   /* local port, host byte order */
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
};

struct sock {
	struct sock_common __sk_common;
	refcount_t sk_wmem_alloc; /* bytes in the qdisc and the device, plus one */
	struct socket *sk_socket; /* NULL: not accepted yet, or closed by its process */
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u8 sk_pacing_shift; /* log2 of the fraction of a second sent as one burst */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_rack {
	u8 reo_wnd_steps; /* quarters of the minimum RTT that RACK waits for reordering */
};

struct tcp_options_received {
	u16 sack_ok : 3;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 data_segs_out; /* data packets sent, retransmissions included */
	u32 snd_nxt;
	u32 snd_una;
	u32 write_seq;
	u32 mss_cache; /* bytes */
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;
	u32 lost;
	u32 app_limited; /* value of `delivered` at which the current application-limited bubble ends; 0: none */
	u32 srtt_us;     /* smoothed RTT, microseconds << 3 */
	u32 tlp_high_seq;
	u32 reord_seen;
	struct minmax rtt_min; /* [0] is the minimum, microseconds */
	u64 tcp_mstamp;        /* time of the event being processed, microseconds */
	u64 delivered_mstamp;  /* time `delivered` last rose, microseconds */
	u64 tcp_wstamp_ns;     /* departure time of the next packet */
	u64 tcp_clock_cache;   /* last clock reading, nanoseconds */
	struct tcp_rack rack;
	struct tcp_options_received rx_opt;
	u8 is_cwnd_limited : 1; /* the window was full at some moment of the last round trip */
	u8 tlp_retrans : 1;     /* the outstanding tail loss probe was a retransmission */
};

struct rate_sample {
	u64 prior_mstamp;    /* 0: nothing newly delivered */
	u32 prior_delivered; /* `delivered` when the newest delivered packet was sent */
	s32 delivered;       /* packets delivered over the interval */
	long interval_us;    /* at most 0: no valid sample */
	long rtt_us;         /* below 0: no sample */
	int losses;          /* packets newly marked lost by this ACK */
	u32 acked_sacked;    /* packets newly delivered by this ACK */
	u32 prior_in_flight; /* packets in flight before this ACK */
	u32 last_end_seq;    /* end of the newest delivered packet */
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
};

#pragma clang attribute pop

/*
 * Reads a bit-field, whose place differs between kernel versions. `pointer` is a plain variable: a relocation would count its path
 * twice.
 */
#define read_bits(pointer, field) ((u32)BPF_CORE_READ_BITFIELD(pointer, field))

static __always_inline struct sock *tcp_to_sock(struct tcp_sock *tp)
{
	return &tp->inet_conn.icsk_inet.sk;
}

static __always_inline void read_conn(struct tcp_sock *tp, struct conn *c)
{
	struct sock *sk = tcp_to_sock(tp);

	c->pacing_rate = sk->sk_pacing_rate;
	c->cwnd = tp->snd_cwnd;
	c->ssthresh = tp->snd_ssthresh;
	c->app_limited = tp->app_limited;
	c->mss = tp->mss_cache;
	c->now_us = tp->tcp_mstamp;
	c->delivered_us = tp->delivered_mstamp;
	c->departure_ns = tp->tcp_wstamp_ns;
	c->clock_ns = tp->tcp_clock_cache;
	c->max_pacing_rate = sk->sk_max_pacing_rate;
	c->cwnd_clamp = tp->snd_cwnd_clamp;
	c->prior_cwnd = tp->prior_cwnd;
	c->lost_out = tp->lost_out;
	c->retrans_out = tp->retrans_out;
	c->in_flight = tp->packets_out - (tp->sacked_out + c->lost_out) + c->retrans_out;
	c->delivered = tp->delivered;
	c->lost = tp->lost;
	c->data_segs_out = tp->data_segs_out;
	c->snd_nxt = tp->snd_nxt;
	c->snd_una = tp->snd_una;
	c->unsent_bytes = tp->write_seq - c->snd_nxt;
	c->queued_bytes = sk->sk_wmem_alloc.refs.counter - 1;
	c->srtt_us = tp->srtt_us;
	c->kernel_min_rtt_us = tp->rtt_min.s[0].v;
	c->tlp_high_seq = tp->tlp_high_seq;
	c->ca_state = read_bits(tp, inet_conn.icsk_ca_state);
	c->pacing_shift = sk->sk_pacing_shift;
	c->is_cwnd_limited = read_bits(tp, is_cwnd_limited);
	c->has_sack = read_bits(tp, rx_opt.sack_ok) != 0;
	c->tlp_retrans = read_bits(tp, tlp_retrans);
	c->reord_seen = tp->reord_seen != 0;
	c->reo_wnd_steps = tp->rack.reo_wnd_steps;
	__builtin_memset(c->reserved, 0, sizeof(c->reserved));
}

/* Copies back what the algorithm changed; what it left alone is not written, for other processors may have it in their caches. */
static __always_inline void write_conn(struct tcp_sock *tp, const struct conn *c)
{
	struct sock *sk = tcp_to_sock(tp);

	if (c->pacing_rate != sk->sk_pacing_rate)
		sk->sk_pacing_rate = c->pacing_rate;
	if (c->cwnd != tp->snd_cwnd)
		tp->snd_cwnd = c->cwnd;
	if (c->ssthresh != tp->snd_ssthresh)
		tp->snd_ssthresh = c->ssthresh;
	if (features.app_limited_writable && c->app_limited != tp->app_limited)
		tp->app_limited = c->app_limited;
}

static __always_inline void read_ack(const struct rate_sample *rs, struct ack *ack)
{
	ack->interval_us = rs->interval_us;
	ack->rtt_us = rs->rtt_us;
	ack->delivered = rs->delivered;
	ack->prior_delivered = rs->prior_delivered;
	ack->acked_sacked = rs->acked_sacked;
	ack->losses = rs->losses;
	ack->prior_in_flight = rs->prior_in_flight;
	ack->last_end_seq = rs->last_end_seq;
	ack->has_packet = rs->prior_mstamp != 0;
	ack->is_app_limited = rs->is_app_limited;
	ack->is_retrans = rs->is_retrans;
	ack->is_ack_delayed = rs->is_ack_delayed;
	__builtin_memset(ack->reserved, 0, sizeof(ack->reserved));
}

#endif
