/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the algorithm tells the outside: counters, transitions, and a record of every ACK. The functions are defined by whoever includes
 * the algorithm: for the kernel they write to maps, in tests to plain memory.
 */
#ifndef BBR3_TELEMETRY_H
#define BBR3_TELEMETRY_H

#include "conn.h"
#include "platform.h"
#include "state.h"

/* Things worth counting over all sockets. */
enum bbr3_count {
	COUNT_INIT,          /* sockets that began with BBRv3 */
	COUNT_RELEASE,       /* and that left it */
	COUNT_DEGRADED,      /* sockets that had to run Reno because no storage was to be had */
	COUNT_RECOVERED,     /* and that got it later */
	COUNT_ACK,           /* ACKs processed: raised as a socket's round trip ends */
	COUNT_TOO_HIGH,      /* bandwidth probes that lost too much */
	COUNT_STARTUP_LOSS,  /* STARTUPs ended by loss */
	COUNT_UNDO,          /* recoveries found to be spurious */
	COUNT_RTO,           /* retransmission timeouts */
	COUNT_TLP_RECOVERY,  /* losses repaired by a tail loss probe */
	COUNT_IDLE_RESTART,  /* restarts from idle while application-limited */
	COUNT_EVENT_DROPPED, /* events for which the ring buffer had no room */
	COUNTS,
};

/* Totals over all sockets since the program was loaded. */
struct bbr3_totals {
	u64 counts[COUNTS];
	u64 transitions[NO_MODE]; /* entries into each mode */
};

static void count(u32 what);
static void report_transition(struct conn *c, struct bbr3_state *b, u32 from, u32 to);

#endif
