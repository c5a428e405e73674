package peer

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// reader reads frames.
type reader struct {
	p        *Path
	burst    *Burst
	at, have int        // of it: up to where it was handed on, and read
	frames   *[]Frame   // nil: none
	eager    *eager     // of plaintext, or of ciphertext; nil: not on this kind of connection
	isMore   bool       // TLS may hold what it has read
	ended    chan error // of a socket: why that was the last
	got      int        // since nothing was there
	isUrgent bool       // the sender of a frame waits for its acknowledgement
	isQuiet  bool       // that was little, the last time
	pad      int        // bytes of padding that follow a placed frame
	placed   placed
	reads    func(into []byte) // readInto
}

// read hands frames on until the connection ends.
func (p *Path) read() error {
	r := reader{p: p, isQuiet: true} // most connections begin with a few small messages
	r.reads = r.readInto
	defer r.drop()
	if p.socket != nil {
		return p.readSocket(&r)
	}
	if p.seal != nil {
		r.eager = newEager(p.raw, p.seal.room, p.seal.rest)
	} else {
		r.eager = newEager(p.raw, r.room, r.rest)
	}
	for {
		if err := r.handle(r.fill()); err != nil {
			return err
		}
	}
}

// handle hands on what was read, and returns why that was the last.
func (r *reader) handle(n int, err error) error {
	p := r.p
	r.have += n
	r.got += n
	if n > 0 {
		p.received.Add(uint64(n))
		if p.isUnproved() && !p.enter() {
			return peering.ErrSuperseded
		}
	}
	at := r.at
	want, bad := r.split()
	if n > 0 && r.at == at { // a part of a frame; whole ones are counted before they are handed on
		p.conn.reads.Add(1)
	}
	if r.isUrgent {
		p.acknowledgeAlone()
	} else {
		p.acknowledgeLater()
	}
	r.isUrgent = false
	if bad != nil {
		return bad
	}
	if err != nil {
		return err
	}
	if r.begins(want) {
		want = 0
	}
	if r.burst != nil && (r.at+want > len(r.burst.memory) || len(r.burst.memory)-r.have < leastRoom) {
		r.renew(want)
	}
	return nil
}

// next reads what is there of a socket, without waiting, and hands it on. It returns why that
// was the last.
func (r *reader) next() error {
	if r.p.seal != nil {
		return r.nextSealed()
	}
	if !r.isPlacing() {
		room := r.about()
		n, err := r.p.socket.Read(room)
		if err = r.handle(n, something(err)); err == nil && n < len(room) {
			r.rest()
		}
		if err != nil || n < len(room) || !r.isPlacing() {
			return err
		}
	}
	return r.place()
}

// nextSealed is next for records, of which TLS gets those that are there in full.
func (r *reader) nextSealed() error {
	s := r.p.seal
	none := something(s.more())
	for r.isMore = false; r.isMore || s.hasRecord() || !s.between() && s.from < s.to; {
		var err error
		if r.isPlacing() {
			err = r.place()
		} else {
			err = r.handle(r.records(r.about()))
		}
		if err != nil {
			return err
		}
	}
	s.rest()
	r.rest()
	return none
}

// records reads what is there in full, as far as there is room for a record.
func (r *reader) records(room []byte) (n int, err error) {
	for {
		k, bad := r.p.tls.Read(room[n:])
		r.isMore, err = k == len(room)-n, something(bad)
		if n += k; bad != nil || r.isMore || !r.p.seal.hasRecord() || len(room)-n < recordMost {
			return n, err
		}
	}
}

// something returns the error of a read, but that nothing was there.
func something(err error) error {
	if _, isNothing := err.(errNothing); isNothing {
		return nil
	}
	return err
}

// errNothing is the error of a read that would have to wait. TLS goes on after it, since it is
// temporary.
type errNothing struct{}

// Error implements error.
func (errNothing) Error() string { return "peer: nothing is there to be read" }

// Timeout implements net.Error.
func (errNothing) Timeout() bool { return true }

// Temporary implements net.Error.
func (errNothing) Temporary() bool { return true }

// fill reads what is there, and waits for it where nothing is.
func (r *reader) fill() (int, error) {
	switch {
	case r.p.seal != nil:
		return r.fillSealed()
	case r.eager != nil:
		return r.eager.read()
	default:
		return r.p.raw.Read(r.room())
	}
}

// fillSealed reads records, as many as are there.
func (r *reader) fillSealed() (n int, err error) {
	s := r.p.seal
	if r.eager != nil && !r.isMore && s.between() && s.from == s.to {
		r.rest()
		k, err := r.eager.read()
		if err != nil {
			return 0, err
		}
		s.from, s.to = 0, k
	}
	room := r.room()
	for {
		k, err := r.p.tls.Read(room[n:])
		r.isMore = k == len(room)-n
		if n += k; err != nil || r.isMore || !s.hasRecord() || len(room)-n < recordMost {
			s.rest()
			return n, err
		}
	}
}

// recordMost are the most bytes of a TLS record.
const recordMost = 16 << 10

// room returns memory to read into.
func (r *reader) room() []byte {
	if r.burst == nil {
		if r.burst = r.p.spare.Swap(nil); r.burst == nil {
			size := burstOf(r.p.class)
			if r.isQuiet || r.mayPlace() {
				size = burstClasses[0]
			}
			r.burst = r.p.host.bursts.get(size, &r.p.spare)
			r.at, r.have = 0, 0
		}
	}
	if r.at == r.have && r.burst.holds.Load() == 1 {
		r.at, r.have = 0, 0
	}
	return r.burst.memory[r.have:]
}

