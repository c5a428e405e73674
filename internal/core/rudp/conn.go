package rudp

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// State is how far a connection is.
type State uint8

// The states; doc.go has what leads from one to another.
const (
	Calling State = iota
	Open
	Closing  // its user has closed it; bytes are under way still
	Draining // all was acknowledged; what the peer repeats is acknowledged again
	Ended
)

var stateNames = []string{"calling", "open", "closing", "draining", "ended"}

// String returns the state's name.
func (s State) String() string { return core.Name(stateNames, s, "?") }

// Conn is one side of a connection. Its methods are not safe for concurrent use. After
// each of them the caller has to Step it, at the latest at Deadline.
type Conn struct {
	cfg      Config
	id, peer ID
	state    State
	err      error
	news     News

	// Of the beginning.
	begun     core.Time
	connect   []byte    // the Connect to send: nil where the peer has called
	connectAt core.Time // the next one
	tries     uint      // with this cookie
	tried     core.Time
	accept    bool // an Accept is to be sent
	met       bool // the peer has sent something on the connection

	datagram   int
	send       sender
	receive    receiver
	log        sentLog
	rtt        roundTrip
	congestion cubic
	pace       pacer
	rate       rate

	limited  bool      // the window, or its pace, keeps bytes back
	largest  uint64    // number that was acknowledged
	progress core.Time // when something was acknowledged, or the first of what is in flight was sent
	heard    core.Time // when the peer last sent something
	sentAt   core.Time // when something was sent that is to be acknowledged
	lossAt   core.Time // when a packet counts as lost
	paceAt   core.Time // when more may be sent
	shutAt   core.Time // since when only the peer's window keeps bytes back, and nothing is in flight; Never: it does not
	backoff  uint      // probe timeouts since something was acknowledged
	probes   int       // to be sent
	ping     bool      // to be sent, if nothing else is
	drained  core.Time // when draining ends
	refused  bool      // after all that was sent, the peer learns that nobody reads what it sends
	reset    bool      // a Reset is to be sent, and the connection ends

	lostPackets, malformed uint64
}

func newConn(cfg Config, now core.Time, id ID) *Conn {
	cfg = cfg.WithDefaults()
	c := &Conn{
		cfg: cfg, id: id, begun: now, connectAt: now, heard: now, progress: now,
		lossAt: core.Never, paceAt: core.Never, shutAt: core.Never, datagram: cfg.Datagram,
		congestion: newCubic(cfg.Datagram + overhead),
	}
	c.send.most = cfg.SendBuffer
	c.receive.most, c.receive.limit, c.receive.ackAt = cfg.FirstWindow, uint64(cfg.FirstWindow), core.Never
	return c
}

// Grow opens the whole window to a peer that is known now. Step is to be called.
func (c *Conn) Grow() {
	c.receive.most = c.cfg.ReceiveBuffer
	c.receive.opened()
}

// Call returns a connection that calls a listener. id is random.
func Call(cfg Config, now core.Time, id ID) *Conn {
	c := newConn(cfg, now, id)
	c.connect = short(Connect, id, connectSize)
	(&opening{c.cfg.Datagram, uint32(c.cfg.FirstWindow), id}).put(c.connect, 8)
	return c
}

// Answer returns the other side of a Connect whose cookie is valid. id is random.
func Answer(cfg Config, now core.Time, id ID, connect []byte) (*Conn, error) {
	o, err := parseOpening(connect, 8)
	if err != nil {
		return nil, err
	}
	c := newConn(cfg, now, id)
	c.open(now, &o)
	c.accept = true
	return c, nil
}

func (c *Conn) open(now core.Time, o *opening) {
	c.state, c.peer = Open, o.from
	c.send.limit = uint64(o.window)
	c.datagram = min(c.datagram, o.datagram)
	c.congestion.resize(c.datagram + overhead)
	c.pace.at, c.rate.since, c.progress, c.heard = now, now, now, now
}

