package scoll

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// ServiceID is the number of a collective service: assigned once, and agreed
// upon by all nodes. 0 is none.
type ServiceID uint32

// Callbacks are what a service does. They run on goroutines of the node's,
// beside each other, also those of one request; a panic of one is a *PanicError
// that it has returned. IncomingRequest has to be there.
type Callbacks struct {
	// MapGroup returns the members of an out-of-band group, the same on all
	// nodes. Only services with out-of-band groups have it.
	MapGroup func(Index) (*Members, error)
	// PreRequest looks at a request before anything else happens: it rejects a
	// corrupt message by an error, posts a reply buffer for each child, may set
	// the timeout for them, and sets buffers for bulk data where BulkLen is
	// positive. After an error there is no further callback, nothing is
	// forwarded, and the parent is notified. nil: every child has room for
	// DefaultReply bytes a node of its subtree, up to 1 MiB; a larger reply counts
	// as StatusOverflow, and requests with bulk data are refused.
	PreRequest func(*Request) error
	// IncomingRequest runs the request, once for all entities of this node,
	// while it is forwarded. After an error the service does not reply: the
	// library notifies the parent.
	IncomingRequest func(*Request) error
	// IncomingReply takes what came of a child, once for each; nil: nobody needs
	// to know.
	IncomingReply func(*Reply)
	// PostReply follows when all others have returned, also on a leaf: here, or
	// later, the service replies with all replies aggregated. Bulk buffers are
	// free. On the root it completes the request. nil: the
	// reply is what was given before, or empty.
	PostReply func(*Request)
	// ReplyOut follows when the reply is out, or given up: err says why. It is
	// the last callback of a request that is not the root's; nil: nobody needs
	// to know.
	ReplyOut func(r *Request, err error)
	// Access says which hosts may call the service and make its groups; zero: all that
	// have a certificate of the same authority.
	Access Access
	// Inline says that none of the callbacks ever waits, for a lock that is
	// held long, for the network, for another callback. They then run on the
	// goroutine that steps the node, which saves several changes of goroutine a
	// request; all of the node stands still while they run.
	Inline bool
}

// Service is a service that is registered at a node.
type Service struct {
	node     *Node
	id       ServiceID
	call     Callbacks
	queue    queue
	closing  bool                // guarded by node.mu
	requests map[uint64]*Request // that have not ended; guarded by node.mu
	drained  chan struct{}       // closed when closing and there is none
}

// Register registers a service. It fails with ErrService where its number is 0
// or taken, and with ErrConfig where IncomingRequest is missing.
func (n *Node) Register(id ServiceID, call Callbacks) (*Service, error) {
	if call.IncomingRequest == nil {
		return nil, fmt.Errorf("register service %d: %w: there is no IncomingRequest to run requests", id, ErrConfig)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	err := n.core.Register(broadcast.Service{
		ID: broadcastmsg.Service(id), OutOfBand: call.MapGroup != nil, NoReplies: call.IncomingReply == nil,
		Allow: n.allow(id, call.Access),
	})
	if err != nil {
		return nil, fmt.Errorf("register service %d: %w", id, err)
	}
	s := &Service{node: n, id: id, call: call, requests: map[uint64]*Request{}, drained: make(chan struct{})}
	n.services[broadcastmsg.Service(id)] = s
	return s, nil
}

// ID returns the service's number.
func (s *Service) ID() ServiceID { return s.id }

// Close stops the service and unregisters it: new requests are refused, their
// parents notified; those that are active are aborted; and it waits until their last
// callbacks have returned, so that all buffers are free. Groups of the service
// are freed here. The error is the context's if it ends first; Close may be
// called again then. It must not be called from a callback of the service.
func (s *Service) Close(ctx context.Context) error {
	s.stop()
	select {
	case <-s.drained:
	case <-s.node.over:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("close service %d: waiting for its callbacks: %w", s.id, ctx.Err())
	}
	for {
		err := s.unregister()
		if !errors.Is(err, ErrBusy) {
			return err
		}
		// The library's own requests, which make and free groups, end by
		// themselves: each end is reported.
		if err := s.node.awaitEnd(ctx); err != nil {
			return fmt.Errorf("close service %d: %w", s.id, err)
		}
	}
}

// stop refuses requests from now on, and aborts those that are active.
func (s *Service) stop() {
	n := s.node
	n.mu.Lock()
	if !s.closing {
		s.closing = true
		if len(s.requests) == 0 {
			close(s.drained)
		}
	}
	active := slices.Collect(maps.Values(s.requests))
	n.mu.Unlock()
	for _, r := range active {
		r.Abort()
	}
}

func (s *Service) unregister() error {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.services[broadcastmsg.Service(s.id)] != s {
		return nil // closed before
	}
	if err := n.core.Unregister(broadcastmsg.Service(s.id)); err != nil {
		return err
	}
	delete(n.services, broadcastmsg.Service(s.id))
	return nil
}
