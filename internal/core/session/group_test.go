package session

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// A world is a group of sessions with one parent that keeps everything for
// ever, and a network between them that loses, repeats and reorders. It is
// slow, and judges every packet by the rules of the design.
type world struct {
	t       *rapid.T
	rng     *rand.Rand
	max     uint32 // largest window
	members []*peer
	now     core.Time
	epoch   uint32
	window  uint32
	wire    []inFlight
	faults  bool

	// All data has its exponent behind it; see withExponent.
	taken   map[chunkKey]map[uint32][]byte // by the parent: contributions by rank
	sigs    map[chunkKey]wire.Signature
	sources map[chunkKey]uint32          // who holds what is copied
	sinks   map[chunkKey]map[uint32]bool // who wants it
	results map[chunkKey][]byte
	bits    map[uint32][]byte // of number n, of all epochs: the result that a sink has had

	credited int
}

type chunkKey struct{ epoch, number uint32 }

// peer is a member: its session, and what the world knows of it.
type peer struct {
	s       *Session
	out     Output
	rank    uint32
	first   map[uint32][]byte // its first contribution to a number
	done    map[uint32]bool   // results that it has had, as far as they still count
	pending map[uint32]bool   // its contributions of this epoch without a result
	credits map[uint32]bool   // held numbers that are to be confirmed in this epoch, without a result
	plan    []Operation
	next    int
	ended   map[uint64]int // completions by operation
}

const (
	parent   = -1
	firstNum = math.MaxUint32 - 20 // numbers wrap soon
)

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
		max:   1 << rapid.IntRange(0, 3).Draw(t, "log window"),
		epoch: 1, taken: map[chunkKey]map[uint32][]byte{}, sigs: map[chunkKey]wire.Signature{},
		sources: map[chunkKey]uint32{}, sinks: map[chunkKey]map[uint32]bool{},
		results: map[chunkKey][]byte{}, bits: map[uint32][]byte{},
	}
	size := rapid.IntRange(1, 4).Draw(t, "members")
	plans := w.plans(size, rapid.IntRange(1, 20).Draw(t, "operations"))
	for r := range size {
		p := &peer{rank: uint32(r), first: map[uint32][]byte{}, done: map[uint32]bool{}, ended: map[uint64]int{}, plan: plans[r]}
		var err error
		if p.s, err = New(Config{Rank: p.rank, Members: size, ChunkBytes: chunkBytes, Window: w.max}, firstNum); err != nil {
			t.Fatal(err)
		}
		p.out.TakesBatches = r%2 == 0
		w.members = append(w.members, p)
	}
	w.enter()
	return w
}

func (w *world) link(p *peer) Link {
	return Link{Group: 9, Epoch: w.epoch, Cookie: 7, Window: w.window, Parent: parentAddr, Index: uint16(p.rank)}
}

// change freezes every member, decides as the design says, and enters the next
// epoch.
func (w *world) change() {
	w.epoch += 1 + uint32(w.rng.IntN(2))
	w.enter()
}

func (w *world) enter() {
	w.window = 1 << w.rng.IntN(1+log2(w.max))
	var reports []Report
	for _, p := range w.members {
		reports = append(reports, p.s.Freeze())
	}
	d := Decision{Base: reports[0].Base}
	for _, r := range reports {
		if wire.Newer(d.Base, r.Base) {
			d.Base = r.Base
		}
	}
	d.Held.Init(d.Base, int(w.max))
	holder := map[uint32]*peer{}
	for i, r := range reports {
		d.Held.Add(&r.Held)
		r.Held.Each(func(n uint32) { holder[n] = w.members[i] })
	}
	for i, p := range w.members {
		p.out.Reset()
		p.pending, p.credits = map[uint32]bool{}, map[uint32]bool{}
		for n := d.Base; n != p.s.created; n++ {
			c := p.s.at(n)
			for before := n - w.window; !wire.Newer(d.Base, before); before -= w.window {
				if d.Held.Has(n) && !d.Held.Has(before) {
					p.credits[n] = true
				}
			}
			if !d.Held.Has(n) {
				delete(p.done, n)
			} else if !c.sink || c.size() == 0 {
				p.done[n] = true
			}
		}
		if err := p.s.Enter(w.now, w.link(p), d, &p.out); err != nil {
			w.t.Fatalf("rank %d: %v", p.rank, err)
		}
		w.put(p)
		reports[i].Lack.Each(func(n uint32) {
			if !d.Held.Has(n) {
				return
			}
			data, exponent, kept := holder[n].s.Kept(n)
			if !kept {
				w.t.Fatalf("rank %d holds the result of %d and has not kept it", holder[n].rank, n)
			}
			p.out.Reset()
			if !p.s.Fill(w.now, n, bytes.Clone(data), exponent, &p.out) {
				w.t.Fatalf("rank %d does not take the result of %d that it lacks", p.rank, n)
			}
			p.done[n] = true
			w.put(p)
		})
	}
}

