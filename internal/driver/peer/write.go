package peer

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// Send is Conn.Send for this path alone, in a class whose paths services see: Message and
// Fragment.
func (p *Path) Send(s *Send) error {
	p.channel.mu.Lock()
	defer p.channel.mu.Unlock()
	if p.conn.isDraining || p.isOver || p.reason.Load() != nil {
		return ErrGone
	}
	p.conn.frames.Add(1)
	return p.conn.layOn(p, s)
}

// Lends reports whether frames lie in a service's memory that are not written yet.
func (p *Path) Lends(s Service) bool {
	p.channel.mu.Lock()
	defer p.channel.mu.Unlock()
	return p.lending == s || p.queue.has(s)
}

// throughFrom are the bytes of a body from which on it is not copied before the kernel has it.
const throughFrom = 16 << 10

// tryThrough lays a frame of class Message behind those that wait, and writes all of it as far as
// the kernel takes it at once; it copies the rest. It reports false where that cannot be done. The
// caller holds the channel's lock.
func (p *Path) tryThrough(s *Send) bool {
	if p.class != Message || len(s.Body) < throughFrom || p.socket == nil || p.seal != nil || p.isBusy || !p.isReady {
		return false
	}
	q, n := &p.queue, len(s.Head)+len(s.Body)
	pad := zeros[:padded(n)-HeadSize-n]
	q.out.reserve(HeadSize + len(s.Head))
	q.out.b = append(appendHead(q.out.b, s.Service, s.stream(), n), s.Head...)
	there := len(q.out.b) - q.sent
	written, _ := p.socket.tryVectors(append(p.vectors[:0], q.out.b[q.sent:], s.Body, pad)) // who flushes finds the error
	clear(p.vectors[:])
	q.size += padded(n) - written
	p.sent += uint64(written)
	of := min(written, there)
	q.sent += of
	if left := there + len(s.Body) + len(pad) - written; left == 0 {
		q.out.release()
		q.sent = 0
		return true
	}
	rest := written - of
	q.out.append(s.Body[min(rest, len(s.Body)):])
	q.out.append(pad[max(0, rest-len(s.Body)):])
	return true
}

// Flush sends what waits on this path.
func (p *Path) Flush() {
	p.channel.mu.Lock()
	_, others := p.send(itself, nil)
	p.channel.mu.Unlock()
	p.host.report(others, nil) // they may use the channel
}

// send writes what the kernel takes at once, and leaves the rest to a goroutine. It
// returns what of the service is sent, and of others. The caller holds the channel's lock.
func (p *Path) send(s Service, numbers []uint64) (_ []uint64, others []mark) {
	if p.isBusy || !p.isReady {
		return numbers, nil
	}
	if p.try != nil && p.begun == 0 && (len(p.queue.lent) == 0 || p.socket != nil && p.seal == nil) {
		var err error
		if numbers, others, err = p.tryQueue(s, numbers); err == nil {
			err = p.tryLent()
		}
		if err != nil {
			p.close(err) // its reader does the rest
			return numbers, others
		}
	}
	p.work()
	return numbers, others
}

