package broadcast

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/fabrictree"
	"github.com/tributary-fabric/tributary/hostlib/scoll/offload"
)

// The services of a measurement, the same on all members.
const (
	timed   scoll.ServiceID = 1 // replies have the latest receipt
	counted scoll.ServiceID = 2 // replies are empty
)

// Member is a node that takes part.
type Member struct {
	host           *hostlib.Host
	node           *scoll.Node
	timed, counted *scoll.Service
	plans          *fabrictree.Plans
	offloaded      [2]*offload.Group[uint64] // counted, timed; nil: Join was not asked for them
	end            shutdown
}

// On makes a node that takes part, on a host that is the caller's.
func On(host *hostlib.Host, c scoll.Config) (*Member, error) {
	m := &Member{host: host, plans: fabrictree.New()}
	c.Trees = map[uint8]scoll.Shape{fabrictree.Kind: m.plans.Shape}
	var err error
	if m.node, err = scoll.On(host, c); err != nil {
		return nil, err
	}
	if m.timed, err = m.node.Register(timed, timedCallbacks()); err == nil {
		m.counted, err = m.node.Register(counted, countedCallbacks())
	}
	if err == nil {
		err = m.end.register(m.node)
	}
	if err != nil {
		return nil, errors.Join(err, m.node.Close(context.Background()))
	}
	return m, nil
}

// post posts a buffer of so many bytes for each child's reply.
func post(r *scoll.Request, bytes int) error {
	for child := range r.NumChildren() {
		if err := r.PostReplySize(child, bytes, nil); err != nil {
			return err
		}
	}
	return nil
}

// finished notifies the run, if this is its root, that a request is complete.
func finished(r *scoll.Request, latest uint64) {
	if r.IsRoot() {
		if b, ok := r.Private().(*flight); ok {
			b.landed(r, latest)
		}
	}
}

func countedCallbacks() scoll.Callbacks {
	return scoll.Callbacks{
		PreRequest:      func(r *scoll.Request) error { return post(r, 0) },
		IncomingRequest: func(*scoll.Request) error { return nil },
		PostReply: func(r *scoll.Request) {
			_ = r.Reply(nil) // the root's goes nowhere, another's that is refused shows there
			finished(r, 0)
		},
		Inline: true,
	}
}

// latest is the latest receipt that a member knows of, by request. Inline
// callbacks never run beside each other.
type latest struct {
	mu sync.Mutex
	of map[*scoll.Request]uint64
}

func (l *latest) note(r *scoll.Request, at uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[r] = max(l.of[r], at)
}

func (l *latest) take(r *scoll.Request) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[r]
	delete(l.of, r)
	return at
}

func timedCallbacks() scoll.Callbacks {
	seen := &latest{of: map[*scoll.Request]uint64{}}
	return scoll.Callbacks{
		PreRequest: func(r *scoll.Request) error {
			seen.note(r, uint64(gauge.Clock()))
			return post(r, 8)
		},
		IncomingRequest: func(*scoll.Request) error { return nil },
		IncomingReply: func(reply *scoll.Reply) {
			if len(reply.Body) == 8 {
				seen.note(reply.Request, binary.BigEndian.Uint64(reply.Body))
			}
		},
		PostReply: func(r *scoll.Request) {
			at := seen.take(r)
			_ = r.Reply(binary.BigEndian.AppendUint64(nil, at)) // as above
			finished(r, at)
		},
		Inline: true,
	}
}

// group makes a group of the service over the nodes, and waits for it.
func group(s *scoll.Service, nodes []string, tree scoll.Tree) (*scoll.Group, error) {
	spec := scoll.GroupSpec{Name: "measured", Tree: tree}
	for _, node := range nodes {
		spec.Targets = append(spec.Targets, scoll.Target{Node: node, Tags: []scoll.Tag{{1}}})
	}
	type made struct {
		group *scoll.Group
		err   error
	}
	done := make(chan made, 1)
	if err := s.CreateGroup(spec, func(g *scoll.Group, err error) { done <- made{g, err} }); err != nil {
		return nil, err
	}
	m := <-done
	if m.err != nil {
		return nil, fmt.Errorf("making the group: %w", m.err)
	}
	return m.group, nil
}
