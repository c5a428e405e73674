package hostlib

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/driver/attach"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// ErrService: a service stands on the host already, or has stood there.
var ErrService = errors.New("hostlib: a host has a service once in its life")

// services are what stands on a host beside its communicators.
type services struct {
	mu     sync.Mutex
	closed bool
	all    map[peer.Service]func(context.Context) error // what closes it; nil: it is closed
}

func init() {
	attach.To = func(host any, s peer.Service, close func(context.Context) error) (*attach.Host, error) {
		h, ok := host.(*Host)
		if !ok || h == nil {
			return nil, fmt.Errorf("%w: there is no host", ErrArgument)
		}
		return h.attach(s, close)
	}
}

// attach notes a service.
func (h *Host) attach(s peer.Service, close func(context.Context) error) (*attach.Host, error) {
	h.services.mu.Lock()
	defer h.services.mu.Unlock()
	if h.services.closed {
		return nil, ErrClosed
	}
	if _, twice := h.services.all[s]; twice {
		return nil, fmt.Errorf("%w: %s", ErrService, h.name)
	}
	if h.services.all == nil {
		h.services.all = map[peer.Service]func(context.Context) error{}
	}
	h.services.all[s] = close
	shared := &attach.Host{Peers: h.peers, Log: h.cfg.Log, Detach: func() {
		h.services.mu.Lock()
		defer h.services.mu.Unlock()
		h.services.all[s] = nil
	}}
	if h.members != nil {
		shared.Liveness = h.members
	}
	return shared, nil
}

// close closes all services, and lets none be attached any more: first those that may use
// others, whose numbers are higher.
func (s *services) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	var all []func(context.Context) error
	for _, of := range slices.Sorted(maps.Keys(s.all)) {
		if close := s.all[of]; close != nil {
			all = append(all, close)
		}
	}
	s.mu.Unlock()
	var failed []error
	for _, close := range all {
		failed = append(failed, close(ctx))
	}
	return errors.Join(failed...)
}
