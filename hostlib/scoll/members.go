package scoll

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Bounds of what callers give.
const (
	MaxRequest = broadcastmsg.MaxRequest // bytes of a broadcast message: header, payload and whatever travels with it
	MaxNode    = broadcastmsg.MaxNode    // bytes of a node's name
	MaxName    = broadcastmsg.MaxName    // bytes of a group's name
)

// Tag identifies an entity on a node within a service: 128 bits. (service, node,
// tag) is one object, so that the same (node, tag) under two services is two.
type Tag = [16]byte

// Target is a node with the entities on it that a group is about.
type Target struct {
	Node string
	Tags []Tag // at least one, all different
}

// Index is the identity of an out-of-band group beside its service: bits that
// mean something to the service alone.
type Index [24]byte

// Members is an ordered list of targets with its digest, immutable. A service
// that maps an index to the same Members again and again pays for the digest
// once.
type Members struct{ core *broadcast.Members }

// NewMembers returns the membership of targets, in their order, in groups of
// the service. Errors are ErrTargets.
func NewMembers(service ServiceID, targets []Target) (*Members, error) {
	m, err := broadcast.NewMembers(broadcastmsg.Service(service), coreTargets(targets))
	if err != nil {
		return nil, fmt.Errorf("scoll: %w", err)
	}
	return &Members{m}, nil
}

// Len returns how many nodes are members.
func (m *Members) Len() int { return m.core.Len() }

// Target returns the i-th member.
func (m *Members) Target(i int) Target {
	t := m.core.Target(i)
	return Target{string(t.Node), t.Tags}
}

// Find returns which member a node is, -1 if none.
func (m *Members) Find(node string) int { return m.core.Rank(broadcastmsg.Node(node)) }

// Digest returns the SHA-256 sum over service and targets in their order, by
// which nodes agree on them.
func (m *Members) Digest() [32]byte { return m.core.Digest() }

// coreNodes returns names as the core has them; nil of nil.
func coreNodes(names []string) []broadcastmsg.Node {
	if names == nil {
		return nil
	}
	nodes := make([]broadcastmsg.Node, len(names))
	for i, name := range names {
		nodes[i] = broadcastmsg.Node(name)
	}
	return nodes
}

func coreTargets(targets []Target) []broadcastmsg.Target {
	all := make([]broadcastmsg.Target, len(targets))
	for i, t := range targets {
		all[i] = broadcastmsg.Target{Node: broadcastmsg.Node(t.Node), Tags: t.Tags}
	}
	return all
}
