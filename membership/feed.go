package membership

import (
	"context"
	"fmt"
	"sync"
)

// feed is what one reader has not been given yet, coalesced by key: the keys in
// the order of each one's last change.
type feed[T any] struct {
	// merge appends what the reader is to get of a key, and notes that it has
	// been. It runs under mu.
	merge func(all []T, key string) []T
	node  *Node // whose end is the feed's

	mu    sync.Mutex
	order []string       // keys by their last change; "" where one was moved on
	at    map[string]int // index of each in order
	err   error
	stir  chan struct{} // has room for one
}

func newFeed[T any](n *Node, merge func([]T, string) []T) *feed[T] {
	return &feed[T]{node: n, merge: merge, at: map[string]int{}, stir: make(chan struct{}, 1)}
}

// changed notes that a key has. The caller holds mu.
func (f *feed[T]) changed(key string) {
	if i, ok := f.at[key]; ok {
		f.order[i] = ""
	}
	f.at[key] = len(f.order)
	f.order = append(f.order, key)
	if len(f.order) > 2*len(f.at)+16 {
		f.compact()
	}
	f.wake()
}

// drop takes back that a key has changed. The caller holds mu.
func (f *feed[T]) drop(key string) {
	if i, ok := f.at[key]; ok {
		f.order[i] = ""
		delete(f.at, key)
	}
}

// compact drops the places of keys that were moved on.
func (f *feed[T]) compact() {
	kept := f.order[:0]
	for _, key := range f.order {
		if key != "" {
			f.at[key] = len(kept)
			kept = append(kept, key)
		}
	}
	clear(f.order[len(kept):])
	f.order = kept
}

func (f *feed[T]) wake() {
	select {
	case f.stir <- struct{}{}:
	default:
	}
}

// end makes next return err once everything was taken.
func (f *feed[T]) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	f.wake()
}

// next waits for items and returns all.
func (f *feed[T]) next(ctx context.Context) ([]T, error) {
	for isOver := false; ; {
		f.mu.Lock()
		var items []T
		for _, key := range f.order {
			if key != "" {
				items = f.merge(items, key)
			}
		}
		f.order = f.order[:0]
		clear(f.at)
		err := f.err
		f.mu.Unlock()
		switch {
		case len(items) > 0:
			return items, nil
		case err != nil:
			return nil, err
		case isOver:
			return nil, f.node.refused()
		}
		select {
		case <-f.stir:
		case <-f.node.silent:
			isOver = true // once what came before is taken
		case <-ctx.Done():
			return nil, fmt.Errorf("membership: waiting for news: %w", ctx.Err())
		}
	}
}
