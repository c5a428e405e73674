package peer

import (
	"sync"
	"sync/atomic"
)

// burstClasses are the sizes of what is read into: for a few words, for messages, for
// batches of packets, and for a part of a large reply.
var burstClasses = [...]int{8 << 10, 64<<10 + 4<<10, 256<<10 + 4<<10, 1<<20 + 64<<10}

// burstOf returns the bytes that a connection begins to read into, if more than a few
// words came the last time.
func burstOf(c Class) int {
	if c == Data {
		return burstClasses[2]
	}
	return burstClasses[1]
}

// burstsKept are the most bursts of a class that wait to be used again.
const burstsKept = 32

// leastRoom is how much of a burst must be left to read into it once more.
const leastRoom = 4 << 10

// Burst is memory with frames in it.
type Burst struct {
	memory []byte
	class  int // -1: none
	pool   *bursts
	holds  atomic.Int32
	early  int                    // segments in it that wait for others; of its connection's reorder
	spare  *atomic.Pointer[Burst] // where its reader lays it while nothing comes
}

// Hold keeps the memory for another Release.
func (b *Burst) Hold() { b.holds.Add(1) }

// Release ends a hold: frames in it are not to be looked at any more.
func (b *Burst) Release() {
	spare := b.spare // while it is this reader's for sure
	switch b.holds.Add(-1) {
	case 0:
		b.pool.put(b)
	case 1:
		b.reclaim(spare) // the reader has it, perhaps
	}
}

// park is for the reader, while nothing comes: it finds the burst again by spare, unless
// nobody else holds it. An idle connection has no memory.
func (b *Burst) park() {
	spare := b.spare
	spare.Store(b)
	if b.holds.Load() == 1 {
		b.reclaim(spare)
	}
}

// reclaim takes the burst from a reader that has parked it. If by now it is another's, who
// parks it while others hold it, that one gets a new one: no harm.
func (b *Burst) reclaim(spare *atomic.Pointer[Burst]) {
	if spare != nil && spare.CompareAndSwap(b, nil) {
		b.Release()
	}
}

// bursts are a pool that never refuses.
type bursts struct {
	mu   sync.Mutex
	free [len(burstClasses)]spares[*Burst]
	lent int
	size int // bytes that are lent
}

// get lends a burst of at least so many bytes to a reader, with one hold.
func (p *bursts) get(size int, spare *atomic.Pointer[Burst]) *Burst {
	b := p.take(size)
	b.spare = spare
	b.holds.Store(1)
	return b
}

func (p *bursts) take(size int) *Burst {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent++
	for class, n := range burstClasses {
		if size > n {
			continue
		}
		p.size += n
		b, ok := p.free[class].take()
		if !ok {
			return &Burst{memory: make([]byte, n), class: class, pool: p}
		}
		return b
	}
	p.size += size
	return &Burst{memory: make([]byte, size), class: -1, pool: p}
}

func (p *bursts) put(b *Burst) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent--
	p.size -= len(b.memory)
	if b.class >= 0 {
		p.free[b.class].put(b, burstsKept)
	}
}

// rest gives up what was not used since the last time.
func (p *bursts) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.free {
		p.free[class].rest()
	}
}

// out returns how many are lent, and their bytes.
func (p *bursts) out() (n, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lent, p.size
}