// ID returns the name of this side, and Peer that of the other, 0 while that is not known.
func (c *Conn) ID() ID { return c.id }

// Peer returns the other side's ID.
func (c *Conn) Peer() ID { return c.peer }

// State returns how far the connection is.
func (c *Conn) State() State { return c.state }

// Err returns why the connection has ended: nil if both sides have closed it.
func (c *Conn) Err() error { return c.err }

// SetKeepAlive changes Config.KeepAlive, and SetLostAfter Config.LostAfter.
func (c *Conn) SetKeepAlive(d time.Duration) { c.cfg.KeepAlive = d }

// SetLostAfter changes Config.LostAfter.
func (c *Conn) SetLostAfter(d time.Duration) { c.cfg.LostAfter = d }

// Write takes as much of b as there is room for.
func (c *Conn) Write(b []byte) (int, error) {
	switch {
	case c.state == Ended && c.err != nil:
		return 0, c.err
	case c.send.closed:
		return 0, ErrClosed
	}
	return c.send.write(b), nil
}

// Read copies what has come into b: 0 and nil if there is nothing yet, io.EOF after the
// peer's end.
func (c *Conn) Read(b []byte) (int, error) {
	switch {
	case c.receive.readable() > 0 && !c.receive.refuse:
		return c.receive.read(b), nil
	case c.receive.atEOF():
		return 0, io.EOF
	case c.state == Ended && c.err == nil:
		return 0, io.EOF
	case c.state == Ended:
		return 0, c.err
	}
	return 0, nil
}

// CloseWrite ends the stream that is sent: the peer reads io.EOF after its bytes.
func (c *Conn) CloseWrite() { c.send.closed = true }

// Close ends both directions. What was written still arrives, unless the peer does not
// acknowledge it within Config.LingerFor; what comes is dropped.
func (c *Conn) Close(now core.Time) {
	switch c.state {
	case Calling:
		c.end(ErrAborted)
	case Open:
		c.send.closed = true
		c.state = Closing
		c.progress = now
		if c.receive.refuse = true; c.receive.readable() > 0 {
			c.receive.skip()
			c.refused = true
		}
	case Ended:
		c.receive.refuse, c.receive.buffer.b = true, nil
	}
}

// Abort ends the connection at once; the peer learns of it if the datagram is not lost.
func (c *Conn) Abort() {
	switch c.state {
	case Calling:
		c.end(ErrAborted)
	case Open, Closing:
		c.err, c.reset = ErrAborted, true
	case Draining:
		c.end(nil)
	}
}

// end ends the connection; what has come may still be read.
func (c *Conn) end(err error) {
	c.state, c.err = Ended, err
	c.news |= Over | Readable | Writable
	c.send.buffer.b, c.log.ring, c.connect = nil, nil, nil
}

// Step takes datagrams that have come for the connection, and what is due.
func (c *Conn) Step(now core.Time, datagrams [][]byte, out *Output) {
	for _, b := range datagrams {
		if c.state != Ended {
			if err := c.take(now, b); err != nil {
				c.malformed++
			}
		}
	}
	c.due(now)
	c.finish(now)
	switch {
	case c.reset:
		out.whole(short(Reset, c.peer, resetSize))
		c.reset = false
		c.end(c.err)
	case c.state == Calling:
		c.call(now, out)
	case c.state != Ended:
		c.transmit(now, out)
	}
	out.News |= c.news
	c.news = 0
	out.finish()
}

// call repeats the Connect.
func (c *Conn) call(now core.Time, out *Output) {
	if now >= c.connectAt {
		out.whole(c.connect)
		c.connectAt = now.Add(min(2*initialRTT<<c.tries, time.Second))
		c.tried = now
		c.tries = min(c.tries+1, 8)
	}
}

