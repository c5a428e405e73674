// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the programs share with the agent (../memory.go): maps, and the layout of what is
// in them.
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_CHILDREN 16
#define MAX_TREES 4096
#define HEADER 40
#define MAX_PACKET 1512 // header and payload of the largest chunk

// Largest offset of a payload in a batch: all of it is within the 65,535 bytes that a
// program may reach.
#define MAX_OFFSET 64000

// States of an area: the low half of its word, above which is the number of its packet.
#define AREA_VACANT 0
#define AREA_LOADING 1 // a program copies a packet into it
#define AREA_HELD 2    // it holds the packet of its number

// Flags of a slot: the low half of its word, above the bits of its children.
#define SLOT_IN_USE (1u << 31)
#define SLOT_AGENT (1u << 30) // the agent reduces this number
#define SLOT_SOURCE (1u << 29) // a child has contributed the vector of a broadcast

#define NUMBER(word) ((__u32)((word) >> 32))
#define WORD(number, low) ((__u64)(number) << 32 | (low))

// area holds the last packet of a neighbour for a slot, as it came. Its word is with those of others:
// a batch looks at many.
struct area {
	__be32 own; // address of this switch that it was sent to
	__u32 size; // bytes of packet
	__u8 packet[MAX_PACKET + 16];
};

struct neighbour {
	__be32 addr;
	__be32 own; // from which the agent sends to it
	__be16 port;
	__u8 cookie[6];
};

// tree is an epoch of a tree that has begun.
struct tree {
	__be32 group, epoch;
	__be32 lowest;  // lowest rank beneath the switch
	__u32 mask;     // of a chunk's number: 2W - 1
	__u32 children; // how many
	__be16 port;    // of the tree's socket
	__u16 has_parent;
	__u32 chunk;  // bytes of the largest payload
	__be16 spare;
	__be16 index; // child index of this switch at its parent
	struct neighbour parent;
	struct neighbour child[MAX_CHILDREN];
};

// What is counted of an epoch, behind the words of its slots.
enum {
	COUNT_TAKEN, // contributions
	COUNT_PARTIALS,
	COUNT_RESULTS,
	COUNT_DUPLICATE,
	COUNT_LATE,
	COUNT_UNDELIVERED, // copies that found no way to their neighbour
	// Packets that the agent got, because
	COUNT_ODD,       // they are not of one operation that can be reduced here
	COUNT_OWNED,     // the agent owns a slot, or an area is in use
	COUNT_PARTLY,    // some of their chunks were complete, some not
	COUNT_SIZES,     // what becomes of a batch has other sizes, or two
	COUNT_NO_MEMORY, // there was no memory to have them in one piece
	COUNTS,
};

// And for each neighbour, the parent last.
enum {
	PACKETS_IN,
	BYTES_IN,
	PACKETS_OUT,
	BYTES_OUT,
	TRAFFIC_COUNTS,
};

// regions of trees whose packets are taken, by UDP port, in network byte order. The memory of
// an entry may be another's at any moment: what it leads to is checked.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_TREES);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

// A region is the memory of an epoch: trees, words and areas of an index. The kernel waits for
// programs that are under way before it returns to the agent that has removed one of them, and
// the agent uses the index again only afterwards. So all that a program finds by one index
// belongs together.

// trees[region]: the epoch, which does not change.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_TREES);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 1);
		__type(key, __u32);
		__uint(value_size, sizeof(struct tree));
	});
} trees SEC(".maps");

// locals are this switch's addresses.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __be32);
	__type(value, __u8);
} locals SEC(".maps");

// words[region]: of each slot, its number, flags, and the children that have contributed;
// then what is counted; then of each area its number and state.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_TREES);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
		__uint(max_entries, 1);
		__type(key, __u32);
		__type(value, __u64);
	});
} words SEC(".maps");

// areas[region]: those of child c for slot s at c * 2W + s, those of the parent behind them.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_TREES);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
		__uint(max_entries, 1);
		__type(key, __u32);
		__uint(value_size, sizeof(struct area));
	});
} areas SEC(".maps");
