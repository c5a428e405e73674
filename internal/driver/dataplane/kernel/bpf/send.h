// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Batches leave for neighbours.
#pragma once

#include "batch.h"

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
