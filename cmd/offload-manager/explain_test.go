package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// watchers has members of a group watch until the test ends.
func (d *deployment) watchers(group uint32, members int) {
	d.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, members)
	for rank := range members {
		w := manager.Watch{Group: group, Rank: uint32(rank), DataAddr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(20000+rank))}
		s, err := d.client.HostSession(ctx)
		if err == nil {
			err = s.Send(w)
		}
		if err != nil {
			d.Fatal(err)
		}
		go func() {
			var err error
			for err == nil {
				_, err = s.Recv()
			}
			ended <- err
		}()
	}
	d.Cleanup(func() {
		cancel()
		for range members {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				d.Errorf("a member's stream ended: %v", err)
			}
		}
	})
}

// group makes a group by the command, has its members watch, and waits until it
// stands so.
func (d *deployment) group(state manager.State, args ...string) uint32 {
	d.Helper()
	var made struct{ Group uint32 }
	if err := json.Unmarshal([]byte(d.ask(append([]string{"group", "create", "--format", "json"}, args...)...)), &made); err != nil {
		d.Fatal(err)
	}
	d.watchers(made.Group, 4)
	d.eventually(fmt.Sprintf("group %v is %v", args, state), func(ctx context.Context) (bool, error) {
		e, err := d.client.Explain(ctx, rpc.GroupRef{Group: made.Group})
		return e.State == state, err
	})
	return made.Group
}

// TestExplain asks real processes why groups have the trees that they have.
func TestExplain(t *testing.T) {
	d := deploy(t)
	hosts := []string{"h0", "h1", "h2", "h3"}
	d.group(manager.Active, append(append([]string{"planned"}, hosts...), "--collective", "allreduce", "--bytes", "64MiB", "--criterion", "load")...)
	d.group(manager.Active, append([]string{"weighed"}, append(hosts, "--weights", "latency=2,load=1")...)...)
	d.group(manager.Refusing, append([]string{"greedy"}, append(hosts, "--chunk", "16384")...)...)
	for _, q := range []struct {
		args []string
		says []string
	}{
		{[]string{"planned"}, []string{"For: allreduce of 67108864 bytes, by load", "by load, since it was given", "found by levels, and none is better",
			"ROOT", "LOST BY", "(chosen)", "By the model an operation takes", "created with 4 members"}},
		{[]string{"planned", "--format", "svg"}, []string{"<svg", "edge tree", "Tree of epoch"}},
		{[]string{"weighed"}, []string{"For: any collective, by latency=2,load=1", "by the weights, since weights were given"}},
		{[]string{"greedy"}, []string{"Refused: manager: no tree: chunk bytes on switch leaf-", "needed 16384, free 8928"}},
	} {
		if out := d.ask(append([]string{"group", "explain"}, q.args...)...); !containsAll(out, q.says) {
			t.Errorf("%v says\n%s\nwithout one of %q", q.args, out, q.says)
		}
	}
	var reported view.Group
	if err := json.Unmarshal([]byte(d.ask("group", "explain", "planned", "--format", "json")), &reported); err != nil || len(reported.Trees) != 1 {
		t.Fatalf("%+v, %v", reported, err)
	}
	tree := reported.Trees[0]
	c := tree.Cost
	if tree.Criterion != "load" || tree.Method != "levels" || !tree.Exact || c.Hops != 6 || c.Depth != 2 || c.Latency == 0 || c.Bandwidth == 0 || c.Price == 0 || c.Share == 0 ||
		tree.Forecast == nil || tree.Forecast.Switches == 0 || tree.Forecast.Hosts == 0 {
		t.Errorf("it is reported as %+v", tree)
	}
	if len(tree.RunnersUp) == 0 || tree.RunnersUp[0].Lost == "" || tree.RunnersUp[0].Cost.Price == 0 {
		t.Errorf("the alternatives are %+v", tree.RunnersUp)
	}
	for i, v := range tree.Switches {
		if (len(v.Links) == 1) != (i > 0) || i > 0 && !strings.HasPrefix(v.Links[0], v.Switch+":") {
			t.Errorf("%s reaches %s over %v", v.Switch, v.Parent, v.Links)
		}
	}
	for _, wrong := range [][]string{
		{"--collective", "sum"}, {"--criterion", "speed"}, {"--weights", "hops"}, {"--weights", "hops=1", "--criterion", "load"}, {"--bytes", "much"},
	} {
		if _, err := d.try(append([]string{"group", "create", "x", "h0", "h1"}, wrong...)...); err == nil {
			t.Errorf("%v was taken", wrong)
		}
	}
}

// TestMeasuredSpeedsAreShown has agents measure how fast their switches reduce when they
// start.
func TestMeasuredSpeedsAreShown(t *testing.T) {
	d := deployWith(t, "")
	d.eventually("all switches are measured", func(ctx context.Context) (bool, error) {
		f, err := d.client.Topology(ctx)
		for _, n := range f.Nodes {
			if s := n.Switch; s != nil && (s.Capability.Speed.Bytes <= 0 || s.Capability.Speed.Packets <= 0) {
				return false, err
			}
		}
		return len(f.Nodes) > 0, err
	})
	if out := d.ask("switch", "list"); !containsAll(out, []string{"SPEED", "B/s, ", "packets/s"}) {
		t.Errorf("switches are listed as\n%s", out)
	}
	var shown view.Fabric
	if err := json.Unmarshal([]byte(d.ask("topology", "show", "--format", "json")), &shown); err != nil || len(shown.Switches) == 0 {
		t.Fatalf("%+v, %v", shown, err)
	}
	for _, s := range shown.Switches {
		if s.Speed.Bytes <= 0 || s.Speed.Packets <= 0 {
			t.Errorf("%s is shown with %v", s.Name, s.Speed)
		}
	}
}
