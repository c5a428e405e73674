// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Packets as the programs see them, and what they look up.
#pragma once

#include "fold.h"

#define UDP_AT (ETH_HLEN + sizeof(struct iphdr))
#define FIRST (UDP_AT + sizeof(struct udphdr)) // offset of the first packet of a batch
#define MAX_BATCH 64                           // packets

#define CONTRIBUTION 0x11 // version and type
#define RESULT 0x12
#define SOURCE 0x01
#define SINK 0x02

#define ALLREDUCE 1
#define REDUCE 2
#define BROADCAST 3
#define BARRIER 4
#define BLOCK32 9

#define OP_NONE 0     // a barrier
#define OP_BLOCK 64   // a sum of block32
#define OP_COPY 65    // one child's payload: a broadcast
#define OP_OTHER 255  // the agent's
#define OP_PARTS 0x100 // with the operation: not every child wants the result

enum { UP = -1, TAKEN = 2 }; // TCX_NEXT, TCX_DROP

// header is that of docs/protocol.md.
struct header {
	__u8 type, flags;
	__be16 child;
	__be32 group, epoch;
	__u8 cookie[6];
	__u8 reserved;
	__s8 exponent;
	__be32 chunk, elements;
	__be16 operation, chunk_elements;
	__be32 function, lowest;
};
_Static_assert(sizeof(struct header) == HEADER, "header");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "byte order");

// batch is what a program knows of its packets: one, or as many of equal size as segmentation or
// receive offload has put together, of which the last may be shorter.
struct batch {
	struct __sk_buff *skb;
	struct tree *tree;
	void *words, *areas; // maps of the epoch
	__u32 total;         // bytes of all packets
	__u32 segment;       // bytes of each
	__u32 first;         // number of the first
	__u32 neighbour;     // who sent it: a child, or the parent, tree->children
	__u32 op;
	__u32 taken, completed, late, duplicate;
	__u32 source; // of a single packet that is complete: the child whose payload it is to have
	__u32 sinks;  // of a batch that is complete: children that get the payload
	__u32 states; // index of the first area's word
	__u32 up; // why the agent is to have it, or 0
	__be32 own;  // address and port of this switch that it was sent to
	__be16 port;
	struct header head __attribute__((aligned(8))); // of the first
};

// zero returns 0, as a number that the verifier does not know: what is counted from it is the same to
// it after any number of steps of a loop.
static __always_inline __u32 zero(__u64 any)
{
	__u64 same = any;
	asm volatile("%0 -= %1" : "+r"(any) : "r"(same));
	return any;
}

static __always_inline __u32 count_at(struct tree *t, __u32 count) { return t->mask + 1 + count; }

static __always_inline void add(struct batch *t, __u32 count, __u64 n)
{
	__u32 at = count_at(t->tree, count);
	__u64 *c = bpf_map_lookup_elem(t->words, &at);
	if (c && n)
		__sync_fetch_and_add(c, n);
}

static __always_inline void traffic(struct batch *t, __u32 neighbour, __u32 count, __u64 n)
{
	add(t, COUNTS + neighbour * TRAFFIC_COUNTS + count, n);
}

static __always_inline __u64 *word_of(struct batch *t, __u32 number)
{
	__u32 slot = number & t->tree->mask;
	return bpf_map_lookup_elem(t->words, &slot);
}

static __always_inline __u64 *state_of(struct batch *t, __u32 neighbour, __u32 number)
{
	__u32 at = t->states + neighbour * (t->tree->mask + 1) + (number & t->tree->mask);
	return bpf_map_lookup_elem(t->words, &at);
}

static __always_inline struct area *area_of(struct batch *t, __u32 neighbour, __u32 number)
{
	__u32 at = neighbour * (t->tree->mask + 1) + (number & t->tree->mask);
	return bpf_map_lookup_elem(t->areas, &at);
}

