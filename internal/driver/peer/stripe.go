package peer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// ErrPathLost is why a connection ends that could have gone on over another path, had the
// other side known of that.
var ErrPathLost = errors.New("peer: the only path was lost")

const (
	segmentHead = 8        // bytes of a segment before its frames: its number
	segmentMost = 64 << 10 // bytes of frames, unless there is one alone, that a segment of copied frames has
	pieceMost   = 128 << 10

	// How far segments go on while one is on a path that is slow, or not yet found dead: the
	// other side keeps them until that has come.
	aheadMost     = 32 << 20 // bytes, before the last one
	aheadSegments = 8 << 10
)

// stripe cuts the frames of a connection into segments, which are numbered, and spreads them
// over its paths. A segment is kept until the other side's driver has acknowledged it; what a
// path leaves when it ends goes over others. All is of the channel's lock.
type stripe struct {
	queue   queue // frames that are not cut yet
	offset  int   // of the first lent frame, that is cut
	current *whole
	next    uint64     // number of the next segment
	waiting []*segment // of paths that have ended, by number
	unacked int        // bytes of segments that are not acknowledged
	ahead   ahead
	rails   rail.Rails
	paths   [rail.MaxRails]*Path // by their index in rails
	anchor  *Path                // all goes over it, until the other side has acknowledged a segment; then nil
	free    []*segment
}

// segment is a part of the bytes that a connection's frames are.
type segment struct {
	number uint64
	own    buffer // whole frames, or none
	marks  []mark // of them

	lent    []byte // or a part of one that is lent,
	head    [HeadSize]byte
	heads   int // with its head, or without
	pad     int
	service Service // that lends it
	whole   *whole  // of which that is
}

// whole is a frame that is lent, and reported when all its segments are acknowledged.
type whole struct {
	mark
	left int // bytes that are not acknowledged
}

// size returns the bytes of a segment.
func (g *segment) size() int { return len(g.own.b) + g.heads + len(g.lent) + g.pad }

// newStripe has the frames of a connection be cut. What was sent before is known to have
// arrived when the first segment, an empty one, is acknowledged.
func (c *Conn) newStripe() {
	l := c.channel
	l.mu.Lock()
	if c.stripe != nil || c.isOver || len(c.all()) == 0 {
		l.mu.Unlock()
		return
	}
	s := &stripe{next: 1}
	c.stripe = s
	for _, p := range c.all() {
		s.add(p)
	}
	s.anchor = c.all()[0]
	s.lay(c, s.anchor, s.cut(c.class))
	_, others := c.send(itself, nil)
	l.mu.Unlock()
	c.host.report(others, nil)
}

// add has segments go over one more path.
func (s *stripe) add(p *Path) {
	if p.slot = slices.Index(s.paths[:], nil); p.slot >= 0 {
		s.paths[p.slot] = p
		bandwidth := uint64(0)
		if r := p.Rails(); r != nil {
			bandwidth = r.Bandwidth
		}
		s.rails.Up(p.slot, bandwidth)
	}
}

// remove has none go over it any more. A path that was added while there was no place for it
// gets that.
func (s *stripe) remove(c *Conn, p *Path) {
	if p.slot < 0 || s.paths[p.slot] != p {
		return
	}
	s.paths[p.slot] = nil
	s.rails.Down(p.slot)
	for _, o := range c.all() {
		if o.slot < 0 {
			s.add(o)
			return
		}
	}
}

// isIdle reports that all has been acknowledged.
func (s *stripe) isIdle() bool { return s.queue.isEmpty() && len(s.waiting) == 0 && s.unacked == 0 }

// spread lays on paths as much as they are to have now.
func (s *stripe) spread(c *Conn) {
	for {
		var g *segment
		size := s.nextSize(c.class)
		if len(s.waiting) > 0 {
			g = s.waiting[0]
			size = g.size()
		}
		if size == 0 || g == nil && s.ahead.isFull() {
			return
		}
		p := s.choose(c, size)
		if p == nil {
			return
		}
		if g != nil {
			s.waiting = slices.Delete(s.waiting, 0, 1)
		} else {
			g = s.cut(c.class)
		}
		s.lay(c, p, g)
	}
}

// anchorMost are the bytes that wait for the first acknowledgement.
const anchorMost = 1 << 20

func (s *stripe) choose(c *Conn, size int) *Path {
	if s.anchor != nil {
		if s.anchor.unacked.size > anchorMost || s.anchor.isOver {
			return nil
		}
		return s.anchor
	}
	i, ok := s.rails.Choose(size, c.host.now())
	if !ok {
		return nil
	}
	return s.paths[i]
}

// lay lays a segment on a path.
func (s *stripe) lay(c *Conn, p *Path, g *segment) {
	var number [segmentHead]byte
	binary.BigEndian.PutUint64(number[:], g.number)
	p.acknowledge()
	if !c.class.lends() {
		p.queue.copy(&Send{Service: segments, Head: number[:], Body: g.own.b})
	} else {
		f := lent{body: g.lent, service: g.service, isLent: g.whole != nil, isTracked: true}
		head := append(appendHead(f.head[:0], segments, 0, segmentHead+g.heads+len(g.lent)+g.pad), number[:]...)
		f.heads = uint8(len(append(head, g.head[:g.heads]...)))
		p.queue.push(&f)
		p.unwritten++
	}
	size := g.size()
	p.unacked.push(tracked{segment: g, size: size})
	s.rails.Sent(p.slot, size, c.host.now())
}

