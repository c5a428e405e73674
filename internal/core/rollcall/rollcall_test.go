package rollcall

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
)

// world is members of a tree, with frames on their way.
type world struct {
	members   []*Core
	calls     []Record // by rank, at the only position
	flight    []frame
	sent      map[[2]uint32]int // by edge and direction
	disagreed []*[2]wire.Called // first, by rank
}

type frame struct {
	from, to uint32
	bytes    []byte
}

const number = 7

func newWorld(n, radix int, calls []Record) *world {
	w := &world{calls: calls, sent: map[[2]uint32]int{}, disagreed: make([]*[2]wire.Called, n)}
	tree := ranktree.KNomial(n, radix)
	for rank := range n {
		var all []uint32
		if p, ok := tree.Parent(rank); ok {
			all = append(all, uint32(p))
		}
		for _, k := range tree.Children(rank) {
			all = append(all, uint32(k))
		}
		w.members = append(w.members, New(uint32(rank), all))
	}
	return w
}

func (w *world) step(rank uint32, in Input) {
	in.Own = w.calls[rank]
	var out Output
	w.members[rank].Step([]Input{in}, &out)
	for _, s := range out.Sends {
		w.sent[[2]uint32{rank, s.To}]++
		w.flight = append(w.flight, frame{rank, s.To, s.Frame})
	}
	if out.Disagreed != nil && w.disagreed[rank] == nil {
		w.disagreed[rank] = out.Disagreed
	}
}

// wait has a rank wait.
func (w *world) wait(rank int, round uint8) {
	w.step(uint32(rank), Input{From: uint32(rank), Waiting: &wire.Waiting{Position: number, Round: round, Rank: uint32(rank), Tag: w.calls[rank].Tag}})
}

// deliver hands over a frame: any, but in order on each edge.
func (w *world) deliver(t *rapid.T) {
	i := rapid.IntRange(0, len(w.flight)-1).Draw(t, "frame")
	i = slices.IndexFunc(w.flight, func(f frame) bool { return f.from == w.flight[i].from && f.to == w.flight[i].to })
	f := w.flight[i]
	w.flight = slices.Delete(w.flight, i, i+1)
	m, err := wire.ReadFrame(f.bytes)
	if err != nil {
		t.Fatal(err)
	}
	in := Input{From: f.from}
	switch m := m.(type) {
	case *wire.Waiting:
		in.Waiting = m
	case *wire.Late:
		in.Late = m
	}
	w.step(f.to, in)
}

// TestRollCall: whoever waits, and in whatever order frames arrive, two members that have called
// different operations are found, if there are; otherwise all know who is late. The frames on
// each edge are bounded, however many wait.
func TestRollCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "members")
		calls := make([]Record, n)
		var waits, late []int
		tags := map[uint64]bool{}
		for rank := range calls {
			switch what := rapid.IntRange(0, 9).Draw(t, "call"); {
			case what < 7:
				calls[rank] = Record{Tag: 5, IsCalled: true}
			case what == 7:
				calls[rank] = Record{Tag: uint64(rapid.IntRange(5, 6).Draw(t, "tag")), IsCalled: true}
			case what == 8:
				calls[rank] = Record{IsForgotten: true}
			default:
				late = append(late, rank)
			}
			if calls[rank].IsCalled {
				tags[calls[rank].Tag] = true
				waits = append(waits, rank)
			}
		}
		if len(waits) == 0 {
			return
		}
		w := newWorld(n, rapid.IntRange(2, 4).Draw(t, "radix"), calls)
		rounds := uint8(rapid.IntRange(1, 3).Draw(t, "rounds"))
		for round := uint8(1); round <= rounds; round++ {
			for _, rank := range waits {
				w.wait(rank, round)
				for len(w.flight) > 0 && rapid.Bool().Draw(t, "deliver") {
					w.deliver(t)
				}
			}
			for len(w.flight) > 0 {
				w.deliver(t)
			}
		}
		isFound := slices.ContainsFunc(w.disagreed, func(d *[2]wire.Called) bool { return d != nil })
		if isFound != (len(tags) > 1) {
			t.Fatalf("calls %v: a disagreement is found: %v", calls, isFound)
		}
		for _, d := range w.disagreed {
			if d == nil {
				continue
			}
			for _, k := range d {
				if own := calls[k.Rank]; !own.IsCalled || own.Tag != k.Tag {
					t.Fatalf("rank %d is said to have called %d: %v", k.Rank, k.Tag, own)
				}
			}
			if d[0].Rank >= d[1].Rank || d[0].Tag == d[1].Tag {
				t.Fatalf("%v", d)
			}
		}
		for rank, m := range w.members {
			got := m.Late(number)
			if len(late) <= MaxLate && len(got) != len(late) || len(got) > MaxLate || len(late) > MaxLate && len(got) != MaxLate {
				t.Fatalf("rank %d names %v, late are %v", rank, got, late)
			}
			for _, k := range got {
				if !slices.Contains(late, int(k)) {
					t.Fatalf("rank %d names %d, late are %v", rank, k, late)
				}
			}
		}
		for edge, k := range w.sent {
			if most := int(rounds) * (2 + MaxLate); k > most {
				t.Fatalf("%d frames from %d to %d", k, edge[0], edge[1])
			}
		}
	})
}

// TestMemory: a neighbour that reports position after position fills no memory, and a stranger is
// not heard.
func TestMemory(t *testing.T) {
	c := New(0, []uint32{1, 2})
	var out Output
	for i := range uint32(1000) {
		c.Step([]Input{{From: 1, Waiting: &wire.Waiting{Position: i, Round: 1, Rank: 1, Tag: uint64(i)}, Own: Record{IsForgotten: true}}}, &out)
	}
	if len(c.positions) != Positions {
		t.Errorf("%d positions", len(c.positions))
	}
	out.Reset()
	c.Step([]Input{{From: 9, Waiting: &wire.Waiting{Position: 5000, Round: 1, Rank: 9}}, {From: 9, Late: &wire.Late{Position: 5000, Rank: 9}}}, &out)
	if len(out.Sends) != 0 || c.find(5000) != nil {
		t.Errorf("a stranger is heard: %v", out.Sends)
	}
}

// FuzzStep: no frame of a neighbour makes the core panic, or send more than one frame for each to
// each neighbour.
func FuzzStep(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 9, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := New(1, []uint32{0, 2, 3})
		for len(b) >= 7 {
			in := Input{From: uint32(b[0] % 5), Own: Record{Tag: uint64(b[1] % 3), IsCalled: b[2]&1 != 0, IsForgotten: b[2]&2 != 0}}
			if b[3]&1 == 0 {
				in.Waiting = &wire.Waiting{Position: uint32(b[4]), Round: b[5], Rank: uint32(b[6]), Tag: uint64(b[6] % 3)}
			} else {
				in.Late = &wire.Late{Position: uint32(b[4]), Round: b[5], Rank: uint32(b[6])}
			}
			var out Output
			c.Step([]Input{in}, &out)
			if len(out.Sends) > 6 || len(c.positions) > Positions {
				t.Fatalf("%d frames, %d positions", len(out.Sends), len(c.positions))
			}
			b = b[7:]
		}
	})
}
