package rail

import (
	"math"
	"math/bits"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// flight is a fragment that the transport has, or that waits for a path. After an error all
// that is to be sent again is made from it.
type flight struct {
	head    head
	body    []byte
	isOwn   bool   // body is of the core's memory
	session uint32 // in which it was made
	avoid   uint8  // bit 1<<path: not on this path
	path    uint8
	life    uint32 // of the path
	isUsed  bool
	isReply bool

	isCancelled bool // nobody relies on its arrival
	isAgain     bool // it was sent before
}

// path is one connection.
type path struct {
	incarnation uint32 // as both sides know it
	life        uint32 // how often it has come up
	asked       bool   // the other side has lost it
	inFlight    int
	since       core.Time // when something completed, or was sent after nothing was outstanding
}

// transmitter has the paths and the fragments that are outstanding.
type transmitter struct {
	choice  [classes]scheduler
	paths   [classes][MaxRails]path
	up      [classes]uint8 // bit 1<<path
	flights []flight
	free    []uint32
	control []uint32 // flights that wait for a path of class Message, before all else
	first   int      // of control
	replies int      // flights that answer the other side, and are of no request of this one's
}

// flight returns a new fragment.
func (p *Peer) flight(k kind) (uint32, *flight) {
	n := &p.net
	if len(n.free) == 0 {
		n.free = append(n.free, uint32(len(n.flights)))
		n.flights = append(n.flights, flight{})
	}
	number := n.free[len(n.free)-1]
	n.free = n.free[:len(n.free)-1]
	f := &n.flights[number]
	*f = flight{session: p.session, isUsed: true}
	f.head.kind = k
	return number, f
}

// release ends a fragment.
func (p *Peer) release(number uint32) {
	f := &p.net.flights[number]
	if f.isOwn {
		p.spare.give(f.body)
	}
	if f.isReply {
		p.net.replies--
	}
	*f = flight{}
	p.net.free = append(p.net.free, number)
}

// Outstanding returns how many fragments the transport has, or wait for a path.
func (p *Peer) Outstanding() int { return len(p.net.flights) - len(p.net.free) }

// control makes a fragment that goes before all envelopes and data. It is filled in by the
// caller, at once.
func (p *Peer) control(k kind) *flight {
	number, f := p.flight(k)
	p.requeue(number)
	return f
}

// maxReplies bounds the memory that the other side can fill by what has to be answered, if it
// acknowledges no answer.
const maxReplies = 1 << 16

// reply is control for what answers the other side, for no request of this one's.
func (p *Peer) reply(k kind) *flight {
	f := p.control(k)
	f.isReply = true
	p.net.replies++
	return f
}

// requeue lets a fragment wait for a path.
func (p *Peer) requeue(number uint32) { p.net.control = append(p.net.control, number) }

// PathUp reports a connection: of a pair of rails, in a class. Incarnation is a number that
// both sides have for this connection; 0: none. Bandwidth is in bit/s; 0: not known.
func (p *Peer) PathUp(i uint8, class Class, incarnation uint32, bandwidth uint64, now core.Time, out *Output) {
	p.begin(now, out)
	n, k := &p.net, &p.net.paths[class][i]
	k.life++
	k.incarnation, k.asked, k.inFlight = incarnation, false, 0
	n.up[class] |= 1 << i
	n.choice[class].Up(int(i), bandwidth)
	p.end()
}

// PathDown reports the end of a connection. The completions of its fragments follow, each
// with an error if it is not confirmed.
func (p *Peer) PathDown(i uint8, class Class, now core.Time, out *Output) {
	p.begin(now, out)
	n, k := &p.net, &p.net.paths[class][i]
	if n.up[class]&(1<<i) != 0 {
		n.up[class] &^= 1 << i
		n.choice[class].Down(int(i))
		if p.cfg.SharedPaths && !k.asked && n.up[Message] != 0 {
			f := p.control(kindBringDown)
			f.head.path, f.head.class = i, class
			f.head.words[fieldRestart] = uint64(k.incarnation)
		}
	}
	p.end()
}

// Delay notes a round trip on a path that something small took, such as a ping.
func (p *Peer) Delay(i uint8, class Class, trip time.Duration, now core.Time) {
	p.net.choice[class].Delay(int(i), trip, now)
}

// Measured returns what is known of a path.
func (p *Peer) Measured(i uint8, class Class) Measured { return p.net.choice[class].Measured(int(i)) }

// aboutPath takes BRINGDOWN and KICK.
func (p *Peer) aboutPath(h *head) {
	k, where := &p.net.paths[h.class][h.path], Where{h.path, h.class}
	switch {
	case !p.cfg.SharedPaths || p.net.up[h.class]&(1<<h.path) == 0:
	case h.kind == kindKick:
		p.out.Kick = append(p.out.Kick, where)
	case k.asked, h.restart() != k.incarnation && h.restart() != 0 && k.incarnation != 0:
	default:
		k.asked = true
		p.out.Break = append(p.out.Break, where)
	}
}

// choose chooses a path for a fragment. Control fragments go even where all windows are full.
func (p *Peer) choose(class Class, size, rest int, isControl bool, avoid uint8) (uint8, bool) {
	n := &p.net
	if n.up[class]&^avoid == 0 {
		if n.up[class] == 0 {
			p.out.Wanted |= 1 << class
		}
		return 0, false
	}
	if class == Message && bits.OnesCount8(n.up[class]) == 1 { // there is no choice, and credit bounds what is on its way
		return uint8(bits.TrailingZeros8(n.up[class])), true
	}
	i, ok := n.choice[class].ChooseOf(size, rest, p.now)
	if ok && avoid&(1<<i) == 0 {
		return uint8(i), true
	}
	return uint8(bits.TrailingZeros8(n.up[class] &^ avoid)), isControl
}

// transmit hands a fragment to the transport.
func (p *Peer) transmit(number uint32, i uint8) {
	f := &p.net.flights[number]
	class := layouts[f.head.kind].class
	k := &p.net.paths[class][i]
	f.path, f.life = i, k.life
	if k.inFlight == 0 {
		k.since = p.now
	}
	k.inFlight++
	o := p.out
	at := len(o.heads)
	o.heads = f.head.append(o.heads)
	p.net.choice[class].Sent(int(i), len(o.heads)-at+len(f.body), p.now)
	o.Frames = append(o.Frames, Frame{Path: i, Class: class, Number: number, Head: o.heads[at:len(o.heads):len(o.heads)], Body: f.body, MayWait: p.mayWait(f)})
	p.counters.Fragments++
}

// mayWait reports whether nothing waits for the completion of a fragment: a message that is done
// for its sender already, or what the other side answers. Where there are several paths, it
// measures one; and where a path was lost, the next one may not last long.
func (p *Peer) mayWait(f *flight) bool {
	if bits.OnesCount8(p.net.up[Message]) > 1 || f.isAgain {
		return false
	}
	switch f.head.kind {
	case kindMatch:
		return f.isOwn
	case kindRndv, kindRget, kindAck, kindPut, kindRead, kindCredit:
		return true
	}
	return false
}

// Sent reports the completion of a fragment: ok if the other side's driver has acknowledged
// it, else it may have arrived or not, and its path is down.
func (p *Peer) Sent(number uint32, ok bool, now core.Time, out *Output) {
	p.begin(now, out)
	if n := &p.net; number < uint32(len(n.flights)) && n.flights[number].isUsed {
		f := &n.flights[number]
		class := layouts[f.head.kind].class
		if k := &n.paths[class][f.path]; k.life == f.life && n.up[class]&(1<<f.path) != 0 {
			k.inFlight--
			k.since = p.now
			if ok {
				n.choice[class].Acked(int(f.path), layouts[f.head.kind].size+len(f.body), p.now)
			}
		}
		if !ok {
			p.counters.Failed++
		}
		if isAgain := p.completed(f, ok) && f.session == p.session; isAgain {
			p.counters.Resent++
			f.isAgain = true
			p.requeue(number)
		} else {
			p.release(number)
		}
	}
	p.end()
}

// pump hands to the transport what its windows have room for.
func (p *Peer) pump() {
	p.again = core.Never
	n := &p.net
	for n.first < len(n.control) {
		number := n.control[n.first]
		f := &n.flights[number]
		i, ok := p.choose(Message, layouts[f.head.kind].size+len(f.body), math.MaxInt, true, f.avoid)
		if !ok && f.head.kind != kindKick {
			return
		}
		n.first++
		if ok {
			p.transmit(number, i)
		} else {
			p.release(number) // there is no other path to send a KICK on
		}
	}
	n.control, n.first = n.control[:0], 0
	for r := p.loads.first; r != nil && p.mayHead(false); r = p.loads.first {
		i, ok := p.choose(Message, layouts[kindLoad].size, math.MaxInt, false, 0)
		if !ok {
			break
		}
		p.loads.remove(r)
		p.sendLoad(r, i)
	}
	for q := range p.queued {
		for s := p.queued[q].first; s != nil && p.mayHead(s.First); s = p.queued[q].first {
			k := p.envelopeOf(s)
			body := 0
			if k == kindMatch {
				body = len(s.Data)
			}
			i, ok := p.choose(Message, layouts[k].size+body, math.MaxInt, false, 0)
			if !ok {
				break
			}
			p.queued[q].remove(s)
			p.sendEnvelope(s, k, i)
		}
	}
	for s := p.stream.first; s != nil; s = p.stream.first {
		n := uint64(len(s.part(min(p.fragment(), s.granted-s.sent))))
		i, ok := p.choose(Fragment, int(n)+dataHead, int(p.backlog)+dataHead, false, 0)
		if !ok {
			if p.net.up[Fragment] != 0 {
				p.again = p.now.Add(askAgain)
			}
			return
		}
		p.sendData(s, n, i)
		p.stream.remove(s)
		if s.sent < s.granted {
			p.stream.push(s)
		}
	}
}

// fragment returns the most bytes of the next fragment: of what is left, no more than its share
// of the paths, which would wait for it in the end.
func (p *Peer) fragment() uint64 {
	most := uint64(p.cfg.Fragment)
	if paths := uint64(bits.OnesCount8(p.net.up[Fragment])); paths > 1 {
		most = min(most, max(leastFragment, (p.backlog+paths-1)/paths))
	}
	return most
}

const (
	leastFragment = 16 << 10             // bytes that are worth a fragment
	dataHead      = 32                   // bytes of the head of a FRAG
	askAgain      = 5 * time.Millisecond // rails that are waited for may have become slow
)

// Deadline returns when Tick is to be called.
func (p *Peer) Deadline() core.Time {
	at := p.again
	p.eachStuck(core.Never, func(_ Class, _ int, k *path) { at = at.Earlier(k.since.Add(p.cfg.KickAfter)) })
	return at
}

// Tick chooses paths again, and asks the other side to take in what lies on paths on which nothing has completed.
func (p *Peer) Tick(now core.Time, out *Output) {
	p.begin(now, out)
	p.eachStuck(now, func(class Class, i int, k *path) {
		k.since = now
		f := p.control(kindKick)
		f.head.path, f.head.class, f.avoid = uint8(i), class, 1<<i
	})
	p.end()
}

// eachStuck calls do for the paths with outstanding fragments of which none completed for
// KickAfter, if there is another path to say so.
func (p *Peer) eachStuck(now core.Time, do func(class Class, i int, k *path)) {
	if p.cfg.KickAfter == 0 || !p.cfg.SharedPaths {
		return
	}
	for class := range classes {
		for m := p.net.up[class]; m != 0; m &= m - 1 {
			i := bits.TrailingZeros8(m)
			k := &p.net.paths[class][i]
			hasOther := p.net.up[Message]&^(1<<i) != 0
			if k.inFlight > 0 && hasOther && now >= k.since.Add(p.cfg.KickAfter) {
				do(class, i, k)
			}
		}
	}
}