// nextSize returns the bytes of the segment that would be cut next, at most.
func (s *stripe) nextSize(class Class) int {
	if class.lends() {
		if len(s.queue.lent) == 0 {
			return 0
		}
		return min(len(s.queue.lent[0].body)-s.offset+HeadSize, pieceMost)
	}
	return min(len(s.queue.out.b)-s.queue.sent, segmentMost)
}

// cut takes a segment from the frames that wait.
func (s *stripe) cut(class Class) *segment {
	var g *segment
	if n := len(s.free); n > 0 {
		g, s.free = s.free[n-1], s.free[:n-1]
	} else {
		g = &segment{}
	}
	g.number = s.next
	s.next++
	switch {
	case s.queue.isEmpty():
	case class.lends():
		s.cutLent(g)
	default:
		s.cutCopied(g)
	}
	s.unacked += g.size()
	s.ahead.push(g.size())
	return g
}

func (s *stripe) cutCopied(g *segment) {
	q := &s.queue
	there := q.out.b[q.sent:]
	n := 0
	for n < len(there) {
		size := padded(int(binary.BigEndian.Uint32(there[n:])))
		if n > 0 && n+size > segmentMost {
			break
		}
		n += size
	}
	if q.sent == 0 && n == len(there) {
		g.own, q.out = q.out, buffer{}
	} else {
		g.own.append(there[:n])
		q.sent += n
	}
	q.size -= n
	done := 0
	for done < len(q.mark) && (q.mark[done].end <= q.sent || len(q.out.b) == q.sent) {
		done++
	}
	g.marks = append(g.marks, q.mark[:done]...)
	q.mark = q.mark[:copy(q.mark, q.mark[done:])]
	if q.sent == len(q.out.b) {
		q.out.release()
		q.sent = 0
	}
}

func (s *stripe) cutLent(g *segment) {
	q := &s.queue
	f := &q.lent[0]
	if s.offset == 0 {
		s.current = nil
		if f.number != 0 {
			s.current = &whole{mark{service: f.service, number: f.number}, len(f.body)}
		}
		g.heads = copy(g.head[:], f.head[:HeadSize])
		f.number = 0 // it is reported by its segments
	}
	n := min(len(f.body)-s.offset, pieceMost)
	g.lent, g.service, g.whole = f.body[s.offset:s.offset+n:s.offset+n], f.service, s.current
	if s.offset += n; s.offset == len(f.body) {
		g.pad = padded(len(f.body)) - HeadSize - len(f.body)
		q.size -= padded(len(f.body))
		q.lent[0] = lent{}
		q.lent = q.lent[1:]
		s.offset, s.current = 0, nil
	}
}

// confirm takes that the other side has a segment, and appends what is to be reported.
func (s *stripe) confirm(c *Conn, p *Path, t tracked, done []mark) []mark {
	g := t.segment
	s.unacked -= t.size
	s.ahead.confirm(g.number)
	s.rails.Acked(p.slot, t.size, c.host.now())
	if s.anchor == p {
		s.anchor = nil
	}
	done = append(done, g.marks...)
	if w := g.whole; w != nil {
		if w.left -= len(g.lent); w.left == 0 && w.number != 0 {
			done = append(done, w.mark)
		}
	}
	g.own.release()
	*g = segment{marks: g.marks[:0]}
	s.free = append(s.free, g)
	return done
}

// again has a segment go over another path.
func (s *stripe) again(g *segment) {
	at, _ := slices.BinarySearchFunc(s.waiting, g.number, func(o *segment, n uint64) int { return cmp.Compare(o.number, n) })
	s.waiting = slices.Insert(s.waiting, at, g)
}

// fail appends what is to be reported of a segment that is not sent any more.
func (g *segment) fail(failed []mark) []mark {
	failed = append(failed, g.marks...)
	if g.whole != nil && g.whole.number != 0 {
		failed = append(failed, g.whole.mark)
		g.whole.number = 0 // once
	}
	g.own.release()
	return failed
}

// abandon returns what waits for paths that will not come.
func (s *stripe) abandon() queue {
	failed := s.queue
	s.queue = queue{}
	if s.offset > 0 {
		failed.lent = failed.lent[1:]
		if w := s.current; w != nil && w.number != 0 {
			failed.mark = append(failed.mark, w.mark)
			w.number = 0
		}
	}
	for _, g := range s.waiting {
		failed.mark = g.fail(failed.mark)
	}
	s.waiting = nil
	return failed
}

// withdraw takes back what a service has lent. It reports whether segments lie in its memory.
func (s *stripe) withdraw(of Service, conn *Conn, marks []mark) (_ []mark, isLent bool) {
	all := slices.Clone(s.waiting)
	for _, p := range conn.all() {
		for i := range p.unacked.n {
			if g := p.unacked.ring[(p.unacked.first+i)&(len(p.unacked.ring)-1)].segment; g != nil {
				all = append(all, g)
			}
		}
	}
	partly := s.current
	for _, g := range all {
		g.marks, marks = withdraw(of, g.marks, marks)
		if g.whole != nil && g.service == of {
			isLent = true
			if g.whole.number != 0 {
				marks = append(marks, mark{service: of, number: g.whole.number})
				g.whole.number = 0
			}
		}
	}
	if partly != nil && partly.service == of {
		isLent = true
		if partly.number != 0 {
			marks = append(marks, mark{service: of, number: partly.number})
			partly.number = 0
		}
	}
	return s.queue.withdraw(of, marks), isLent
}
