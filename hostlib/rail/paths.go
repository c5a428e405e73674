package rail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"syscall"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// path is one connection on one pair of rails: a *peer.Path, or a test's.
type path interface {
	Send(s *peer.Send) error
	Flush()
	Lends(peer.Service) bool
	Break(reason error)
}

// place says where a path lies.
type place struct {
	rail      string // the names of both ends
	bandwidth uint64 // bit/s; 0: not known
}

// pathOn is a path with its place.
type pathOn struct {
	path
	conn *conn
	slot uint8      // its number for the core
	said rail.Hello // last
	isUp bool       // the core has it
}

// conn is a connection with a peer in one class: it has a path for each pair of rails.
type conn struct {
	peer     *Peer
	key      any
	class    rail.Class
	paths    []*pathOn
	isAgreed bool // upon the session
	isOver   bool // of an earlier session: what comes on it is dropped
}

// has reports whether there is a connection of a class, be it agreed upon or not.
func (p *Peer) has(class rail.Class) bool {
	return slices.ContainsFunc(p.conns, func(c *conn) bool { return c.class == class })
}

// begin begins a session that this side has not lost yet.
func (p *Peer) begin() { p.epochs.Begin(p.node.epoch.Add(1)) }

// isFull reports that there is no room for what may come in a session: messages of earlier
// ones have to be received first.
func (p *Peer) isFull() bool {
	bytes, heads := p.core.Held()
	return bytes > p.node.cfg.Unexpected || heads > p.node.cfg.Announced
}

// pathUp takes a path of a connection with a peer.
func (n *Node) pathUp(key any, of peer.Peer, on path, class rail.Class) {
	n.mu.Lock()
	p, err := n.peer(of.Name)
	if err != nil {
		n.mu.Unlock()
		on.Break(err)
		return
	}
	var e effects
	p.mu.Lock() // before it could be dropped
	n.mu.Unlock()
	defer p.unlock(&e)
	switch {
	case p.isEnded || of.Incarnation < p.incarnation:
		on.Break(peering.ErrOutdated)
		return
	case of.Incarnation > p.incarnation:
		if p.incarnation != 0 {
			p.lose(ErrRestarted, nil, &e)
		}
		p.incarnation = of.Incarnation
	}
	var c *conn
	if known, ok := n.conns.Load(key); ok {
		c = known.(*conn)
	} else {
		c = &conn{peer: p, key: key, class: class}
		n.conns.Store(key, c)
		p.conns = append(p.conns, c)
	}
	slot, ok := p.slot(class)
	if c.isOver || !ok {
		on.Break(errBroken)
		return
	}
	placed := &pathOn{path: on, conn: c, slot: slot}
	c.paths = append(c.paths, placed)
	p.say(placed, &e)
	if c.isAgreed {
		p.up(placed, &e)
		return
	}
	p.settle(n.clock.Now(), &e)
}

// slot returns a number of which there is no path.
func (p *Peer) slot(class rail.Class) (uint8, bool) {
	used := uint8(0)
	for _, c := range p.conns {
		for _, on := range c.paths {
			if c.class == class {
				used |= 1 << on.slot
			}
		}
	}
	i := bits.TrailingZeros8(^used)
	return uint8(i % rail.MaxRails), i < rail.MaxRails
}

// pathDown takes that a path has ended. Reports of its frames follow.
func (n *Node) pathDown(key any, of path, reason error) {
	known, ok := n.conns.Load(key)
	if !ok {
		return // it was refused
	}
	c := known.(*conn)
	p := c.peer
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	i := slices.IndexFunc(c.paths, func(on *pathOn) bool { return on.path == of })
	if i < 0 {
		return
	}
	on := c.paths[i]
	c.paths = slices.Delete(c.paths, i, i+1)
	p.note(n.host.place(of).rail, reason)
	p.withdraw(on)
	p.settle(n.clock.Now(), &e)
}

// connDown takes that a connection has ended, with the last of its paths. The session goes on with
// the next one.
func (n *Node) connDown(key any, name string, class rail.Class, reason error) {
	known, _ := n.conns.LoadAndDelete(key)
	n.mu.Lock()
	p := n.peers[name]
	n.mu.Unlock()
	if p == nil {
		return
	}
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	now := n.clock.Now()
	p.reach[class].Void() // a call while it was there came to nothing
	if c, ok := known.(*conn); ok {
		p.conns = slices.DeleteFunc(p.conns, func(other *conn) bool { return other == c })
		p.lastUp = time.Now()
		if class == rail.Message {
			p.trouble = reason
		}
		if isSilence(reason) && !p.has(class) {
			p.reach[class].Silent(now, n.host.patience())
		}
	}
	p.settle(now, &e)
}

