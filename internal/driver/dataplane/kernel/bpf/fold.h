// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reductions: an area's payload into that of a packet at the same place.
#pragma once

#include "tree.h"

// The functions of docs/protocol.md, here for 4 or 8 bytes, signed or unsigned.
#define F_SUM 1
#define F_PRODUCT 2
#define F_MIN 3
#define F_MAX 4
#define F_BAND 5
#define F_BOR 6
#define F_BXOR 7
#define F_LAND 8
#define F_LOR 9
#define F_LXOR 10

#define OP_WIDE 16
#define OP_UNSIGNED 32

#define BLOCK 64                       // bytes of which the bounds are checked at once
#define BLOCKS (MAX_PACKET / BLOCK + 1) // of the largest payload

// FOLD makes a function that reduces size bytes of the area a's payload into those at
// offset of the packet: whole blocks first, then element by element. It returns 0, or
// -1 for what does not fit.
#define FOLD_BY(name, type, expression, ...)                                                     \
	__noinline int name(struct __sk_buff *skb, __u32 offset, __u32 size, struct area *a __VA_OPT__(,) __VA_ARGS__) \
	{                                                                                        \
		if (!a || offset > MAX_OFFSET + HEADER || size > MAX_PACKET - HEADER)                              \
			return -1;                                                                        \
		void *end = (void *)(long)skb->data_end;                                              \
		void *at = (void *)(long)skb->data + offset;                                          \
		__u32 tail = size & ~(BLOCK - 1);                                                         \
		for (int b = 0; b < BLOCKS && b * BLOCK < tail; b++) {                                    \
			type *x = at + b * BLOCK;                                                                \
			type *y = (void *)a->packet + HEADER + b * BLOCK;                                        \
			if ((void *)x + BLOCK > end || (b + 1) * BLOCK + HEADER > MAX_PACKET)                    \
				return -1;                                                                              \
			_Pragma("unroll") for (int i = 0; i < BLOCK / (int)sizeof(type); i++)                    \
			{                                                                                        \
				type p = x[i], q = y[i];                                                                \
				x[i] = expression;                                                                      \
			}                                                                                        \
		}                                                                                         \
		/* The place is not told by the loop above, so that the verifier looks at this once. */   \
		for (int i = 0; i < BLOCK / (int)sizeof(type); i++) {                                     \
			__u32 place = tail + i * sizeof(type);                                                   \
			if (place >= size || place > MAX_PACKET - HEADER - sizeof(type))                         \
				break;                                                                                  \
			type *x = at + place;                                                                    \
			if ((void *)(x + 1) > end)                                                               \
				return -1;                                                                              \
			type p = *x, q = *(type *)((void *)a->packet + HEADER + place);                          \
			*x = expression;                                                                         \
		}                                                                                         \
		return 0;                                                                             \
	}

#define FOLD(name, type, expression) FOLD_BY(name, type, expression)

// Truth values, and the lesser of two numbers of 32 bits, without branches: of each the verifier
// follows both ways, and processors guess wrong.
static __always_inline __u32 is_set32(__u32 p) { return ((__u64)p + 0xffffffff) >> 32; }
static __always_inline __u64 is_set64(__u64 p) { return is_set32(p >> 32 | (__u32)p); }
static __always_inline __s64 below(__s64 difference) { return difference & difference >> 63; }

FOLD(sum32, __u32, p + q)
FOLD(sum64, __u64, p + q)
FOLD(product32, __u32, p *q)
FOLD(product64, __u64, p *q)
FOLD(min_s32, __s32, p + below((__s64)q - p))
FOLD(min_s64, __s64, p < q ? p : q)
FOLD(min_u32, __u32, p + below((__s64)q - p))
FOLD(min_u64, __u64, p < q ? p : q)
FOLD(max_s32, __s32, q - below((__s64)q - p))
FOLD(max_s64, __s64, p > q ? p : q)
FOLD(max_u32, __u32, q - below((__s64)q - p))
FOLD(max_u64, __u64, p > q ? p : q)
FOLD(band32, __u32, p &q)
FOLD(bor32, __u32, p | q)
FOLD(bxor32, __u32, p ^ q)
FOLD(land32, __u32, is_set32(p) & is_set32(q))
FOLD(lor32, __u32, is_set32(p | q))
FOLD(lxor32, __u32, is_set32(p) ^ is_set32(q))
FOLD(land64, __u64, is_set64(p) & is_set64(q))
FOLD(lor64, __u64, is_set64(p | q))
FOLD(lxor64, __u64, is_set64(p) ^ is_set64(q))

