/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The algorithm of crates/bbr3/src/bpf for user space: one connection at a time, no clock, and random numbers and counters that the
 * caller owns.
 */
#include "algorithm.h"
#include "events.h"

#define MAX_TRANSITIONS 16

/* What belongs to one connection besides the algorithm's own state. Mirrored by raw.rs. */
struct environment {
	struct bbr3_knobs knobs;
	struct bbr3_features features;
	u64 random;      /* upper half: the connection's random_seed() */
	u32 scripted[2]; /* the next random numbers, instead of those the connection generates */
	u32 scripted_left;
	u32 transition_count;
	u8 transitions[MAX_TRANSITIONS][2];
	struct bbr3_totals totals;
};

struct connection {
	struct bbr3_state state;
	struct bbr3_ring ring;
	struct environment environment;
};

static _Thread_local struct environment *current;

u32 random_seed(void)
{
	return (u32)(current->random >> 32);
}

bool is_scripted(u32 *drawn)
{
	if (!current->scripted_left)
		return false;
	*drawn = current->scripted[--current->scripted_left];
	return true;
}

static void count(u32 what)
{
	current->totals.counts[what]++;
}

static void report_transition(struct conn *c, struct bbr3_state *b, u32 from, u32 to)
{
	current->totals.transitions[to]++;
	if (current->transition_count < MAX_TRANSITIONS) {
		current->transitions[current->transition_count][0] = (u8)from;
		current->transitions[current->transition_count][1] = (u8)to;
		current->transition_count++;
	}
}

static void enter_connection(struct connection *connection)
{
	current = &connection->environment;
	knobs = current->knobs;
	features = current->features;
}

void bbr3_native_init(struct connection *connection, struct conn *c)
{
	enter_connection(connection);
	on_init(c, &connection->state, &connection->ring);
	update_monitor(c, &connection->state);
}

void bbr3_native_ack(struct connection *connection, struct conn *c, const struct ack *ack, struct sample *s)
{
	enter_connection(connection);
	on_ack(c, &connection->state, &connection->ring, ack, s);
	update_monitor(c, &connection->state);
}

u32 bbr3_native_ssthresh(struct connection *connection, struct conn *c)
{
	enter_connection(connection);
	return on_ssthresh(c, &connection->state);
}

void bbr3_native_set_state(struct connection *connection, struct conn *c, u8 new_state)
{
	enter_connection(connection);
	on_set_state(c, &connection->state, &connection->ring, new_state);
}

void bbr3_native_in_ack(struct connection *connection, struct conn *c)
{
	enter_connection(connection);
	if (has_tlp_retrans(c))
		connection->state.tlp_retrans_pending = true;
}

u32 bbr3_native_undo(struct connection *connection, struct conn *c)
{
	enter_connection(connection);
	return on_undo(c, &connection->state);
}

void bbr3_native_tx_start(struct connection *connection, struct conn *c)
{
	enter_connection(connection);
	on_tx_start(c, &connection->state);
}

/* The defaults of params.h. */
const struct bbr3_knobs bbr3_native_default_knobs = BBR3_DEFAULT_KNOBS;

/* For tests of single functions. */

u32 bbr3_native_bdp_multiple(struct connection *connection, u32 bw, u32 gain)
{
	return bdp_multiple(&connection->state, bw, gain);
}

u64 bbr3_native_bytes_per_second(u32 bw, u32 mss, u32 gain, u32 margin_percent)
{
	return bytes_per_second(bw, mss, gain, margin_percent);
}

u32 bbr3_native_inflight_at_loss(struct connection *connection, u32 tx_in_flight, u32 lost)
{
	enter_connection(connection);
	return inflight_at_loss(tx_in_flight, lost);
}

/* Sizes and places, for raw.rs to be checked against. */
const u32 bbr3_native_layout[] = {
	sizeof(struct conn),
	sizeof(struct ack),
	sizeof(struct sample),
	sizeof(struct bbr3_state),
	sizeof(struct bbr3_ring),
	sizeof(struct environment),
	sizeof(struct connection),
	offsetof(struct conn, reo_wnd_steps),
	offsetof(struct ack, is_ack_delayed),
	offsetof(struct sample, is_tlp_ack),
	offsetof(struct bbr3_state, min_rtt_stamp),
	offsetof(struct bbr3_state, acks),
	offsetof(struct bbr3_state, tlp_retrans_pending),
	offsetof(struct environment, totals),
};

#define PLACE(type, field) offsetof(struct type, field)

/* The same for every field of the events, in order, and the size of each at its end. */
const u32 bbr3_native_event_layout[] = {
	PLACE(bbr3_event, kind), PLACE(bbr3_event, size), PLACE(bbr3_event, flow), PLACE(bbr3_event, time_ns),
	sizeof(struct bbr3_event),
	PLACE(bbr3_flow_event, event), PLACE(bbr3_flow_event, cookie), PLACE(bbr3_flow_event, inode),
	PLACE(bbr3_flow_event, netns), PLACE(bbr3_flow_event, family), PLACE(bbr3_flow_event, local_port),
	PLACE(bbr3_flow_event, remote_port), PLACE(bbr3_flow_event, reserved), PLACE(bbr3_flow_event, local),
	PLACE(bbr3_flow_event, remote), sizeof(struct bbr3_flow_event),
	PLACE(bbr3_transition_event, event), PLACE(bbr3_transition_event, pacing_rate), PLACE(bbr3_transition_event, from),
	PLACE(bbr3_transition_event, to), PLACE(bbr3_transition_event, mss), PLACE(bbr3_transition_event, bw),
	PLACE(bbr3_transition_event, max_bw), PLACE(bbr3_transition_event, bw_lo), PLACE(bbr3_transition_event, min_rtt_us),
	PLACE(bbr3_transition_event, in_flight), PLACE(bbr3_transition_event, cwnd), PLACE(bbr3_transition_event, inflight_hi),
	PLACE(bbr3_transition_event, inflight_lo), PLACE(bbr3_transition_event, delivered), PLACE(bbr3_transition_event, lost),
	PLACE(bbr3_transition_event, ca_state), sizeof(struct bbr3_transition_event),
	PLACE(bbr3_snapshot_event, event), PLACE(bbr3_snapshot_event, state), PLACE(bbr3_snapshot_event, ring),
	sizeof(struct bbr3_snapshot_event),
	PLACE(bbr3_call_event, event), PLACE(bbr3_call_event, call), PLACE(bbr3_call_event, argument),
	PLACE(bbr3_call_event, answer), PLACE(bbr3_call_event, reserved), PLACE(bbr3_call_event, before),
	PLACE(bbr3_call_event, ack), PLACE(bbr3_call_event, pacing_rate), PLACE(bbr3_call_event, cwnd),
	PLACE(bbr3_call_event, ssthresh), PLACE(bbr3_call_event, app_limited), PLACE(bbr3_call_event, reserved_too),
	PLACE(bbr3_call_event, after), sizeof(struct bbr3_call_event),
};
