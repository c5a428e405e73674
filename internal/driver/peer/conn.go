package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// keepAlive finds out about peers that are gone without a word, where nothing is sent,
// within a little less than d.
func keepAlive(d time.Duration) net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: max(time.Second, d/5), Interval: max(time.Second, d/5), Count: 4}
}

// Conn is a connection, from its first byte on.
type Conn struct {
	host  *Host
	id    peering.ID
	raw   net.Conn
	try   *tryWriter
	seal  *seal     // nil: plaintext
	tls   *tls.Conn // over seal
	spare atomic.Pointer[Burst]

	verdict chan peering.Action // what package peering says: has room for one

	// From the greeting on; of one that was accepted, before its verdict.
	peer    Peer
	class   Class
	channel *Channel // of a shared class

	// Of its channel's lock.
	queue      queue
	isReady    bool    // the answer to the call is there: frames may be written
	isBusy     bool    // a goroutine writes
	isDraining bool    // nothing more is sent than what waits
	isLast     bool    // it is closed when nothing waits any more
	writing    []mark  // of what is being written by the goroutine
	lending    Service // whose frame it writes from where it lies; 0: none

	end    sync.Once
	hangUp atomic.Pointer[func()] // ends the call, and then the connection
	done   chan struct{}          // closed with the connection
	reason atomic.Pointer[error]

	isFinished bool // of the reader: the other side sends nothing more

	reads  atomic.Uint64 // that brought something
	frames atomic.Uint64 // of services, that came or went
	isDeaf atomic.Bool   // a handler has what came

	// Of the loop: what was found at the last Check.
	seenReads, seenFrames uint64
	heardAt, usedAt       time.Time
}

func (h *Host) newConn(id peering.ID) *Conn {
	return &Conn{host: h, id: id, verdict: make(chan peering.Action, 1), done: make(chan struct{})}
}

// connected gives a Conn its connection; it is closed if that was closed meanwhile.
func (c *Conn) connected(raw net.Conn) {
	if wrap := c.host.cfg.Wrap; wrap != nil {
		raw = wrap(raw)
	}
	c.raw = raw
	hangUp := func() { raw.Close() }
	c.hangUp.Store(&hangUp)
	if c.reason.Load() != nil {
		raw.Close()
	}
}

// Peer returns the host on the other side.
func (c *Conn) Peer() Peer { return c.peer }

// Class returns the connection's class.
func (c *Conn) Class() Class { return c.class }

// ID returns a number that no other connection of the host has.
func (c *Conn) ID() uint64 { return uint64(c.id) }

// close ends the connection, at whatever stage. The first reason stands.
func (c *Conn) close(reason error) {
	c.end.Do(func() {
		c.reason.Store(&reason)
		close(c.done)
		if hangUp := c.hangUp.Load(); hangUp != nil {
			(*hangUp)()
		}
	})
}

// Break ends the connection for a service that is not served by it any more.
func (c *Conn) Break(reason error) { c.close(reason) }

// forget has the connection, which is somebody else's now, not be closed.
func (c *Conn) forget() { c.end.Do(func() { close(c.done) }) }

// why returns why the connection has ended: as it was reported, or otherwise err.
func (c *Conn) why(err error) error {
	if r := c.reason.Load(); r != nil {
		return *r
	}
	return err
}

// sample reports what was received since the last time. It is for the loop.
func (c *Conn) sample(now time.Time) peering.Sample {
	if n := c.reads.Load(); n != c.seenReads || c.heardAt.IsZero() {
		c.seenReads, c.heardAt = n, now
	}
	if n := c.frames.Load(); n != c.seenFrames || c.usedAt.IsZero() {
		c.seenFrames, c.usedAt = n, now
	}
	return peering.Sample{Heard: now.Sub(c.heardAt), Used: now.Sub(c.usedAt), Reads: c.seenReads, Deaf: c.isDeaf.Load()}
}

// run reads frames until the connection ends, and notifies the services.
func (c *Conn) run() {
	h := c.host
	h.open.Add(1)
	h.eachService(func(s Handler) { s.Up(c) })
	c.channel.use(c)
	err := c.read()
	if errors.Is(err, ErrFrame) {
		h.counts.malformed.Add(1)
	}
	if c.isFinished && errors.Is(err, io.EOF) {
		err = peering.ErrDone
	}
	c.close(err)
	reason := c.why(err)
	c.channel.lose(c, reason)
	h.eachService(func(s Handler) { s.Down(c, reason) })
	if h.open.Add(-1) == 0 {
		select {
		case h.alone <- struct{}{}:
		default:
		}
	}
}