// isSilence reports whether a connection has ended since the other side had acknowledged nothing
// for as long as it may be away.
func isSilence(reason error) bool {
	return errors.Is(reason, peering.ErrDead) || errors.Is(reason, peer.ErrStuck) || errors.Is(reason, syscall.ETIMEDOUT) || errors.Is(reason, rudp.ErrTimeout)
}

// note notes what happened to a rail, unless it was removed or is up again (nil).
func (p *Peer) note(name string, reason error) {
	p.rails = slices.DeleteFunc(p.rails, func(r Failure) bool { return r.Rail == name })
	if reason == nil || errors.Is(reason, peering.ErrRemoved) {
		return
	}
	if len(p.rails) == 2*rail.MaxRails {
		p.rails = slices.Delete(p.rails, 0, 1)
	}
	p.rails = append(p.rails, Failure{name, reason})
}

// withdraw takes a path from the core.
func (p *Peer) withdraw(on *pathOn) {
	if on.isUp {
		on.isUp = false
		p.paths[on.conn.class][on.slot] = nil
		p.core.PathDown(on.slot, on.conn.class, p.node.clock.Now(), &p.out)
	}
}

// up gives a path of the session to the core.
func (p *Peer) up(on *pathOn, e *effects) {
	class := on.conn.class
	on.isUp, p.paths[class][on.slot] = true, on
	p.wants &^= 1 << class
	if class == rail.Message {
		p.trouble = nil
	}
	p.note(p.node.host.place(on.path).rail, nil)
	now := p.node.clock.Now()
	p.core.PathUp(on.slot, class, 0, p.node.host.place(on.path).bandwidth, now, &p.out)
	p.settle(now, e)
}

// say says on a path which session this side is in, unless it has.
func (p *Peer) say(on *pathOn, e *effects) {
	h := p.epochs.Hello()
	h.Window = rail.Window{Bytes: uint32(p.node.cfg.Unexpected), Messages: uint32(p.node.cfg.Announced)}
	if on.said == h {
		return
	}
	if p.isMuted = p.isMuted || !p.isAgreed && p.isFull(); p.isMuted {
		return
	}
	on.said = h
	p.frame = peer.Send{Service: peer.Messages, Head: h.AppendTo(nil)}
	if on.Send(&p.frame) == nil {
		e.flushes(on.path)
	}
}

// sayAll says so on all paths.
func (p *Peer) sayAll(e *effects) {
	for _, c := range p.conns {
		for _, on := range c.paths {
			p.say(on, e)
		}
	}
}

// hear takes which session the peer is in.
func (p *Peer) hear(c *conn, b []byte, e *effects) error {
	h, err := rail.ParseHello(b)
	if err != nil {
		return err
	}
	what, isLost, err := p.epochs.Hear(h)
	if isLost {
		p.lose(ErrLost, c, e)
		if p.isFull() { // no further session before messages of earlier ones are received
			p.lose(ErrLost, nil, e)
			return errBroken
		}
	}
	if err != nil || what == rail.Stale {
		return errors.Join(err, errBroken)
	}
	p.sayAll(e)
	if what == rail.Agreed && !c.isAgreed {
		c.isAgreed = true
		if !p.isAgreed {
			p.isAgreed = true
			p.core.Window(int(h.Window.Bytes), int(h.Window.Messages))
		}
		for _, on := range c.paths {
			p.up(on, e)
		}
	}
	return nil
}

// lose ends the session: what is under way fails. With a connection to keep, the peer has
// ended it and has said so there; otherwise the peer will learn of it when there is a path.
func (p *Peer) lose(why error, keep *conn, e *effects) {
	now := p.node.clock.Now()
	err := p.failure(why, keep)
	level := slog.LevelDebug // each request with a host that is not there
	if p.isAgreed {
		level = slog.LevelInfo
	}
	p.node.log.Log(context.Background(), level, "a peer is lost", slog.String("peer", p.name), slog.Any("reason", err), slog.Int("requests", p.under))
	for _, c := range p.conns {
		if c == keep { // it may have been of the session that is lost
			c.isAgreed = false
			for _, on := range c.paths {
				p.withdraw(on)
			}
			continue
		}
		c.isOver = true
		for _, on := range c.paths {
			p.withdraw(on)
			on.Break(errBroken)
		}
	}
	p.conns = slices.DeleteFunc(p.conns, func(c *conn) bool { return c != keep })
	p.isAgreed, p.wants = false, 0
	p.losses++
	p.core.Fail(err, now, &p.out)
	if keep == nil {
		p.begin()
	}
	p.settle(now, e)
}

