package scoll_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

var errOdd = errors.New("something is odd")

// missing returns the only subtree that an error names.
func missing(t *testing.T, err error) scoll.Missing {
	t.Helper()
	var incomplete *scoll.IncompleteError
	if !errors.As(err, &incomplete) || len(incomplete.Missing) != 1 {
		t.Fatalf("%v, want one subtree that was not reached", err)
	}
	return incomplete.Missing[0]
}

// replyOf returns what a node had for reply of a child.
func replyOf(t *testing.T, s *rollCall, child string) scoll.Reply {
	t.Helper()
	var of []scoll.Reply
	for _, r := range s.replies() {
		if r.Source == child {
			of = append(of, r)
		}
	}
	if len(of) != 1 {
		t.Fatalf("%s had %d replies of %s, want 1", s.node, len(of), child)
	}
	return of[0]
}

func TestPoint23AllAreAlive(t *testing.T) {
	var news scoll.News
	c := start(t, 8, func(_ int, cfg *config) { cfg.Liveness = &news })
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	news.Down("n7")
	await(t, "n7 to be dead", func() bool {
		_, err := call(t, g, scoll.Broadcast{})
		return errors.Is(err, scoll.ErrDead) && strings.Contains(err.Error(), "n7")
	})
	ran := len(rolls[0].has())
	r, err := call(t, g, scoll.Broadcast{})
	if !errors.Is(err, scoll.ErrDead) || !errors.Is(r.Err(), scoll.ErrDead) || len(rolls[0].has()) != ran {
		t.Errorf("%v, %v; callbacks ran: %v", err, r.Err(), len(rolls[0].has()) != ran)
	}
	news.Up("n7", c.nodes[7].host.Incarnation())
	await(t, "n7 to live", func() bool {
		_, err := call(t, g, scoll.Broadcast{})
		return err == nil
	})
}

// TestPoint24DeliveryFails: a node that cannot be called, and nodes of which it
// is notified that they have died or rebooted while they are waited for.
func TestPoint24DeliveryFails(t *testing.T) {
	var news scoll.News
	c := start(t, 4, func(_ int, cfg *config) { cfg.Liveness = &news })
	rolls := c.rolls()
	here, gone := c.targets()[:3], append(c.targets()[:3], scoll.Target{Node: "nowhere", Tags: []scoll.Tag{{}}})
	var g *scoll.Group
	err := c.service[0].CreateGroup(scoll.GroupSpec{Name: "lost", Targets: gone, Delayed: true, Tree: scoll.Flat()}, func(made *scoll.Group, _ error) { g = made })
	if err != nil {
		t.Fatal(err)
	}
	_, err = call(t, g, scoll.Broadcast{Payload: []byte("lost")})
	if m := missing(t, err); m != (scoll.Missing{Node: "nowhere", Nodes: 1, Status: scoll.StatusUnsent}) {
		t.Errorf("%+v", m)
	}
	if r := replyOf(t, rolls[0], "nowhere"); r.Status != scoll.StatusUnsent || r.Type() != scoll.ByNetwork || !strings.Contains(r.Reason, errNowhere.Error()) {
		t.Errorf("%+v", r)
	}
	if k, made := c.nodes[0].Counters(), c.nodes[0].host.Connections(); k.Retries == 0 || made.Failed == 0 {
		t.Errorf("%+v", k)
	}

	for _, what := range []struct {
		name   string
		report func()
		want   scoll.Status
	}{
		{"death", func() { news.Down("n2") }, scoll.StatusDead},
		{"reboot", func() { news.Up("n2", c.nodes[2].host.Incarnation()+1) }, scoll.StatusRebooted}, // the last: nobody calls n2 as it was
	} {
		name := what.name
		news.Up("n2", c.nodes[2].host.Incarnation())
		g := c.group(0, scoll.GroupSpec{Name: name, Targets: here, Tree: scoll.Flat()})
		rolls[0].set(func(s *rollCall) { s.heard = nil })
		r, release := rolls[2].holds(t, g)
		what.report()
		<-r.Done()
		close(release)
		rolls[2].set(func(s *rollCall) { s.also = nil })
		if got := replyOf(t, rolls[0], "n2"); got.Status != what.want || missing(t, r.Err()).Status != what.want {
			t.Errorf("%s: %+v, %v", name, got, r.Err())
		}
		if heard(r) != "n0 n1" {
			t.Errorf("%s: replies of %s", name, heard(r))
		}
	}
}

