package scoll_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// TestPoint32Stopping: a service that is closed refuses what is new, aborts what
// is active, and waits for its callbacks; what was lent to it is its own again.
func TestPoint32Stopping(t *testing.T) {
	c := start(t, 4, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	active, release := rolls[2].holds(t, g)
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.service[2].Close(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("a callback runs, and the service is closed: %v", err)
	}
	_, err := call(t, g, scoll.Broadcast{})
	if m := missing(t, err); m != (scoll.Missing{Node: "n2", Nodes: 2, Status: scoll.StatusRefused}) {
		t.Errorf("a new request: %+v", m)
	}
	if reason := rolls[0].replies(); !strings.Contains(reason[len(reason)-1].Reason+reason[0].Reason+reason[1].Reason, "stopping") {
		t.Errorf("the parent is notified of %+v", reason)
	}
	closed := make(chan error, 1)
	go func() { closed <- c.service[2].Close(background(t)) }()
	select {
	case err := <-closed:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	close(release)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	<-active.Done()
	if got := repliesWith(rolls[0], "n2", scoll.StatusAborted); got != 1 {
		t.Errorf("%d replies report the abort", got)
	}
	if k := c.nodes[2].Counters(); k.ReplyBuffers+k.Requests+k.Callbacks+k.Exposed != 0 || k.Groups != 0 {
		t.Errorf("%+v", k)
	}
	_, err = call(t, g, scoll.Broadcast{})
	if m := missing(t, err); m.Status != scoll.StatusNoService {
		t.Errorf("after it was closed: %+v", m)
	}
}

// repliesWith counts replies of a child with a status.
func repliesWith(s *rollCall, child string, status scoll.Status) (n int) {
	for _, r := range s.replies() {
		if r.Source == child && r.Status == status {
			n++
		}
	}
	return n
}

// TestCloseWithoutEnd: a node whose callback never returns can be left, and says
// so.
func TestCloseWithoutEnd(t *testing.T) {
	c := start(t, 2, nil)
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	r, release := rolls[1].holds(t, g)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := c.nodes[1].Close(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, scoll.ErrClosed) || !strings.Contains(err.Error(), "1 callbacks have not returned") {
		t.Errorf("%v", err)
	}
	close(release)
	await(t, "the callback to return", func() bool { return c.nodes[1].Counters().Callbacks == 0 })
	r.Abort()
	<-r.Done()
	if _, err := c.nodes[1].Register(9, silent(true)); !errors.Is(err, scoll.ErrClosed) {
		t.Errorf("a service of a closed node: %v", err)
	}
	if err := c.service[1].CreateGroup(scoll.GroupSpec{Targets: c.targets()}, func(*scoll.Group, error) {}); !errors.Is(err, scoll.ErrClosed) {
		t.Errorf("a group of a closed node: %v", err)
	}
	c.nodes = c.nodes[:1] // the other was cut off: it may hold what was not sent
}

// TestCloseWhileBusy: nodes are closed one after the other while broadcasts run.
// Every request of the root's ends once.
func TestCloseWhileBusy(t *testing.T) {
	c := start(t, 8, func(_ int, cfg *config) { cfg.RoundTrip = 300 * time.Millisecond })
	c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	var under []*scoll.Request
	for i := range 200 {
		r, err := g.NewRequest(scoll.Broadcast{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Send(); err != nil {
			t.Fatal(err)
		}
		under = append(under, r)
		if i%40 == 39 {
			<-under[i-10].Done()
			if err := c.nodes[7-i/40].Close(background(t)); err != nil {
				t.Error(err)
			}
		}
	}
	succeeded := 0
	for _, r := range under {
		<-r.Done()
		if o := r.Outcome(); r.Err() == nil && o.Ran == 8 {
			succeeded++
		} else if r.Err() == nil || o.Ran == 8 {
			t.Errorf("%+v, %v", o, r.Err())
		}
	}
	if t.Logf("%d of %d broadcasts succeeded", succeeded, len(under)); succeeded == 0 {
		t.Error("none, though all nodes were there at first")
	}
}

func TestConfig(t *testing.T) {
	if err := scoll.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	host, err := hostlib.Join(t.Context(), hostlib.Config{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close(t.Context())
	long, err := hostlib.Join(t.Context(), hostlib.Config{Name: strings.Repeat("x", scoll.MaxNode+1)})
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close(t.Context())
	if _, err := scoll.On(long, scoll.Config{}); !errors.Is(err, scoll.ErrConfig) || !strings.Contains(err.Error(), "name") {
		t.Errorf("a long name: %v", err)
	}
	for name, spoil := range map[string]func(*scoll.Config){
		"a negative time":  func(c *scoll.Config) { c.RoundTrip = -1 },
		"no attempt":       func(c *scoll.Config) { c.Attempts = -1 },
		"small parts":      func(c *scoll.Config) { c.PartBytes = 1 },
		"no callbacks":     func(c *scoll.Config) { c.Workers = -1 },
		"the library's":    func(c *scoll.Config) { c.Trees = map[uint8]scoll.Shape{1: nil} },
		"radix":            func(c *scoll.Config) { c.Tree = scoll.KAry(-1) },
		"negative buffers": func(c *scoll.Config) { c.ReceiveBuffers = -1 },
	} {
		c := scoll.DefaultConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, scoll.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := scoll.On(host, c); !errors.Is(err, scoll.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
