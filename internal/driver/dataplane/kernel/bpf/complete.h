// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What becomes of a batch that completes its slots.
#pragma once

#include "batch.h"

// has_two_sizes reports whether at the root a batch is to become results of two sizes, since its own
// child wants none. The verifier looks at it once.
__noinline int has_two_sizes(__u32 op, __u32 flags, __u32 count, __u32 has_parent)
{
	return op & OP_PARTS && !(flags & SINK) && count > 1 && !has_parent;
}

// look is the step of a loop over the packets of a batch that is complete, of an operation of
// which not every child wants the result: who has the payload, and who wants it. It ends the loop
// where the agent has to send what becomes of the batch: a packet of a batch cannot become longer or
// shorter.
static long look(__u32 i, struct batch *t)
{
	__u32 number = t->first + i, sinks = with_flag(t, number, SINK), all = (1u << t->tree->children) - 1;
	int is_single = t->segment == t->total;
	t->up = COUNT_ODD;
	if (t->neighbour == t->tree->children) {
		if (!(t->head.flags & SINK) != !sinks)
			return 1; // the agent drops it
	} else if ((t->op & 0xff) == OP_COPY) {
		__u32 sources = with_flag(t, number, SOURCE), own = 1u << (t->neighbour & 31);
		if (sources & (sources - 1) || (!sources && !t->tree->has_parent))
			return 1; // an error
		t->up = COUNT_SIZES;
		if (sources & ~own && !is_single)
			return 1;
		t->source = lowest(sources ? sources : own);
	}
	// Partials, too, whose results will have two sizes: the agent does the whole chunk then.
	t->up = COUNT_SIZES;
	if (!is_single && sinks != all && (sinks || !t->tree->has_parent))
		return 1;
	t->sinks = sinks;
	t->up = 0;
	return 0;
}

// other returns the area of the k-th child after the one that has sent the batch.
static __always_inline struct area *other(struct batch *t, __u32 k, __u32 number)
{
	__u32 c = t->neighbour + k;
	return area_of(t, c < t->tree->children ? c : c - t->tree->children, number);
}

// fold_words is the step of a loop that reduces the packets of a batch that completes all its
// slots, each with those of the other children.
static long fold_words(__u32 i, struct batch *t)
{
	__u32 number, offset, size, op = t->op & 0xff;
	if (place(t, i, &number, &offset, &size))
		return 1;
	// A single vector is normalised: its truth values are 0 and 1.
	if (t->tree->children == 1 && (op & 15) >= F_LAND &&
	    fold(t->skb, offset + HEADER, size, area_of(t, t->neighbour, number), (op & ~15) | F_LOR))
		return 1;
	__u32 k = 1;
	if ((op & ~OP_UNSIGNED) == F_SUM) { // which is worth fewer passes over the packet
		for (int n = 0; n < MAX_CHILDREN / 3 && k + 2 < t->tree->children; n++, k += 3) {
			struct area *a = other(t, k, number), *b = other(t, k + 1, number), *c = other(t, k + 2, number);
			if (!a || !b || !c || sum32_of_3(t->skb, (__u64)(offset + HEADER) << 32 | size, a, b, c))
				return 1;
		}
	}
	for (int n = 0; n < MAX_CHILDREN; n++) {
		if (k >= t->tree->children)
			break;
		struct area *a = other(t, k, number);
		if (!a || fold(t->skb, offset + HEADER, size, a, op))
			return 1;
		k++;
	}
	t->completed--;
	return 0;
}

// shift_to returns by how much the mantissas in an area are shifted where the result has an exponent.
static __always_inline __u32 shift_to(__s64 greatest, struct area *a)
{
	return 31 + below(greatest - header_of(a)->exponent - 31);
}

// sum_blocks is fold_words for block32.
static long sum_blocks(__u32 i, struct batch *t)
{
	__u32 number, offset, size;
	__s32 greatest = -128;
	if (place(t, i, &number, &offset, &size))
		return 1;
	for (__u32 c = 0; c < MAX_CHILDREN; c++) {
		struct area *a = c < t->tree->children ? area_of(t, c, number) : NULL;
		if (!a)
			break;
		__s64 e = header_of(a)->exponent;
		greatest = e - below(e - greatest);
	}
	struct area *own = area_of(t, t->neighbour, number);
	if (!own || (header_of(own)->exponent != greatest && shift_own(t->skb, offset + HEADER, size, own, shift_to(greatest, own))))
		return 1;
	for (__u32 c = 0; c < MAX_CHILDREN; c++) {
		if (c >= t->tree->children)
			break;
		if (c == t->neighbour)
			continue;
		struct area *a = area_of(t, c, number);
		if (!a || sum_shifted(t->skb, offset + HEADER, size, a, shift_to(greatest, a)))
			return 1;
	}
	struct header *h = (void *)(long)t->skb->data + offset;
	if ((void *)(h + 1) > (void *)(long)t->skb->data_end)
		return 1;
	h->exponent = greatest;
	t->completed--;
	return 0;
}

// unite is the step of a loop that gives the packets of a batch, each of which stands for all children
// now, the flags of all.
static long unite(__u32 i, struct batch *t)
{
	__u32 offset = FIRST + i * t->segment;
	__u8 flags = 0;
	if (offset > MAX_OFFSET)
		return 1;
	for (__u32 c = 0; c < MAX_CHILDREN; c++) {
		struct area *a = c < t->tree->children ? area_of(t, c, t->first + i) : NULL;
		if (!a)
			break;
		flags |= header_of(a)->flags;
	}
	struct header *h = (void *)(long)t->skb->data + offset;
	if ((void *)(h + 1) > (void *)(long)t->skb->data_end)
		return 1;
	h->flags = t->tree->has_parent ? flags : flags & SINK;
	return 0;
}