// take takes one datagram.
func (c *Conn) take(now core.Time, b []byte) error {
	k, id, err := KindOf(b)
	if err != nil {
		return err
	}
	switch {
	case k == Connect && id == c.peer && c.connect == nil:
		c.accept = c.accept || !c.met // else the caller has had it
	case k == Unknown && id == c.peer && c.state != Calling, k == Reset && id == c.id && c.state != Calling:
		c.peerEnded(k)
	case id != c.id:
	case k == Retry && c.state == Calling:
		if cookie := c.connect[cookieAt:]; string(cookie) != string(b[cookieAt:]) {
			copy(cookie, b[cookieAt:])
			c.connectAt, c.tries = now, 0
		}
	case k == Accept && c.state == Calling:
		o, err := parseOpening(b, 16)
		if err != nil {
			return err
		}
		if c.tries == 1 {
			c.rtt.sample(now.Sub(c.tried), 0)
		}
		c.open(now, &o)
		c.receive.immediate = true // so that the listener's side has a sign of life
		c.news |= Opened
	case k == Data && c.state != Calling:
		return c.data(now, b)
	}
	return nil
}

// peerEnded deals with a peer that does not have the connection any more. That is as it
// should be where all was acknowledged, or where both sides have closed it, and an
// acknowledgement may have been lost.
func (c *Conn) peerEnded(by Kind) {
	mayBeDone := c.send.done() || by == Unknown && c.state == Closing && c.send.next == c.send.end()
	if c.receive.finished() && mayBeDone {
		c.end(nil)
		return
	}
	c.end(ErrReset)
}

// data takes a Data. One that breaks a rule changes nothing.
func (c *Conn) data(now core.Time, b []byte) error {
	p, err := parseData(b)
	if err != nil {
		return err
	}
	var a acknowledgement
	if len(p.ack) > 0 {
		if err := a.parse(p.ack, c.log.next); err != nil {
			return err
		}
	}
	if p.flags&flagCounts != 0 && !c.receive.accepts(&p) {
		return fmt.Errorf("%w: %d bytes at %d, outside of the window or after the end", ErrMalformed, len(p.body), p.offset)
	}
	c.met, c.heard = true, now
	if len(p.ack) > 0 {
		c.onAck(now, &a)
	}
	if p.flags&flagCounts == 0 {
		return nil
	}
	if len(c.receive.there) >= maxGaps && p.offset > c.receive.ready {
		return nil // as if it were lost
	}
	c.receive.number(now, &p)
	if c.receive.take(&p) {
		c.news |= Readable
		if c.state == Closing && len(p.body) > 0 {
			c.refused = true
		}
	}
	return nil
}

// due does what is only a matter of time.
func (c *Conn) due(now core.Time) {
	switch c.state {
	case Calling:
		if now >= c.begun.Add(c.cfg.ConnectWithin) {
			c.end(ErrTimeout)
		}
		return
	case Ended:
		return
	case Draining:
		if now >= c.drained {
			c.end(nil)
		}
		return
	}
	if now >= c.lossAt {
		c.detect(now, c.largest)
	}
	if now >= c.lostAt() {
		c.err, c.reset = ErrTimeout, true
		return
	}
	if now >= c.probeAt() {
		c.backoff++
		c.probes = 1
	}
	c.ping = now >= c.keepAliveAt()
	if now >= c.trimAt() {
		c.trim()
	}
}

// trimAfter is how long a connection without traffic keeps the memory of its buffers.
const trimAfter = time.Second

func (c *Conn) trimAt() core.Time {
	if c.log.inFlight > 0 || c.log.ring == nil && c.send.buffer.b == nil && c.receive.buffer.b == nil ||
		c.send.buffer.len() > 0 || c.receive.buffer.len() > 0 {
		return core.Never
	}
	return max(c.heard, c.sentAt).Add(trimAfter)
}

