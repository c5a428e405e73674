package broadcast

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Members is the ordered membership of a group, with its digest: what all
// members agree upon. It is immutable, so that a service that maps an
// out-of-band group can return the same one again and again, and pays for the
// digest once.
type Members struct {
	service broadcastmsg.Service
	targets []broadcastmsg.Target
	order   []int32             // ranks by the name of their node
	digest  broadcastmsg.Digest // zero: not taken
	tags    int                 // entities of each node; -1 where they differ
}

// NewMembers returns the membership of the targets, in their order, in a group
// of the service. The slices are kept and must not be changed. Errors wrap
// collect.ErrTargets.
func NewMembers(s broadcastmsg.Service, targets []broadcastmsg.Target) (*Members, error) {
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: none", broadcastmsg.ErrTargets)
	}
	m := &Members{service: s, targets: targets, order: make([]int32, len(targets)), tags: len(targets[0].Tags)}
	for i := range targets {
		if err := broadcastmsg.ValidTarget(i, &targets[i]); err != nil {
			return nil, err
		}
		m.order[i] = int32(i)
		if len(targets[i].Tags) != m.tags {
			m.tags = -1
		}
	}
	slices.SortFunc(m.order, func(a, b int32) int { return cmp.Compare(targets[a].Node, targets[b].Node) })
	for i, rank := range m.order[1:] {
		if node := targets[rank].Node; node == targets[m.order[i]].Node {
			return nil, fmt.Errorf("%w: node %q is there twice", broadcastmsg.ErrTargets, node)
		}
	}
	m.digest = broadcastmsg.DigestOf(s, targets)
	return m, nil
}

// Len returns how many nodes are members.
func (m *Members) Len() int { return len(m.targets) }

// Target returns the member of a rank.
func (m *Members) Target(rank int) *broadcastmsg.Target { return &m.targets[rank] }

// Digest returns the digest of the members in their order.
func (m *Members) Digest() broadcastmsg.Digest {
	if m.digest == (broadcastmsg.Digest{}) {
		return broadcastmsg.DigestOf(m.service, m.targets)
	}
	return m.digest
}

// Rank returns a node's rank, -1 if it is no member.
func (m *Members) Rank(node broadcastmsg.Node) int {
	i, ok := slices.BinarySearchFunc(m.order, node, func(rank int32, node broadcastmsg.Node) int {
		return cmp.Compare(m.targets[rank].Node, node)
	})
	if !ok {
		return -1
	}
	return int(m.order[i])
}

// pick returns those members whose ranks are marked, in their order; m itself if
// all are. Their digest is taken when it is asked for.
func (m *Members) pick(in []bool) *Members {
	to := make([]int32, len(in)) // new ranks
	picked := &Members{service: m.service, tags: m.tags}
	for rank, yes := range in {
		if to[rank] = -1; yes {
			to[rank] = int32(len(picked.targets))
			picked.targets = append(picked.targets, m.targets[rank])
		}
	}
	if len(picked.targets) == len(m.targets) {
		return m
	}
	picked.order = make([]int32, 0, len(picked.targets))
	for _, rank := range m.order {
		if to[rank] >= 0 {
			picked.order = append(picked.order, to[rank])
		}
	}
	return picked
}

// made reports whether one of the members has made the group of an index.
func (m *Members) made(index broadcastmsg.Index) bool {
	return slices.ContainsFunc(m.targets, func(t broadcastmsg.Target) bool { return index.NamedAfter(t.Node) })
}
