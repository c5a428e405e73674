package hierarchy

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// living returns the nodes of a zone that live.
func (g *group) living() []*actor {
	return slices.DeleteFunc(slices.Clone(g.nodes), func(a *actor) bool { return a.dead })
}

// wrong reports what is not as it should be once a world is at rest: each zone has
// its delegates and supervisors, every one of them linked with every one, and
// all nodes of the management zone have the census of the truth.
func (w *world) wrong() string {
	mesh := w.mesh.living()
	for _, g := range w.bases {
		var delegates []*actor
		for _, a := range g.living() {
			if a.delegate.Active() {
				delegates = append(delegates, a)
			}
		}
		if want := min(w.settings.Delegates, len(g.living())); len(delegates) != want {
			return fmt.Sprintf("zone %d has %d delegates, want %d", g.number, len(delegates), want)
		}
		var holders []*actor
		for _, s := range mesh {
			if s.supervisor.base(g.number) != nil {
				holders = append(holders, s)
			}
		}
		if want := min(w.settings.Supervisors, len(mesh)); len(g.living()) > 0 && len(holders) != want {
			return fmt.Sprintf("zone %d has %d supervisors, want %d", g.number, len(holders), want)
		}
		if text := w.wrongViews(g, delegates, holders); text != "" {
			return text
		}
	}
	for _, s := range mesh {
		if text := w.wrongCensus(s); text != "" {
			return text
		}
	}
	return ""
}

func (w *world) wrongViews(g *group, delegates, holders []*actor) string {
	truth := map[gossip.ID]bool{}
	for _, a := range g.living() {
		truth[a.id] = true
	}
	for _, s := range holders {
		held := map[gossip.ID]bool{}
		members, err := s.supervisor.Members(g.number)
		for _, m := range members {
			held[m.ID] = true
		}
		if err != nil || len(truth) > 0 && !maps.Equal(held, truth) {
			return fmt.Sprintf("%s has %d members of zone %d, want %d (%v)", s.id, len(held), g.number, len(truth), err)
		}
		reported := map[gossip.ID]bool{}
		for _, n := range s.notices {
			if n.Zone != g.number {
				continue
			}
			if in := n.Kind == 0; in == reported[n.ID] {
				return fmt.Sprintf("%s was notified twice that %s is in the view: %v", s.id, n.ID, in)
			} else if in {
				reported[n.ID] = true
			} else {
				delete(reported, n.ID)
			}
		}
		for _, d := range delegates {
			ids, reached := d.delegate.Supervisors()
			if i := slices.Index(ids, s.id); i < 0 || !reached[i] || len(ids) != len(holders) {
				return fmt.Sprintf("%s is linked with %v %v, and not with %s alike", d.id, ids, reached, s.id)
			}
		}
	}
	return ""
}

func (w *world) wrongCensus(s *actor) string {
	rows := s.supervisor.Census()
	for _, g := range w.bases {
		living := g.living()
		if len(living) == 0 {
			continue
		}
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Zone == g.number })
		if i < 0 {
			return fmt.Sprintf("%s has no row of zone %d", s.id, g.number)
		}
		digest := uint64(0)
		for _, a := range living {
			digest ^= uint64(a.life)
		}
		want := Summary{min(w.settings.Delegates, len(living)), len(living), digest}
		if rows[i].Summary != want || len(rows[i].Supervisors) != min(w.settings.Supervisors, len(w.mesh.living())) {
			return fmt.Sprintf("%s has %+v of zone %d, want %+v", s.id, rows[i], g.number, want)
		}
	}
	return ""
}

// disturb does one random thing.
func (w *world) disturb() {
	a := w.all[w.rng.IntN(len(w.all))]
	switch w.rng.IntN(12) {
	case 0:
		switch {
		case a.dead || w.rng.IntN(2) == 0:
		case a.id == w.mesh.nodes[0].id || w.rng.IntN(2) == 0:
			w.restart(a) // one contact is there again and again
		case len(a.group.living()) > 1:
			w.kill(a)
		}
	case 1:
		if w.rng.IntN(2) == 0 {
			w.start(a.group)
		}
	case 2:
		if len(w.wires) > 0 {
			w.wires[w.rng.IntN(len(w.wires))].breaks()
		}
	case 3:
		w.tick(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
	default:
		w.deliver()
	}
}

// tick lets time pass at all nodes, and nothing arrive.
func (w *world) tick(d time.Duration) {
	w.now = w.now.Add(d)
	for _, a := range w.all {
		if !a.dead && a.deadline() <= w.now {
			a.step(nil)
		}
	}
}

// TestHierarchyComesTogether (20): whatever happens, when it has come to rest every
// zone has its delegates and supervisors, who have as many zones as each other or
// one more, and the census is the truth.
func TestHierarchyComesTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := DefaultSettings()
		settings.Delegates = rapid.IntRange(1, 3).Draw(t, "delegates")
		settings.Supervisors = rapid.IntRange(1, 3).Draw(t, "supervisors")
		settings.PieceBytes, settings.Balance = minPiece, 2*time.Second
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "zones"),
			rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 5).Draw(t, "management"), settings)
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			w.disturb()
		}
		w.pass(20 * time.Second)
		if text := w.wrong(); text != "" {
			t.Fatal(text)
		}
		if all := !slices.ContainsFunc(w.bases, func(g *group) bool { return len(g.living()) == 0 }); all && w.uneven() > 1 {
			t.Fatalf("one supervisor has %d zones more than another", w.uneven())
		}
	})
}

// Supervisors returns who supervises the zone, as reported to an active delegate
// last, and of each whether it is connected and has been sent the view.
func (d *Delegate) Supervisors() (ids []gossip.ID, reached []bool) {
	for _, id := range d.supervisors {
		l := d.linkTo(id)
		reached = append(reached, l != nil && l.assigned)
	}
	return d.supervisors, reached
}
