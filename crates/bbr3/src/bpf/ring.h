/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The ring: packets in flight at send time and packets lost since, without a hook at send time.
 *
 * BBRv3 asks of each delivered packet how much was in flight when it was sent (P.tx_in_flight) and how much has been marked lost
 * since (P.lost); draft, "Per-packet (P) state". A stock kernel keeps neither. But it stamps every packet with
 * `delivered` at send time and hands that stamp back as ack.prior_delivered; and everything sent between two ACKs, a
 * "group", has the same stamp. So at each ACK the group that has just closed is recorded with its stamp, and a delivered packet finds
 * its group again by the stamp. A timer that marks packets lost closes a group too: what was sent before it and what after share the
 * stamp, and differ in what was lost.
 */
#ifndef BBR3_RING_H
#define BBR3_RING_H

#include "conn.h"
#include "params.h"
#include "state.h"

/* With the header and the kernel's element header of 72 bytes, this fits a slab of 4 KiB: kernels from 7.1 on allocate no more. */
#define RING_ENTRIES 240

/* One or more groups of packets. */
struct ring_entry {
	u32 delivered; /* conn.delivered while the (first) group was sent */
	u32 lost;      /* conn.lost then */
	u32 in_flight; /* packets in flight after the (last) group */
	u32 snd_nxt;   /* conn.snd_nxt after the (last) group */
};

struct bbr3_ring {
	u32 newest; /* index of the newest entry */
	u32 used;   /* number of valid entries */
	u32 found;  /* index of the entry found last: where the next search begins. Only ever saves time */
	u32 seen_delivered; /* conn.delivered as of the last ACK */
	struct ring_entry entries[RING_ENTRIES];
};

/* The entry `age` steps before the newest. The bound is the verifier's; callers stay below `used`. */
static __always_inline struct ring_entry *ring_at(struct bbr3_ring *ring, u32 age)
{
	u32 index = ring->newest + RING_ENTRIES - age;

	if (index >= RING_ENTRIES)
		index -= RING_ENTRIES;
	barrier_var(index);
	if (index >= RING_ENTRIES)
		return NULL;
	return &ring->entries[index];
}

/*
 * Records a closed group: what was sent while `delivered` and `lost` stood at these values, and left `in_flight` packets in the
 * network. So that the ring spans two flights of any size, groups less than a part of the flight apart share an entry.
 */
static __always_inline void ring_push(struct bbr3_ring *ring, u32 delivered, u32 lost, u32 in_flight, u32 snd_nxt)
{
	u32 granularity = max_u32(in_flight / (RING_ENTRIES / 2), 1);
	struct ring_entry *entry = ring_at(ring, 0);

	if (!entry)
		return;
	if (ring->used && delivered - entry->delivered < granularity &&
	    (delivered != entry->delivered || lost == entry->lost)) {
		entry->in_flight = in_flight;
		entry->snd_nxt = snd_nxt;
		return;
	}
	ring->newest = ring->newest + 1 < RING_ENTRIES ? ring->newest + 1 : 0;
	ring->used = min_u32(ring->used + 1, RING_ENTRIES);
	entry = ring_at(ring, 0);
	if (!entry)
		return;
	entry->delivered = delivered;
	entry->lost = lost;
	entry->in_flight = in_flight;
	entry->snd_nxt = snd_nxt;
}

/*
 * Binary search: the number of newest entries that fit less and less. Verified by itself, once (SUBPROGRAM), for the verifier would
 * otherwise follow every path through it with everything around it. `by_sequence`: entries that hold data from `key` on; else entries
 * whose packets were sent after `delivered` reached `key`.
 */
