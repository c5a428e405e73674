package peer

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// Send is a frame to be sent. Without a Number it is copied, and nothing is reported of it.
// With one, Body is lent until Handler.Sent or Flush has reported the number; not in the
// classes that lend if there is a Head.
type Send struct {
	Service    Service
	Stream     uint32
	Head, Body []byte // the payload is both
	Number     uint64
	MayWait    bool // for its acknowledgement nobody waits: it may come with others. Of class Message
}

// stream returns the frame's stream as it is written.
func (s *Send) stream() uint32 {
	if s.MayWait {
		return s.Stream | mayWait
	}
	return s.Stream
}

// Channel is what is sent to one host in one class: by the connection that there is, or by
// the next one. Its methods are safe for concurrent use.
type Channel struct {
	host  *Host
	peer  string
	class Class

	mu      sync.Mutex
	conn    *Conn // nil: none
	queue   queue // while there is none
	isGone  bool  // another Channel has its place, or will have
	isAsked bool  // a connection was asked for

	pins int // paths that are, or will be, its; of the host's lock
}

// Send lays a frame behind those that wait; Flush sends it. The error wraps ErrFull,
// ErrFrame or ErrClosed: then the frame is not sent, and its number not reported.
func (l *Channel) Send(s *Send) error {
	l = l.lock()
	defer l.mu.Unlock()
	if l.host.isClosing.Load() {
		return ErrClosed
	}
	if l.conn != nil {
		return l.conn.lay(s)
	}
	if l.class.isTracked() {
		return ErrGone // a path is asked for by Call, or by Hold
	}
	return l.lay(&l.queue, 0, s)
}

// Send is Channel.Send for this connection alone: nothing of a stream that ends with it goes
// out on the next one. The error also wraps ErrGone, where nothing more is sent on it.
// It may be called from Handler.Up on.
func (c *Conn) Send(s *Send) error {
	c.channel.mu.Lock()
	defer c.channel.mu.Unlock()
	if c.isDraining || !c.isAlive() {
		return ErrGone
	}
	return c.lay(s)
}

// Flush is Channel.Flush for this connection alone.
func (c *Conn) Flush(s Service, numbers []uint64) []uint64 {
	c.channel.mu.Lock()
	numbers, others := c.send(s, numbers)
	c.channel.mu.Unlock()
	c.host.report(others, nil) // they may use the channel
	return numbers
}

// lay lays a frame behind those that wait. The caller holds the channel's lock.
func (c *Conn) lay(s *Send) error {
	c.frames.Add(1)
	if c.stripe != nil {
		return c.channel.lay(&c.stripe.queue, c.stripe.unacked, s)
	}
	return c.layOn(c.all()[0], s)
}

// layOn lays a frame on one path.
func (c *Conn) layOn(p *Path, s *Send) error {
	if !c.class.isTracked() {
		return c.channel.lay(&p.queue, 0, s)
	}
	p.acknowledge()
	if err := c.channel.admit(&p.queue, p.unacked.size, s); err != nil {
		return err
	}
	before := len(p.queue.mark)
	if !p.tryThrough(s) {
		p.queue.put(c.class, s)
	}
	p.queue.mark = p.queue.mark[:before] // it is reported not when it is written, but when it is acknowledged
	if n := len(p.queue.lent); c.class.lends() {
		p.queue.lent[n-1].number, p.queue.lent[n-1].isTracked = 0, true
		p.unwritten++
	}
	p.unacked.push(tracked{service: s.Service, number: s.Number, size: padded(len(s.Head) + len(s.Body))})
	return nil
}

func (l *Channel) lay(q *queue, unacked int, s *Send) error {
	err := l.admit(q, unacked, s)
	if err == nil {
		q.put(l.class, s)
	}
	return err
}

// admit reports why a frame may not be laid behind those that wait.
func (l *Channel) admit(q *queue, unacked int, s *Send) error {
	n := len(s.Head) + len(s.Body)
	if n > frameMost[l.class] {
		return fmt.Errorf("%w: of %d bytes, want at most %d", ErrFrame, n, frameMost[l.class])
	}
	if q.size+unacked+n > queueMost[l.class] {
		return fmt.Errorf("%w: %d for %s", ErrFull, q.size+unacked, l.peer)
	}
	if s.Number != 0 && !l.host.isServed(s.Service) {
		return ErrClosed
	}
	l.host.counts.framesOut.Add(1)
	l.host.counts.bytesOut.Add(uint64(padded(n)))
	return nil
}

