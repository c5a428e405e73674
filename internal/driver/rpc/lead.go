package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/peer"
)

// ErrLed: a switch has one manager at a time. Two would take each other's trees
// for what a dead manager has left, and remove them.
var ErrLed = errors.New("rpc: the switch has another manager")

// lead is which manager an agent has: that whose streams stand. Its zero value
// is none.
type lead struct {
	mu      sync.Mutex
	manager uint64
	from    string // who that is
	streams int
}

// take has a stream of a manager stand until the returned function is called.
// A manager may have several: of those that were broken off, the agent hears
// late. Number 0 is no manager's.
func (l *lead) take(ctx context.Context, manager uint64) (leave func(), err error) {
	if manager == 0 {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	from := whoCalls(ctx)
	if l.streams > 0 && l.manager != manager {
		return nil, fmt.Errorf("%w, %s; this one is %s", ErrLed, l.from, from)
	}
	l.manager, l.from = manager, from
	l.streams++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.streams--
	}, nil
}

// whoCalls names the other side of a call: its address, and its certificate.
func whoCalls(ctx context.Context) string {
	who := "at an unknown address"
	if p, ok := peer.FromContext(ctx); ok {
		who = "at " + p.Addr.String()
	}
	if i, ok := CallerOf(ctx); ok {
		who = i.String() + " " + who
	}
	return who
}
