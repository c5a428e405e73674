package sealed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// ErrRetired is wrapped by Install's error for an epoch that was retired, or is before such a one.
var ErrRetired = errors.New("sealed: the epoch was retired")

// Conn is a transport.Conn whose packets are sealed, or plain, as the first Install says. Before that it
// refuses what comes, and drops what is to be sent.
type Conn struct {
	transport.Conn
	read nonce // the reader's

	mu      sync.Mutex // of who changes what is installed
	retired uint32     // greatest epoch that was
	state   atomic.Pointer[installed]

	refused, dropped atomic.Uint64
}

// installed is what the first Install has said, and those after it.
type installed struct {
	isAny, isPlain bool
	edges          map[place]*edge
}

// Over returns a Conn that sends and receives over another one, which it owns.
func Over(c transport.Conn) *Conn {
	s := &Conn{Conn: c}
	s.state.Store(&installed{})
	return s
}

// Install adds the neighbours of an epoch. Those that are there already stay, with their counters. Those
// of an epoch up to one that was retired would begin anew: it is an error. So is an epoch of plain packets
// beside those of sealed ones; it needs no neighbours.
func (c *Conn) Install(epoch uint32, p wire.Protection, edges []Edge) error {
	if !p.Valid() {
		return fmt.Errorf("sealed: epoch %d is to be %v", epoch, p)
	}
	if p == wire.Plain {
		edges = nil
	}
	added := map[place]*edge{}
	for i := range edges {
		e, err := newEdge(&edges[i], p)
		if err != nil {
			return err
		}
		at := place{epoch, edges[i].Peer, edges[i].Child}
		if added[at] != nil {
			return fmt.Errorf("sealed: epoch %d has %v as child %d twice", epoch, at.peer, at.child)
		}
		added[at] = e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch <= c.retired {
		return fmt.Errorf("%w: epoch %d comes after %d", ErrRetired, epoch, c.retired)
	}
	old, isPlain := c.state.Load(), p == wire.Plain
	if old.isAny && old.isPlain != isPlain {
		return fmt.Errorf("sealed: epoch %d is to be %v, after others that are not", epoch, p)
	}
	for at, e := range old.edges {
		if a := added[at]; a != nil && !a.equal(e) {
			return fmt.Errorf("sealed: epoch %d has %v as child %d with another key or protection already", epoch, at.peer, at.child)
		}
	}
	maps.Copy(added, old.edges)
	c.state.Store(&installed{true, isPlain, added})
	return nil
}

// Retire forgets the keys of an epoch: what is still to be sent in it is dropped. Conn goes on to refuse
// what is not sealed.
func (c *Conn) Retire(epoch uint32) { c.retire(epoch, epoch) }

// RetireBefore forgets the keys of all epochs before one.
func (c *Conn) RetireBefore(epoch uint32) {
	if epoch > 0 {
		c.retire(0, epoch-1)
	}
}

func (c *Conn) retire(first, last uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = max(c.retired, last)
	left := *c.state.Load()
	left.edges = maps.Clone(left.edges)
	maps.DeleteFunc(left.edges, func(p place, _ *edge) bool { return first <= p.epoch && p.epoch <= last })
	c.state.Store(&left)
}

// Refused returns the number of packets that were refused.
func (c *Conn) Refused() uint64 { return c.refused.Load() }

// Counters implements transport.Conn. Packets without a key are among those that were Refused.
func (c *Conn) Counters() transport.Counters {
	n := c.Conn.Counters()
	n.Refused += c.dropped.Load()
	return n
}

// RefusedIn returns the numbers of packets of an epoch that were refused and use the address and index of
// a child, by that index, or of the parent.
func (c *Conn) RefusedIn(epoch uint32) (ofChildren map[uint16]uint64, ofParent uint64) {
	ofChildren = map[uint16]uint64{}
	for at, e := range c.state.Load().edges {
		switch {
		case at.epoch != epoch:
		case e.isDown:
			ofChildren[at.child] = e.refused.Load()
		default:
			ofParent = e.refused.Load()
		}
	}
	return ofChildren, ofParent
}

// finder finds edges: packets in a row are mostly to or from one.
type finder struct {
	all  map[place]*edge
	at   place
	last *edge // that is there; nil: not known
}

// find returns the neighbour that a packet, with its header, is to or from; nil: none is known.
func (f *finder) find(peer netip.AddrPort, packet []byte) *edge {
	at := place{binary.BigEndian.Uint32(packet[8:]), peer, binary.BigEndian.Uint16(packet[2:])}
	if f.last == nil || f.at != at {
		f.at, f.last = at, f.all[at]
	}
	return f.last
}

// ReadBatch implements transport.Conn. After packets that were all refused it returns ErrWoken, so
// that they keep its owner from nothing.
func (c *Conn) ReadBatch(packets []transport.Packet, until time.Time) (int, error) {
	n, err := c.Conn.ReadBatch(packets, until)
	now := c.state.Load()
	if err != nil || now.isPlain {
		return n, err
	}
	known := finder{all: now.edges}
	kept := packets[:0]
	for i := range packets[:n] {
		p := packets[i]
		if c.open(&known, &p); len(p.Data) > 0 {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return 0, transport.ErrWoken
	}
	return len(kept), nil
}

// open opens each datagram of p, and closes the gaps behind them. Without any, p is empty.
func (c *Conn) open(known *finder, p *transport.Packet) {
	size := p.Size
	if size == 0 {
		size = len(p.Data)
	}
	if len(p.Data) == 0 {
		c.refused.Add(1) // a datagram without a byte
	}
	at := 0
	for rest := p.Data; len(rest) > 0; {
		one := rest[:min(size, len(rest))]
		rest = rest[len(one):]
		if !c.openOne(known, p.From, one) {
			c.refused.Add(1)
			continue
		}
		plain := one[:len(one)-overhead]
		if &p.Data[at] != &one[0] {
			copy(p.Data[at:], plain)
		}
		at += len(plain)
	}
	p.Data = p.Data[:at]
	if p.Size != 0 {
		p.Size -= overhead
	}
}

func (c *Conn) openOne(known *finder, from netip.AddrPort, packet []byte) bool {
	if len(packet) < wire.HeaderSize+overhead {
		return false
	}
	e := known.find(from, packet)
	if e == nil {
		return false
	}
	if !e.open(packet, &c.read) {
		e.refused.Add(1)
		return false
	}
	return true
}

// outgoing is memory for a WriteBatch.
type outgoing struct {
	messages []transport.Message
	bytes    []byte
	nonce    nonce
}

var spare = sync.Pool{New: func() any { return new(outgoing) }}

// WriteBatch implements transport.Conn. Packets for nobody that is installed are dropped, and counted.
func (c *Conn) WriteBatch(messages []transport.Message) error {
	now := c.state.Load()
	if now.isPlain {
		return c.Conn.WriteBatch(messages)
	}
	o := spare.Get().(*outgoing)
	defer spare.Put(o)
	known, need := finder{all: now.edges}, 0
	for i := range messages {
		m := &messages[i]
		need += len(m.Head) + len(m.Body) + m.Count()*overhead
	}
	o.bytes = slices.Grow(o.bytes[:0], need)
	o.messages = o.messages[:0]
	for i := range messages {
		c.dropped.Add(o.add(&known, &messages[i]))
	}
	err := c.Conn.WriteBatch(o.messages)
	clear(o.messages)
	return err
}

// add seals a message. Its datagrams are to one neighbour. It returns how many have no key.
func (o *outgoing) add(known *finder, m *transport.Message) (dropped uint64) {
	begin, size := len(o.bytes), 0
	m.Each(func(head, body []byte) {
		if len(head)+len(body) < wire.HeaderSize { // it names no edge
			dropped++
			return
		}
		at := len(o.bytes)
		o.bytes = o.bytes[:at+len(head)+len(body)+overhead]
		packet := o.bytes[at:]
		if n := copy(packet, head); n <= wire.HeaderSize {
			body = body[copy(packet[n:wire.HeaderSize], body):]
		} else {
			copy(packet[n:], body)
			body = packet[wire.HeaderSize : len(packet)-overhead]
		}
		e := known.find(m.To, packet)
		if e == nil {
			o.bytes = o.bytes[:at]
			dropped++
			return
		}
		e.seal(packet, body, &o.nonce)
		size = max(size, len(packet))
	})
	if n := len(o.bytes) - begin; n > 0 {
		if n == size {
			size = 0
		}
		o.messages = append(o.messages, transport.Message{To: m.To, Body: o.bytes[begin:], Size: size})
	}
	return dropped
}
