package hierarchy

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// TestPlacementIsBalanced (20): zones numbered from 0 are spread evenly over any
// number of supervisors, each to as many different ones as wanted; and who goes
// or comes moves nobody who supervises.
func TestPlacementIsBalanced(t *testing.T) {
	for _, test := range []struct{ zones, supervisors int }{{512, 512}, {1024, 1024}, {512, 64}, {100, 7}, {33, 32}, {5, 3}} {
		w := newWorld(t, 1, 0, 0, test.supervisors, DefaultSettings())
		mesh := w.mesh.nodes[0]
		for _, a := range w.mesh.nodes {
			w.hear(a, len(a.news))
		}
		h := newHoldings()
		for z := range wire.Zone(test.zones) {
			all := h.assigned(z, mesh, 2)
			if len(all) != 2 || all[0] == all[1] {
				t.Fatalf("zone %d is assigned to %v", z, all)
			}
			for _, life := range all {
				h.put(z, life, publication{})
			}
		}
		mean := float64(2*test.zones) / float64(test.supervisors)
		for _, a := range w.mesh.nodes {
			if n := float64(h.loads[a.life]); n > mean+3 {
				t.Errorf("%+v: a supervisor has %v zones, the mean is %.1f", test, n, mean)
			}
		}
		w.kill(w.mesh.nodes[1])
		w.hear(mesh, 1)
		h.forget(mesh)
		for z := range wire.Zone(test.zones) {
			for _, one := range slices.Clone(h.zones[z]) {
				if all := h.assigned(z, mesh, 2); !slices.Contains(all, one.life) {
					t.Fatalf("zone %d is moved from one that has it", z)
				}
			}
		}
	}
}

// uneven reports by how much the zones of supervisors differ.
func (w *world) uneven() int {
	least, most := len(w.bases), 0
	for _, s := range w.mesh.living() {
		n := len(s.supervisor.Held())
		least, most = min(least, n), max(most, n)
	}
	return most - least
}

// TestZonesAreSpreadEvenlyAgain (20): after supervisors failed and came back with
// nothing, the others hand over to them, one zone at a time, and each zone has all
// its supervisors all the time.
func TestZonesAreSpreadEvenlyAgain(t *testing.T) {
	w := together(t, 12, 2, 6)
	for _, s := range w.mesh.living()[1:3] {
		w.kill(s)
		w.pass(time.Second)
	}
	w.start(w.mesh)
	w.start(w.mesh)
	w.pass(time.Second)
	w.expect(t)
	if w.uneven() < 2 {
		t.Fatal("they are even already: the test shows nothing")
	}
	for began := w.now; w.now.Sub(began) < 10*w.settings.Balance; w.pass(w.settings.Balance / 100) {
		for z := range w.bases {
			if n := len(w.holders(wire.Zone(z))); n < w.settings.Supervisors {
				t.Fatalf("zone %d has %d supervisors while it is handed over", z, n)
			}
		}
	}
	w.expect(t)
	if n := w.uneven(); n > 1 {
		t.Errorf("one supervisor has %d zones more than another", n)
	}
	for _, s := range w.mesh.living() {
		if at := s.supervisor.balance; at != core.Never {
			t.Errorf("%s looks again at %v, though nothing has changed", s.id, time.Duration(at))
		}
	}
}

// TestReadPublication: with an heir and without, and nothing else.
func TestReadPublication(t *testing.T) {
	p := publication{Summary{2, 300, 7}, 9}
	b := p.bytes()
	if got, ok := readPublication(b); !ok || got != p {
		t.Errorf("read as %+v, %v", got, ok)
	}
	p.heir = nobody
	if got, ok := readPublication(p.bytes()); !ok || got != p {
		t.Errorf("read as %+v, %v", got, ok)
	}
	for _, bad := range [][]byte{nil, b[:len(b)-1], append(slices.Clone(b), 0), {200, 1, 1}, {1, 0xff}} {
		if got, ok := readPublication(bad); ok {
			t.Errorf("%x is read as %+v", bad, got)
		}
	}
}
