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

// ErrStale: what a manager asks of a switch counts only while it leads, and none leads
// after a later one has.
var ErrStale = errors.New("rpc: the switch has had a later manager")

// ErrNotLeading: a manager watches a switch before it asks anything of it.
var ErrNotLeading = errors.New("rpc: the manager does not lead this switch: it is to watch it first")

// lead is which manager an agent has: that whose streams stand, or which was the last.
// Managers have terms, which rise. Its zero value is none.
//
//	what comes            no stream stands             streams of term t stand
//	Watch of term t       leads, t being the highest   another stream
//	Watch of a higher one leads; calls of others end   ErrLed
//	Watch of a lower one  ErrStale                     ErrStale
//	call of term t        made, t being the highest    made
//	another call          ErrStale, ErrNotLeading      ErrStale, ErrNotLeading
//
// An agent forgets the terms when it restarts, as it does everything: it has promised
// nothing to anybody then, and what was meant for its former life is refused by incarnation.
type lead struct {
	mu      sync.Mutex
	term    uint64 // the highest that has led
	from    string // who that is
	streams int
	calls   *ledCalls // of that term
}

// ledCalls are those of a term that are under way.
type ledCalls struct {
	running sync.WaitGroup
	over    chan struct{} // closed when another term begins
	ready   chan struct{} // closed when no call of an earlier term is under way any more
}

// take has a stream of a manager stand until the returned function is called.
// A manager may have several: of those that were broken off, the agent hears
// late. Term 0 is no manager's. When it returns, no call of an earlier term is under way.
func (l *lead) take(ctx context.Context, term uint64) (leave func(), err error) {
	if term == 0 {
		return func() {}, nil
	}
	ready, err := l.begin(ctx, term)
	if err != nil {
		return nil, err
	}
	leave = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.streams--
	}
	select {
	case <-ready:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("rpc: waiting for calls of the manager before: %w", context.Cause(ctx))
	}
}

// begin counts a stream, and returns what is closed when no call of a term before is under way.
func (l *lead) begin(ctx context.Context, term uint64) (ready <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := whoCalls(ctx)
	switch {
	case term < l.term:
		return nil, l.stale(from, term)
	case l.streams > 0 && l.term != term:
		return nil, fmt.Errorf("%w, %s; this one is %s", ErrLed, l.from, from)
	}
	if l.term != term {
		former := l.calls
		l.calls = &ledCalls{over: make(chan struct{}), ready: make(chan struct{})}
		go l.calls.await(former)
	}
	l.term, l.from = term, from
	l.streams++
	return l.calls.ready, nil
}

// await ends the calls of the term before, if there are any, and waits for their end, and for that of
// those before them.
func (c *ledCalls) await(former *ledCalls) {
	if former != nil {
		close(former.over)
		<-former.ready
		former.running.Wait()
	}
	close(c.ready)
}

func (l *lead) stale(from string, term uint64) error {
	return fmt.Errorf("%w, %s of term %d; this one is %s of term %d: end it or, if it is the later one and its store and clock are lost, restart the agent",
		ErrStale, l.from, l.term, from, term)
}

// call begins a call of a manager that leads; it ends with end, or, as its context does,
// when another leads.
func (l *lead) call(ctx context.Context, term uint64) (_ context.Context, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isReady := func() bool {
		select {
		case <-l.calls.ready:
			return true
		default:
			return false
		}
	}
	switch {
	case term != 0 && term < l.term:
		return nil, nil, l.stale(whoCalls(ctx), term)
	case term == 0 || term != l.term || !isReady():
		return nil, nil, ErrNotLeading
	}
	c := l.calls
	c.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.over:
			cancel(ErrStale)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		c.running.Done()
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
