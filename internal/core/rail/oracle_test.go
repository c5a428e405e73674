package rail

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// exchange is random traffic between two Peers, with what is expected of it.
type exchange struct {
	*world
	lines   []string // what has happened
	random  *rand.Rand
	memory  [2]Memory
	regions [2][]byte
	sent    [2][]*post // by each side, in order
	posted  [2][]*post
	loads   []*post
	stores  []*post
	calls   int
	minSize int
	ended   [2]bool // a side has ended space 16
}

// post is a message, a receive, or a one-sided request.
type post struct {
	context uint64
	tag     uint64
	ignore  uint64
	bytes   []byte // of a message; what is loaded or stored
	room    int
	at      int
	to      uint8
	taken   bool
	request *RecvRequest
	outcome outcome
}

const regionSize = 512

func newExchange(t *rapid.T) *exchange {
	x := &exchange{random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
	first := rapid.SampledFrom([]uint32{0, 1 << 31, ^uint32(2)}).Draw(t, "first sequence number")
	bytes, heads := rapid.SampledFrom([]int{1, 20, 64, 1 << 20}).Draw(t, "unexpected"), rapid.SampledFrom([]int{1, 2, 4, 1000}).Draw(t, "heads")
	var configs [2]Config
	for side := range configs {
		c := Config{
			Eager: rapid.IntRange(1, 20).Draw(t, "eager"), Fragment: rapid.IntRange(1, 16).Draw(t, "fragment"),
			PutFrom: rapid.SampledFrom([]int{0, 1, 30}).Draw(t, "put"), GetFrom: rapid.SampledFrom([]int{0, 1, 40}).Draw(t, "get"),
			MaxUnexpected: bytes, MaxHeads: heads, FirstSequence: first, Seed: uint64(side), Regions: &x.memory[side],
			KickAfter: 1000, Accepts: func(context uint64) bool { return context == 0 || !x.ended[side] },
		}
		x.regions[side] = fill(regionSize, byte(40+side))
		x.memory[side].Register(MayRead|MayWrite, 77, x.regions[side])
		configs[side] = c
	}
	rails := rapid.IntRange(1, 4).Draw(t, "rails")
	window := rapid.SampledFrom([]int{0, 30, 100}).Draw(t, "window")
	choice := func() scheduler { return &even{window: window} }
	if rapid.Bool().Draw(t, "by Rails") {
		choice = func() scheduler { return &Rails{} }
	}
	x.world = newWorld(rails, configs, choice, nil)
	x.trace = func(format string, args ...any) { x.lines = append(x.lines, fmt.Sprintf(format, args...)) }
	x.most = 1 << 20
	if rapid.Bool().Draw(t, "in any order") {
		x.pick = func(n int) int { return x.random.IntN(n) }
	}
	if rapid.Bool().Draw(t, "in place") {
		x.places = func(left int) int { return x.random.IntN(left + 1) }
	}
	return x
}

// add lets a side make calls, in order.
func (x *exchange) add(side uint8, do func(p *Peer, out *Output)) {
	x.events = append(x.events, event{what: calls, side: side, do: func() { x.call(side, do) }})
}

func (x *exchange) drawTraffic(t *rapid.T) {
	for i := range rapid.IntRange(1, 25).Draw(t, "requests") {
		side := uint8(x.random.IntN(2))
		m := &post{context: uint64(x.random.IntN(2)) * 16 << spaceShift, tag: uint64(x.random.IntN(3)), to: 1 - side}
		size := x.minSize + x.random.IntN(70-x.minSize)*x.random.IntN(2)
		m.bytes = fill(size, byte(i*11+1))
		switch x.random.IntN(8) {
		case 0: // a load
			m.at = x.random.IntN(regionSize/2 - size)
			m.bytes = append([]byte(nil), x.regions[1-side][m.at:m.at+size]...)
			m.request = &RecvRequest{Data: make([]byte, size), Handle: Handle{1, 77}, Offset: uint64(m.at), User: &m.outcome}
			x.loads = append(x.loads, m)
			x.add(side, func(p *Peer, out *Output) { p.Get(m.request, x.time, out) })
		case 1: // a store
			if m.at = regionSize/2 + len(x.stores)*70; m.at+70 > regionSize {
				continue
			}
			x.stores = append(x.stores, m)
			q := &SendRequest{Data: fill(size, byte(i*11+1)), Handle: Handle{1, 77}, Offset: uint64(m.at)}
			x.calls++
			x.add(side, func(p *Peer, out *Output) { p.Put(q, x.time, out) })
		default:
			x.sent[side] = append(x.sent[side], m)
			q := &SendRequest{Context: m.context, Tag: m.tag, Data: fill(size, byte(i*11+1)), Buffered: x.random.IntN(2) == 0, First: m.context != 0, User: byte(i*11 + 1)}
			x.calls++
			send := func() {
				x.add(side, func(p *Peer, out *Output) {
					if x.has(side, q.Context) {
						p.Send(q, x.time, out)
					} else {
						x.calls--
					}
				})
			}
			r := &post{context: uint64(x.random.IntN(2)) * 16 << spaceShift, tag: uint64(x.random.IntN(3)), ignore: [...]uint64{0, 0, 1, AnyTag}[x.random.IntN(4)], room: x.minSize*70 + x.random.IntN(90)}
			if x.random.IntN(2) == 0 {
				send()
				x.receive(1-side, r)
			} else {
				x.receive(1-side, r)
				send()
			}
		}
	}
}

// has reports whether a side has not ended a context.
func (x *exchange) has(side uint8, context uint64) bool { return context == 0 || !x.ended[side] }

// receive lets a side post a receive.
func (x *exchange) receive(side uint8, r *post) {
	r.request = &RecvRequest{Context: r.context, First: r.context != 0, Tag: r.tag, Ignore: r.ignore, Data: make([]byte, r.room), User: &r.outcome}
	x.posted[side] = append(x.posted[side], r)
	x.add(side, func(p *Peer, out *Output) {
		if x.has(side, r.context) {
			p.Recv(r.request, x.time, out)
		} else {
			r.outcome = outcome{times: 1, err: ErrCancelled}
			scribble(r.request.Data)
		}
	})
}

// drawFailures fails rails now and then, until all has been done.
func (x *exchange) drawFailures(t *rapid.T) {
	var failures []failure
	at := 0
	for range rapid.IntRange(0, 8).Draw(t, "failures") {
		at += x.random.IntN(60)
		f := failure{event: at, rail: uint8(x.random.IntN(len(x.rails))), seen: seen(x.random.IntN(int(views)))}
		for side := range f.fates {
			f.fates[side] = fate(x.random.IntN(int(fates)))
		}
		failures = append(failures, f)
	}
	x.run(failures...)
}

// rest receives what no receive was for, and cancels the receives without a message.
func (x *exchange) rest() {
	for side := range uint8(2) {
		p := x.peers[side]
		for _, context := range []uint64{0, 16 << spaceShift} {
			if !x.has(0, context) || !x.has(1, context) {
				continue
			}
			for range 100 {
				e, ok := p.Probe(context, 0, AnyTag)
				if !ok {
					if x.run(); x.next(side, context) == nil {
						break
					}
					e.Size = uint64(len(x.next(side, context).bytes))
				}
				if m := x.next(side, context); m == nil || m.tag != e.Tag && ok || uint64(len(m.bytes)) != e.Size {
					x.fail("side %d has unexpectedly a message with tag %d, %d bytes", side, e.Tag, e.Size)
					return
				}
				x.next(side, context).taken = true
				x.receive(side, &post{context: context, ignore: AnyTag, room: int(e.Size)})
				x.run()
			}
		}
		for _, r := range x.posted[side] {
			if r.outcome.times == 0 {
				x.call(side, func(p *Peer, out *Output) { p.CancelRecv(r.request, x.time, out) })
			}
		}
	}
	x.run()
}

// next returns the first message to a side that no receive has taken.
func (x *exchange) next(to uint8, context uint64) *post {
	for _, m := range x.sent[1-to] {
		if !m.taken && m.context == context {
			return m
		}
	}
	return nil
}

// matchAll is the oracle: each receive, in its order, takes the first message that is left.
// With one sender this is what any order of arrivals has to lead to.
func (x *exchange) matchAll() {
	for side := range uint8(2) {
		for _, m := range x.sent[1-side] {
			m.taken = false
		}
		for i, r := range x.posted[side] {
			if !x.has(0, r.context) || !x.has(1, r.context) {
				x.checkCancelled(side, r)
				continue
			}
			var got *post
			for _, m := range x.sent[1-side] {
				if !m.taken && m.context == r.context && (m.tag^r.tag)&^r.ignore == 0 {
					got = m
					break
				}
			}
			want := outcome{err: ErrCancelled, times: 1}
			if got != nil {
				got.taken = true
				want = outcome{got: got.bytes[:min(r.room, len(got.bytes))], tag: got.tag, times: 1}
				if r.room < len(got.bytes) {
					want.err = ErrTruncated
				}
			}
			if u := r.outcome; u.times != 1 || !errors.Is(u.err, want.err) || !same(u.got, want.got) || got != nil && u.tag != want.tag {
				x.fail("side %d, receive %d of context %d: %d times %v, % x of tag %d instead of %v, % x of tag %d",
					side, i, r.context, u.times, u.err, u.got, u.tag, want.err, want.got, want.tag)
			}
		}
	}
}

func (x *exchange) check() error {
	done := 0
	for side := range uint8(2) {
		for _, d := range x.done[side] {
			if d.Send != nil {
				done++
				if d.Err != nil && (x.has(side, d.Send.Context) || !errors.Is(d.Err, ErrCancelled)) {
					x.fail("a send: %v", d.Err)
				}
			}
		}
	}
	if done != x.calls {
		x.fail("%d sends of %d are done", done, x.calls)
	}
	for _, m := range x.loads {
		if u := m.outcome; u.times != 1 || u.err != nil || !same(u.got, m.bytes) {
			x.fail("a load: %d times %v, % x instead of % x", u.times, u.err, u.got, m.bytes)
		}
	}
	for _, m := range x.stores {
		if got := x.regions[m.to][m.at : m.at+len(m.bytes)]; !same(got, m.bytes) {
			x.fail("a store at %d: % x instead of % x", m.at, got, m.bytes)
		}
	}
	x.matchAll()
	x.afterlife()
	x.checkMemory()
	for side, p := range x.peers {
		if err := p.isEmpty(); err != nil {
			x.fail("side %d: %v", side, err)
		}
	}
	return x.err
}

// checkMemory reports receives whose memory was written after their end.
func (x *exchange) checkMemory() {
	for _, r := range slices.Concat(x.posted[0], x.posted[1], x.loads) {
		for i, b := range r.request.Data {
			if b != 0xee && r.outcome.times > 0 {
				x.fail("byte %d of %d of a receive is written after its end", i, len(r.request.Data))
				return
			}
		}
	}
}

// TestOracle compares random traffic over failing rails with a plain matching in order.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newExchange(t)
		x.drawTraffic(t)
		x.drawFailures(t)
		x.finish(t)
	})
}

// finish runs what is left, and compares.
func (x *exchange) finish(t *rapid.T) {
	x.mark()
	x.rest()
	if err := x.check(); err != nil {
		for _, line := range x.lines {
			t.Log(line)
		}
		t.Fatal(err)
	}
}

// mark notes the messages that posted receives take.
func (x *exchange) mark() {
	for side := range uint8(2) {
		for _, r := range x.posted[side] {
			for _, m := range x.sent[1-side] {
				if !m.taken && m.context == r.context && (m.tag^r.tag)&^r.ignore == 0 {
					m.taken = true
					break
				}
			}
		}
	}
}