// rest gives the memory back while nothing is there, unless a part of a frame is.
func (r *reader) rest() {
	if r.burst != nil && r.at == r.have {
		r.burst.park()
		r.burst = nil
	}
	if r.got > 0 {
		r.isQuiet, r.got = r.got <= burstClasses[0]/2, 0
	}
	if r.frames != nil {
		frameLists.Put(r.frames)
		r.frames = nil
	}
}

// frameLists are the lists of frames that came together.
var frameLists = sync.Pool{New: func() any { return new([]Frame) }}

// drop gives the memory back for good.
func (r *reader) drop() {
	if r.burst == nil {
		r.burst = r.p.spare.Swap(nil)
	}
	if r.burst != nil {
		r.burst.Release()
	}
}

// split hands on what is whole. It returns the bytes of the frame that is not, as far as
// that is known.
func (r *reader) split() (want int, err error) {
	p := r.p
	most, of := frameMost[p.class], itself
	k := min(r.pad, r.have-r.at)
	r.at, r.pad = r.at+k, r.pad-k
	for r.burst != nil && err == nil {
		s, f, size, ok, bad := parse(r.burst.memory[r.at:r.have], most)
		want, err = size, bad
		if bad != nil || !ok {
			break
		}
		if s != of {
			err = r.hand(of)
			of = s
		}
		r.at += size
		if s == itself {
			err = cmp.Or(err, p.hear(f.Bytes))
			continue
		}
		if s != segments {
			p.host.counts.bytesIn.Add(uint64(size))
		}
		r.isUrgent = r.isUrgent || f.Stream&mayWait == 0 || p.class != Message
		if p.class == Message {
			f.Stream &^= mayWait
		}
		if r.frames == nil {
			r.frames = frameLists.Get().(*[]Frame)
		}
		*r.frames = append(*r.frames, f)
	}
	return want, cmp.Or(r.hand(of), err)
}

// segmentMore are the bytes that a segment may have beyond those of a frame's payload.
const segmentMore = segmentHead + HeadSize

// hand gives frames to their service.
func (r *reader) hand(of Service) error {
	if r.frames == nil || len(*r.frames) == 0 {
		return nil
	}
	p := r.p
	if of == segments {
		err := p.segments(*r.frames, r.burst)
		clear(*r.frames)
		*r.frames = (*r.frames)[:0]
		return err
	}
	if p.class.isTracked() {
		p.taken.Add(uint32(len(*r.frames))) // before the answers, which carry the acknowledgement
	}
	p.isDeaf.Store(true)
	p.conn.hand(of, r.frames, r.burst)
	p.isDeaf.Store(false)
	return nil
}

// hand gives frames to their service, and empties the list.
func (c *Conn) hand(of Service, list *[]Frame, b *Burst) {
	frames := *list
	if len(frames) == 0 {
		return
	}
	n := uint64(len(frames))
	c.frames.Add(n)
	c.reads.Add(1)
	c.host.counts.framesIn.Add(n)
	if s := c.host.services[of].Load(); s != nil && s.begin() {
		b.Hold()
		s.handler.Received(c, frames, b)
		s.end()
	} else {
		c.host.counts.nobodys.Add(n)
		c.say(absent, byte(of))
	}
	clear(frames)
	*list = frames[:0]
}

// say answers something on one of the connection's paths.
func (c *Conn) say(what ...byte) {
	if all := c.all(); len(all) > 0 {
		all[0].reply(what...)
	}
}

// hear takes what the connection itself says. That it ends is no sign of life.
func (p *Path) hear(b []byte) error {
	if len(b) == 0 {
		return ErrFrame
	}
	c := p.conn
	if b[0] != goaway {
		c.reads.Add(1)
	}
	switch kind := b[0]; {
	case kind == ack:
		return p.acknowledged(b)
	case kind == railList:
		return c.hearRails(p, b)
	case kind == railDown:
		return c.hearDown(b[1:])
	case len(b) == 2 && (kind == absent || kind == gone):
		c.miss(Service(b[1]), kind == absent)
	case len(b) != 1:
		return ErrFrame
	case kind == ping:
		p.say(pong)
	case kind == pong:
	case kind == goaway:
		c.finished(p)
	default:
		return ErrFrame
	}
	return nil
}

// finished notes that the other side sends nothing more on a path, or looks again where p is
// nil: of all paths, it sends nothing more on the connection.
func (c *Conn) finished(p *Path) {
	l := c.channel
	l.mu.Lock()
	if p != nil {
		p.isFinished = true
	}
	is := !c.isFinished && len(c.all()) > 0 && !slices.ContainsFunc(c.all(), func(o *Path) bool { return !o.isFinished })
	c.isFinished = c.isFinished || is
	l.mu.Unlock()
	if is {
		c.host.post(peering.Input{Kind: peering.Finished, ID: c.id})
	}
}

// miss takes that the other host does not have a service.
func (c *Conn) miss(of Service, isDropped bool) {
	if s := c.host.services[of].Load(); s != nil && s.begin() {
		if a, ok := s.handler.(Absentee); ok {
			a.Absent(c, isDropped)
		}
		s.end()
	}
}

// renew goes on in another burst. What a frame says of its length is believed only as far
// as it has come.
func (r *reader) renew(want int) {
	rest := r.burst.memory[r.at:r.have]
	next := r.p.host.bursts.get(max(min(want+leastRoom, 2*len(rest)), burstOf(r.p.class)), &r.p.spare)
	r.at, r.have = 0, copy(next.memory, rest)
	r.burst.Release()
	r.burst = next
}
