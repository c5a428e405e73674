// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reduces the packets of trees as they come in by a port of the switch. doc.go has the
// rules; docs/protocol.md the packets. What it does not take goes on to the agent's
// socket, at any time before a packet has been changed: the agent then takes the slots
// over, with all that is held here.
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

// operation returns what reduces packets with header h and size bytes of payload, and
// OP_OTHER where the agent has to look at them. The verifier looks at it once.
__noinline __u32 operation(const struct header *h, __u32 size)
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
	if (h->exponent && op != OP_BLOCK)
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
	return operation(h, size) == t->op;
}

// agrees reports whether the packet that an area holds is of the same operation and chunk as h.
static __always_inline int agrees(const struct area *a, const struct header *h)
{
	const __u64 *o = (const void *)a->packet, *n = (const void *)h;
	__u64 all_but_rank = 0xffffffffff;
	return !((o[3] ^ n[3]) | ((o[4] ^ n[4]) & all_but_rank));
}

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

// lowest returns the index of the lowest bit of a set of children: a de Bruijn sequence has each
// bit look up its own of 16 half bytes, without branches, of which the verifier would follow each.
static __always_inline __u32 lowest(__u32 set)
{
	__u32 one = set & -set;
	return 0xcd7ea84fb6935210ull >> ((one * 0x09af & 0xffff) >> 12) * 4 & 15;
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

// header_of returns the header of the packet that an area holds.
static __always_inline struct header *header_of(struct area *a) { return (struct header *)a->packet; }

// look is the step of a loop over the packets of a batch that is complete, of an operation of
// which not every child wants the result: who has the payload, and who wants it. It ends the loop
// where the agent has to send what becomes of the batch: a packet of a batch cannot become longer or
// shorter.
static long look(__u32 i, struct batch *t)
{
	__u32 number = t->first + i, sinks = 0, sources = 0;
	int is_result = t->neighbour == t->tree->children, is_single = t->segment == t->total;
	for (__u32 c = 0; c < MAX_CHILDREN; c++) {
		struct area *a = c < t->tree->children ? area_of(t, c, number) : NULL;
		if (!a)
			break;
		__u32 flags = header_of(a)->flags;
		sinks |= (flags >> 1 & 1) << c;
		sources |= (flags & 1) << c;
	}
	__u32 all = (1u << t->tree->children) - 1, own = 1u << (t->neighbour & 31);
	t->up = COUNT_ODD;
	if (is_result) {
		if (!(t->head.flags & SINK) != !sinks)
			return 1; // the agent drops it
	} else if ((t->op & 0xff) == OP_COPY) {
		if (!sources && !t->tree->has_parent)
			return 1; // an error
		if (sources & ~own && !is_single)
			return 1;
		t->source = lowest(sources ? sources : own);
	}
	if (!is_single && sinks != all && (is_result ? sinks : !t->tree->has_parent))
		return 1;
	t->sinks = sinks;
	t->up = 0;
	t->completed--;
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
	__u32 k = 1 + zero(number);
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

// copy is a batch on its way to a neighbour.
struct copy {
	struct batch *batch;
	struct neighbour *to;
	__u8 type;
	__be16 child;
	__u32 left;
};

// address is the step of a loop that writes into each packet what differs by receiver.
static long address(__u32 i, struct copy *c)
{
	__u32 offset = FIRST + i * c->batch->segment;
	if (offset > MAX_OFFSET)
		return 1;
	struct header *h = (void *)(long)c->batch->skb->data + offset;
	if ((void *)(h + 1) > (void *)(long)c->batch->skb->data_end)
		return 1;
	h->type = c->type;
	h->child = c->child;
	h->lowest = (h->lowest & bpf_htonl(0xff000000)) | c->batch->tree->lowest;
	__builtin_memcpy(h->cookie, c->to->cookie, sizeof h->cookie);
	c->left--;
	return 0;
}

static __always_inline __u16 folded(__u64 sum)
{
	for (int i = 0; i < 4; i++)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

// pseudo returns the sum over the pseudo header of UDP: what the checksum field holds of
// packets whose checksum is still to be computed (CHECKSUM_PARTIAL).
static __always_inline __u16 pseudo(__be32 source, __be32 destination, __be16 size)
{
	return folded((__u64)source + destination + size + bpf_htons(IPPROTO_UDP));
}

// send_to makes of the batch one to a neighbour, and returns the interface that it must
// leave by, or -1.
static __always_inline int send_to(struct batch *t, struct neighbour *to, __be32 own, __u8 type, __be16 child, __u32 count)
{
	struct __sk_buff *skb = t->skb;
	struct copy c = {.batch = t, .to = to, .type = type, .child = child, .left = count};
	struct bpf_fib_lookup way = {
	    .family = 2, .l4_protocol = IPPROTO_UDP, .ipv4_src = own, .ipv4_dst = to->addr, .ifindex = skb->ingress_ifindex};
	bpf_loop(MAX_BATCH < count ? MAX_BATCH : count, address, &c, 0);
	if (c.left || bpf_fib_lookup(skb, &way, sizeof way, 0))
		return -1;
	struct ethhdr *eth = (void *)(long)skb->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	if ((void *)(udp + 1) > (void *)(long)skb->data_end)
		return -1;
	__builtin_memcpy(eth->h_dest, way.dmac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, way.smac, ETH_ALEN);
	ip->saddr = own;
	ip->daddr = to->addr;
	ip->ttl = 64;
	ip->check = 0;
	__u64 sum = 0;
	for (int i = 0; i < 10; i++)
		sum += ((__u16 *)ip)[i];
	ip->check = ~folded(sum);
	udp->source = t->port;
	udp->dest = to->port;
	udp->check = pseudo(own, to->addr, udp->len);
	return way.ifindex;
}

// resize gives a single packet a payload of so many bytes. It returns 0, or -1 where there is no
// memory; the packet is as it was then.
static __always_inline int resize(struct batch *t, __u32 size)
{
	if (bpf_skb_change_tail(t->skb, FIRST + HEADER + size, 0))
		return -1;
	t->total = t->segment = HEADER + size;
	struct iphdr *ip = (void *)(long)t->skb->data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	if ((void *)(udp + 1) > (void *)(long)t->skb->data_end)
		return -1; // cannot be
	ip->tot_len = bpf_htons(UDP_AT - ETH_HLEN + sizeof *udp + HEADER + size);
	udp->len = bpf_htons(sizeof *udp + HEADER + size);
	return 0;
}

// copy_source gives a single packet that completes a broadcast the payload of the child that has it.
static __always_inline int copy_source(struct batch *t)
{
	struct area *a = area_of(t, t->source, t->first);
	if (!a)
		return -1;
	__u32 size = a->size;
	if (size <= HEADER || size > MAX_PACKET || resize(t, size - HEADER))
		return -1;
	return bpf_skb_store_bytes(t->skb, FIRST + HEADER, a->packet + HEADER, size - HEADER, 0);
}

// copy_to makes of the batch one to a child, and returns the interface that it must leave by, or -1.
static __always_inline int copy_to(struct batch *t, __u32 c, __u32 count)
{
	struct area *a = area_of(t, c, t->first);
	if (!a)
		return -1;
	int out = send_to(t, &t->tree->child[c & (MAX_CHILDREN - 1)], a->own, RESULT, bpf_htons(c), count);
	traffic(t, c, PACKETS_OUT, count);
	traffic(t, c, BYTES_OUT, t->total);
	return out;
}

// copies are those of a batch of results to a set of children.
struct copies {
	struct batch *batch;
	__u32 to;
	__u32 count; // packets of the batch
};

// deliver_copy is the step of a loop over the children that sends each its copy.
static long deliver_copy(__u32 c, struct copies *all)
{
	struct batch *t = all->batch;
	if (all->to >> (c & 31) & 1) {
		int out = copy_to(t, c, all->count);
		if (out < 0 || bpf_clone_redirect(t->skb, out, 0))
			add(t, COUNT_UNDELIVERED, all->count);
	}
	return 0;
}

// deliver_parts sends a single result to every child: one without payload to those that are no
// sinks.
static __always_inline int deliver_parts(struct batch *t)
{
	struct copies all = {.batch = t, .to = t->sinks, .count = 1};
	bpf_loop(t->tree->children, deliver_copy, &all, 0);
	if (t->sinks + 1 == 1u << t->tree->children)
		return TAKEN;
	all.to = ~t->sinks;
	if (t->total > HEADER && resize(t, 0)) {
		add(t, COUNT_UNDELIVERED, 1);
		return TAKEN;
	}
	struct header *h = (void *)(long)t->skb->data + FIRST;
	if ((void *)(h + 1) > (void *)(long)t->skb->data_end)
		return TAKEN; // cannot be
	h->flags = 0;
	bpf_loop(t->tree->children, deliver_copy, &all, 0);
	return TAKEN;
}

// deliver sends a batch of results to every child, and returns what becomes of the
// original.
static __always_inline int deliver(struct batch *t, __u32 count)
{
	struct copies all = {.batch = t, .to = ~0u, .count = count};
	bpf_loop(t->tree->children - 1, deliver_copy, &all, 0);
	int out = copy_to(t, t->tree->children - 1, count);
	if (out < 0) {
		add(t, COUNT_UNDELIVERED, count);
		return TAKEN;
	}
	return bpf_redirect(out, 0);
}

// forward sends a batch of partials to the parent.
static __always_inline int forward(struct batch *t, __u32 count)
{
	int out = send_to(t, &t->tree->parent, t->tree->parent.own, CONTRIBUTION, t->tree->index, count);
	traffic(t, t->tree->children, PACKETS_OUT, count);
	traffic(t, t->tree->children, BYTES_OUT, t->total);
	if (out < 0) {
		add(t, COUNT_UNDELIVERED, count);
		return TAKEN;
	}
	return bpf_redirect(out, 0);
}

SEC("tc/ingress") int reduce(struct __sk_buff *skb)
{
	struct batch t = {.skb = skb};
	if (skb->protocol != bpf_htons(ETH_P_IP) || skb->vlan_present || skb->pkt_type != 0) // PACKET_HOST
		return UP;
	// Most packets are none of a tree: they are not touched.
	struct {
		struct iphdr ip;
		struct udphdr udp;
	} head;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &head, sizeof head) || head.ip.version != 4 || head.ip.ihl != 5 ||
	    head.ip.protocol != IPPROTO_UDP || head.ip.frag_off & bpf_htons(0x3fff))
		return UP;
	__u32 port = head.udp.dest, none = 0, *found = bpf_map_lookup_elem(&ports, &port);
	if (!found)
		return UP;
	__u32 region = *(volatile __u32 *)found;
	void *epoch = bpf_map_lookup_elem(&trees, &region);
	t.words = bpf_map_lookup_elem(&words, &region);
	t.areas = bpf_map_lookup_elem(&areas, &region);
	if (!epoch || !t.words || !t.areas)
		return UP;
	t.tree = bpf_map_lookup_elem(epoch, &none);
	t.own = head.ip.daddr;
	t.port = head.udp.dest;
	if (!t.tree || t.tree->port != t.port || !bpf_map_lookup_elem(&locals, &t.own))
		return UP;
	t.states = count_at(t.tree, COUNTS + (t.tree->children + 1) * TRAFFIC_COUNTS);
	if (skb->data_end - skb->data < FIRST + HEADER && (skb->len < FIRST + HEADER || bpf_skb_pull_data(skb, FIRST + HEADER)))
		return UP;
	struct ethhdr *eth = (void *)(long)skb->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct header *h = (void *)(udp + 1);
	if ((void *)(h + 1) > (void *)(long)skb->data_end)
		return UP;
	if (bpf_ntohs(ip->tot_len) + ETH_HLEN != skb->len || bpf_ntohs(udp->len) + UDP_AT != skb->len)
		return UP;

	t.total = skb->len - FIRST;
	t.segment = skb->gso_size ? skb->gso_size : t.total;
	__u32 count = (t.total + t.segment - 1) / t.segment;
	if (FIRST + HEADER + (count - 1) * t.segment > MAX_OFFSET || t.segment < HEADER || t.segment > HEADER + t.tree->chunk || count > MAX_BATCH)
		return UP;
	// Only of a packet whose checksum is still to be computed it stays right when what it
	// covers is changed. Batches are such packets; of others the field tells.
	if (!skb->gso_size && udp->check != pseudo(ip->saddr, ip->daddr, udp->len))
		return UP;

	__builtin_memcpy(&t.head, h, HEADER);
	if (h->group != t.tree->group || h->epoch != t.tree->epoch)
		return UP;
	t.first = bpf_ntohl(h->chunk);
	t.taken = t.completed = t.late = t.duplicate = t.source = t.sinks = zero(t.total);
	t.op = operation(&t.head, t.segment - HEADER);
	if (t.op == OP_OTHER)
		return UP;
	struct neighbour *from;
	if (h->type == CONTRIBUTION) {
		t.neighbour = bpf_ntohs(h->child);
		if (t.neighbour >= t.tree->children || t.neighbour >= MAX_CHILDREN)
			return UP;
		from = &t.tree->child[t.neighbour];
	} else {
		if (h->type != RESULT || !t.tree->has_parent || h->child != t.tree->index)
			return UP;
		t.neighbour = t.tree->children;
		from = &t.tree->parent;
	}
	if (ip->saddr != from->addr || udp->source != from->port || !same_cookie(h->cookie, from->cookie))
		return UP;

	int is_result = t.neighbour == t.tree->children;
	if (is_result)
		bpf_loop(count, take_result, &t, 0);
	else
		bpf_loop(count, take_contribution, &t, 0);
	add(&t, COUNT_TAKEN, t.taken);
	add(&t, COUNT_DUPLICATE, t.duplicate);
	add(&t, COUNT_LATE, t.late);
	// A part of a batch cannot be sent, and all must be in one piece to be changed.
	if (!t.up && t.completed && t.completed != count)
		t.up = COUNT_PARTLY;
	if (!t.up && t.completed && t.op & OP_PARTS) {
		bpf_loop(count, look, &t, 0);
		if (!t.up)
			t.completed = count;
	}
	if (!t.up && t.completed && bpf_skb_pull_data(skb, skb->len))
		t.up = COUNT_NO_MEMORY;
	if (t.up) {
		add(&t, t.up, count);
		return UP;
	}
	traffic(&t, t.neighbour, PACKETS_IN, count);
	traffic(&t, t.neighbour, BYTES_IN, t.total);
	if (!t.completed)
		return TAKEN;
	if (!is_result) {
		if (t.op == (OP_COPY | OP_PARTS) && t.source != t.neighbour && copy_source(&t))
			return TAKEN; // lost, for want of memory
		switch (t.op & 0xff) {
		case OP_NONE:
		case OP_COPY:
			break;
		case OP_BLOCK:
			bpf_loop(count, sum_blocks, &t, 0);
			if (t.completed)
				return TAKEN; // lost; cannot be: all was checked
			break;
		default:
			bpf_loop(count, fold_words, &t, 0);
			if (t.completed)
				return TAKEN;
		}
		if (t.op & OP_PARTS)
			bpf_loop(count, unite, &t, 0);
	}
	if (!is_result && t.tree->has_parent) {
		add(&t, COUNT_PARTIALS, count);
		return forward(&t, count);
	}
	add(&t, COUNT_RESULTS, count);
	return t.op & OP_PARTS && count == 1 ? deliver_parts(&t) : deliver(&t, count);
}

char _license[] SEC("license") = "Dual BSD/GPL";