// TestPoint27Expiry: a node that never answers is given up in time, and its
// parent replies with what it has. n3 is beneath n2.
func TestPoint27Expiry(t *testing.T) {
	c := start(t, 4, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	for _, n := range c.nodes {
		n.SetRoundTrip(50 * time.Millisecond)
	}
	release := make(chan struct{})
	rolls[3].set(func(s *rollCall) {
		s.also = func(callback string, _ *scoll.Request) error {
			if callback == "incoming-request" {
				<-release
			}
			return nil
		}
	})
	also := func(callback string, r *scoll.Request) error {
		if callback == "pre-request" {
			r.SetTimeout(time.Millisecond) // for its own child
		}
		return nil
	}
	rolls[2].set(func(s *rollCall) { s.also = also })
	r, err := call(t, g, scoll.Broadcast{Timeout: patience})
	close(release)
	if m := missing(t, err); m != (scoll.Missing{Node: "n3", Nodes: 1, Status: scoll.StatusExpired}) {
		t.Errorf("%+v", m)
	}
	if got := replyOf(t, rolls[2], "n3"); got.Status != scoll.StatusExpired || got.Type() != scoll.ByTime {
		t.Errorf("%+v", got)
	}
	if heard(r) != "n0 n1 n2" {
		t.Errorf("replies of %s", heard(r))
	}
}

// failing returns how n2 of a binomial tree of 4 fails in a callback, how its
// parent n0 is notified, and who has run the request.
func TestErrorsOfCallbacks(t *testing.T) {
	for _, c := range []struct {
		callback string
		panics   bool
		status   scoll.Status
		nodes    int    // that are missing
		heard    string // replies at the root
		calls    string // of n2
	}{
		// Points 28 and 29: nothing is forwarded, no callback follows.
		{"pre-request", false, scoll.StatusRefused, 2, "n0 n1", "pre-request"},
		{"pre-request", true, scoll.StatusRefused, 2, "n0 n1", "pre-request"},
		// Points 16 and 30: the children's work stands, the service's reply does not.
		{"incoming-request", false, scoll.StatusFailed, 1, "n0 n1", "pre-request incoming-request incoming-reply post-reply reply-out"},
		{"incoming-request", true, scoll.StatusFailed, 1, "n0 n1", "pre-request incoming-request incoming-reply post-reply reply-out"},
		{"incoming-reply", true, scoll.StatusFailed, 1, "n0 n1", "pre-request incoming-request incoming-reply post-reply reply-out"},
		{"post-reply", true, scoll.StatusFailed, 1, "n0 n1", "pre-request incoming-request incoming-reply post-reply reply-out"},
		{"reply-out", true, scoll.StatusOK, 0, "n0 n1 n2 n3", "pre-request incoming-request incoming-reply post-reply reply-out"},
	} {
		for _, inline := range []bool{false, true} {
			k := start(t, 4, nil)
			var rolls []*rollCall
			k.register(func(i int) scoll.Callbacks {
				rolls = append(rolls, &rollCall{node: k.nodes[i].Name()})
				call := rolls[i].callbacks()
				call.Inline = inline
				return call
			})
			g := k.group(0, scoll.GroupSpec{Name: "all"})
			rolls[2].set(func(s *rollCall) {
				s.also = func(callback string, _ *scoll.Request) error {
					if callback == c.callback && c.panics {
						panic(errOdd)
					} else if callback == c.callback {
						return errOdd
					}
					return nil
				}
			})
			r, err := call(t, g, scoll.Broadcast{})
			got := replyOf(t, rolls[0], "n2")
			if got.Status != c.status || c.status != scoll.StatusOK && (got.Type() != scoll.ByService || !strings.Contains(got.Reason, errOdd.Error())) {
				t.Errorf("%s: the parent has %+v", c.callback, got)
			}
			if c.nodes > 0 {
				if m := missing(t, err); m != (scoll.Missing{Node: "n2", Nodes: c.nodes, Status: c.status}) {
					t.Errorf("%s: %+v", c.callback, m)
				}
			} else if err != nil {
				t.Errorf("%s: %v", c.callback, err)
			}
			if heard(r) != c.heard {
				t.Errorf("%s: replies of %s, want %s", c.callback, heard(r), c.heard)
			}
			await(t, "the callbacks of n2", func() bool { return len(rolls[2].calls()) == len(strings.Fields(c.calls)) })
			calls := rolls[2].calls()
			if slices.Sort(calls[min(1, len(calls)):max(1, len(calls)-2)]); calls[0] != "pre-request" {
				t.Errorf("%s: %q", c.callback, calls)
			}
			if c.panics { // which is counted after the callback has reported itself
				await(t, "the panic to be counted", func() bool { return k.nodes[2].Counters().Panics == 1 })
			} else if n := k.nodes[2].Counters().Panics; n != 0 {
				t.Errorf("%s: %d panics were counted", c.callback, n)
			}
			if ran := len(rolls[3].has()); (ran == 0) != (c.callback == "pre-request") {
				t.Errorf("%s: n3 ran %d", c.callback, ran)
			}
		}
	}
}

// TestErrorsOnTheRoot: the root's own callbacks fail.
func TestErrorsOnTheRoot(t *testing.T) {
	for callback, status := range map[string]scoll.Status{
		"pre-request": scoll.StatusRefused, "incoming-request": scoll.StatusFailed, "post-reply": scoll.StatusFailed,
	} {
		c := start(t, 4, nil)
		rolls := c.rolls()
		g := c.group(0, scoll.GroupSpec{Name: "all"})
		rolls[0].set(func(s *rollCall) {
			s.also = func(name string, _ *scoll.Request) error {
				if name == callback {
					panic(errOdd)
				}
				return nil
			}
		})
		_, err := call(t, g, scoll.Broadcast{})
		var failed *scoll.StatusError
		if !errors.As(err, &failed) || failed.Status != status || !strings.Contains(failed.Reason, errOdd.Error()) {
			t.Errorf("%s: %v", callback, err)
		}
		if ran := len(rolls[3].has()); (ran == 0) != (callback == "pre-request") {
			t.Errorf("%s: n3 ran %d", callback, ran)
		}
	}
}

// TestBuffers: too few, and too small ones.
func TestBuffers(t *testing.T) {
	c := start(t, 4, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	rolls[0].set(func(s *rollCall) { s.room = 3 }) // "n2 n3" is longer, "n1" is not
	r, err := call(t, g, scoll.Broadcast{})
	if m := missing(t, err); m != (scoll.Missing{Node: "n2", Nodes: 2, Status: scoll.StatusOverflow}) || heard(r) != "n0 n1" {
		t.Errorf("%+v, replies of %s", m, heard(r))
	}
	if got := replyOf(t, rolls[0], "n2"); got.Status != scoll.StatusOverflow || got.Type() != scoll.ByService || len(got.Body) != 0 {
		t.Errorf("%+v", got)
	}
	none := start(t, 4, nil)
	none.register(func(i int) scoll.Callbacks {
		call := silent(false)
		if i == 2 {
			call.PreRequest = func(*scoll.Request) error { return nil }
		}
		return call
	})
	_, err = call(t, none.group(0, scoll.GroupSpec{Name: "all"}), scoll.Broadcast{})
	if m := missing(t, err); m != (scoll.Missing{Node: "n2", Nodes: 2, Status: scoll.StatusNoBuffer}) {
		t.Errorf("%+v", m)
	}
}

// TestRepliesTwiceOrNever: the second is refused; for a service that gives none
// the library replies in the end, if its parent has not given it up before.
func TestRepliesTwiceOrNever(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	twice := make(chan error, 2)
	rolls[1].set(func(s *rollCall) {
		s.quiet = true
		s.also = func(callback string, r *scoll.Request) error {
			if callback == "post-reply" {
				twice <- r.Reply([]byte("once"))
				twice <- r.Reply([]byte("twice"))
			}
			return nil
		}
	})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != "n0 once" {
		t.Errorf("%v, %s", err, heard(r))
	}
	if first, second := <-twice, <-twice; first != nil || !errors.Is(second, scoll.ErrReplied) {
		t.Errorf("%v, %v", first, second)
	}
	rolls[1].set(func(s *rollCall) { s.also = nil })
	for _, n := range c.nodes {
		n.SetRoundTrip(20 * time.Millisecond)
	}
	_, err := call(t, g, scoll.Broadcast{})
	if m := missing(t, err); m.Node != "n1" || m.Status != scoll.StatusExpired && m.Status != scoll.StatusNoReply {
		t.Errorf("%+v", m)
	}
	await(t, "reply-out", func() bool { return len(rolls[1].outs()) == 2 })
	var failed *scoll.StatusError
	if err := rolls[1].outs()[1]; !errors.As(err, &failed) || failed.Status != scoll.StatusNoReply {
		t.Errorf("the silent service reads %v", err)
	}
}

// TestPoint11Abort: by the root, and by a member, while the request runs.
func TestPoint11Abort(t *testing.T) {
	for _, by := range []string{"n0", "n2"} {
		c := start(t, 4, nil)
		rolls := c.rolls()
		g := c.group(0, scoll.GroupSpec{Name: "all"})
		release := make(chan struct{})
		var once sync.Once
		also(rolls, func(node, callback string, r *scoll.Request) error {
			if callback != "incoming-request" {
				return nil
			}
			if node == "n3" {
				<-release // n3's reply is missing
			}
			if node == by {
				r.Abort()
				if err := r.Reply(nil); !errors.Is(err, scoll.ErrAborted) {
					t.Errorf("a reply to an aborted request: %v", err)
				}
				if by == "n2" {
					once.Do(func() { close(release) })
				}
			}
			return nil
		})
		r, err := g.NewRequest(scoll.Broadcast{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		<-r.Done()
		once.Do(func() { close(release) })
		var failed *scoll.StatusError
		switch err := r.Err(); {
		case by == "n0":
			if !errors.As(err, &failed) || failed.Status != scoll.StatusAborted || failed.Status.Type() != scoll.ByAbort {
				t.Errorf("the root's: %v", err)
			}
		case replyOf(t, rolls[0], "n2").Status != scoll.StatusAborted:
			t.Errorf("the member's: %v", err)
		}
	}
}

// TestPoint31BulkErrors: bulk data that does not come, or has no room.
func TestPoint31BulkErrors(t *testing.T) {
	c := start(t, 4, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	var mu sync.Mutex
	var shown, replied error
	small := func(callback string, r *scoll.Request) error {
		switch callback {
		case "pre-request":
			r.SetBulk([][]byte{make([]byte, 10)})
		case "incoming-request":
			mu.Lock()
			defer mu.Unlock()
			shown, replied = r.BulkErr(), r.Reply(nil)
		}
		return nil
	}
	rolls[2].set(func(s *rollCall) { s.also = small })
	r, err := call(t, g, scoll.Broadcast{Bulk: [][]byte{bytes.Repeat([]byte{1}, 11)}})
	if m := missing(t, err); m != (scoll.Missing{Node: "n2", Nodes: 2, Status: scoll.StatusNoBuffer}) || heard(r) != "n0 n1" {
		t.Errorf("%+v, replies of %s", m, heard(r))
	}
	await(t, "reply-out", func() bool { return len(rolls[2].outs()) == 1 })
	mu.Lock()
	defer mu.Unlock()
	var failed *scoll.StatusError
	if !errors.As(shown, &failed) || failed.Status != scoll.StatusNoBuffer || !errors.Is(replied, scoll.ErrNoReply) {
		t.Errorf("bulk status %v, reply %v", shown, replied)
	}
	if got := replyOf(t, rolls[2], "n3"); got.Status != scoll.StatusBulkFailed || got.Type() != scoll.ByNetwork {
		t.Errorf("%+v", got)
	}
	if len(rolls[3].has()) != 0 {
		t.Error("it was forwarded")
	}
}
