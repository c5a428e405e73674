package zone_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/zone"
	sim "github.com/tributary-fabric/tributary/internal/sim/zone"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// crowd is a simulated zone whose nodes run zone.Core.
type crowd struct {
	*sim.World
	t     *testing.T
	cores []*zone.Core
	left  map[[2]int]core.Time // observer, who: when it was reported
}

func newCrowd(t *testing.T, nodes int) *crowd {
	c := &crowd{t: t, cores: make([]*zone.Core, nodes), left: map[[2]int]core.Time{}}
	cfg := sim.DefaultConfig(nodes, 1)
	cfg.Wrap = func(i int, m *member.Core, _ core.Time) sim.Stepper {
		k, err := zone.Around(m, attribute.DefaultConfig(1))
		if err != nil {
			t.Fatal(err)
		}
		c.cores[i] = k
		return k
	}
	cfg.Observe = func(node int, now core.Time, out *member.Output) {
		for _, n := range out.Notices {
			if n.Kind == member.Leave {
				c.left[[2]int{node, int(n.Node)}] = now
			}
		}
	}
	var err error
	if c.World, err = sim.New(cfg); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		c.Start(i)
	}
	c.agree()
	return c
}

// agree waits until all views are equal, and a little longer.
func (c *crowd) agree() {
	c.t.Helper()
	if _, ok := c.Await(time.Minute, c.Agreed); !ok {
		c.t.Fatal("the views are not equal")
	}
	c.RunFor(5 * time.Second)
}

// wake has a node stepped, for what was written.
func (c *crowd) wake(i int) { c.Notify(i, member.Input{Kind: member.Attached}) }

// count returns at how many nodes a node's attribute has a value.
func (c *crowd) count(of int, key, value string) (n int) {
	for i, k := range c.cores {
		if v, ok := k.Attribute(c.cores[of].Self(), key); c.Up(i) && ok && string(v) == value {
			n++
		}
	}
	return n
}

// TestAttributesReachEverybody (13, 15), within a few round trips after a quiet time, and
// then nothing more is sent. A node that starts anew begins with none.
func TestAttributesReachEverybody(t *testing.T) {
	const nodes = 200
	c := newCrowd(t, nodes)
	if err := c.cores[7].Set("color", []byte("red")); err != nil {
		t.Fatal(err)
	}
	c.wake(7)
	if took, ok := c.Await(time.Second, func() bool { return c.count(7, "color", "red") == nodes }); !ok || took > 100*time.Millisecond {
		t.Errorf("%d of %d have it after %v", c.count(7, "color", "red"), nodes, took)
	}
	c.RunFor(5 * time.Second)
	before := c.Traffic.ByType[gossip.Attributes]
	c.RunFor(time.Hour / 10)
	if after := c.Traffic.ByType[gossip.Attributes]; after != before {
		t.Errorf("%d messages of attributes while nothing is written", after-before)
	}
	life := c.cores[7].Self()
	c.Kill(7)
	c.agree()
	for i, k := range c.cores {
		if v, ok := k.Attribute(life, "color"); i != 7 && ok {
			t.Fatalf("node %d has color %s of one that has died", i, v)
		}
	}
	c.Start(7)
	c.agree()
	if n := c.count(7, "color", "red"); n != 0 || c.cores[7].Self() == life {
		t.Errorf("%d nodes have what it wrote in an earlier life", n)
	}
}

// TestLateNodesGetAttributes (18, 19): who joins gets what was written before.
func TestLateNodesGetAttributes(t *testing.T) {
	const nodes = 50
	c := newCrowd(t, nodes)
	for i := range c.cores {
		if err := c.cores[i].Set("number", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		c.wake(i)
	}
	c.Kill(3)
	c.agree()
	c.Start(3)
	c.agree()
	for i := range c.cores {
		if n := c.count(i, "number", fmt.Sprint(i)); i != 3 && n != nodes {
			t.Errorf("%d nodes have the number of %d", n, i)
		}
	}
}

// TestMonitorsAreReportedAtOnce (12): who has declared itself is notified of a death before
// everybody else; who no longer does is not.
func TestMonitorsAreReportedAtOnce(t *testing.T) {
	const nodes = 100
	c := newCrowd(t, nodes)
	declare := func(i int, on bool) {
		if err := c.cores[i].SetMonitor(on); err != nil {
			t.Fatal(err)
		}
		c.wake(i)
		c.RunFor(time.Second)
	}
	reported := func(victim int, monitor int) bool {
		at := c.Now()
		c.Kill(victim)
		c.agree()
		took := c.left[[2]int{monitor, victim}].Sub(at)
		return took <= 30*time.Millisecond
	}
	declare(1, true)
	declare(2, true)
	for i, k := range c.cores {
		want := 2
		if i == 1 || i == 2 {
			want = 1
		}
		if n := len(k.Monitors()); n != want {
			t.Fatalf("node %d knows %d monitors", i, n)
		}
	}
	for _, victim := range []int{10, 11, 12} {
		if !reported(victim, 1) || !reported(victim+20, 2) {
			t.Errorf("a monitor is notified late of %d or %d", victim, victim+20)
		}
	}
	declare(1, false)
	late := 0
	for _, victim := range []int{13, 14, 15, 16, 17, 18} {
		if !reported(victim, 1) {
			late++
		}
	}
	if late == 0 {
		t.Error("one that is no monitor is notified like one")
	}
	c.Kill(2)
	c.agree()
	for i, k := range c.cores {
		if n := len(k.Monitors()); c.Up(i) && n != 0 {
			t.Errorf("node %d knows %d monitors, and there is none", i, n)
		}
	}
}

func TestReservedKeys(t *testing.T) {
	dir := member.NewDirectory()
	if _, err := gossip.MakeID("a"); err == nil {
		t.Fatal("an ID without an endpoint")
	}
	const id = "a@10.0.0.1:1"
	cfg := zone.DefaultConfig(id, 1)
	cfg.Monitor = true
	k, err := zone.New(cfg, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, is := k.Attribute(k.Self(), zone.MonitorKey); !is {
		t.Error("it is no monitor")
	}
	for _, err := range []error{k.Set(zone.MonitorKey, nil), k.Delete(zone.MonitorKey), k.Set(zone.Reserved, nil)} {
		if !errors.Is(err, zone.ErrReserved) {
			t.Errorf("%v, want %v", err, zone.ErrReserved)
		}
	}
	if err := errors.Join(k.Set("own", nil), k.Delete("own"), k.Declare("tributary.x", nil), k.Declare("tributary.x", nil), k.Retract("tributary.x"), k.Retract("tributary.x")); err != nil {
		t.Error(err)
	}
	if v := k.Attributes().Version(k.Self()); v != 5 {
		t.Errorf("version %d after five writes that change something", v)
	}
	if node, ok := k.Find(k.Self()); !ok || k.ID(node) != id || k.Life(node) != k.Self() || len(k.View()) != 1 || k.Version(node).Incarnation != 1 {
		t.Error("it does not find itself")
	}
	if _, err := zone.New(zone.Config{}, dir, 0); !errors.Is(err, member.ErrConfig) {
		t.Errorf("%v", err)
	}
	bad := zone.DefaultConfig("b@10.0.0.1:2", 1)
	bad.Attributes.Period = 0
	if _, err := zone.New(bad, dir, 0); !errors.Is(err, attribute.ErrConfig) {
		t.Errorf("%v", err)
	}
}