// operation returns what reduces packets with header h and size bytes of payload, in a tree whose
// chunks have most at most, and OP_OTHER where the agent has to look at them. The verifier looks at it
// once.
__noinline __u32 operation(const struct header *h, __u32 size, __u32 most)
{
	if (!h)
		return OP_OTHER;
	__u32 function = bpf_ntohl(h->function), elements = bpf_ntohs(h->chunk_elements), collective = function >> 28;
	__u32 type = bpf_ntohl(h->lowest) >> 24, f = function >> 24 & 15, width = 4, op = f;
	int is_result = h->type == RESULT, is_sink = h->flags == SINK;
	if (h->reserved)
		return OP_OTHER;
	if (collective == BARRIER)
		return !is_sink || function << 4 || type || h->elements || elements || h->exponent || size ? OP_OTHER : OP_NONE;
	if (!elements || elements > bpf_ntohl(h->elements))
		return OP_OTHER;
	switch (type) {
	case 1:
	case 5:
		break;
	case 2:
	case 6:
		op |= OP_WIDE, width = 8;
		break;
	case 3:
		op |= OP_UNSIGNED;
		break;
	case 4:
		op |= OP_WIDE | OP_UNSIGNED, width = 8;
		break;
	case 7:
	case 8:
		width = 2;
		break;
	case BLOCK32:
		if (f != F_SUM)
			return OP_OTHER;
		op = OP_BLOCK;
		break;
	default:
		return OP_OTHER;
	}
	if ((h->exponent && op != OP_BLOCK) || elements * width > most)
		return OP_OTHER;
	if (collective == BROADCAST) {
		int has = h->flags & (is_result ? SINK : SOURCE);
		return f || type == BLOCK32 || h->flags & ~(is_result ? SINK : SINK | SOURCE) || size != (has ? elements * width : 0) ? OP_OTHER
																 : OP_COPY | OP_PARTS;
	}
	if (type > 4 && type != BLOCK32)
		return OP_OTHER;
	if (collective == REDUCE) {
		if (h->flags & ~SINK || size != (is_result && !is_sink ? 0 : elements * width))
			return OP_OTHER;
		op |= OP_PARTS;
	} else if (collective != ALLREDUCE || function & 0xffffff || !is_sink || size != elements * width) {
		return OP_OTHER;
	}
	return f >= F_SUM && f <= F_LXOR ? op : OP_OTHER;
}

static __always_inline int same_cookie(const __u8 *a, const __u8 *b)
{
	const __u16 *x = (const void *)a, *y = (const void *)b;
	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}

// fits reports whether h is the header of packet i of the batch, which has size bytes of
// payload. Headers are compared in words of 8 bytes: the verifier follows each branch.
static __always_inline int fits(const struct batch *t, const struct header *h, __u32 i, __u32 size)
{
	const __u64 *a = (const void *)h, *b = (const void *)&t->head;
	__u64 cookie_and_reserved = 0xffffff, all_but_chunk_elements = 0xffffffffffff;
	if ((a[0] ^ b[0]) | (a[1] ^ b[1]) | ((a[2] ^ b[2]) & cookie_and_reserved) | ((a[3] ^ b[3]) & all_but_chunk_elements) | (a[4] ^ b[4]))
		return 0;
	if (bpf_ntohl(h->chunk) != t->first + i)
		return 0;
	if (a[3] == b[3] && size == t->segment - HEADER && (h->exponent == t->head.exponent || (t->op & 0xff) == OP_BLOCK))
		return 1;
	return operation(h, size, t->tree->chunk) == t->op;
}

// agrees reports whether the packet that an area holds is of the same operation and chunk as h.
static __always_inline int agrees(const struct area *a, const struct header *h)
{
	const __u64 *o = (const void *)a->packet, *n = (const void *)h;
	__u64 all_but_rank = 0xffffffffff;
	return !((o[3] ^ n[3]) | ((o[4] ^ n[4]) & all_but_rank));
}

// place finds packet i of a batch: its number, its offset, and the size of its payload. It returns 0,
// or -1 where that is beyond what a program may reach.
static __always_inline int place(struct batch *t, __u32 i, __u32 *number, __u32 *offset, __u32 *size)
{
	__u32 at = i * t->segment, all = t->total - at;
	*number = t->first + i;
	*offset = FIRST + at;
	*size = (all < t->segment ? all : t->segment) - HEADER;
	return *offset > MAX_OFFSET || *size > MAX_PACKET - HEADER ? -1 : 0;
}

// header_of returns the header of the packet that an area holds.
static __always_inline struct header *header_of(struct area *a) { return (struct header *)a->packet; }

// lowest returns the index of the lowest bit of a set of children: a de Bruijn sequence has each
// bit look up its own of 16 half bytes, without branches, of which the verifier would follow each.
static __always_inline __u32 lowest(__u32 set)
{
	__u32 one = set & -set;
	return 0xcd7ea84fb6935210ull >> ((one * 0x09af & 0xffff) >> 12) * 4 & 15;
}

// with_flag returns the children whose packets about a number have a flag.
static __always_inline __u32 with_flag(struct batch *t, __u32 number, __u32 flag)
{
	__u32 all = 0;
	for (__u32 c = 0; c < MAX_CHILDREN; c++) {
		struct area *a = c < t->tree->children ? area_of(t, c, number) : NULL;
		if (!a)
			break;
		all |= (header_of(a)->flags / flag & 1) << c; // without a branch, of which the verifier would follow both ways
	}
	return all;
}
