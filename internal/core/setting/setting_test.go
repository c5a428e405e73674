package setting

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
)

// lead is how many operations a member promises beyond those that it has called.
const lead = 2

// member is one with the operations that it calls.
type member struct {
	core     *Core
	called   uint32
	bound    uint32 // while isBound
	isBound  bool
	pending  []Decision
	value    byte
	choices  []byte // by position
	parent   int
	children []int
	isUp     bool // the connection to the parent
}

type frame struct {
	from, to uint32
	bytes    []byte
}

// world is members of a tree, with frames on their way.
type world struct {
	t       *rapid.T
	members []*member
	flight  []frame
}

func newWorld(t *rapid.T, n, radix int) *world {
	w := &world{t: t}
	tree := ranktree.KNomial(n, radix)
	for rank := range n {
		m := &member{parent: NoParent, children: tree.Children(rank), isUp: true}
		if p, ok := tree.Parent(rank); ok {
			m.parent = p
		}
		m.core = New(m.parent, m.children, []byte{0})
		w.members = append(w.members, m)
	}
	return w
}

func (w *world) step(rank uint32, in Input) {
	m := w.members[rank]
	var out Output
	m.core.Step([]Input{in}, &out)
	for _, s := range out.Sends {
		if w.connection(rank, s.To).isUp {
			w.flight = append(w.flight, frame{rank, s.To, s.Frame})
		}
	}
	for _, d := range out.Decided {
		if int32(d.Position-m.called) < 0 {
			w.t.Fatalf("rank %d has called %d operations, and is to choose from %d on", rank, m.called, d.Position)
		}
		m.isBound = false
		m.pending = append(m.pending, d)
	}
	if out.Asked {
		m.isBound, m.bound = true, m.called+lead
		w.step(rank, Input{Kind: Promise, Position: m.bound})
	}
}

// connection returns the member below a connection, which has its state.
func (w *world) connection(a, b uint32) *member {
	if w.members[a].parent == int(b) {
		return w.members[a]
	}
	return w.members[b]
}

// call has a member call an operation. It reports whether that does not wait for a decision.
func (w *world) call(rank int) bool {
	m := w.members[rank]
	if m.isBound && m.called >= m.bound {
		return false
	}
	for len(m.pending) > 0 && m.called >= m.pending[0].Position {
		m.value, m.pending = m.pending[0].Value[0], m.pending[1:]
	}
	m.choices = append(m.choices, m.value)
	m.called++
	return true
}

// deliver hands over a frame: any, but in order on each edge.
func (w *world) deliver(i int) {
	i = slices.IndexFunc(w.flight, func(f frame) bool { return f.from == w.flight[i].from && f.to == w.flight[i].to })
	f := w.flight[i]
	w.flight = slices.Delete(w.flight, i, i+1)
	m, err := wire.ReadFrame(f.bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step(f.to, Input{Kind: Frame, From: f.from, Message: m.(*wire.Setting)})
}

// cut loses what is on its way on the connection above a member, in both directions.
func (w *world) cut(rank uint32) {
	m := w.members[rank]
	m.isUp = false
	w.flight = slices.DeleteFunc(w.flight, func(f frame) bool {
		return f.from == rank && int(f.to) == m.parent || f.to == rank && int(f.from) == m.parent
	})
}

func (w *world) connect(rank uint32) {
	m := w.members[rank]
	m.isUp = true
	w.step(rank, Input{Kind: Connected, From: uint32(m.parent)})
	w.step(uint32(m.parent), Input{Kind: Connected, From: rank})
}

// TestAgreement: at whatever operations members are, and whatever is lost, they choose every
// operation by the same setting; and the last wish becomes everybody's.
func TestAgreement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "members")
		w := newWorld(t, n, rapid.IntRange(2, 4).Draw(t, "radix"))
		wish := byte(0)
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			rank := rapid.IntRange(0, n-1).Draw(t, "rank")
			switch rapid.SampledFrom([]string{"call", "call", "deliver", "deliver", "wish", "cut", "connect"}).Draw(t, "what") {
			case "call":
				w.call(rank)
			case "deliver":
				if len(w.flight) > 0 {
					w.deliver(rapid.IntRange(0, len(w.flight)-1).Draw(t, "frame"))
				}
			case "wish":
				wish = byte(rapid.IntRange(0, 3).Draw(t, "value"))
				w.step(0, Input{Kind: Wish, Value: []byte{wish}})
			case "cut":
				if rank > 0 {
					w.cut(uint32(rank))
				}
			case "connect":
				if rank > 0 && !w.members[rank].isUp {
					w.connect(uint32(rank))
				}
			}
		}
		for rank := 1; rank < n; rank++ {
			if !w.members[rank].isUp {
				w.connect(uint32(rank))
			}
		}
		for len(w.flight) > 0 {
			w.deliver(0)
		}
		most := uint32(0)
		for rank, m := range w.members {
			if m.isBound || m.core.value[0] != wish {
				t.Fatalf("rank %d waits: %v; its setting is %d, not %d", rank, m.isBound, m.core.value[0], wish)
			}
			for _, d := range m.pending {
				most = max(most, d.Position)
			}
			most = max(most, m.called)
		}
		for rank, m := range w.members {
			for m.called <= most {
				w.call(rank)
			}
			if m.value != wish || !slices.Equal(m.choices, w.members[0].choices) {
				t.Fatalf("rank %d has chosen by %d, rank 0 by %d; the wish is %d", rank, m.choices, w.members[0].choices, wish)
			}
		}
	})
}

// FuzzStep: a member takes any message of any neighbour, and never decides a round that it has not
// promised in.
func FuzzStep(f *testing.F) {
	f.Add([]byte{1, 1, 1, 0, 0, 2, 2, 1, 5, 0, 1, 3, 1, 9, 1})
	f.Fuzz(func(t *testing.T, moves []byte) {
		c := New(0, []int{2, 3}, []byte{7})
		isBound := false
		for ; len(moves) >= 5; moves = moves[5:] {
			in := Input{
				Kind: Kind(moves[0] % 4), From: uint32(moves[1] % 5), Position: uint32(moves[3]), Value: moves[4:5],
				Message: &wire.Setting{Round: uint32(moves[2] % 4), Step: moves[0]>>2%3 + wire.SettingAsk, Position: uint32(moves[3]), Value: moves[4:5]},
			}
			var out Output
			c.Step([]Input{in}, &out)
			if len(out.Decided) > 0 && !isBound {
				t.Fatal("decided without the member's promise")
			}
			if len(out.Decided) > 0 {
				isBound = false
			}
			isBound = isBound || in.Kind == Promise && c.isOpen()
			if c.decided > c.round {
				t.Fatalf("round %d is decided, and %d the last", c.decided, c.round)
			}
		}
	})
}
