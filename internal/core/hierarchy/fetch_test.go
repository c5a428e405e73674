package hierarchy

import (
	"slices"
	"testing"
	"time"

	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// TestFetchedViewComesInPieces, whole, also where it is supervised.
func TestFetchedViewComesInPieces(t *testing.T) {
	settings := DefaultSettings()
	settings.PieceBytes = minPiece
	w := newWorld(t, 1, 1, 60, 4, settings)
	w.pass(2 * time.Second)
	w.expect(t)
	for _, s := range w.mesh.nodes {
		s.supervisor.Fetch(0, false)
		w.pass(time.Second)
		if len(s.views) != 1 || len(s.views[0].Members) != 60 || len(s.supervisor.fetches) != 0 {
			t.Errorf("%s has %d views, %d fetches go on", s.id, len(s.views), len(s.supervisor.fetches))
		}
	}
}

// TestFetchWaitsForTheWholeView (20): a supervisor whose delegates have not reported all
// of their zone yet does not give what it has, neither here nor elsewhere.
func TestFetchWaitsForTheWholeView(t *testing.T) {
	w := together(t, 1, 3, 4)
	s := w.holders(0)[0].supervisor
	b := s.base(0)
	b.whole = false
	s.links = append(s.links, downlink{end: end{link: 999, open: true}, slot: none})
	var l *downlink
	for i := range s.links {
		if s.links[i].slot != none {
			l = &s.links[i]
		}
	}
	l.complete = false
	asker, now := &s.links[len(s.links)-1], w.now
	var out Output
	s.Fetch(0, false)
	s.fetch(now, &out)
	s.give(now, asker, &wire.Fetch{Zone: 0}, &out)
	if len(out.Views)+len(out.Sends) > 0 {
		t.Fatalf("given before it is whole: %d views, %d messages", len(out.Views), len(out.Sends))
	}
	s.change(now, b, l, &wire.Change{Zone: 0, Base: true, Last: true, Alives: b.members()}, &out)
	s.fetch(now, &out)
	if len(out.Views) != 1 || len(out.Views[0].Members) != 3 || len(s.fetches) != 0 {
		t.Errorf("views %+v, %d fetches go on", out.Views, len(s.fetches))
	}
	if given := slices.ContainsFunc(out.Sends, func(x Send) bool { return x.Link == 999 }); !given {
		t.Errorf("who asked is sent nothing: %+v", out.Sends)
	}
}
