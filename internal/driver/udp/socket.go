package udp

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// far is the other side of a connection, as that names itself.
type far struct {
	at netip.AddrPort
	id rudp.ID
}

// socket is a UDP socket with its connections.
type socket struct {
	cfg   Config
	conn  transport.Conn
	clock runner.Clock
	done  chan struct{} // closed when the reader has ended

	mu        sync.Mutex
	byID      map[rudp.ID]*Conn
	byFar     map[far]*Conn
	timers    core.Timers[*Conn]
	until     core.Time // the reader waits at most until then
	live      int       // connections that have something to do yet
	listening bool
	broken    error      // why the reader has ended
	backlog   chan *Conn // closed with the listener

	// Of the reader.
	cookies *rudp.Cookies
	group   [][]byte // datagrams of the connection of
	of      *Conn
	isRead  bool // somebody has something to read
	replies []transport.Message
	text    []byte // of replies
}

// readAtOnce are the packets, or GRO batches, of one read.
const readAtOnce = 64

func open(local netip.AddrPort, cfg Config, isListening bool) (*socket, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	conn, err := transport.ListenUDP(local, transport.Config{
		ReceiveBuffer: cfg.SocketBuffer, SendBuffer: cfg.SocketBuffer, Without: cfg.Without,
		Batches: true, Netpoll: true,
	})
	if err != nil {
		return nil, err
	}
	s := &socket{
		cfg: cfg, conn: conn, clock: runner.NewClock(), done: make(chan struct{}),
		byID: map[rudp.ID]*Conn{}, byFar: map[far]*Conn{}, listening: isListening,
	}
	if cfg.Wrap != nil {
		s.conn = cfg.Wrap(conn)
	}
	if isListening {
		s.backlog = make(chan *Conn, cfg.Backlog)
		var secret [32]byte
		_, _ = rand.Read(secret[:]) // it never fails
		s.cookies = rudp.NewCookies(secret)
	}
	go s.read()
	return s, nil
}

// read takes what comes, and keeps the timers, until the socket is closed.
func (s *socket) read() {
	defer close(s.done)
	packets := make([]transport.Packet, readAtOnce)
	for {
		s.mu.Lock()
		s.until = s.timers.Next()
		until := s.until
		s.mu.Unlock()
		n, err := s.conn.ReadBatch(packets, s.clock.At(until))
		s.mu.Lock()
		s.until = 0 // it looks before it waits again
		s.mu.Unlock()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, transport.ErrWoken) {
			s.fail(err)
			return
		}
		now := s.clock.Now()
		for i := range packets[:n] {
			s.take(now, &packets[i])
		}
		s.deliver(now)
		s.reply()
		s.ring(now)
		if s.isRead {
			s.isRead = false
			runtime.Gosched() // who reads is next, and often answers before more has come
		}
	}
}

// take takes the datagrams of a packet.
func (s *socket) take(now core.Time, p *transport.Packet) {
	for data := p.Data; len(data) > 0; {
		n := len(data)
		if p.Size > 0 {
			n = min(p.Size, n)
		}
		s.datagram(now, p.From, data[:n])
		data = data[n:]
	}
}

// datagram adds a datagram to those of its connection.
func (s *socket) datagram(now core.Time, from netip.AddrPort, b []byte) {
	kind, id, err := rudp.KindOf(b)
	if err != nil {
		return
	}
	c := s.of
	if c == nil || kind == rudp.Connect || kind == rudp.Unknown || c.id != id || c.remote != from {
		if c = s.find(kind, id, from); c == nil {
			s.stray(now, kind, id, from, b)
			return
		}
	}
	if c != s.of {
		s.deliver(now)
		s.of = c
	}
	s.group = append(s.group, b)
}

// find returns the connection that a datagram is for.
func (s *socket) find(kind rudp.Kind, id rudp.ID, from netip.AddrPort) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == rudp.Connect || kind == rudp.Unknown {
		return s.byFar[far{from, id}]
	}
	if c := s.byID[id]; c != nil && c.remote == from {
		return c
	}
	return nil
}

// deliver steps the connection whose datagrams were gathered.
func (s *socket) deliver(now core.Time) {
	if c := s.of; c != nil {
		c.mu.Lock()
		s.isRead = c.step(now, s.group)&rudp.Readable != 0 || s.isRead
		c.mu.Unlock()
		clear(s.group)
		s.group, s.of = s.group[:0], nil
	}
}

