package scoll_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/check/logtest"
)

// TestFinding3Access: hosts that a service's rules are not for neither call it nor make
// its groups, though they are certified: the error names the rule and who has called,
// there is a counter, a metric and a line in the log. Others do.
func TestFinding3Access(t *testing.T) {
	files := trusted(t, names(4)...)
	var log logtest.Log
	c := start(t, 4, func(i int, cfg *config) {
		cfg.host.TLS = files(i)
		cfg.host.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	rolls := make([]*rollCall, 4)
	c.register(func(i int) scoll.Callbacks {
		rolls[i] = &rollCall{node: c.nodes[i].Name()}
		call := rolls[i].callbacks()
		call.MapGroup = c.mapAll
		call.Access = scoll.Access{Call: scoll.Hosts("n0", "n1"), Create: scoll.HostsLike("n0", "ctl-*")}
		return call
	})
	// n0 may do both.
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(4) {
		t.Errorf("n0: %v, %s", err, heard(r))
	}
	if err := g.Destroy(background(t)); err != nil {
		t.Error(err)
	}
	// n1 may call.
	oob, err := c.service[1].OutOfBand(scoll.OutOfBandSpec{Name: "known"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := call(t, oob, scoll.Broadcast{}); err != nil || heard(r) != sorted(4) {
		t.Errorf("n1: %v, %s", err, heard(r))
	}
	var incomplete *scoll.IncompleteError
	_, err = c.tryGroup(1, scoll.GroupSpec{Name: "forbidden"})
	if !errors.As(err, &incomplete) || !strings.Contains(err.Error(), `rule "hosts like n0, ctl-*" does not let n1 make or destroy groups of service 7`) {
		t.Errorf("n1 makes a group: %v", err)
	}
	// n2 may do neither.
	if oob, err = c.service[2].OutOfBand(scoll.OutOfBandSpec{Name: "known"}); err != nil {
		t.Fatal(err)
	}
	_, err = call(t, oob, scoll.Broadcast{})
	if !errors.As(err, &incomplete) || incomplete.Ran != 1 || !strings.Contains(err.Error(), `rule "hosts n0, n1" does not let n2 call service 7`) {
		t.Errorf("n2 calls: %v", err)
	}
	for _, m := range incomplete.Missing {
		if m.Status != scoll.StatusDenied || m.Status.Type() != scoll.ByLibrary {
			t.Errorf("%+v", m)
		}
	}
	if ran := rolls[3].has(); len(ran) != 2 {
		t.Errorf("n3 has run %d", len(ran))
	}
	denied := uint64(0)
	for _, n := range c.nodes {
		denied += n.Counters().Denied
	}
	if denied < 3 {
		t.Errorf("%d are counted", denied)
	}
	if all := log.String(); !strings.Contains(all, "a request was refused for who sent it") || !strings.Contains(all, "root=n1") || !strings.Contains(all, "make or destroy groups") {
		t.Errorf("the log has %s", all)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.nodes[0].Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				found = found || l.GetValue() == "denied" && m.GetCounter().GetValue() == float64(c.nodes[0].Counters().Denied)
			}
		}
	}
	if !found {
		t.Error("no metric counts what was denied")
	}
}

// mapAll maps any index to all nodes.
func (c *cluster) mapAll(scoll.Index) (*scoll.Members, error) {
	return scoll.NewMembers(testService, c.targets())
}

func TestRules(t *testing.T) {
	one := scoll.Caller{Node: "h3#1", Host: "h3", IsProven: true}
	for _, tt := range []struct {
		rule scoll.Rule
		name string
		is   bool
	}{
		{scoll.Rule{}, "any host", true}, {scoll.AnyHost(), "any host", true}, {scoll.NoHost(), "no host", false},
		{scoll.Hosts("h2", "h3"), "hosts h2, h3", true}, {scoll.Hosts("h2"), "hosts h2", false}, {scoll.Hosts(), "hosts ", false},
		{scoll.HostsLike("h[12]", "h?"), "hosts like h[12], h?", true}, {scoll.HostsLike("h"), "hosts like h", false}, {scoll.HostsLike("["), "hosts like [", false},
		{scoll.RuleOf("proven", func(c scoll.Caller) bool { return c.IsProven }), "proven", true},
	} {
		if tt.rule.String() != tt.name || tt.rule.Allows(one) != tt.is {
			t.Errorf("%s: %v, want %s: %v", tt.rule, tt.rule.Allows(one), tt.name, tt.is)
		}
	}
}
