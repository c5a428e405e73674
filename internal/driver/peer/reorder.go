package peer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// reorder puts the segments of a striped connection in order, and drops those that have come
// already: what was sent again may have arrived the first time.
type reorder struct {
	mu      sync.Mutex
	next    uint64  // number of the segment that is handed on next, less one
	early   []early // that have come before it, by number
	size    int     // bytes of the bursts that they are in
	partial *Burst  // of a frame that is in several segments
	have    int     // of it
	dropped uint64  // segments
	isOver  bool
}

// early is a segment that others are to come before.
type early struct {
	number  uint64
	payload []byte
	burst   *Burst // that payload is in
}

// earlyMost are the bytes of bursts in which segments wait for others. A sender goes no
// further ahead than aheadMost; most bursts are full of such segments.
const earlyMost = 8*aheadMost + aheadSegments*8<<10

// segments takes segments that have come on a path.
func (p *Path) segments(frames []Frame, b *Burst) error {
	c := p.conn
	in := &c.in
	p.taken.Add(uint32(len(frames))) // they are this driver's from now on
	p.isDeaf.Store(true)
	defer p.isDeaf.Store(false)
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, f := range frames {
		if len(f.Bytes) < segmentHead {
			return fmt.Errorf("%w: a segment of %d bytes", ErrFrame, len(f.Bytes))
		}
		number, payload := binary.BigEndian.Uint64(f.Bytes), f.Bytes[segmentHead:]
		switch {
		case in.isOver:
			return nil
		case number <= in.next:
			in.dropped++
		case number == in.next+1:
			if err := c.deliver(payload, b); err != nil {
				return err
			}
		default:
			if err := in.keep(c, number, payload, b); err != nil {
				return err
			}
		}
	}
	return in.drain(c)
}

// drain hands on what others were to come before.
func (in *reorder) drain(c *Conn) (err error) {
	n := 0
	for n < len(in.early) && err == nil && in.early[n].number <= in.next+1 {
		e := in.early[n]
		n++
		if e.number <= in.next {
			in.dropped++ // it has come once more, together with the one before it
		} else {
			err = c.deliver(e.payload, e.burst)
		}
		in.release(&e)
	}
	in.early = slices.Delete(in.early, 0, n)
	return err
}

// keep keeps a segment for later.
func (in *reorder) keep(c *Conn, number uint64, payload []byte, b *Burst) error {
	at, is := slices.BinarySearchFunc(in.early, number, func(e early, n uint64) int { return cmp.Compare(e.number, n) })
	if is {
		in.dropped++
		return nil
	}
	if len(payload) <= burstClasses[0] { // it needs no large burst
		small := c.host.bursts.get(burstClasses[0], nil)
		payload, b = small.memory[:copy(small.memory, payload)], small
	} else {
		b.Hold()
	}
	in.early = slices.Insert(in.early, at, early{number, payload, b})
	if b.early++; b.early == 1 {
		in.size += len(b.memory)
	}
	if in.size > earlyMost {
		return fmt.Errorf("%w: segments in %d bytes of memory wait for number %d", ErrFrame, in.size, in.next+1)
	}
	return nil
}

// release gives back the memory of a segment.
func (in *reorder) release(e *early) {
	if e.burst.early--; e.burst.early == 0 {
		in.size -= len(e.burst.memory)
	}
	e.burst.Release()
}

// deliver hands on the frames of the next segment. The caller holds the reorder's lock.
func (c *Conn) deliver(payload []byte, b *Burst) error {
	in := &c.in
	in.next++
	if in.partial != nil {
		in.grow(c, len(payload))
		in.have += copy(in.partial.memory[in.have:], payload)
		rest, err := c.split(in.partial.memory[:in.have], in.partial)
		switch {
		case err != nil:
			return err
		case len(rest) == 0:
			in.partial.Release()
			in.partial, in.have = nil, 0
		case len(rest) < in.have: // a frame has been handed on, and another begins
			old := in.partial
			in.partial, in.have = nil, 0
			in.begin(c, rest)
			old.Release()
		}
		return nil
	}
	rest, err := c.split(payload, b)
	if err == nil && len(rest) > 0 {
		in.begin(c, rest)
	}
	return err
}

// begin notes the beginning of a frame.
func (in *reorder) begin(c *Conn, rest []byte) {
	in.partial = c.host.bursts.get(max(2*len(rest), burstOf(c.class)), nil)
	in.have = copy(in.partial.memory, rest)
}

// grow makes room: what a frame says of its length is believed only as far as it has come.
func (in *reorder) grow(c *Conn, n int) {
	if in.have+n <= len(in.partial.memory) {
		return
	}
	_, _, whole, _, _ := parse(in.partial.memory[:in.have], frameMost[c.class])
	next := c.host.bursts.get(max(in.have+n, min(whole, 4*in.have)), nil)
	copy(next.memory, in.partial.memory[:in.have])
	in.partial.Release()
	in.partial = next
}

// split hands on the frames of b that are whole, and returns the rest.
func (c *Conn) split(b []byte, burst *Burst) (rest []byte, err error) {
	list := frameLists.Get().(*[]Frame)
	defer frameLists.Put(list)
	of := itself
	for {
		s, f, size, ok, bad := parse(b, frameMost[c.class])
		if bad != nil {
			err = fmt.Errorf("in a segment: %w", bad)
			break
		}
		if ok && (s == itself || s == segments) {
			err = fmt.Errorf("%w in a segment: of service %d", ErrFrame, s)
			break
		}
		if !ok {
			break
		}
		if s != of {
			c.hand(of, list, burst)
			of = s
		}
		b = b[size:]
		c.host.counts.bytesIn.Add(uint64(size))
		*list = append(*list, f)
	}
	c.hand(of, list, burst)
	return b, err
}

// drop gives memory back when the connection has ended.
func (in *reorder) drop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.isOver = true
	for i := range in.early {
		in.release(&in.early[i])
	}
	in.early = nil
	if in.partial != nil {
		in.partial.Release()
		in.partial = nil
	}
}
