package scoll

import (
	"sync"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// mostWaiting are the inputs that wait for the loop before readers of
// connections do: what is sent to a slow node then waits at its senders.
const mostWaiting = 8192

// inbox is where the loop waits, and where others lay its inputs. It implements
// runner.Source.
type inbox struct {
	timer *runner.Timer[broadcast.Input]

	mu      sync.Mutex
	room    sync.Cond // for readers
	inputs  []broadcast.Input
	bursts  []*peer.Burst // in which inputs lie
	lent    []*peer.Burst // of what the loop has taken
	waiting bool          // the loop, in timer
	stirred bool          // it is not to wait
	closed  bool
}

func newInbox() *inbox {
	b := &inbox{timer: runner.NewTimer[broadcast.Input]()}
	b.room.L = &b.mu
	return b
}

// put adds inputs. It never waits.
func (b *inbox) put(inputs ...broadcast.Input) {
	b.mu.Lock()
	b.inputs = append(b.inputs, inputs...)
	b.wake()
	b.mu.Unlock()
}

// arrived adds messages that lie in a burst, one hold of which is given back
// when the loop has stepped them. It waits while there are too many.
func (b *inbox) arrived(c *peer.Burst, messages []broadcast.Input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.inputs) >= mostWaiting && !b.closed {
		b.room.Wait()
	}
	b.inputs = append(b.inputs, messages...)
	b.bursts = append(b.bursts, c)
	b.wake()
}

// stir has the loop look at the core at once.
func (b *inbox) stir() {
	b.mu.Lock()
	b.stirred = true
	b.wake()
	b.mu.Unlock()
}

// wake ends the loop's wait. The caller holds the lock.
func (b *inbox) wake() {
	if b.waiting {
		b.waiting = false
		b.timer.Wake()
	}
}

// Wake implements runner.Source.
func (b *inbox) Wake() { b.stir() }

// Receive implements runner.Source.
func (b *inbox) Receive(clock runner.Clock, until core.Time, batch []broadcast.Input) ([]broadcast.Input, error) {
	batch, idle := b.take(batch, true)
	if !idle {
		return batch, nil
	}
	if _, err := b.timer.Receive(clock, until, nil); err != nil {
		return batch, err
	}
	batch, _ = b.take(batch, false)
	return batch, nil
}

// take appends what is there to batch. With wait set and nothing there, it
// reports that the loop may wait, which whoever brings something then ends.
func (b *inbox) take(batch []broadcast.Input, wait bool) (_ []broadcast.Input, idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent = releaseAll(b.lent)
	if wait && len(b.inputs) == 0 && !b.stirred {
		b.waiting = true
		return batch, true
	}
	b.waiting, b.stirred = false, false
	batch = append(batch, b.inputs...)
	clear(b.inputs)
	b.inputs = b.inputs[:0]
	b.lent, b.bursts = b.bursts, b.lent
	b.room.Broadcast()
	return batch, false
}

// close lets readers go, whose messages nobody takes any more.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.room.Broadcast()
}

// release gives back what the loop, which has ended, did not take.
func (b *inbox) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	releaseAll(b.lent)
	releaseAll(b.bursts)
	b.lent, b.bursts = nil, nil
}

// releaseAll gives bursts back, and empties the list.
func releaseAll(all []*peer.Burst) []*peer.Burst {
	for _, c := range all {
		c.Release()
	}
	clear(all)
	return all[:0]
}
