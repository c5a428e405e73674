package peer

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// tracked is a frame that the other side's driver acknowledges: a segment of a striped
// connection, or a frame of a service in the classes Message and Fragment.
type tracked struct {
	segment *segment // nil: a service's frame
	service Service
	number  uint64
	size    int
}

// unacked are the frames of a path that are not acknowledged yet, in the order in which they
// are sent. Their acknowledgements come in the same order, as a count.
type unacked struct {
	ring  []tracked // of a length that is a power of two
	first int
	n     int
	size  int    // bytes
	count uint32 // of those that were acknowledged
}

func (u *unacked) push(t tracked) {
	if u.n == len(u.ring) {
		next := make([]tracked, max(16, 2*u.n))
		for i := range u.n {
			next[i] = u.ring[(u.first+i)&(len(u.ring)-1)]
		}
		u.ring, u.first = next, 0
	}
	u.ring[(u.first+u.n)&(len(u.ring)-1)] = t
	u.n++
	u.size += t.size
}

func (u *unacked) pop() (t tracked, ok bool) {
	if u.n == 0 {
		return t, false
	}
	t, u.ring[u.first] = u.ring[u.first], tracked{}
	u.first = (u.first + 1) & (len(u.ring) - 1)
	u.n--
	u.size -= t.size
	return t, true
}

// withdraw takes the numbers of a service.
func (u *unacked) withdraw(s Service, to []mark) []mark {
	for i := range u.n {
		t := &u.ring[(u.first+i)&(len(u.ring)-1)]
		if t.service == s && t.number != 0 {
			to = append(to, mark{service: s, number: t.number})
			t.number = 0
		}
	}
	return to
}

// acknowledge lays what says how many frames have come, if that is news, in front of what
// is laid next. The caller holds the channel's lock.
func (p *Path) acknowledge() {
	n := p.taken.Load()
	if p.said.Swap(n) == n {
		return
	}
	var b [ackSize]byte
	b[0] = ack
	binary.BigEndian.PutUint32(b[4:], n)
	p.queue.copy(&Send{Service: itself, Body: b[:]})
}

const ackSize = 8

// What may wait for its acknowledgement: frames of a path, and for how long, until something else
// is sent on it.
const (
	lateMost  = 16
	lateAfter = 5 * time.Millisecond
)

// late are the paths of a host on which something is to be acknowledged later.
type late struct {
	mu    sync.Mutex
	paths []*Path
	timer *time.Timer // that acknowledges it; nil: there was nothing yet
}

// acknowledgeLater does so with the next frame that is sent, or by a timer.
func (p *Path) acknowledgeLater() {
	n := p.taken.Load() - p.said.Load()
	if n >= lateMost {
		p.acknowledgeAlone()
	} else if n > 0 && !p.isLate.Swap(true) {
		p.host.late.add(p)
	}
}

func (l *late) add(p *Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths = append(l.paths, p)
	if len(l.paths) > 1 {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(lateAfter, l.acknowledge)
	} else {
		l.timer.Reset(lateAfter)
	}
}

// acknowledge acknowledges all of it.
func (l *late) acknowledge() {
	l.mu.Lock()
	paths := l.paths
	l.paths = nil
	l.mu.Unlock()
	for _, p := range paths {
		p.isLate.Store(false)
		p.acknowledgeNow()
	}
}

// acknowledgeAlone does so by a frame of its own, unless somebody who was woken by what came
// sends something on the path first.
func (p *Path) acknowledgeAlone() {
	if p.taken.Load() == p.said.Load() {
		return
	}
	if p.socket == nil { // else who reads is who was woken, most often
		runtime.Gosched()
	}
	p.acknowledgeNow()
}

func (p *Path) acknowledgeNow() {
	if p.taken.Load() == p.said.Load() {
		return
	}
	l := p.channel
	l.mu.Lock()
	p.acknowledge()
	_, others := p.send(itself, nil)
	l.mu.Unlock()
	p.host.report(others, nil)
}

// acknowledged takes how many frames the other side has.
func (p *Path) acknowledged(b []byte) error {
	if len(b) != ackSize {
		return ErrFrame
	}
	c, l := p.conn, p.channel
	l.mu.Lock()
	u := &p.unacked
	n := int(binary.BigEndian.Uint32(b[4:]) - u.count)
	for p.written.L = &l.mu; n == u.n-p.unwritten+1 && p.front.isTracked; { // its writer has not returned yet
		p.written.Wait()
	}
	if most := u.n - p.unwritten; n > most {
		l.mu.Unlock()
		return fmt.Errorf("%w: %d frames are acknowledged of %d", ErrFrame, n, most)
	}
	u.count += uint32(n)
	var few [16]mark
	done, others := few[:0], []mark(nil)
	for range n {
		t, _ := u.pop()
		switch {
		case t.segment != nil:
			done = c.stripe.confirm(c, p, t, done)
		case t.number != 0:
			done = append(done, mark{service: t.service, number: t.number})
		}
	}
	p.host.take(done)
	if c.stripe != nil {
		_, others = c.send(itself, nil)
		c.conclude()
	}
	l.mu.Unlock()
	p.host.report(done, nil)
	p.host.report(others, nil)
	return nil
}
