package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wirehierarchy "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// below7 makes what a supervisor reports zone 7.
type below7 struct{ t *testing.T }

func (b below7) id(name string) gossip.ID {
	id, err := gossip.MakeID(name, netip.MustParseAddrPort("127.0.0.1:9"))
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b below7) view(lives map[string]uint64) hierarchy.View {
	v := hierarchy.View{Zone: 7}
	for _, name := range []string{"a", "b", "c", "d"} {
		if lives[name] > 0 {
			v.Members = append(v.Members, wirehierarchy.Member{ID: b.id(name), Version: gossip.Version{Incarnation: lives[name], Minor: 1}})
		}
	}
	return v
}

func (b below7) join(name string, incarnation uint64) hierarchy.Notice {
	return hierarchy.Notice{Zone: 7, Kind: member.Join, ID: b.id(name), Version: gossip.Version{Incarnation: incarnation, Minor: 1}}
}

func (b below7) leave(name string, incarnation uint64) hierarchy.Notice {
	return hierarchy.Notice{Zone: 7, Kind: member.Leave, ID: b.id(name), Version: gossip.Version{Incarnation: incarnation, Minor: 1}, Cause: member.Departed}
}

// TestFollowAcrossSupervisors: what has changed in a followed zone while it had
// another supervisor, or none, is informed when there is a whole view again.
func TestFollowAcrossSupervisors(t *testing.T) {
	n := join(t, Config{Name: "m", Management: true})
	w := n.BelowWatcher()
	defer w.Close()
	b := below7{t}
	err := n.ask(within(t), func(s *stepper) {
		const now core.Time = 1 << 40
		tier := s.tier
		learn := func(v []hierarchy.View, x []hierarchy.Notice, want ...string) {
			t.Helper()
			tier.out.Views, tier.out.Notices = v, x
			tier.inform(now)
			tier.out.Reset()
			if got := read(t, w); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("reported %q, want %q", got, want)
			}
		}
		answer := make(chan error, 1)
		tier.follow(7, answer)
		first := b.view(map[string]uint64{"a": 1, "b": 1, "d": 1})
		learn([]hierarchy.View{first}, nil)
		if err := <-answer; err != nil {
			t.Error(err)
		}
		// A new supervisor's view, and what it reports after that in the same step.
		second := b.view(map[string]uint64{"b": 2, "c": 1, "d": 1})
		learn([]hierarchy.View{second}, []hierarchy.Notice{b.leave("d", 1)},
			"a left (failed)", "b left (replaced)", "b joined", "c joined", "d left (departed)")
		// What the old one reports late.
		learn(nil, []hierarchy.Notice{b.leave("b", 1), b.join("b", 1)})
		// This node begins to supervise it, and hears of everybody again. One of
		// them is dead before the reader has looked.
		learn(nil, []hierarchy.Notice{b.join("b", 2), b.join("c", 1), b.join("e", 1), b.leave("e", 1), b.join("e", 1), b.leave("e", 1), b.leave("e", 1)})
		learn(nil, []hierarchy.Notice{b.join("c", 1), b.leave("c", 1)}, "c left (departed)")
		learn(nil, []hierarchy.Notice{b.join("c", 1)}, "c joined")

		views := make(chan hierarchy.View, 1)
		tier.fetch(7, views)
		if v := <-views; len(v.Members) != 2 {
			t.Errorf("who is there as it is followed: %v", v.Members)
		}

		// Who has only just begun to supervise it knows of nobody.
		learn([]hierarchy.View{{Zone: 7}}, nil)
		if tier.followed[7].again == 0 {
			t.Error("an empty view is taken for the zone's")
		}
		// For a while nobody supervises it.
		learn([]hierarchy.View{{Zone: 7, Err: hierarchy.ErrUnknownZone}}, nil)
		f := tier.followed[7]
		if f == nil || f.again != now.Add(n.cfg.Hierarchy.Retry) || tier.deadline() > f.again {
			t.Errorf("it is not asked for again: %+v", f)
			return
		}
		if tier.retry(f.again - 1); f.again == 0 {
			t.Error("it is asked for too early")
		}
		if tier.retry(f.again); f.again != 0 {
			t.Error("it is not asked for again")
		}
		learn([]hierarchy.View{{Zone: 7, Err: hierarchy.ErrUnknownZone}}, nil)
		if tier.fetch(7, views); f.again != 0 || len(views) != 0 {
			t.Error("who fetches it does not have it asked for at once")
		}
		learn([]hierarchy.View{b.view(map[string]uint64{"b": 2})}, nil, "c left (failed)")
		tier.unfollow(7)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFetchBeforeFollow: the answer to a fetch is not taken for the one to a
// follow after it, and a fetch that waited for a follow is not lost with it.
func TestFetchBeforeFollow(t *testing.T) {
	n := join(t, Config{Name: "m", Management: true})
	b := below7{t}
	views, answer := make(chan hierarchy.View, 1), make(chan error, 1)
	err := n.ask(within(t), func(s *stepper) {
		tier := s.tier
		tier.fetch(7, views)
		tier.follow(7, answer)
		tier.viewed(0, b.view(map[string]uint64{"a": 1}))
		if v := <-views; len(v.Members) != 1 || tier.followed[7].whole {
			t.Errorf("fetched %v, followed %+v", v, tier.followed[7])
		}
		tier.fetch(7, views)
		tier.unfollow(7)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, ErrUnknown) {
		t.Errorf("an unfollowed follow ended with %v", err)
	}
	select {
	case v := <-views:
		if !errors.Is(v.Err, hierarchy.ErrUnknownZone) {
			t.Errorf("%+v", v)
		}
	case <-within(t).Done():
		t.Error("the fetch is never answered")
	}
}

// TestFollowNobody: a zone that nobody supervises is not followed.
func TestFollowNobody(t *testing.T) {
	n := join(t, Config{Name: "m", Management: true})
	if err := n.Follow(within(t), 7); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	if err := n.ask(within(t), func(s *stepper) {
		if len(s.tier.followed) != 0 {
			t.Error("it is followed")
		}
	}); err != nil {
		t.Fatal(err)
	}
}
