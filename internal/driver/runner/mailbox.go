package runner

import (
	"context"
	"fmt"
	"sync"
)

// Mailbox is a queue between goroutines whose giver never waits: what a loop's
// Apply hands to slower goroutines goes through one. Many may give, one takes.
// Its zero value is ready.
type Mailbox[T any] struct {
	// Limit is the items that wait at most; 0: no limit.
	Limit int

	mu     sync.Mutex
	items  []T
	closed bool
	stir   chan struct{} // made by the first who waits; has room for one
}

// Put adds items, all or none, and reports whether it did: it does not when
// there is no room, or after Close.
func (m *Mailbox[T]) Put(items ...T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.Limit > 0 && len(m.items)+len(items) > m.Limit {
		return false
	}
	m.items = append(m.items, items...)
	m.wake()
	return true
}

// Take waits for items and takes all, in the order of Put. The error is the
// context's or, once the box is closed and empty, ErrClosed.
func (m *Mailbox[T]) Take(ctx context.Context) ([]T, error) {
	for {
		items, closed, stir := m.take()
		if len(items) > 0 {
			return items, nil
		}
		if closed {
			return nil, ErrClosed
		}
		select {
		case <-stir:
		case <-ctx.Done():
			return nil, fmt.Errorf("runner: waiting for mail: %w", ctx.Err())
		}
	}
}

// Poll is Take without waiting: it may return nothing.
func (m *Mailbox[T]) Poll() []T {
	items, _, _ := m.take()
	return items
}

// Some reports whether there is an item.
func (m *Mailbox[T]) Some() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items) > 0
}

func (m *Mailbox[T]) take() ([]T, bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items, m.closed, m.signal()
}

// Close ends the box. What is in it can still be taken.
func (m *Mailbox[T]) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.wake()
}

func (m *Mailbox[T]) signal() chan struct{} {
	if m.stir == nil {
		m.stir = make(chan struct{}, 1)
	}
	return m.stir
}

func (m *Mailbox[T]) wake() {
	select {
	case m.signal() <- struct{}{}:
	default:
	}
}