// stray answers a datagram that is for no connection.
func (s *socket) stray(now core.Time, kind rudp.Kind, id rudp.ID, from netip.AddrPort, b []byte) {
	at := len(s.text)
	switch {
	case kind == rudp.Data:
		s.text = rudp.AppendUnknown(s.text, id)
	case kind != rudp.Connect || s.cookies == nil:
		return
	case !s.cookies.Valid(now, from, b):
		s.text = s.cookies.Retry(s.text, now, from, b)
	default:
		s.answer(now, from, b)
		return
	}
	s.replies = append(s.replies, transport.Message{To: from, Body: s.text[at:len(s.text):len(s.text)]})
}

// reply sends the answers that are for no connection.
func (s *socket) reply() {
	if len(s.replies) > 0 {
		_ = s.conn.WriteBatch(s.replies) // the reader finds out that it is closed
		clear(s.replies)
		s.replies, s.text = s.replies[:0], s.text[:0]
	}
}

// answer makes a connection of a call, if there is room.
func (s *socket) answer(now core.Time, from netip.AddrPort, connect []byte) {
	s.deliver(now)
	c := s.newConn(from)
	var err error
	if c.core, err = rudp.Answer(s.cfg.Connection, now, c.id, connect); err != nil {
		return
	}
	s.mu.Lock()
	isTaken := s.listening && len(s.byID) < s.cfg.Connections && len(s.backlog) < cap(s.backlog)
	if isTaken {
		s.enter(c)
		s.byFar[far{from, c.core.Peer()}] = c
		s.backlog <- c
	}
	s.mu.Unlock()
	if isTaken {
		c.mu.Lock()
		c.step(now, nil)
		c.mu.Unlock()
	}
}

func (s *socket) newConn(remote netip.AddrPort) *Conn {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	c := &Conn{socket: s, remote: remote, id: rudp.ID(binary.BigEndian.Uint64(b[:]))}
	c.readable.L, c.writable.L = &c.mu, &c.mu
	c.timer.Of = c
	return c
}

// enter adds a connection to the tables.
func (s *socket) enter(c *Conn) {
	s.byID[c.id] = c
	s.live++
}

// ring steps the connections whose timers ring.
func (s *socket) ring(now core.Time) {
	for {
		s.mu.Lock()
		t := s.timers.Due(now)
		s.mu.Unlock()
		if t == nil {
			return
		}
		c := t.Of
		c.mu.Lock()
		if c.core.Deadline() <= now {
			c.step(now, nil)
		} else {
			s.arm(c)
		}
		c.mu.Unlock()
	}
}

// arm has a connection's timer ring by its deadline. One that rings before finds
// nothing due, and is set anew; so most packets do not move it.
func (s *socket) arm(c *Conn) {
	at := c.core.Deadline()
	if at == core.Never {
		return
	}
	s.mu.Lock()
	if c.timer.Running() && c.timer.At <= at || c.isOut {
		s.mu.Unlock()
		return
	}
	s.timers.Set(&c.timer, at)
	isEarly := at < s.until
	s.mu.Unlock()
	if isEarly {
		s.conn.Wake()
	}
}

// progress keeps the tables for how far a connection is.
func (s *socket) progress(c *Conn) {
	state := c.core.State()
	s.mu.Lock()
	if state >= rudp.Draining && !c.isDrained {
		c.isDrained = true
		s.live--
	}
	if state == rudp.Ended && !c.isOut {
		c.isOut = true
		s.timers.Set(&c.timer, core.Never)
		delete(s.byID, c.id)
		delete(s.byFar, far{c.remote, c.core.Peer()})
	}
	if state == rudp.Open && s.byFar[far{c.remote, c.core.Peer()}] == nil {
		s.byFar[far{c.remote, c.core.Peer()}] = c
	}
	s.mu.Unlock()
	s.closeUnused()
}

// closeUnused closes the socket, when there is nobody who may use it.
func (s *socket) closeUnused() {
	s.mu.Lock()
	isUnused := !s.listening && s.live == 0
	s.mu.Unlock()
	if isUnused {
		_ = s.conn.Close() // who is second gets an error
	}
}

// fail ends all connections, because the socket has: it was closed, or is broken.
func (s *socket) fail(err error) {
	s.mu.Lock()
	s.broken = err
	all := make([]*Conn, 0, len(s.byID))
	for _, c := range s.byID {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		c.broken = err
		c.core.Abort()
		c.step(s.clock.Now(), nil)
		c.mu.Unlock()
	}
	s.unlisten()
}

// unlisten takes no calls any more, and aborts those that nobody has accepted.
func (s *socket) unlisten() (wasListening bool) {
	s.mu.Lock()
	wasListening = s.listening
	s.listening = false
	s.mu.Unlock()
	if !wasListening {
		return false
	}
	close(s.backlog)
	for c := range s.backlog {
		_ = c.Abort()
	}
	s.closeUnused()
	return true
}

func (s *socket) addr() net.Addr { return net.UDPAddrFromAddrPort(s.conn.LocalAddr()) }
