/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The connection and the ACK as the algorithm sees them: the draft's C and RS, as far as the kernel keeps them. draft, "Transport
 * Connection State" and "Per-ACK Rate Sample State".
 *
 * Copied from the kernel's structures before the algorithm runs, and what it changed copied back. So the algorithm is the same text
 * in the kernel, in tests and in replay; and a recorded copy of these structures is all that a replay needs.
 */
#ifndef BBR3_CONN_H
#define BBR3_CONN_H

#include "platform.h"

/* enum tcp_ca_state, include/uapi/linux/tcp.h: the sender's loss recovery state. */
#define TCP_CA_Open 0
#define TCP_CA_Disorder 1
#define TCP_CA_CWR 2
#define TCP_CA_Recovery 3
#define TCP_CA_Loss 4

/* include/net/tcp.h: "still in slow start". */
#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* One TCP connection. Counts and windows in packets, sequence numbers in bytes; both wrap. */
struct conn {
	/* May be changed. */
	u64 pacing_rate; /* bytes per second */
	u32 cwnd;
	u32 ssthresh;
	u32 app_limited; /* value of `delivered` at which the current application-limited bubble ends; 0: none */

	/* Only read. */
	u32 mss;              /* bytes */
	u64 now_us;           /* time of the event being processed (tcp_mstamp) */
	u64 delivered_us;     /* time `delivered` last rose */
	u64 departure_ns;     /* when the next packet may leave */
	u64 clock_ns;         /* last clock reading, on the same clock as departure_ns */
	u64 max_pacing_rate;  /* bytes per second: the socket's limit */
	u32 cwnd_clamp;       /* the socket's limit */
	u32 prior_cwnd;       /* window before the current recovery, as the kernel saved it */
	u32 in_flight;        /* sent, and neither delivered nor marked lost since */
	u32 delivered;        /* delivered since the connection began, spurious retransmissions included */
	u32 lost;             /* marked lost since the connection began */
	u32 lost_out;         /* of the outstanding: marked lost */
	u32 retrans_out;      /* of the outstanding: retransmitted */
	u32 data_segs_out;    /* sent since the connection began, retransmissions included */
	u32 snd_nxt;          /* sequence number of the next new byte */
	u32 snd_una;          /* oldest byte not acknowledged */
	u32 unsent_bytes;     /* written by the application and not sent */
	s32 queued_bytes;     /* below TCP: in the qdisc and the device */
	u32 srtt_us;          /* smoothed RTT, microseconds << 3; 0: none */
	u32 kernel_min_rtt_us; /* the kernel's windowed minimum; all ones: none */
	u32 tlp_high_seq;     /* end of the outstanding tail loss probe; 0: none */
	u8 ca_state;
	u8 pacing_shift;      /* log2 of the fraction of a second sent as one burst */
	u8 is_cwnd_limited;   /* the window was full at some moment of the last round trip */
	u8 has_sack;          /* more than one lost packet per round trip can be seen */
	u8 tlp_retrans;       /* the tail loss probe was a retransmission */
	u8 reord_seen;        /* the path has reordered packets */
	u8 reo_wnd_steps;     /* quarters of the minimum RTT that RACK waits for reordering */
	u8 reserved[5];
};

/* One ACK: what the kernel's struct rate_sample tells. */
struct ack {
	s64 interval_us;      /* at most 0: no valid delivery rate */
	s64 rtt_us;           /* below 0: none */
	s32 delivered;        /* packets delivered over the interval; below 0: not known */
	u32 prior_delivered;  /* conn.delivered when the newest delivered packet was sent */
	u32 acked_sacked;     /* packets newly delivered */
	s32 losses;           /* packets newly marked lost by this ACK */
	u32 prior_in_flight;  /* packets in flight before this ACK */
	u32 last_end_seq;     /* end of the newest delivered packet */
	u8 has_packet;        /* something was newly delivered: prior_delivered is set */
	u8 is_app_limited;
	u8 is_retrans;        /* the newest delivered packet was a retransmission */
	u8 is_ack_delayed;    /* the receiver is likely to have held it back */
	u8 reserved[4];
};

#endif