func log2(n uint32) int {
	l := 0
	for ; n > 1; n /= 2 {
		l++
	}
	return l
}

// step steps one member with a packet, or without.
func (w *world) step(p *peer, packet []byte) {
	var in []Input
	if packet != nil {
		in = append(in, Input{From: parentAddr, Packet: packet})
		w.arrived(p, packet)
	}
	p.out.Reset()
	p.s.Step(w.now, in, &p.out)
	if p.out.Loss != nil || p.out.Disagreement != nil {
		w.t.Fatalf("rank %d: %+v %+v", p.rank, p.out.Loss, p.out.Disagreement)
	}
	w.put(p)
}

// arrived notes the result that a packet brings.
func (w *world) arrived(p *peer, packet []byte) {
	var h wire.Header
	if _, fault := h.Decode(packet); fault == wire.NoFault && h.Type == wire.Result && h.Epoch == w.epoch {
		p.done[h.Chunk] = p.done[h.Chunk] || !p.credits[h.Chunk]
		delete(p.credits, h.Chunk)
		delete(p.pending, h.Chunk)
	}
}

// put judges what a member has put out and lets it go into the network.
func (w *world) put(p *peer) {
	for _, packet := range p.out.packets() {
		w.judge(p, packet)
		w.send(parent, packet)
	}
	for _, c := range p.out.Completions {
		p.ended[c.ID]++
		p.plan[c.ID].Out = takeBack(p.plan[c.ID])
	}
}

// takeBack returns a copy of a finished operation's result, and spoils its
// vectors, which are the caller's again: nothing may be kept in them.
func takeBack(o Operation) []byte {
	out := bytes.Clone(o.Out)
	for _, v := range [][]byte{o.In, o.Out, o.Marks} {
		for i := range v {
			v[i] = 0xEE
		}
	}
	return out
}

// oldest returns the oldest number without a result at p.
func (w *world) oldest(p *peer) uint32 {
	n := uint32(firstNum)
	for p.done[n] && !p.credits[n] {
		n++
	}
	return n
}

func (w *world) judge(p *peer, packet []byte) {
	var h wire.Header
	payload, fault := h.Decode(packet)
	switch {
	case fault != wire.NoFault:
		w.t.Fatalf("rank %d sends a packet with fault %v", p.rank, fault)
	case h.Type == wire.Probe:
		if !p.pending[h.Chunk] {
			w.t.Fatalf("rank %d probes for %d, which is not in flight", p.rank, h.Chunk)
		}
	case h.Type == wire.Contribution:
		if n := w.oldest(p); !wire.Newer(n+w.window, h.Chunk) {
			w.t.Fatalf("rank %d sends %d, its oldest is %d and the window %d", p.rank, h.Chunk, n, w.window)
		}
		if p.credits[h.Chunk] {
			w.credited++
			if h.Collective != wire.Barrier || len(payload) > 0 {
				w.t.Fatalf("rank %d contributes to %d, whose result is held", p.rank, h.Chunk)
			}
		} else if first, again := p.first[h.Chunk]; !again {
			p.first[h.Chunk] = withExponent(payload, h.Exponent)
		} else if said := withExponent(payload, h.Exponent); !p.done[h.Chunk] && !bytes.Equal(first, said) {
			w.t.Fatalf("rank %d contributes %x to %d again, and %x at first", p.rank, said, h.Chunk, first)
		}
		p.pending[h.Chunk] = true
		for _, q := range w.members {
			for n := range q.pending {
				if !wire.Newer(n+2*w.window, h.Chunk) {
					w.t.Fatalf("rank %d sends %d, and rank %d has no result of %d: %s", p.rank, h.Chunk, q.rank, n, w)
				}
			}
		}
	default:
		w.t.Fatalf("rank %d sends a packet of type %d", p.rank, h.Type)
	}
}