// tryQueue writes as much as the kernel takes. The caller holds the channel's lock.
func (p *Path) tryQueue(s Service, numbers []uint64) (_ []uint64, others []mark, err error) {
	q := &p.queue
	if len(q.out.b) == q.sent && len(q.mark) == 0 {
		return numbers, nil, nil
	}
	n, err := p.tryWrite(q.out.b[q.sent:])
	if err != nil {
		return numbers, nil, err
	}
	q.sent += n
	q.size -= n
	p.sent += uint64(n)
	if p.seal != nil && p.seal.unsent() > 0 {
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
	p.host.take(others)
	q.mark = q.mark[:copy(q.mark, q.mark[done:])]
	if q.sent == len(q.out.b) {
		q.out.release()
		q.sent = 0
	}
	return numbers, others, nil
}

// tryLent writes frames from where they lie, as much as the kernel takes. The caller holds the
// channel's lock.
func (p *Path) tryLent() error {
	for q := &p.queue; len(q.lent) > 0 && len(q.out.b) == q.sent; {
		f := &q.lent[0]
		if !f.isTracked { // goaway, say: there is no hurry
			return nil
		}
		n, err := p.socket.tryVectors(f.vectors(p.vectors[:0], p.begun))
		clear(p.vectors[:])
		if p.begun += n; err != nil || p.begun < f.size() {
			return err
		}
		p.tookLent()
		p.unwritten--
		p.written.Broadcast()
	}
	return nil
}

// tookLent takes the first of the frames that are lent from the queue. The caller holds the
// channel's lock.
func (p *Path) tookLent() {
	q := &p.queue
	size := q.lent[0].size()
	q.lent[0] = lent{}
	q.lent = q.lent[1:]
	q.size -= size
	p.sent += uint64(size)
	p.begun = 0
}

// vectors appends what a frame consists of, after so many bytes.
func (f *lent) vectors(to [][]byte, from int) [][]byte {
	pad := zeros[:-(int(f.heads)+len(f.body))&(align-1)]
	for _, b := range [...][]byte{f.head[:f.heads], f.body, pad} {
		n := min(from, len(b))
		from -= n
		if b = b[n:]; len(b) > 0 {
			to = append(to, b)
		}
	}
	return to
}

// tryWrite writes without waiting. With TLS, bytes count that are encrypted and wait in
// the seal.
func (p *Path) tryWrite(b []byte) (n int, err error) {
	if p.seal == nil {
		return p.try.Write(b)
	}
	for {
		left, err := p.seal.try(p.try)
		if err != nil || left > 0 || n == len(b) {
			return n, err
		}
		k, err := p.tls.Write(b[n:min(len(b), n+sealMost)])
		if n += k; err != nil {
			return n, err
		}
	}
}

// work has a goroutine write what waits, unless one does. The caller holds the channel's
// lock.
func (p *Path) work() {
	if p.isBusy || !p.isReady || p.isOver {
		return
	}
	if p.isDone() {
		if p.conn.isLast {
			p.close(peering.ErrDone)
		}
		return
	}
	if p.socket != nil {
		p.host.pollers.starts()
	}
	p.writer.Add(1)
	if p.isBusy = p.writes(); !p.isBusy { // the host is closed
		p.writer.Done()
	}
}

// stopWriting waits until nobody writes on a path that is closed: what it has is found there
// until then, if a service is unregistered.
func (p *Path) stopWriting() {
	p.channel.mu.Lock()
	p.isOver = true
	p.channel.mu.Unlock()
	p.writer.Wait()
}

// isDone reports that nothing waits to be written.
func (p *Path) isDone() bool { return p.queue.isEmpty() && (p.seal == nil || p.seal.unsent() == 0) }

// write writes what waits until nothing does. What the connection itself says, which is all
// that is copied in the classes that lend, goes before what is lent.
func (p *Path) write() {
	defer p.writer.Done()
	l := p.channel
	var out buffer
	var marks []mark // of what was written last
	for {
		l.mu.Lock()
		q := &p.queue
		if p.reason.Load() != nil || p.isDone() {
			p.rest()
			return
		}
		if p.begun > 0 || len(q.out.b) == q.sent && len(q.lent) > 0 {
			f := &p.front
			*f = q.lent[0]
			begun := p.begun
			p.tookLent()
			var of []mark
			if f.isLent {
				p.lending, of = f.service, []mark{{service: f.service, number: f.number}}
			}
			p.host.take(of)
			l.mu.Unlock()
			err := p.writeLent(f, begun)
			p.wrote(err)
			l.mu.Lock()
			p.lending = 0
			if f.isTracked {
				p.unwritten--
				p.written.Broadcast()
			}
			l.mu.Unlock()
			p.host.report(of, p.outcome(err))
			*f = lent{}
			continue
		}
		out, q.out = q.out, buffer{}
		sent := q.sent
		p.writing, q.mark = q.mark, marks[:0]
		q.size -= len(out.b) - sent
		p.sent += uint64(len(out.b) - sent)
		q.sent = 0
		l.mu.Unlock()
		err := p.writeAll(out.b[sent:])
		p.wrote(err)
		l.mu.Lock()
		marks, p.writing = p.writing, nil
		p.host.take(marks)
		l.mu.Unlock()
		p.host.report(marks, p.outcome(err))
		out.release()
	}
}

// rest ends a writer's work. The caller holds the channel's lock, which rest releases.
func (p *Path) rest() {
	p.isBusy = false
	_ = p.raw.SetWriteDeadline(time.Time{}) // for who tries
	if p.conn.isLast && p.isDone() {
		p.close(peering.ErrDone)
	}
	p.channel.mu.Unlock()
}

// wrote notes the end of a write.
func (p *Path) wrote(err error) {
	if err != nil {
		p.close(p.stuck(err))
	}
}

// outcome returns what is reported of frames.
func (p *Path) outcome(err error) error {
	if err == nil {
		return nil
	}
	return p.why(err)
}

// stuck says why a write has failed.
func (p *Path) stuck(err error) error {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("%w for %v", ErrStuck, p.host.cfg.DeadAfter)
	}
	return err
}

