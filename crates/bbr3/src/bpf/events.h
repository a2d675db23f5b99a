/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the program writes into its ring buffer, while somebody reads. Mirrored by src/raw.rs, field by field.
 *
 * Three kinds tell people what a socket does: a FLOW event says once who it is, a TRANSITION event each change of mode. Two kinds make a
 * recording that can be replayed: a CALL event has everything that one callback of the kernel gave the algorithm and everything the
 * algorithm made of it; a SNAPSHOT event, before the first call of a socket (and after each gap), all that the algorithm remembers. A
 * recording that holds INIT needs none.
 */
#ifndef BBR3_EVENTS_H
#define BBR3_EVENTS_H

#include "conn.h"
#include "ring.h"
#include "state.h"

enum bbr3_event_kind {
	EVENT_FLOW = 1,
	EVENT_TRANSITION = 2,
	EVENT_SNAPSHOT = 3,
	EVENT_CALL = 4,
};

/* The kernel's callbacks, as far as they reach the algorithm. */
enum bbr3_call {
	CALL_INIT = 0,
	CALL_ACK = 1,
	CALL_SSTHRESH = 2,
	CALL_SET_STATE = 3,
	CALL_IN_ACK = 4, /* only as it finds a retransmitted tail loss probe outstanding */
	CALL_UNDO = 5,
	CALL_TX_START = 6,
};

/* First in every event. */
struct bbr3_event {
	u32 kind;    /* enum bbr3_event_kind */
	u32 size;    /* bytes of the event, this header included */
	u64 flow;    /* the socket's number: counts sockets since the program was loaded */
	u64 time_ns; /* CLOCK_MONOTONIC */
};

struct bbr3_flow_event {
	struct bbr3_event event;
	u64 cookie; /* SO_COOKIE; 0: nobody has asked for it yet */
	u64 inode;  /* of the socket's descriptor, as in /proc/PID/fd; 0: not accepted yet, or orphaned */
	u32 netns;  /* inode of the network namespace */
	u16 family; /* AF_INET 2, AF_INET6 10 */
	u16 local_port;
	u16 remote_port;
	u16 reserved[3];
	u8 local[16]; /* network byte order; IPv4 in the first four */
	u8 remote[16];
};

struct bbr3_transition_event {
	struct bbr3_event event;
	u64 pacing_rate; /* bytes per second, before this change */
	u32 from;        /* enum bbr3_mode */
	u32 to;          /* enum bbr3_mode; NO_MODE: the socket leaves this congestion control */
	u32 mss;         /* bytes */
	u32 bw;          /* bw: all bounds applied */
	u32 max_bw;      /* bw */
	u32 bw_lo;       /* bw, or INFINITE */
	u32 min_rtt_us;  /* all ones: none */
	u32 in_flight;   /* packets */
	u32 cwnd;        /* packets, before this change */
	u32 inflight_hi; /* packets, or INFINITE */
	u32 inflight_lo; /* packets, or INFINITE */
	u32 delivered;   /* packets delivered since the connection began */
	u32 lost;        /* packets marked lost since the connection began */
	u32 ca_state;
};

struct bbr3_snapshot_event {
	struct bbr3_event event;
	struct bbr3_state state;
	struct bbr3_ring ring;
};

struct bbr3_call_event {
	struct bbr3_event event;
	u32 call;     /* enum bbr3_call */
	u32 argument; /* SET_STATE: the new state */
	u32 answer;   /* SSTHRESH, UNDO: what the kernel was told, packets */
	u32 reserved;
	struct conn before;      /* what the algorithm saw */
	struct ack ack;          /* ACK only, else zero */
	u64 pacing_rate;         /* what it made of the connection: bytes per second */
	u32 cwnd;                /* packets */
	u32 ssthresh;            /* packets */
	u32 app_limited;         /* as conn.app_limited */
	u32 reserved_too;
	struct bbr3_state after; /* and all it remembers, but for the ring */
};

/* Who reads, and what. Written by user space; all zeros: nobody. */
struct bbr3_reader {
	u64 until_ns;   /* CLOCK_MONOTONIC: nobody reads after this. A reader moves it on; so one that was killed costs nothing for long */
	u32 session;    /* counts readers, from 1; below 2^31 */
	u32 pid;        /* of the reader */
	u32 wants_calls; /* SNAPSHOT and CALL events too */
	u32 netns;      /* only sockets in this namespace; 0: any */
	u16 port;       /* only sockets with this port at either end; 0: any */
	u16 family;     /* only sockets to `remote` of this family; 0: any */
	u32 reserved;
	u8 remote[16];
};

#endif