// Of block32: mantissas by whose exponents they are shifted.
FOLD_BY(sum_shifted, __s32, (__s32)((__u32)p + (__u32)(q >> (shift & 31))), __u32 shift)
FOLD_BY(shift_own, __s32, ((void)q, p >> (shift & 31)), __u32 shift)

// sum32_of_3 adds what three areas have at once, in one pass over the packet. The place is an offset
// and a size in one: a function has five arguments at most.
__noinline int sum32_of_3(struct __sk_buff *skb, __u64 place, struct area *a, struct area *b, struct area *c)
{
	__u32 offset = place >> 32, size = place;
	if (!a || !b || !c || offset > MAX_OFFSET + HEADER || size > MAX_PACKET - HEADER)
		return -1;
	void *end = (void *)(long)skb->data_end;
	void *at = (void *)(long)skb->data + offset;
	__u32 tail = size & ~(BLOCK - 1);
	for (int n = 0; n < BLOCKS && n * BLOCK < tail; n++) {
		__u32 *x = at + n * BLOCK;
		int from = HEADER + n * BLOCK;
		if ((void *)x + BLOCK > end || from + BLOCK > MAX_PACKET)
			return -1;
		__u32 *p = (void *)a->packet + from, *q = (void *)b->packet + from, *r = (void *)c->packet + from;
		_Pragma("unroll") for (int i = 0; i < BLOCK / 4; i++)
			x[i] += p[i] + q[i] + r[i];
	}
	for (int i = 0; i < BLOCK / 4; i++) {
		__u32 rest = tail + i * 4;
		if (rest >= size || rest > MAX_PACKET - HEADER - 4)
			break;
		__u32 *x = at + rest;
		if ((void *)(x + 1) > end)
			return -1;
		*x += *(__u32 *)((void *)a->packet + HEADER + rest) + *(__u32 *)((void *)b->packet + HEADER + rest) +
		      *(__u32 *)((void *)c->packet + HEADER + rest);
	}
	return 0;
}

// fold reduces with an operation: a function of its own, so that the verifier looks at it
// once.
__noinline int fold(struct __sk_buff *skb, __u32 offset, __u32 size, struct area *a, __u32 op)
{
	if (!a)
		return -1;
	switch (op) {
	case F_SUM:
	case F_SUM | OP_UNSIGNED:
		return sum32(skb, offset, size, a);
	case F_SUM | OP_WIDE:
	case F_SUM | OP_WIDE | OP_UNSIGNED:
		return sum64(skb, offset, size, a);
	case F_PRODUCT:
	case F_PRODUCT | OP_UNSIGNED:
		return product32(skb, offset, size, a);
	case F_PRODUCT | OP_WIDE:
	case F_PRODUCT | OP_WIDE | OP_UNSIGNED:
		return product64(skb, offset, size, a);
	case F_MIN:
		return min_s32(skb, offset, size, a);
	case F_MIN | OP_WIDE:
		return min_s64(skb, offset, size, a);
	case F_MIN | OP_UNSIGNED:
		return min_u32(skb, offset, size, a);
	case F_MIN | OP_WIDE | OP_UNSIGNED:
		return min_u64(skb, offset, size, a);
	case F_MAX:
		return max_s32(skb, offset, size, a);
	case F_MAX | OP_WIDE:
		return max_s64(skb, offset, size, a);
	case F_MAX | OP_UNSIGNED:
		return max_u32(skb, offset, size, a);
	case F_MAX | OP_WIDE | OP_UNSIGNED:
		return max_u64(skb, offset, size, a);
	}
	switch (op & ~OP_UNSIGNED) {
	case F_BAND:
	case F_BAND | OP_WIDE:
		return band32(skb, offset, size, a);
	case F_BOR:
	case F_BOR | OP_WIDE:
		return bor32(skb, offset, size, a);
	case F_BXOR:
	case F_BXOR | OP_WIDE:
		return bxor32(skb, offset, size, a);
	case F_LAND:
		return land32(skb, offset, size, a);
	case F_LOR:
		return lor32(skb, offset, size, a);
	case F_LXOR:
		return lxor32(skb, offset, size, a);
	case F_LAND | OP_WIDE:
		return land64(skb, offset, size, a);
	case F_LOR | OP_WIDE:
		return lor64(skb, offset, size, a);
	case F_LXOR | OP_WIDE:
		return lxor64(skb, offset, size, a);
	}
	return -1;
}
