// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reduces the packets of trees as they come in by a port of the switch. doc.go has the
// rules; docs/protocol.md the packets. What it does not take goes on to the agent's
// socket, at any time before a packet has been changed: the agent then takes the slots
// over, with all that is held here.
#include "complete.h"
#include "send.h"
#include "slot.h"

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
	t.op = operation(&t.head, t.segment - HEADER, t.tree->chunk);
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
	if (has_two_sizes(t.op, t.head.flags, count, t.tree->has_parent)) {
		add(&t, COUNT_SIZES, count);
		return UP;
	}
	if (is_result && t.op & OP_PARTS)
		bpf_loop(count, look, &t, 0); // so that none is loaded that is wrong
	if (is_result && !t.up)
		bpf_loop(count, take_result, &t, 0);
	else if (!is_result)
		bpf_loop(count, take_contribution, &t, 0);
	add(&t, COUNT_TAKEN, t.taken);
	add(&t, COUNT_DUPLICATE, t.duplicate);
	add(&t, COUNT_LATE, t.late);
	// A part of a batch cannot be sent, and all must be in one piece to be changed.
	if (!t.up && t.completed && t.completed != count)
		t.up = COUNT_PARTLY;
	if (!t.up && t.completed && t.op & OP_PARTS)
		bpf_loop(count, look, &t, 0);
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
