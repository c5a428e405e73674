package manager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core/quota"
)

func withQuotas(q quota.Config) *world {
	w := newWorld(smallFabric(), Config{MinWindow: 2, StartWindow: 4, MaxWindow: 64, Quotas: q}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	return w
}

// TestQuotaOfGroups: a host, and the hosts of a label, have no more groups than they may;
// the error names the quota; what is released can be had again; a restart forgets nothing.
func TestQuotaOfGroups(t *testing.T) {
	w := withQuotas(quota.Config{
		Host:   quota.Limits{Groups: 3},
		Labels: []quota.Label{{Name: "team", Hosts: []string{"h[01]"}, Limits: quota.Limits{Groups: 4}}},
	})
	create := func(i, host int) Reply { return w.create(fmt.Sprint("g", i), 8, host, 5) }
	for i := range 3 {
		if r := create(i, 0); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	refused := func(i, host int, says string) {
		t.Helper()
		if r := create(i, host); !errors.Is(r.Err, ErrTooManyGroups) || !errors.Is(r.Err, quota.ErrQuota) || !strings.Contains(r.Err.Error(), says) {
			t.Errorf("%v, want %s", r.Err, says)
		}
	}
	refused(3, 0, "host h0 is 3 groups, of which 3 are in use")
	if r := create(4, 1); r.Err != nil {
		t.Fatal(r.Err)
	}
	refused(5, 1, "label team is 4 groups")
	if r := create(6, 2); r.Err != nil {
		t.Fatal(r.Err)
	}
	if n := w.core.QuotaRefused()[quota.ByHost][quota.Groups]; n != 1 {
		t.Errorf("%d refusals are counted", n)
	}
	w.killManager()
	refused(7, 0, "label team is 4 groups")
	w.ask(Release{Group: 1})
	w.run(time.Minute)
	if r := create(8, 1); r.Err != nil {
		t.Error(r.Err)
	}
	if w.fault != nil {
		t.Error(w.fault)
	}
}

// TestQuotaOfSlots: however large the windows that operations can use, an owner's groups
// have no more slots than they may: windows stay small, and at last groups stay on hosts,
// with a refusal that names the quota, until others are released.
func TestQuotaOfSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(12, 400).Draw(t, "limit")
		w := withQuotas(quota.Config{Host: quota.Limits{Slots: limit}})
		w.watcher = func(*Output) {
			if n := w.core.book.Use(quota.ByHost, "h0", quota.Slots); n > limit {
				t.Fatalf("h0 has %d slots of %d", n, limit)
			}
		}
		var refused []uint32
		for i := range rapid.IntRange(1, 8).Draw(t, "groups") {
			g := w.create(fmt.Sprint("g", i), 64, 0, 2+i%3).Group
			w.watchAll(g)
			w.settle()
			w.demand(g, 64)
			w.obey()
		}
		for _, s := range w.core.Groups() {
			var q *quota.Refusal
			switch e, _ := w.core.Group(s.Group); {
			case s.State == Refusing && errors.As(e.Refusal, &q) && q.Resource == quota.Slots && q.Limit == limit:
				refused = append(refused, s.Group)
			case s.State != Active:
				t.Fatalf("group %d is %v: %v", s.Group, s.State, e.Refusal)
			}
		}
		if len(refused) > 0 {
			for _, s := range w.core.Groups() {
				if s.State == Active {
					w.ask(Release{Group: s.Group})
				}
			}
			w.run(2 * time.Minute)
			if all := w.core.Groups(); !slices.ContainsFunc(all, func(s Summary) bool { return s.State == Active }) && limit >= 12 {
				t.Fatalf("nobody has the slots that were given back: %+v", all)
			}
		}
		if w.fault != nil {
			t.Fatal(w.fault)
		}
	})
}

// TestQuotaOfPlans: beyond the plans that a host may have at once it creates no groups, and
// what it has lost is planned again as time passes. Operators are none of its business.
func TestQuotaOfPlans(t *testing.T) {
	w := withQuotas(quota.Config{Host: quota.Limits{Plans: 1}})
	for i := range quota.Burst {
		w.watchAll(w.create(fmt.Sprint("g", i), 8, 0, 2).Group)
	}
	w.settle()
	if r := w.create("more", 8, 0, 2); !errors.Is(r.Err, quota.ErrQuota) || !strings.Contains(r.Err.Error(), "ask again in 1s") {
		t.Errorf("beyond the plans of a second: %v", r.Err)
	}
	if r := w.create("other", 8, 1, 2); r.Err != nil {
		t.Error(r.Err)
	}
	if r := w.ask(Turn{Owner: "h0", Cost: 1}); !errors.Is(r.Err, quota.ErrQuota) {
		t.Errorf("a draft beyond the plans of a second: %v", r.Err)
	}
	for _, s := range w.core.Groups() { // every member has moved
		if s.Name != "other" {
			m := w.members[[2]uint32{s.Group, 0}]
			m.addr = addPort(m.addr)
			w.watch(s.Group, 0)
		}
	}
	active := func() (n int) {
		for _, s := range w.core.Groups() {
			if s.State == Active {
				n++
			}
		}
		return n
	}
	w.run(3500 * time.Millisecond)
	if n := active(); n != 3 {
		t.Errorf("%d groups have trees after 3.5 s of a plan a second", n)
	}
	w.run(10 * time.Second)
	if n := active(); n != quota.Burst || w.fault != nil {
		t.Errorf("%d groups have trees in the end, want %d; %v", n, quota.Burst, w.fault)
	}
}