// writeMost are the most bytes of one write, for which a peer has Config.DeadAfter.
const writeMost = 256 << 10

// writeAll writes all, and waits for that.
func (p *Path) writeAll(b []byte) error {
	if p.seal != nil {
		if err := p.seal.push(p.host.cfg.DeadAfter); err != nil {
			return err
		}
	}
	for len(b) > 0 {
		part := b[:min(len(b), writeMost)]
		b = b[len(part):]
		if p.seal == nil {
			_ = p.raw.SetWriteDeadline(time.Now().Add(p.host.cfg.DeadAfter))
			if _, err := p.raw.Write(part); err != nil {
				return err
			}
			continue
		}
		if _, err := p.tls.Write(part); err != nil {
			return err
		}
		if err := p.seal.push(p.host.cfg.DeadAfter); err != nil {
			return err
		}
	}
	return nil
}

// writeLent writes a frame from where it lies, after the bytes of it that have been written.
func (p *Path) writeLent(f *lent, begun int) error {
	if p.socket != nil && p.seal == nil {
		_ = p.raw.SetWriteDeadline(time.Now().Add(p.host.cfg.DeadAfter))
		for begun < f.size() {
			n, err := p.socket.writeVectors(f.vectors(p.vectors[:0], begun))
			clear(p.vectors[:])
			if begun += n; err != nil {
				return err
			}
			_ = p.raw.SetWriteDeadline(time.Now().Add(p.host.cfg.DeadAfter))
		}
		return nil
	}
	head, pad := f.head[:f.heads], zeros[:-(int(f.heads)+len(f.body))&(align-1)]
	if p.seal != nil {
		for _, b := range [...][]byte{head, f.body, pad} {
			if err := p.writeAll(b); err != nil {
				return err
			}
		}
		return nil
	}
	body := f.body
	part := body[:min(len(body), writeMost)]
	vectors := append(p.vectors[:0], head, part)
	for {
		if body = body[len(part):]; len(body) == 0 && len(pad) > 0 {
			vectors = append(vectors, pad)
		}
		_ = p.raw.SetWriteDeadline(time.Now().Add(p.host.cfg.DeadAfter))
		p.buffers = vectors
		if _, err := p.buffers.WriteTo(p.raw); err != nil || len(body) == 0 {
			clear(p.vectors[:])
			return err
		}
		part = body[:min(len(body), writeMost)]
		vectors = append(p.vectors[:0], part)
	}
}

// answersMost are the bytes behind which no answer waits for who does not read.
const answersMost = 64 << 10

// say sends what the path itself says. Where something waits already, the other side will
// hear that as well as an answer.
func (p *Path) say(what ...byte) { p.sayUpTo(math.MaxInt, what) }

// reply is say for what the other side can bring about again and again: who asks and does not
// read fills no memory.
func (p *Path) reply(what ...byte) { p.sayUpTo(answersMost, what) }

func (p *Path) sayUpTo(most int, what []byte) {
	l := p.channel
	l.mu.Lock()
	isLate := p.queue.size > most || p.conn.isDraining && most < math.MaxInt
	if what[0] == pong && !p.queue.isEmpty() || isLate {
		l.mu.Unlock()
		return
	}
	p.queue.copy(&Send{Service: itself, Body: what})
	_, others := p.send(itself, nil)
	l.mu.Unlock()
	p.host.report(others, nil)
}
