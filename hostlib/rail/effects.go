package rail

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// errBroken is why a path ends that the peer has lost.
var errBroken = errors.New("rail: the peer has lost this path")

// effects are what is left to be done without the peer's lock.
type effects struct {
	flush [classes * rail.MaxRails]path
	n     int // of flush
	done  [8]*Request
	nDone int
	more  []*Request // that done has no room for
	calls uint8      // 1<<class
	lost  []uint64   // spaces
}

// frameOn is a frame that could not be laid on its path.
type frameOn struct {
	class  rail.Class
	path   uint8
	number uint32
}

// settle carries out what the core has brought about. The caller holds the lock.
func (p *Peer) settle(now core.Time, e *effects) {
	for {
		for i := 0; i < len(p.out.Frames); i++ { // there may be more, when a path is lost
			p.lay(&p.out.Frames[i], e)
		}
		for i := range p.out.Done {
			p.finished(&p.out.Done[i], e)
		}
		for _, w := range p.out.Break {
			if on := p.paths[w.Class][w.Path]; on != nil {
				on.Break(errBroken)
			}
		}
		e.lost = append(e.lost, p.out.Lost...)
		p.wants |= p.out.Wanted
		p.out.Reset()
		if len(p.lost) == 0 {
			break
		}
		for _, f := range p.lost {
			p.core.PathDown(f.path, f.class, now, &p.out)
			p.core.Sent(f.number, false, now, &p.out)
		}
		p.lost = p.lost[:0]
	}
	if p.isMuted && !p.isFull() {
		p.isMuted = false
		p.sayAll(e)
	}
	p.reaches(now, e)
	p.arm(now)
}

// reaches has the peer be called, where something waits for a connection, or takes it for lost. The
// caller holds the lock.
func (p *Peer) reaches(now core.Time, e *effects) {
	if p.isEnded {
		return
	}
	wants := p.wants
	if p.under > 0 && (p.isAgreed || p.losses > 0 || p.watched > 0) {
		wants |= 1 << rail.Message // otherwise nobody finds out what became of the peer
	}
	for class := range rail.Class(classes) {
		call, isLost := p.reach[class].Step(now, p.linkOf(class), wants&(1<<class) != 0)
		if call {
			e.calls |= 1 << class
		}
		if isLost && class == rail.Message {
			p.lose(p.unreached(), nil, e)
			return // which has stepped all
		}
	}
}

// linkOf returns what there is to the peer in a class.
func (p *Peer) linkOf(class rail.Class) rail.Link {
	link := rail.NoLink
	for _, c := range p.conns {
		switch {
		case c.class != class:
		case c.isAgreed:
			return rail.InSession
		default:
			link = rail.Connected
		}
	}
	return link
}

// unreached returns why a peer is lost that could not be reached.
func (p *Peer) unreached() error {
	why := ErrLost
	if !p.isAgreed {
		why = ErrUnreachable
	}
	if p.trouble == nil {
		return why
	}
	return fmt.Errorf("%w: %w", why, p.trouble)
}

// arm has tick be called when the core wants to choose rails again, as one that it waits for may
// have become slow, or when the peer is to be called. The caller holds the lock.
func (p *Peer) arm(now core.Time) {
	at := p.core.Deadline()
	for class := range p.reach {
		at = at.Earlier(p.reach[class].Deadline())
	}
	if at >= p.armed || p.isEnded {
		return
	}
	p.armed = at
	if after := at.Sub(now); p.timer == nil {
		p.timer = time.AfterFunc(after, p.tick)
	} else {
		p.timer.Reset(after)
	}
}

func (p *Peer) tick() {
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	p.armed = core.Never
	if !p.isEnded {
		now := p.node.clock.Now()
		p.core.Tick(now, &p.out)
		p.settle(now, &e)
	}
}

// lay lays a frame on its path.
func (p *Peer) lay(f *rail.Frame, e *effects) {
	on := p.paths[f.Class][f.Path]
	if on != nil {
		p.frame = peer.Send{Service: peer.Messages, Head: f.Head, Body: f.Body, Number: uint64(p.index+1)<<32 | uint64(f.Number), MayWait: f.MayWait}
		if err := on.Send(&p.frame); err == nil {
			e.flushes(on.path)
			return
		}
		p.withdraw(on)
		on.Break(peer.ErrGone)
	}
	p.lost = append(p.lost, frameOn{f.Class, f.Path, f.Number})
}

func (e *effects) flushes(on path) {
	for _, f := range e.flush[:e.n] {
		if f == on {
			return
		}
	}
	e.flush[e.n] = on
	e.n++
}

// finished notes the end of a request.
func (p *Peer) finished(d *rail.Done, e *effects) {
	p.under--
	var r *Request
	if d.Recv != nil {
		r = d.Recv.User.(*Request)
		r.status, r.whole = Status{Tag: Tag(d.Tag), Size: d.N}, d.Size
	} else {
		r = d.Send.User.(*Request)
		r.status = Status{Tag: Tag(d.Send.Tag), Size: len(d.Send.Data)}
	}
	r.err = p.mapped(d.Err)
	if e.nDone < len(e.done) {
		e.done[e.nDone] = r
		e.nDone++
	} else {
		e.more = append(e.more, r)
	}
}

// happen ends a request. The caller holds no lock.
func (p *Peer) happen(r *Request) {
	over, then, status, err := &r.over, r.then, r.status, r.err
	over.Happen()
	if then != nil {
		r.Release()
		then(status, err)
		return
	}
	p.node.host.wake(over) // r may be another by now
}

// unlock ends the use of a peer, and does what is left.
func (p *Peer) unlock(e *effects) {
	p.mu.Unlock()
	for _, on := range e.flush[:e.n] {
		on.Flush()
	}
	for _, r := range e.done[:e.nDone] {
		p.happen(r)
	}
	for _, r := range e.more {
		p.happen(r)
	}
	for _, number := range e.lost {
		if s, isOpen := p.node.spaces.Load(number); isOpen {
			s.(*space).lost(p)
		}
	}
	for class := range rail.Class(classes) {
		if e.calls&(1<<class) != 0 {
			p.node.host.call(p.name, class)
		}
	}
}
