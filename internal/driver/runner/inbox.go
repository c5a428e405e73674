package runner

import (
	"slices"
	"sync"
	"sync/atomic"
)

// inbox holds what was posted and not taken yet: inputs, of which only so many
// may wait, and calls of Do.
type inbox[In any] struct {
	limit   int
	pending atomic.Int32 // inputs and calls

	mu    sync.Mutex
	items []In
	calls []func()
	room  chan struct{} // closed by the next take; nil: nobody waits for room
}

// put adds inputs, the first n for which there is room. If that is not all of them, it
// returns what is closed when there is more.
func (b *inbox[In]) put(all []In) (n int, full <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = max(0, min(len(all), b.limit-len(b.items)))
	b.items = append(b.items, all[:n]...)
	b.pending.Add(int32(n))
	if n == len(all) {
		return n, nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return n, b.room
}

// add adds inputs whether there is room or not.
func (b *inbox[In]) add(all []In) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, all...)
	b.pending.Add(int32(len(all)))
}

func (b *inbox[In]) call(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, f)
	b.pending.Add(1)
}

// take appends all inputs to batch, and runs the calls.
func (b *inbox[In]) take(batch []In) []In {
	if b.pending.Load() == 0 {
		return batch
	}
	b.mu.Lock()
	batch = append(batch, b.items...)
	calls := b.calls
	b.pending.Store(0)
	b.calls = nil
	clear(b.items)
	b.items = b.items[:0]
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
	b.mu.Unlock()
	for _, f := range calls {
		f()
	}
	return batch
}

func (b *inbox[In]) empty() bool { return b.pending.Load() == 0 }

// trim gives the memory back that nothing is in.
func (b *inbox[In]) trim() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = slices.Clip(slices.Clone(b.items))
}