// lock locks the channel that has l's place. A connection that is closed is not its any
// more, though its reader has not noticed yet: what were written on it would be lost.
func (l *Channel) lock() *Channel {
	for {
		l.mu.Lock()
		if l.conn != nil && !l.conn.isAlive() {
			l.conn = nil
		}
		if !l.isGone {
			return l
		}
		l.mu.Unlock()
		l = l.host.Channel(l.peer, l.class)
	}
}

// Flush sends what waits: as far as the kernel takes it at once here, and the rest on a
// goroutine. It appends the numbers of frames of the service that are sent already; those
// of others, and what fails, is reported to Handler.Sent.
func (l *Channel) Flush(s Service, numbers []uint64) []uint64 {
	l = l.lock()
	c := l.conn
	if c == nil {
		asks := !l.isAsked && !l.queue.isEmpty()
		l.isAsked = l.isAsked || asks
		l.mu.Unlock() // the loop may want it before it takes what is posted
		if asks {
			l.host.add(peering.Input{Kind: peering.Wanted, Peer: l.peer, Class: uint8(l.class)})
		}
		return numbers
	}
	numbers, others := c.send(s, numbers)
	l.mu.Unlock()
	c.host.report(others, nil) // they may use the channel
	return numbers
}

// Call has a connection be made, if there is none: Handler.Failed reports if there cannot be.
func (l *Channel) Call() {
	l = l.lock()
	asks := l.conn == nil && !l.isAsked
	l.isAsked = l.isAsked || asks
	l.mu.Unlock()
	if asks {
		l.host.add(peering.Input{Kind: peering.Wanted, Peer: l.peer, Class: uint8(l.class)})
	}
}

// send writes what the kernel takes at once, and leaves the rest to goroutines. It returns
// what of the service is sent, and of others. The caller holds the channel's lock.
func (c *Conn) send(s Service, numbers []uint64) (_ []uint64, others []mark) {
	if c.stripe != nil {
		c.stripe.spread(c)
	}
	for _, p := range c.all() {
		var of []mark
		numbers, of = p.send(s, numbers)
		others = append(others, of...)
	}
	return numbers, others
}

// use has frames be sent on a connection by its first path.
func (l *Channel) use(c *Conn, p *Path) {
	l.mu.Lock()
	p.isReady, p.try = true, newTryWriter(p.raw)
	switch {
	case p.reason.Load() != nil:
	case c.isDraining: // before it was used at all
		isWanted := l.isWaiting()
		c.conclude()
		l.mu.Unlock()
		if isWanted {
			l.host.post(peering.Input{Kind: peering.Wanted, Peer: l.peer, Class: uint8(l.class)})
		}
		return
	default:
		l.conn, l.isAsked = c, false
		// What was to be answered on it before is behind what waits.
		own := p.queue
		p.queue, l.queue = l.queue, queue{}
		p.queue.out.append(own.out.b)
		own.out.release()
		p.queue.lent = append(p.queue.lent, own.lent...)
		p.queue.size += own.size
		c.announce(p)
		p.work()
	}
	l.mu.Unlock()
}

// join has frames go over one more path of a connection. It reports false where nothing
// more is sent on that.
func (l *Channel) join(c *Conn, p *Path) bool {
	l.mu.Lock()
	if !c.isEntered() || c.isOver || c.isDraining || c.reason.Load() != nil {
		p.isOver = true
		l.mu.Unlock()
		return false
	}
	p.isReady, p.try = true, newTryWriter(p.raw)
	c.setPaths(append(slices.Clone(c.all()), p))
	c.locate(p)
	p.arrived()
	c.announce(p) // it may have been on a path that is gone
	var others []mark
	if c.stripe != nil {
		c.stripe.add(p)
		_, others = c.send(itself, nil) // what waits for room goes over it
	}
	p.work()
	l.mu.Unlock()
	c.host.report(others, nil)
	return true
}

// drain sends nothing more on a connection than what waits on it, and says so.
func (l *Channel) drain(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == c {
		l.conn = nil
	}
	if !c.isDraining {
		c.isDraining = true
		c.conclude()
	}
}