SUBPROGRAM u32 ring_count_after(struct bbr3_ring *ring, u32 key, bool by_sequence)
{
	u32 low = 0, high;

	RETURN_IF_NULL(ring);
	high = ring->used;
	for (int step = 0; step < 8; step++) {
		u32 middle = (low + high) / 2;
		struct ring_entry *entry = ring_at(ring, middle);
		u32 value;

		if (low >= high || !entry)
			break;
		value = by_sequence ? entry->snd_nxt : entry->delivered;
		if (before(key, value))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ACKs come in the order of what they acknowledge: the next is for the entry found last, or for one of those right after it. */
#define RING_STEPS 3

/* Its age, or all ones where the short way does not lead to it. */
static __always_inline u32 ring_age_nearby(struct bbr3_ring *ring, u32 delivered)
{
	u32 age = ring->newest + (ring->newest < ring->found ? RING_ENTRIES : 0) - ring->found;
	struct ring_entry *entry;

	if (age >= ring->used)
		return INFINITE;
	entry = ring_at(ring, age);
	if (!entry || before(delivered, entry->delivered))
		return INFINITE;
	for (int step = 0; step < RING_STEPS; step++) {
		if (!age)
			return 0;
		entry = ring_at(ring, age - 1);
		if (!entry)
			return INFINITE;
		if (before(delivered, entry->delivered))
			return age;
		age--;
	}
	return INFINITE;
}

/* The entry of the packets sent while `delivered` stood at this value: the newest that is not later; NULL where none is left. */
static __always_inline struct ring_entry *ring_find(struct bbr3_ring *ring, u32 delivered)
{
	u32 age = ring_age_nearby(ring, delivered);

	if (unlikely(age == INFINITE))
		age = ring_count_after(ring, delivered, false);
	if (age >= ring->used)
		return NULL;
	ring->found = ring->newest + (ring->newest < age ? RING_ENTRIES : 0) - age;
	return ring_at(ring, age);
}

/* The oldest entry that holds data from `sequence` on; NULL where there is none. */
static __always_inline struct ring_entry *ring_find_sequence(struct bbr3_ring *ring, u32 sequence)
{
	u32 holding = ring_count_after(ring, sequence, true);

	return holding ? ring_at(ring, holding - 1) : NULL;
}

/* At the start of an ACK: closes the group sent since the last one. */
static __always_inline void ring_close_group(struct conn *c, struct bbr3_state *b, struct bbr3_ring *ring, u32 delivered,
					     u32 lost, u32 in_flight)
{
	u32 segs_out = c->data_segs_out;

	if (segs_out == b->seen_data_segs_out)
		return;
	b->seen_data_segs_out = segs_out;
	ring_push(ring, delivered, lost, in_flight, c->snd_nxt);
}

/* Packets in flight right after the packet that ends at `end_seq` was sent with its group: those behind it were not yet. */
static __always_inline u32 ring_tx_in_flight(struct conn *c, const struct ring_entry *entry, u32 end_seq)
{
	u32 behind = 0;

	if (c->mss && before(end_seq, entry->snd_nxt))
		behind = (entry->snd_nxt - end_seq + c->mss - 1) / c->mss;
	return behind < entry->in_flight ? entry->in_flight - behind : 1;
}

/* The entry before the one that ring_find() has just found; NULL where there is none. */
static __always_inline struct ring_entry *ring_before_found(struct bbr3_ring *ring)
{
	u32 age = ring->newest + (ring->newest < ring->found ? RING_ENTRIES : 0) - ring->found;

	return age + 1 < ring->used ? ring_at(ring, age + 1) : NULL;
}

/*
 * What the group of the newest delivered packet tells: s->tx_in_flight and s->lost. Retransmissions leave before the new data of their
 * group.
 */
static __always_inline void ring_look_up(struct conn *c, struct bbr3_ring *ring, const struct ack *ack, struct sample *s)
{
	struct ring_entry *entry, *older;
	u32 end = ack->last_end_seq;

	s->tx_in_flight = 0;
	s->lost = 0;
	if (!ack->has_packet)
		return;
	entry = ring_find(ring, ack->prior_delivered);
	if (!entry)
		return;
	if (unlikely(ack->is_retrans)) {
		older = ring_before_found(ring);
		end = older && before(older->snd_nxt, entry->snd_nxt) ? older->snd_nxt : entry->snd_nxt;
	} else if (unlikely(c->ca_state >= TCP_CA_Recovery)) {
		older = ring_before_found(ring);
		if (older && older->delivered == entry->delivered && !before(older->snd_nxt, end))
			entry = older;
	}
	s->tx_in_flight = ring_tx_in_flight(c, entry, end);
	s->lost = c->lost - entry->lost;
}

#endif