// run does one random thing, and reports whether there was any left to do.
func (w *world) run() bool {
	w.note()
	switch p := w.members[w.rng.IntN(len(w.members))]; {
	case w.faults && w.rng.IntN(60) == 0:
		w.change()
	case p.next < len(p.plan) && w.rng.IntN(4) == 0:
		if err := p.s.Start(p.plan[p.next]); err != nil {
			w.t.Fatal(err)
		}
		p.next++
		w.step(p, nil)
	case len(w.wire) > 0 && w.rng.IntN(20) > 0:
		w.deliver()
	default:
		return w.tick()
	}
	return true
}

// note remembers which results are held by a sink: they must not be reduced
// again. And it counts what is on its way.
func (w *world) note() {
	for _, p := range w.members {
		flight := uint32(0)
		for n := p.s.base; n != p.s.created; n++ {
			if c := p.s.at(n); c.pending() && c.sent && !c.care.astray {
				flight++
			}
		}
		if p.s.flight != flight {
			w.t.Fatalf("rank %d counts %d on their way, and there are %d", p.rank, p.s.flight, flight)
		}
		for n := p.s.base - p.s.cfg.Window; n != p.s.created; n++ {
			if c := p.s.at(n); c.is(n) && c.state == done && c.sink {
				result := withExponent(c.kept, c.exponent)
				if bits, had := w.bits[n]; had && !bytes.Equal(bits, result) {
					w.t.Fatalf("number %d has the results %x and %x", n, bits, result)
				}
				w.bits[n] = result
			}
		}
	}
}

// tick lets time pass until a member's deadline; false if none has any and
// nothing is left to do.
func (w *world) tick() bool {
	at := core.Never
	for _, p := range w.members {
		at = at.Earlier(p.s.Deadline())
	}
	if at == core.Never {
		for _, p := range w.members {
			if p.next < len(p.plan) {
				return true
			}
		}
		return len(w.wire) > 0
	}
	w.now = max(w.now, at)
	for _, p := range w.members {
		if p.s.Deadline() <= w.now {
			w.step(p, nil)
		}
	}
	return true
}

// TestGroup runs groups under losses, repeats, reordering and changes of epoch.
// Every packet keeps the rules: "A member sends n + W only after it has the
// results of n and of all before it", "a member sends a probe for a chunk in flight
// that is late", "a chunk whose result is held is never reduced
// again", "every member keeps a copy for as many of its last finished chunks as
// the group's largest window". All operations end, with the results of the slow
// oracle, and once the faults are over within a bounded number of steps.
func TestGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		inputs := make([][]Operation, len(w.members))
		for r, p := range w.members {
			for _, o := range p.plan {
				o.In = bytes.Clone(o.In)
				inputs[r] = append(inputs[r], o)
			}
		}
		w.faults = true
		for range rapid.IntRange(0, 2000).Draw(t, "steps with faults") {
			w.run()
		}
		w.faults = false
		steps := 0
		for ; w.run(); steps++ {
			if steps > 20000 {
				t.Fatalf("no end: %s", w)
			}
		}
		for _, p := range w.members {
			for i, o := range p.plan {
				if p.ended[o.ID] != 1 {
					t.Fatalf("rank %d: operation %d was completed %d times: %s", p.rank, i, p.ended[o.ID], w)
				}
				if want := w.expected(inputs, i, p.rank); !bytes.Equal(o.Out, want) && (o.Parts != nil || o.Sink(p.rank)) {
					t.Fatalf("rank %d: operation %d gave %x, want %x", p.rank, i, o.Out, want)
				}
			}
		}
	})
}

// String reports where each member is.
func (w *world) String() string {
	text := fmt.Sprintf("epoch %d window %d", w.epoch, w.window)
	for _, p := range w.members {
		text += fmt.Sprintf("; rank %d base=%d next=%d created=%d fresh=%d", p.rank, p.s.base, p.s.next, p.s.created, p.s.fresh)
	}
	return text
}