// TestTurnsAreFair: who asks for a hundred plans delays itself: another one's only plan,
// which comes last, is made after the next of those.
func TestTurnsAreFair(t *testing.T) {
	w := newWorld(smallFabric(), Config{MinWindow: 2, MaxPlanning: 1, MaxWindow: 8}, 100_000)
	for i := range w.agents {
		w.connect(i)
	}
	var order []uint32
	w.watcher = func(o *Output) {
		for _, p := range o.Plans {
			order = append(order, p.Group)
		}
	}
	for i := range 100 {
		w.watchAll(w.create(fmt.Sprint("greedy", i), 8, 0, 2).Group)
	}
	polite := w.create("polite", 8, 1, 3).Group
	w.watchAll(polite)
	w.ask(Turn{Owner: "h3", Cost: 2})
	draft := w.nextReq
	w.watcher = func(o *Output) {
		for _, p := range o.Plans {
			order = append(order, p.Group)
		}
		for _, r := range o.Replies {
			if r.Req == draft {
				order = append(order, 0)
			}
		}
	}
	w.run(time.Second)
	w.step(TurnOver{Req: draft})
	w.run(time.Second)
	at, draftAt := slices.Index(order, polite), slices.Index(order, 0)
	if at < 0 || at > 3 || draftAt < 0 || draftAt > 3 || len(order) != 102 {
		t.Errorf("of %d plans that of another host was number %d, a draft of another number %d", len(order), at, draftAt)
	}
	if w.fault != nil {
		t.Error(w.fault)
	}
}

// TestCancelledTurns: who has gone leaves the queue, and is never planned.
func TestCancelledTurns(t *testing.T) {
	w := newWorld(smallFabric(), Config{MinWindow: 2, MaxPlanning: 1}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	for i := range 3 {
		w.watchAll(w.create(fmt.Sprint("g", i), 8, 0, 2).Group)
	}
	draft := func() uint64 {
		r := w.ask(Turn{Owner: "h1", Cost: 2})
		if r.Req != 0 {
			t.Fatalf("a turn at once: %+v", r)
		}
		return w.nextReq
	}
	first, second := draft(), draft()
	if len(w.plans) != 1 || w.plans[0].Group != 1 || w.core.Waiting() != 4 {
		t.Fatalf("planned are %+v, %d wait", w.plans, w.core.Waiting())
	}
	w.unwatch(2, 1, false)
	w.step(TurnOver{Req: first})
	if w.core.Waiting() != 2 {
		t.Errorf("%d wait", w.core.Waiting())
	}
	w.unwatch(1, 0, false) // its plan is out
	if len(w.plans) != 1 || w.plans[0].Group != 3 || w.replies[second].Req != 0 {
		t.Errorf("planned are %+v, the turn is %+v", w.plans, w.replies[second])
	}
	w.unwatch(3, 0, false)
	if len(w.plans) != 0 || w.replies[second].Req != second || w.replies[second].Err != nil {
		t.Errorf("planned are %+v, the turn is %+v", w.plans, w.replies[second])
	}
	w.run(time.Second)
	if len(w.plans) != 0 {
		t.Errorf("planned are %+v in the turn of another", w.plans)
	}
	w.watch(3, 0)
	w.step(TurnOver{Req: second})
	if len(w.plans) != 1 || w.plans[0].Group != 3 || w.core.Waiting() != 0 || w.fault != nil {
		t.Errorf("planned are %+v, %d wait; %v", w.plans, w.core.Waiting(), w.fault)
	}
}

// TestWaitingTurnsAreBounded: beyond the quota nobody waits.
func TestWaitingTurnsAreBounded(t *testing.T) {
	w := withQuotas(quota.Config{All: quota.Limits{Waiting: 5}, Host: quota.Limits{Waiting: 2}})
	w.core.cfg.MaxPlanning = 1
	w.ask(Turn{}) // it is its turn
	for _, want := range []string{"", "", "host h0 is 2 waiting plans", "host h0"} {
		if r := w.ask(Turn{Owner: "h0"}); (r.Err == nil) != (want == "") || r.Err != nil && !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%v, want %q", r.Err, want)
		}
	}
	for i := range 4 {
		if r := w.ask(Turn{Owner: fmt.Sprint("h", i+1)}); (r.Err == nil) != (i < 3) {
			t.Errorf("host %d: %v", i+1, r.Err)
		}
	}
	if w.fault != nil {
		t.Error(w.fault)
	}
}
