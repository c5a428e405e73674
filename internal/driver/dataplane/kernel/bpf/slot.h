// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Packets come into areas and slots.
#pragma once

#include "batch.h"

static __always_inline __u64 read_once(__u64 *p) { return *(volatile __u64 *)p; }

// What load returns.
enum { BUSY = -1, HAS, LOADED, NEWER };

// load puts a packet into its area, unless the area has it already, or a newer one, or is busy:
// then the agent has to look.
static __always_inline int load(struct batch *t, __u64 *word, struct area *a, __u32 number, __u32 offset, __u32 size)
{
	__u64 was = read_once(word);
	__u32 state = (__u32)was;
	__s32 ahead = number - NUMBER(was);
	if (state == AREA_LOADING)
		return BUSY;
	if (state == AREA_HELD && ahead <= 0)
		return ahead ? NEWER : HAS;
	if (__sync_val_compare_and_swap(word, was, WORD(number, AREA_LOADING)) != was)
		return BUSY;
	if (size < HEADER || size > MAX_PACKET || bpf_skb_load_bytes(t->skb, offset, a->packet, size)) {
		__sync_lock_test_and_set(word, 0);
		return BUSY;
	}
	a->own = t->own;
	a->size = size;
	__sync_lock_test_and_set(word, WORD(number, AREA_HELD));
	return LOADED;
}

// What contribute returns beside a set of children.
enum { OWNED = -1, LATE = -2, DUPLICATE = -3, DISAGREES = -4 };

// contribute notes in a slot that a child has contributed a packet with header h, if that is of
// the same operation as those before, and not a second source. It returns the children that have
// contributed now.
static __always_inline int contribute(struct batch *t, __u64 *word, __u32 number, const struct header *h)
{
	__u32 source = h->flags & SOURCE ? SLOT_SOURCE : 0, me = 1u << (t->neighbour & 15);
	for (int tries = 0; tries < 8; tries++) {
		__u64 was = read_once(word), is = WORD(number, SLOT_IN_USE | source | me);
		__u32 low = (__u32)was;
		__s32 ahead = number - NUMBER(was);
		if (low & SLOT_IN_USE && ahead <= 0) {
			if (ahead)
				return LATE;
			if (low & SLOT_AGENT)
				return OWNED;
			if (low & me)
				return DUPLICATE;
			struct area *o = area_of(t, lowest(low & 0xffff), number);
			if (!o || !agrees(o, h) || (low & source))
				return DISAGREES;
			is = was | source | me;
		}
		if (__sync_val_compare_and_swap(word, was, is) == was)
			return is & 0xffff;
	}
	return OWNED;
}

// take_contribution is the step of a loop over the packets of a child's batch.
static long take_contribution(__u32 i, struct batch *t)
{
	struct header h __attribute__((aligned(8)));
	__u32 number, offset, size;
	t->up = COUNT_ODD; // unless all goes well
	if (place(t, i, &number, &offset, &size) || bpf_skb_load_bytes(t->skb, offset, &h, HEADER) || !fits(t, &h, i, size))
		return 1;
	__u64 *word = word_of(t, number), *state = state_of(t, t->neighbour, number);
	struct area *a = area_of(t, t->neighbour, number);
	if (!word || !state || !a)
		return 1;
	int loaded = load(t, state, a, number, offset, HEADER + size);
	t->up = COUNT_OWNED;
	if (loaded < 0)
		return 1;
	// Also of a packet that the area has: who has loaded it may not have come to this yet, and
	// where the agent owns the slot it is to have it again.
	int contributed = loaded == NEWER ? LATE : contribute(t, word, number, &h);
	if (contributed == OWNED)
		return 1;
	if (contributed == DISAGREES) {
		t->up = COUNT_ODD;
		return 1;
	}
	t->up = 0;
	t->late += contributed == LATE;
	t->duplicate += contributed == DUPLICATE;
	if (contributed < 0)
		return 0;
	t->taken++;
	t->completed += contributed + 1 == 1 << t->tree->children;
	return 0;
}

// awaits reports whether a slot has all contributions, of the operation of h, and is not the agent's.
static __always_inline int awaits(struct batch *t, __u32 number, const struct header *h)
{
	__u64 *word = word_of(t, number), *state = state_of(t, 0, number);
	__u32 all = (1u << t->tree->children) - 1;
	if (!word || (read_once(word) & ~(__u64)SLOT_SOURCE) != WORD(number, SLOT_IN_USE | all))
		return 0;
	if (!h)
		return 1;
	if (!state || read_once(state) != WORD(number, AREA_HELD))
		return 0;
	struct area *a = area_of(t, 0, number);
	return a && agrees(a, h);
}

// take_result is the step of a loop over the packets of the parent's batch.
static long take_result(__u32 i, struct batch *t)
{
	struct header h __attribute__((aligned(8)));
	__u32 number, offset, size;
	t->up = COUNT_ODD;
	if (place(t, i, &number, &offset, &size) || bpf_skb_load_bytes(t->skb, offset, &h, HEADER) || !fits(t, &h, i, size))
		return 1;
	t->up = COUNT_OWNED;
	if (!awaits(t, number, &h))
		return 1;
	__u64 *state = state_of(t, t->tree->children, number);
	struct area *a = area_of(t, t->tree->children, number);
	if (!state || !a)
		return 1;
	int loaded = load(t, state, a, number, offset, HEADER + size);
	// Who took the slot over meanwhile may not have seen the result.
	if (loaded < 0 || (loaded == LOADED && !awaits(t, number, NULL)))
		return 1;
	t->up = 0;
	t->completed += loaded == LOADED;
	t->duplicate += loaded == HAS;
	t->late += loaded == NEWER;
	return 0;
}
