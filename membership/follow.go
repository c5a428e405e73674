package membership

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wirehierarchy "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// Follow subscribes this node to all changes in a base zone that it does not supervise,
// until Unfollow; BelowWatcher reads them. It returns when the zone's view has arrived;
// later changes are reported, after a change of supervisors as the difference, in which
// missing nodes have Failed. The errors are ErrRole if this is no management node,
// ErrUnknown if the zone has no supervisor and is not followed, and that of ctx, after
// which the zone may be followed.
func (n *Node) Follow(ctx context.Context, number uint32) error {
	refused, err := answered(ctx, n, func(t *tier, to chan<- error) { t.follow(number, to) })
	if err != nil {
		return fmt.Errorf("membership: following zone %d: %w", number, err)
	}
	return refused
}

// Unfollow ends Follow.
func (n *Node) Unfollow(ctx context.Context, number uint32) error {
	return n.supervising(ctx, func(t *tier) { t.unfollow(number) })
}

// followed is a base zone of which readers are sent all changes.
type followed struct {
	members map[gossip.ID]gossip.Version // once whole: as readers were notified
	whole   bool                         // there was a view
	later   bool                         // it is asked for when a fetch before it is answered
	again   core.Time                    // when it is asked for again; 0: it has been
	answers []chan<- error               // of Follow, until it is whole
}

// fetch has a zone's view be sent to answer. No zone is fetched twice at a time,
// so that it is known whose a view is.
func (t *tier) fetch(number uint32, answer chan<- hierarchy.View) {
	zone := wirehierarchy.Zone(number)
	f := t.followed[number]
	switch {
	case f != nil && f.again != 0: // somebody may supervise it by now
		f.again = 0
		t.supervisor.Fetch(zone, true)
	case f != nil && f.whole:
		v := hierarchy.View{Zone: zone}
		for id, version := range f.members {
			v.Members = append(v.Members, wirehierarchy.Member{ID: id, Version: version})
		}
		answer <- v
		return
	case f == nil && len(t.waiting[number]) == 0:
		t.supervisor.Fetch(zone, false)
	}
	t.waiting[number] = append(t.waiting[number], answer)
}

// follow begins to follow a zone.
func (t *tier) follow(number uint32, answer chan<- error) {
	f := t.followed[number]
	switch {
	case f == nil:
		f = &followed{later: len(t.waiting[number]) > 0}
		t.followed[number] = f
		if !f.later {
			t.supervisor.Fetch(wirehierarchy.Zone(number), true)
		}
	case f.whole:
		answer <- nil
		return
	}
	f.answers = append(f.answers, answer)
}

// unfollow ends it.
func (t *tier) unfollow(number uint32) {
	f := t.followed[number]
	if f == nil {
		return
	}
	delete(t.followed, number)
	f.answer(fmt.Errorf("%w: zone %d is not followed any more", ErrUnknown, number))
	t.supervisor.Forget(wirehierarchy.Zone(number))
	if !f.later && len(t.waiting[number]) > 0 {
		t.supervisor.Fetch(wirehierarchy.Zone(number), false)
	}
}

// answer answers all calls of Follow.
func (f *followed) answer(err error) {
	for _, to := range f.answers {
		to <- err // has room
	}
	f.answers = nil
}

// deadline returns when the role, or what is followed, wants a step.
func (t *tier) deadline() core.Time {
	at := t.role.Deadline()
	for _, f := range t.followed {
		if f.again != 0 {
			at = at.Earlier(f.again)
		}
	}
	return at
}

// retry asks again for followed zones that nobody supervised.
func (t *tier) retry(now core.Time) {
	for number, f := range t.followed {
		if f.again != 0 && now >= f.again {
			f.again = 0
			t.supervisor.Fetch(wirehierarchy.Zone(number), true)
		}
	}
}

// inform gives what the role has learnt of base zones to who wants it. The view of
// a zone that is supervised here is what the step has ended with, that of another
// one what changes came after.
func (t *tier) inform(now core.Time) {
	var own []hierarchy.View
	for _, v := range t.out.Views {
		if _, err := t.supervisor.Members(v.Zone); err == nil {
			own = append(own, v)
		} else {
			t.viewed(now, v)
		}
	}
	for i := range t.out.Notices {
		t.noticed(&t.out.Notices[i])
	}
	for _, v := range own {
		t.viewed(now, v)
	}
}

// noticed takes a change of a base zone. Of a zone that is followed readers are
// sent what is news to them: who begins to supervise it hears of everybody once
// more.
func (t *tier) noticed(x *hierarchy.Notice) {
	if f := t.followed[uint32(x.Zone)]; f != nil && f.whole && !f.changes(x) {
		return
	}
	t.s.n.deliver(true, below(x))
}

// changes takes a notice into what readers were given, and reports whether it
// changes who is there.
func (f *followed) changes(x *hierarchy.Notice) bool {
	known, there := f.members[x.ID]
	switch {
	case there && known.Incarnation > x.Version.Incarnation:
		return false // of an earlier life
	case x.Kind == member.Leave:
		delete(f.members, x.ID)
		return there
	default:
		f.members[x.ID] = x.Version
		return !there || known.Incarnation != x.Version.Incarnation
	}
}

// viewed takes the view of a base zone, or that nobody has it.
func (t *tier) viewed(now core.Time, v hierarchy.View) {
	number := uint32(v.Zone)
	for _, to := range t.waiting[number] {
		to <- v // has room
	}
	delete(t.waiting, number)
	f := t.followed[number]
	switch {
	case f == nil:
	case f.later:
		f.later = false
		t.supervisor.Fetch(v.Zone, true)
	case v.Err != nil && f.whole, v.Err == nil && len(v.Members) == 0:
		// Nobody, or one that has only just begun to supervise it.
		f.again = now.Add(t.s.n.cfg.Hierarchy.Retry)
	case v.Err != nil:
		delete(t.followed, number)
		f.answer(fmt.Errorf("%w: zone %d: %w", ErrUnknown, number, v.Err))
	default:
		t.replaced(f, v)
	}
}

// replaced reports the difference between a followed zone's view and a new one.
func (t *tier) replaced(f *followed, v hierarchy.View) {
	is := make(map[gossip.ID]gossip.Version, len(v.Members))
	for _, m := range v.Members {
		is[m.ID] = m.Version
	}
	was := f.members
	f.members = is
	if !f.whole {
		f.whole = true
		f.answer(nil)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(was)) {
		version, there := is[id]
		if there && version.Incarnation == was[id].Incarnation {
			continue
		}
		x := hierarchy.Notice{Zone: v.Zone, Kind: member.Leave, ID: id, Version: was[id], Cause: member.Suspected}
		if there {
			x.Cause = member.Restarted
		}
		t.s.n.deliver(true, below(&x))
	}
	for _, m := range v.Members {
		if version, there := was[m.ID]; !there || version.Incarnation != m.Version.Incarnation {
			x := hierarchy.Notice{Zone: v.Zone, Kind: member.Join, ID: m.ID, Version: m.Version}
			t.s.n.deliver(true, below(&x))
		}
	}
}