// reader reads frames.
type reader struct {
	c        *Conn
	burst    *Burst
	at, have int      // of it: up to where it was handed on, and read
	frames   *[]Frame // nil: none
	eager    *eager   // of plaintext, or of ciphertext; nil: not on this kind of connection
	isMore   bool     // TLS may hold what it has read
	got      int      // since nothing was there
	isQuiet  bool     // that was little, the last time
}

// read hands frames on until the connection ends.
func (c *Conn) read() error {
	r := reader{c: c, isQuiet: true} // most connections begin with a few small messages
	if c.seal != nil {
		r.eager = newEager(c.raw, c.seal.room, c.seal.rest)
	} else {
		r.eager = newEager(c.raw, r.room, r.rest)
	}
	defer r.drop()
	for {
		n, err := r.fill()
		r.have += n
		r.got += n
		at := r.at
		want, bad := r.split()
		if n > 0 && r.at == at { // a part of a frame; whole ones are counted before they are handed on
			c.reads.Add(1)
		}
		if bad != nil {
			return bad
		}
		if err != nil {
			return err
		}
		if r.at+want > len(r.burst.memory) || len(r.burst.memory)-r.have < leastRoom {
			r.renew(want)
		}
	}
}

// fill reads what is there, and waits for it where nothing is.
func (r *reader) fill() (int, error) {
	switch {
	case r.c.seal != nil:
		return r.fillSealed()
	case r.eager != nil:
		return r.eager.read()
	default:
		return r.c.raw.Read(r.room())
	}
}

// fillSealed reads records, as many as are there.
func (r *reader) fillSealed() (n int, err error) {
	s := r.c.seal
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
		k, err := r.c.tls.Read(room[n:])
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
		if r.burst = r.c.spare.Swap(nil); r.burst == nil {
			size := burstOf(r.c.class)
			if r.isQuiet {
				size = burstClasses[0]
			}
			r.burst = r.c.host.bursts.get(size, &r.c.spare)
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
		r.burst = r.c.spare.Swap(nil)
	}
	if r.burst != nil {
		r.burst.Release()
	}
}

// split hands on what is whole. It returns the bytes of the frame that is not, as far as
// that is known.
func (r *reader) split() (want int, err error) {
	most, of := frameMost[r.c.class], itself
	for r.burst != nil {
		s, f, size, ok, bad := parse(r.burst.memory[r.at:r.have], most)
		want, err = size, bad
		if bad != nil || !ok {
			break
		}
		if s != of {
			r.hand(of)
			of = s
		}
		r.at += size
		if s == itself {
			if err = r.c.hear(f.Bytes); err != nil {
				return 0, err
			}
			continue
		}
		r.c.host.counts.bytesIn.Add(uint64(size))
		if r.frames == nil {
			r.frames = frameLists.Get().(*[]Frame)
		}
		*r.frames = append(*r.frames, f)
	}
	r.hand(of)
	return want, err
}

// hand gives frames to their service.
func (r *reader) hand(of Service) {
	if r.frames == nil || len(*r.frames) == 0 {
		return
	}
	c, frames := r.c, *r.frames
	n := uint64(len(frames))
	c.frames.Add(n)
	c.reads.Add(1)
	c.host.counts.framesIn.Add(n)
	if s := c.host.services[of].Load(); s != nil && s.begin() {
		r.burst.Hold()
		c.isDeaf.Store(true)
		s.handler.Received(c, frames, r.burst)
		c.isDeaf.Store(false)
		s.end()
	} else {
		c.host.counts.nobodys.Add(n)
		c.say(absent, byte(of))
	}
	clear(frames)
	*r.frames = frames[:0]
}

// hear takes what the connection itself says. That it ends is no sign of life.
func (c *Conn) hear(b []byte) error {
	if len(b) != 1 || b[0] != goaway {
		c.reads.Add(1)
	}
	if len(b) == 2 && (b[0] == absent || b[0] == gone) {
		c.miss(Service(b[1]), b[0] == absent)
		return nil
	}
	if len(b) != 1 {
		return ErrFrame
	}
	switch b[0] {
	case ping:
		c.say(pong)
	case pong:
	case goaway:
		c.isFinished = true
		c.host.post(peering.Input{Kind: peering.Finished, ID: c.id})
	default:
		return ErrFrame
	}
	return nil
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
	next := r.c.host.bursts.get(max(min(want+leastRoom, 2*len(rest)), burstOf(r.c.class)), &r.c.spare)
	r.at, r.have = 0, copy(next.memory, rest)
	r.burst.Release()
	r.burst = next
}