// failure returns why requests with the peer fail.
func (p *Peer) failure(why error, keep *conn) error {
	e := &PeerError{Peer: p.name, Incarnation: p.incarnation, Reason: why, Rails: slices.Clone(p.rails), LastUp: p.lastUp}
	if len(p.conns) > 0 {
		e.LastUp = time.Now()
	}
	for _, c := range p.conns {
		if c == keep {
			continue
		}
		for _, on := range c.paths {
			name := p.node.host.place(on.path).rail
			if !slices.ContainsFunc(e.Rails, func(r Failure) bool { return r.Rail == name }) {
				e.Rails = append(e.Rails, Failure{Rail: name})
			}
		}
	}
	return e
}

// received takes frames that came together.
func (n *Node) received(key any, frames []peer.Frame) (bad error) {
	known, ok := n.conns.Load(key)
	if !ok {
		return errBroken // it was there before the node
	}
	c := known.(*conn)
	p := c.peer
	var e effects
	p.mu.Lock()
	now := n.clock.Now()
	for i := range frames {
		b := frames[i].Bytes
		if c.isOver || p.isEnded {
			break
		}
		switch {
		case len(b) == 0:
			bad = rail.ErrHello
		case b[0] == rail.KindHello:
			bad = p.hear(c, b, &e)
		case !c.isAgreed:
			bad = rail.ErrHello
		case frames[i].Rest > 0:
			bad = p.core.Placed(b, len(b)+frames[i].Rest, now, &p.out)
		default:
			bad = p.core.Arrived(0, c.class, b, now, &p.out)
		}
		if bad != nil {
			break
		}
	}
	if bad != nil && !errors.Is(bad, errBroken) {
		p.lose(fmt.Errorf("%w: %w", ErrLost, bad), nil, &e)
	}
	p.settle(now, &e)
	p.unlock(&e)
	return bad
}

// place has some of a fragment, of so many bytes, be read to where it belongs. The peer's lock is
// held meanwhile: whoever ends its receive waits for the read, which waits for nothing.
func (n *Node) place(key any, begin []byte, size, at int, read func(into []byte)) bool {
	known, ok := n.conns.Load(key)
	if !ok {
		return false
	}
	c := known.(*conn)
	p := c.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.isOver || p.isEnded || !c.isAgreed {
		return false
	}
	body := p.core.Place(c.class, begin, size)
	if body == nil {
		return false
	}
	head := size - len(body)
	copy(body, begin[head:])
	read(body[at-head:])
	return true
}

// sent takes what became of frames.
func (n *Node) sent(numbers []uint64, err error) {
	for len(numbers) > 0 {
		p := n.of(numbers[0])
		of := numbers[0] >> 32
		var e effects
		p.mu.Lock()
		now := n.clock.Now()
		for len(numbers) > 0 && numbers[0]>>32 == of {
			p.core.Sent(uint32(numbers[0]), err == nil, now, &p.out)
			numbers = numbers[1:]
		}
		p.settle(now, &e)
		p.unlock(&e)
	}
}

// failed takes that a call has come to nothing.
func (n *Node) failed(name string, class rail.Class, reason error) {
	n.mu.Lock()
	p := n.peers[name]
	n.mu.Unlock()
	if p == nil {
		return
	}
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	now := n.clock.Now()
	if class == rail.Message {
		p.trouble = reason
	}
	p.reach[class].Failed(now)
	p.settle(now, &e)
}

// over takes that a peer's life has ended, or that its host has no node.
func (n *Node) over(name string, incarnation uint64, why error) {
	n.mu.Lock()
	p := n.peers[name]
	n.mu.Unlock()
	if p == nil {
		return
	}
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	if p.incarnation != 0 && p.incarnation <= incarnation {
		p.lose(why, nil, &e)
	}
}

// end fails all that is under way, for good.
func (p *Peer) end(why error) {
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	p.isEnded = true
	p.core.Fail(why, p.node.clock.Now(), &p.out)
	p.settle(p.node.clock.Now(), &e)
}
