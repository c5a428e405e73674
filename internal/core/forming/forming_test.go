package forming

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
)

// frame is one on its way.
type frame struct {
	from, to int
	bytes    []byte
}

// world is a group whose members come when the test says so, on connections
// that break.
type world struct {
	t       *testing.T
	tree    ranktree.Tree
	now     core.Time
	members []*Core // nil: it has not come
	up      []bool  // by rank, the connection to its parent
	flight  []frame // in order on each connection
	formed  []bool
	sent    int
}

func newWorld(t *testing.T, n, radix int) *world {
	return &world{t: t, tree: ranktree.KNomial(n, radix), members: make([]*Core, n), up: make([]bool, n), formed: make([]bool, n)}
}

func (w *world) come(rank int) {
	parent, ok := w.tree.Parent(rank)
	if !ok {
		parent = NoParent
	}
	w.members[rank] = New(parent, w.tree.Children(rank), uint64(100+rank), []byte{byte(100 + rank)})
}

func (w *world) step(rank int, in ...Input) {
	m := w.members[rank]
	var out Output
	m.Step(w.now, in, &out)
	for _, s := range out.Sends {
		w.sent++
		if child := max(rank, int(s.To)); w.up[child] {
			w.flight = append(w.flight, frame{rank, int(s.To), s.Frame})
		}
	}
	if out.Formed {
		if w.formed[rank] || slices.Contains(w.members, nil) {
			w.t.Fatalf("rank %d has formed, and %v were there", rank, w.members)
		}
		w.formed[rank] = true
		if life, setting := m.Life(), m.Setting(); life != 100 || len(setting) != 1 || setting[0] != 100 {
			w.t.Fatalf("rank %d has life %d and setting %d, not those of the lowest rank", rank, life, setting)
		}
	}
	if w.formed[rank] != m.formed {
		w.t.Fatalf("rank %d: formed %v, and says %v", rank, w.formed[rank], m.formed)
	}
}

// connect makes the connection of a rank to its parent anew, if both are there.
func (w *world) connect(rank int) {
	parent, ok := w.tree.Parent(rank)
	if !ok || w.members[rank] == nil || w.members[parent] == nil {
		return
	}
	w.cut(rank)
	w.up[rank] = true
	w.step(rank, Input{From: uint32(parent)})
	w.step(parent, Input{From: uint32(rank)})
}

// cut loses what is on its way between a rank and its parent.
func (w *world) cut(rank int) {
	w.up[rank] = false
	w.flight = slices.DeleteFunc(w.flight, func(f frame) bool { return max(f.from, f.to) == rank })
}

// deliver hands over the first frame of one connection and direction.
func (w *world) deliver(i int) {
	f := w.flight[i]
	i = slices.IndexFunc(w.flight, func(g frame) bool { return g.from == f.from && g.to == f.to })
	f = w.flight[i]
	w.flight = slices.Delete(w.flight, i, i+1)
	m, err := wire.ReadFrame(f.bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step(f.to, Input{From: uint32(f.from), Missing: m.(*wire.Missing)})
}

// settle lets time pass until nothing is to be reported any more.
func (w *world) settle() {
	for {
		for len(w.flight) > 0 {
			w.deliver(0)
		}
		next := core.Never
		for _, m := range w.members {
			if m != nil {
				next = next.Earlier(m.Deadline())
			}
		}
		if next == core.Never {
			return
		}
		w.now = max(w.now, next)
		for rank, m := range w.members {
			if m != nil {
				w.step(rank)
			}
		}
	}
}

// TestRandomForming has members come and connections break in any order. Nobody
// has formed before all are there, and then everybody does; until then all who
// are connected name who is missing.
func TestRandomForming(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(30)
		w := newWorld(t, n, 2+r.IntN(3))
		last := r.IntN(n)
		order := slices.DeleteFunc(r.Perm(n), func(rank int) bool { return rank == last })
		for len(order) > 0 || r.IntN(40) > 0 {
			switch what := r.IntN(4); {
			case what == 0 && len(order) > 0:
				w.come(order[0])
				order = order[1:]
			case what == 1:
				w.connect(r.IntN(n))
			case what == 2 && r.IntN(3) == 0:
				w.cut(r.IntN(n))
			case len(w.flight) > 0:
				w.deliver(r.IntN(len(w.flight)))
			}
			w.now = w.now.Add(time.Duration(r.IntN(int(Period / 4))))
		}
		for rank := range n {
			w.connect(rank)
		}
		w.settle()
		if w.members[0] != nil {
			for rank, m := range w.members {
				if m != nil && w.joined(rank) && !slices.Equal(m.Missing().Ranks, []uint32{uint32(last)}) {
					t.Fatalf("seed %d: rank %d of %d misses %v, want %d", seed, rank, n, m.Missing(), last)
				}
			}
		}
		w.come(last)
		w.connect(last)
		for _, child := range w.tree.Children(last) {
			w.connect(child)
		}
		w.settle()
		if slices.Contains(w.formed, false) {
			t.Fatalf("seed %d: formed are %v", seed, w.formed)
		}
		if m := w.members[last].Missing(); len(m.Ranks) > 0 || m.More || w.members[last].Deadline() != core.Never {
			t.Fatalf("seed %d: it has formed, and misses %v", seed, m)
		}
	}
}

// joined reports whether a rank is connected to the lowest one.
func (w *world) joined(rank int) bool {
	parent, ok := w.tree.Parent(rank)
	return !ok || w.up[rank] && w.joined(parent)
}

// TestManyMissing names the first of many, and says that there are more.
func TestManyMissing(t *testing.T) {
	w := newWorld(t, 1024, 2)
	w.come(0)
	if m := w.members[0].Missing(); len(m.Ranks) != wire.MaxMissing || !m.More {
		t.Errorf("%v", m)
	}
	w.come(512)
	w.connect(512)
	w.settle()
	if m := w.members[512].Missing(); len(m.Ranks) != wire.MaxMissing || !m.More {
		t.Errorf("%v", m)
	}
}

// TestNotOften counts what is sent while 1,024 members come one by one, within
// one period: at first what each connection begins with, and then one message
// for each connection and direction.
func TestNotOften(t *testing.T) {
	const n = 1024
	w := newWorld(t, n, 2)
	for rank := range n {
		w.come(rank)
		w.connect(rank)
		for len(w.flight) > 0 {
			w.deliver(0)
		}
	}
	w.settle()
	if slices.Contains(w.formed, false) {
		t.Fatal("not all have formed")
	}
	if w.sent > 6*n {
		t.Errorf("%d messages for %d members", w.sent, n)
	}
}

// TestStrangers: what is not from a neighbour changes nothing.
func TestStrangers(t *testing.T) {
	m := New(0, []int{3}, 9, nil)
	var out Output
	m.Step(0, []Input{{From: 7, Missing: &wire.Missing{}}, {From: 7}}, &out)
	if len(out.Sends) > 0 || out.Formed || !slices.Equal(m.Missing().Ranks, []uint32{3}) {
		t.Errorf("%+v, %v", out, m.Missing())
	}
}
