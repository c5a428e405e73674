package p4rt

import (
	"context"
	"fmt"
	"sync"
)

// boxedEvents is how many events wait before faults of different texts are
// reported as one.
const boxedEvents = 1024

// box keeps events until somebody takes them. Its giver never waits. A fault
// like the one before only raises its count, so that a flood of them takes no
// room and none is lost from the count.
type box struct {
	mu     sync.Mutex
	events []Event
	closed bool
	stir   chan struct{} // has room for one
}

func newBox() *box { return &box{stir: make(chan struct{}, 1)} }

func (b *box) put(events ...Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		if n := len(b.events); e.Kind == Fault && n > 0 && b.events[n-1].Kind == Fault &&
			(n >= boxedEvents || b.events[n-1].Err.Error() == e.Err.Error()) {
			b.events[n-1].Count += e.Count
			continue
		}
		b.events = append(b.events, e)
	}
	b.wake()
}

func (b *box) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake()
}

func (b *box) wake() {
	select {
	case b.stir <- struct{}{}:
	default:
	}
}

// take waits for events and takes all. The error is the context's, or
// ErrClosed when the box is closed and empty.
func (b *box) take(ctx context.Context) ([]Event, error) {
	for {
		b.mu.Lock()
		events, closed := b.events, b.closed
		b.events = nil
		b.mu.Unlock()
		if len(events) > 0 {
			return events, nil
		}
		if closed {
			b.wake() // for the next who asks
			return nil, ErrClosed
		}
		select {
		case <-b.stir:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the target: %w", ctx.Err())
		}
	}
}
