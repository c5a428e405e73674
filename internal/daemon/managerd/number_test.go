package managerd_test

import (
	"errors"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// TestAnothersNumber: whoever names another group than the number is of, after the
// manager has lost its memory, is refused, and its report does not count.
func TestAnothersNumber(t *testing.T) {
	f := newFabric(t, nil)
	g := f.newGroup(f.spec("job"))
	epoch := g.offers(0)[0].Epoch
	ctx := testContext(t)
	s, err := f.client.HostSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []manager.Input{
		manager.Watch{Group: g.id, Rank: 1, Of: "learn/", DataAddr: g.members[1].conn.LocalAddr(), Entered: epoch + 7},
		manager.Report{Group: g.id, Rank: 1, Entered: epoch + 7, Transport: manager.HostTree},
	} {
		if err := s.Send(in); err != nil {
			t.Fatal(err)
		}
	}
	e, err := s.Recv()
	if err != nil || e.Notice == nil || !e.Notice.End || !errors.Is(e.Notice.Err, manager.ErrUnknownGroup) {
		t.Errorf("answered by %+v, %v", e, err)
	}
	if err := s.Send(manager.Watch{Group: g.id, Rank: 1, Of: "jo", DataAddr: g.members[1].conn.LocalAddr(), Entered: epoch}); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Recv(); err != nil || e.Offer == nil || e.Offer.Epoch != epoch {
		t.Errorf("by its own name it gets %+v, %v", e, err)
	}
	if x := g.explain(); x.Epoch != epoch || x.Hosts != 0 {
		t.Errorf("the foreign report counts: %+v", x)
	}
}
