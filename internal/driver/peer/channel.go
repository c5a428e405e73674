package peer

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// Send is a frame to be sent. Without a Number it is copied, and nothing is reported of it.
// With one, Body is lent until Handler.Sent or Flush has reported the number; not in class
// Large if there is a Head.
type Send struct {
	Service    Service
	Stream     uint32
	Head, Body []byte // the payload is both
	Number     uint64
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

	pins int // connections that are, or will be, its; of the host's lock
}

// queue is what waits to be sent.
type queue struct {
	out  buffer // frames, copied
	sent int    // of out
	mark []mark // of frames in out
	lent []lent // of class Large, in place of out
	size int    // bytes
}

// mark is the end, in a queue's out, of a frame with a number.
type mark struct {
	service Service
	number  uint64
	end     int
}

// lent is a frame that is sent from where it lies.
type lent struct {
	head    [HeadSize]byte
	body    []byte
	service Service
	number  uint64
}

func (q *queue) isEmpty() bool { return len(q.out.b) == q.sent && len(q.lent) == 0 && len(q.mark) == 0 }

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
	return l.lay(&l.queue, s)
}

// Send is Channel.Send for this connection alone: nothing of a stream that ends with it goes
// out on the next one. The error also wraps ErrGone, where nothing more is sent on it.
// It may be called from Handler.Up on.
func (c *Conn) Send(s *Send) error {
	c.channel.mu.Lock()
	defer c.channel.mu.Unlock()
	if c.isDraining || c.reason.Load() != nil {
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
	return c.channel.lay(&c.queue, s)
}

func (l *Channel) lay(q *queue, s *Send) error {
	n := len(s.Head) + len(s.Body)
	if n > frameMost[l.class] {
		return fmt.Errorf("%w: of %d bytes, want at most %d", ErrFrame, n, frameMost[l.class])
	}
	if q.size+n > queueMost[l.class] {
		return fmt.Errorf("%w: %d for %s", ErrFull, q.size, l.peer)
	}
	if s.Number != 0 && !l.host.isServed(s.Service) {
		return ErrClosed
	}
	l.host.counts.framesOut.Add(1)
	l.host.counts.bytesOut.Add(uint64(padded(n)))
	q.put(l.class, s)
	return nil
}

func (q *queue) put(class Class, s *Send) {
	if class == Large {
		body := s.Body
		if s.Number == 0 || len(s.Head) > 0 {
			body = slices.Concat(s.Head, s.Body)
		}
		f := lent{body: body, service: s.Service, number: s.Number}
		appendHead(f.head[:0], s.Service, s.Stream, len(body))
		q.lent = append(q.lent, f)
		q.size += padded(len(body))
		return
	}
	n := padded(len(s.Head) + len(s.Body))
	if len(q.out.b)+n > cap(q.out.b) && q.sent > len(q.out.b)/2 {
		q.forgetSent()
	}
	q.out.reserve(n)
	before := len(q.out.b)
	q.out.b = appendFrame(q.out.b, s.Service, s.Stream, s.Head, s.Body)
	q.size += len(q.out.b) - before
	if s.Number != 0 {
		q.mark = append(q.mark, mark{s.Service, s.Number, len(q.out.b)})
	}
}

// forgetSent moves what is not sent to the front.
func (q *queue) forgetSent() {
	q.out.b = q.out.b[:copy(q.out.b, q.out.b[q.sent:])]
	for i := range q.mark {
		q.mark[i].end -= q.sent
	}
	q.sent = 0
}

// lock locks the channel that has l's place. A connection that is closed is not its any
// more, though its reader has not noticed yet: what were written on it would be lost.
func (l *Channel) lock() *Channel {
	for {
		l.mu.Lock()
		if l.conn != nil && l.conn.reason.Load() != nil {
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

// send writes what the kernel takes at once, and leaves the rest to a goroutine. It
// returns what of the service is sent, and of others. The caller holds the channel's lock.
func (c *Conn) send(s Service, numbers []uint64) (_ []uint64, others []mark) {
	if c.isBusy || !c.isReady {
		return numbers, nil
	}
	if c.class != Large && c.try != nil {
		var err error
		if numbers, others, err = c.tryQueue(s, numbers); err != nil {
			c.close(err) // its reader does the rest
			return numbers, others
		}
	}
	c.work()
	return numbers, others
}

// tryQueue writes as much as the kernel takes. The caller holds the channel's lock.
func (c *Conn) tryQueue(s Service, numbers []uint64) (_ []uint64, others []mark, err error) {
	q := &c.queue
	if len(q.out.b) == q.sent && len(q.mark) == 0 {
		return numbers, nil, nil
	}
	n, err := c.tryWrite(q.out.b[q.sent:])
	if err != nil {
		return numbers, nil, err
	}
	q.sent += n
	q.size -= n
	if c.seal != nil && c.seal.unsent() > 0 {
		return numbers, nil, nil // what it is of is not known
	}
	done := 0
	for done < len(q.mark) && q.mark[done].end <= q.sent {
		if m := q.mark[done]; m.service == s {
			numbers = append(numbers, m.number)
		} else {
			others = append(others, m)
		}
		done++
	}
	c.host.take(others)
	q.mark = q.mark[:copy(q.mark, q.mark[done:])]
	if q.sent == len(q.out.b) {
		q.out.release()
		q.sent = 0
	}
	return numbers, others, nil
}

// tryWrite writes without waiting. With TLS, bytes count that are encrypted and wait in
// the seal.
func (c *Conn) tryWrite(b []byte) (n int, err error) {
	if c.seal == nil {
		return c.try.Write(b)
	}
	for {
		left, err := c.seal.try(c.try)
		if err != nil || left > 0 || n == len(b) {
			return n, err
		}
		k, err := c.tls.Write(b[n:min(len(b), n+sealMost)])
		if n += k; err != nil {
			return n, err
		}
	}
}

// work has a goroutine write what waits, unless one does. The caller holds the channel's
// lock.
func (c *Conn) work() {
	if c.isBusy || !c.isReady {
		return
	}
	if c.queue.isEmpty() && (c.seal == nil || c.seal.unsent() == 0) {
		if c.isLast {
			c.close(peering.ErrDone)
		}
		return
	}
	c.isBusy = c.host.tasks.Go(c.write)
}

// write writes what waits until nothing does.
func (c *Conn) write() {
	l := c.channel
	var out buffer
	var marks []mark // of what was written last
	for {
		l.mu.Lock()
		q := &c.queue
		if c.reason.Load() != nil || q.isEmpty() && (c.seal == nil || c.seal.unsent() == 0) {
			c.isBusy = false
			_ = c.raw.SetWriteDeadline(time.Time{}) // for who tries
			if c.isLast {
				c.close(peering.ErrDone)
			}
			l.mu.Unlock()
			return
		}
		if len(q.lent) > 0 {
			f := q.lent[0]
			q.lent[0] = lent{}
			q.lent = q.lent[1:]
			q.size -= padded(len(f.body))
			var of []mark
			if f.number != 0 {
				c.lending, of = f.service, []mark{{service: f.service, number: f.number}}
			}
			c.host.take(of)
			l.mu.Unlock()
			err := c.writeLent(&f)
			c.wrote(err)
			l.mu.Lock()
			c.lending = 0
			l.mu.Unlock()
			c.host.report(of, c.outcome(err))
			continue
		}
		out, q.out = q.out, buffer{}
		sent := q.sent
		c.writing, q.mark = q.mark, marks[:0]
		q.size, q.sent = 0, 0
		l.mu.Unlock()
		err := c.writeAll(out.b[sent:])
		c.wrote(err)
		l.mu.Lock()
		marks, c.writing = c.writing, nil
		c.host.take(marks)
		l.mu.Unlock()
		c.host.report(marks, c.outcome(err))
		out.release()
	}
}

// wrote notes the end of a write.
func (c *Conn) wrote(err error) {
	if err != nil {
		c.close(c.stuck(err))
	}
}

// outcome returns what is reported of frames.
func (c *Conn) outcome(err error) error {
	if err == nil {
		return nil
	}
	return c.why(err)
}

// stuck says why a write has failed.
func (c *Conn) stuck(err error) error {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("%w for %v", ErrStuck, c.host.cfg.DeadAfter)
	}
	return err
}

// writeMost are the most bytes of one write, for which a peer has Config.DeadAfter.
const writeMost = 256 << 10

// writeAll writes all, and waits for that.
func (c *Conn) writeAll(b []byte) error {
	if c.seal != nil {
		if err := c.seal.push(c.host.cfg.DeadAfter); err != nil {
			return err
		}
	}
	for len(b) > 0 {
		part := b[:min(len(b), writeMost)]
		b = b[len(part):]
		if c.seal == nil {
			_ = c.raw.SetWriteDeadline(time.Now().Add(c.host.cfg.DeadAfter))
			if _, err := c.raw.Write(part); err != nil {
				return err
			}
			continue
		}
		if _, err := c.tls.Write(part); err != nil {
			return err
		}
		if err := c.seal.push(c.host.cfg.DeadAfter); err != nil {
			return err
		}
	}
	return nil
}

// writeLent writes a frame from where it lies.
func (c *Conn) writeLent(f *lent) error {
	pad := zeros[:padded(len(f.body))-HeadSize-len(f.body)]
	if c.seal != nil {
		for _, b := range [...][]byte{f.head[:], f.body, pad} {
			if err := c.writeAll(b); err != nil {
				return err
			}
		}
		return nil
	}
	body := f.body
	part := body[:min(len(body), writeMost)]
	vectors := net.Buffers{f.head[:], part}
	for {
		if body = body[len(part):]; len(body) == 0 && len(pad) > 0 {
			vectors = append(vectors, pad)
		}
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.host.cfg.DeadAfter))
		if _, err := vectors.WriteTo(c.raw); err != nil || len(body) == 0 {
			return err
		}
		part = body[:min(len(body), writeMost)]
		vectors = net.Buffers{part}
	}
}

// answersMost are the bytes behind which no answer waits for who does not read.
const answersMost = 64 << 10

// say sends what the connection itself says. Where something waits already, the other
// side will hear that as well as an answer: who asks and does not read fills no memory.
func (c *Conn) say(what ...byte) {
	l := c.channel
	l.mu.Lock()
	isLate := what[0] >= absent && (c.isDraining || c.queue.size > answersMost)
	if what[0] == pong && !c.queue.isEmpty() || isLate {
		l.mu.Unlock()
		return
	}
	c.put(what...)
	_, others := c.send(itself, nil)
	l.mu.Unlock()
	c.host.report(others, nil)
}

func (c *Conn) put(what ...byte) {
	c.queue.put(c.class, &Send{Service: itself, Body: what})
}

// use has frames be sent on a connection.
func (l *Channel) use(c *Conn) {
	l.mu.Lock()
	c.isReady, c.try = true, newTryWriter(c.raw)
	switch {
	case c.reason.Load() != nil:
	case c.isDraining: // before it was used at all
		isWanted := l.conn == nil && !l.queue.isEmpty()
		c.work()
		l.mu.Unlock()
		if isWanted {
			l.host.post(peering.Input{Kind: peering.Wanted, Peer: l.peer, Class: uint8(l.class)})
		}
		return
	default:
		l.conn, l.isAsked = c, false
		// What was to be answered on it before is behind what waits.
		own := c.queue
		c.queue, l.queue = l.queue, queue{}
		c.queue.out.append(own.out.b)
		own.out.release()
		c.queue.lent = append(c.queue.lent, own.lent...)
		c.queue.size += own.size
		c.work()
	}
	l.mu.Unlock()
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
		c.put(goaway)
		c.work()
	}
}

// last closes a connection once nothing waits on it any more.
func (l *Channel) last(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.isLast = true
	c.work()
}

// lose ends a connection, and fails what was to be sent on it.
func (l *Channel) lose(c *Conn, why error) {
	l.mu.Lock()
	if l.conn == c {
		l.conn = nil
	}
	failed := c.queue
	c.queue = queue{}
	failed.take(l.host)
	l.mu.Unlock()
	failed.fail(l.host, why)
	l.host.forget(l)
}

// part ends a connection with an incarnation of the host before one.
func (l *Channel) part(before uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.conn.peer.Incarnation < before {
		l.conn.close(peering.ErrRestarted)
		l.conn = nil
	}
}

// waits reports that something waits for a connection.
func (l *Channel) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn == nil && !l.queue.isEmpty()
}

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
	for i := range q.lent {
		if f := &q.lent[i]; f.number != 0 {
			q.mark = append(q.mark, mark{service: f.service, number: f.number})
		}
	}
	h.take(q.mark)
}

func (q *queue) fail(h *Host, why error) {
	h.report(q.mark, why)
	q.out.release()
}