// last closes a connection once nothing waits on it any more.
func (l *Channel) last(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.isLast = true
	c.conclude()
	if c.stripe != nil && !c.stripe.isIdle() { // the other side may never acknowledge
		time.AfterFunc(l.host.cfg.DeadAfter, func() { c.close(ErrStuck) })
	}
}

// conclude says that nothing follows, or closes the connection, once nothing waits to be sent
// or acknowledged. The caller holds the channel's lock.
func (c *Conn) conclude() {
	if c.stripe != nil && !c.stripe.isIdle() || !c.isDraining && !c.isLast {
		return
	}
	for _, p := range c.all() {
		if c.isDraining && !p.saidGoaway {
			p.saidGoaway = true
			p.acknowledge()
			p.queue.putLast(c.class)
		}
		p.work()
	}
}

// part takes a path from a connection: nothing is read on it any more. It reports whether it
// was the last.
func (l *Channel) part(c *Conn, p *Path, why error) (isLast bool) {
	l.mu.Lock()
	c.setPaths(slices.DeleteFunc(slices.Clone(c.all()), func(o *Path) bool { return o == p }))
	isLast = len(c.all()) == 0
	var failed queue
	if isLast {
		c.isOver = true
		if l.conn == c {
			l.conn = nil
		}
		if c.stripe != nil {
			failed = c.stripe.abandon()
			failed.take(l.host)
		}
	} else if !c.class.isTracked() && (c.stripe == nil || c.stripe.anchor == p) {
		c.close(fmt.Errorf("%w before the other side had confirmed it: %w", ErrPathLost, why))
	}
	marks := p.settle()
	p.ended(why)
	others := c.resume()
	l.mu.Unlock()
	failed.fail(l.host, why)
	l.host.report(marks, why)
	l.host.report(others, nil)
	c.finished(nil)
	l.host.forget(l)
	return isLast
}

// resume sends what a path leaves to the others. The caller holds the channel's lock.
func (c *Conn) resume() (others []mark) {
	if c.isOver || c.stripe == nil {
		return nil
	}
	_, others = c.send(itself, nil)
	return others
}

// settle takes what a path had, which nobody reads or writes any more: it is to go over other
// paths, or fails. The caller holds the channel's lock.
func (p *Path) settle() (failed []mark) {
	c := p.conn
	rest := p.queue
	p.queue, p.unwritten = queue{}, 0
	failed = rest.marks() // of before there was a stripe: segments have no numbers here
	rest.out.release()
	for {
		t, ok := p.unacked.pop()
		if !ok {
			break
		}
		switch {
		case t.segment == nil:
			failed = append(failed, mark{service: t.service, number: t.number})
		case c.isOver:
			failed = t.segment.fail(failed)
		default:
			c.stripe.again(t.segment)
			p.resent++
			p.resentBytes += uint64(t.size)
		}
	}
	if c.stripe != nil {
		c.stripe.remove(c, p)
	}
	failed = slices.DeleteFunc(failed, func(m mark) bool { return m.number == 0 })
	p.host.take(failed)
	return failed
}

// leaveBefore ends a connection with an incarnation of the host before one.
func (l *Channel) leaveBefore(incarnation uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.conn.peer.Incarnation < incarnation {
		l.conn.close(peering.ErrRestarted)
		l.conn = nil
	}
}

// waits reports that somebody waits for a connection.
func (l *Channel) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isWaiting()
}

// isWaiting is waits for who holds the lock.
func (l *Channel) isWaiting() bool { return l.conn == nil && (l.isAsked || !l.queue.isEmpty()) }

// fail fails what waits for a connection.
func (l *Channel) fail(why error) {
	l.mu.Lock()
	l.isAsked = false
	failed := l.queue
	if l.conn == nil {
		l.queue = queue{}
	} else {
		failed = queue{}
	}
	failed.take(l.host)
	l.mu.Unlock()
	failed.fail(l.host, why)
	l.host.forget(l)
}

// take has all that the queue has be reported by fail. The caller holds the channel's lock.
func (q *queue) take(h *Host) {
	q.mark = q.marks()
	h.take(q.mark)
}

// marks returns those of all frames, copied and lent.
func (q *queue) marks() []mark {
	all := q.mark
	for i := range q.lent {
		if f := &q.lent[i]; f.number != 0 {
			all = append(all, mark{service: f.service, number: f.number})
		}
	}
	return all
}

func (q *queue) fail(h *Host, why error) {
	h.report(q.mark, why)
	q.out.release()
}