func (c *Conn) trim() {
	c.send.buffer.b, c.receive.buffer.b, c.log.ring = nil, nil, nil
	c.send.acked, c.send.lost, c.receive.there = slices.Clip(c.send.acked), nil, nil
}

// lostAt returns when the peer is given up.
func (c *Conn) lostAt() core.Time {
	at := core.Never
	switch {
	case c.state == Closing:
		at = c.progress.Add(c.cfg.LingerFor)
	case c.log.inFlight > 0 || c.backoff > 0:
		at = c.progress.Add(c.cfg.LostAfter)
	}
	if !c.met && c.connect == nil {
		at = at.Earlier(c.begun.Add(c.cfg.ConnectWithin))
	}
	return at
}

// persistEvery is the time between two questions for a closed window.
const persistEvery = 100 * time.Millisecond

// probeAt returns when the peer is asked for an acknowledgement, RFC 9002 section 6.2.
func (c *Conn) probeAt() core.Time {
	switch {
	case c.lossAt != core.Never:
		return core.Never
	case c.log.inFlight > 0 || c.backoff > 0:
		return c.sentAt.Add(min(c.rtt.probe()<<min(c.backoff, 16), max(maxProbe, c.rtt.probe())))
	}
	return max(c.sentAt, c.shutAt).Add(persistEvery)
}

func (c *Conn) keepAliveAt() core.Time {
	if c.cfg.KeepAlive == 0 || c.log.inFlight > 0 || c.state != Open {
		return core.Never
	}
	return c.heard.Add(c.cfg.KeepAlive)
}

// finish ends a connection that was closed, when all has arrived.
func (c *Conn) finish(now core.Time) {
	switch {
	case c.state != Closing || !c.send.done():
	case c.receive.finished():
		c.state, c.drained = Draining, now.Add(3*c.rtt.probe())
	case c.refused:
		c.err, c.reset = nil, true
	}
}

// Deadline returns the next moment at which the connection wants to be stepped.
func (c *Conn) Deadline() core.Time {
	switch {
	case c.reset, c.receive.immediate, c.accept && c.state != Ended:
		return 0
	case c.state == Calling:
		return c.connectAt.Earlier(c.begun.Add(c.cfg.ConnectWithin))
	case c.state == Ended:
		return core.Never
	case c.state == Draining:
		return c.drained.Earlier(c.receive.ackAt)
	}
	return c.receive.ackAt.Earlier(c.paceAt).Earlier(c.lossAt).Earlier(c.probeAt()).Earlier(c.lostAt()).Earlier(c.keepAliveAt()).Earlier(c.trimAt())
}

// Stats is how a connection does.
type Stats struct {
	UnacknowledgedSince core.Time     // when the oldest packet that is not acknowledged was sent; Never: all are
	AcknowledgedAt      core.Time     // when something was acknowledged last, or flew first
	HeardAt             core.Time     // when the peer sent something last
	RTT, LeastRTT       time.Duration // 0: not known
	Rate                float64       // bytes a second, as measured; 0: the window was never the limit
	Window              int           // bytes, of congestion control
	InFlight            int           // bytes, with headers
	Unsent              int           // bytes that are written and were never sent
	Lost, Malformed     uint64        // packets
}

// Stats returns how the connection does.
func (c *Conn) Stats() Stats {
	s := Stats{
		UnacknowledgedSince: core.Never, AcknowledgedAt: c.progress, HeardAt: c.heard,
		RTT: c.rtt.smoothed, LeastRTT: c.rtt.least, Rate: c.rate.value,
		Window: int(min(c.congestion.window, math.MaxInt32)), InFlight: c.log.inFlight,
		Unsent: int(c.send.buffer.end - min(c.send.next, c.send.buffer.end)),
		Lost:   c.lostPackets, Malformed: c.malformed,
	}
	if c.log.first < c.log.next && c.log.ring != nil {
		s.UnacknowledgedSince = c.log.of(c.log.first).at
	}
	return s
}
