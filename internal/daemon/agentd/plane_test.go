package agentd_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// withTarget is a configuration for a P4 target that has two ports on loopback
// addresses.
func withTarget(address string) agentd.Config {
	c := config()
	c.Capability, c.Data = pipeline.Limits(), netip.Addr{}
	c.Target = &pipeline.Target{
		Address: address,
		Ports:   []p4.Port{{Number: 1, Addr: netip.MustParseAddr("127.0.1.1")}, {Number: 2, Addr: netip.MustParseAddr("127.0.1.2")}},
		Routes:  []p4.Route{{Prefix: netip.MustParsePrefix("127.0.0.0/8"), Port: 1}},
	}
	return c
}

func newTarget(t *testing.T) *p4rttest.Target {
	t.Helper()
	target, err := p4rttest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	target.Cable(p4.CPUPort, p4.CPUPort)
	target.Cable(p4.LoopOutPort, p4.LoopInPort)
	return target
}

func TestATargetThatIsNotThere(t *testing.T) {
	target := newTarget(t)
	target.Stop()
	_, c := start(t, withTarget(target.Address()))
	state, err := c.State(testContext(t))
	if err != nil || state.Unusable == "" || state.Capability != (topology.Capability{}) {
		t.Errorf("state %+v, %v", state, err)
	}
	err = newGroup(t, c, 7, 2).prepare(testContext(t), c)
	if !errors.Is(err, agent.ErrSocket) || !strings.Contains(err.Error(), target.Address()) {
		t.Errorf("prepare: %v", err)
	}
	if _, err := c.Counters(testContext(t)); err != nil {
		t.Errorf("counters: %v", err)
	}
}

// TestGivenSpeedOfATarget: what the file says of a target's speed is offered with it, and
// nothing is measured in its place.
func TestGivenSpeedOfATarget(t *testing.T) {
	for _, s := range []topology.Speed{{}, {Packets: 20_000}, {Bytes: topology.LineRate}} {
		target := newTarget(t)
		cfg := withTarget(target.Address())
		cfg.Capability.Speed, cfg.Measure = s, true
		_, c := start(t, cfg)
		found := errors.New("found")
		err := c.Watch(testContext(t), 0, func(e rpc.AgentEvent) error {
			if e.State == nil || e.State.Unusable != "" {
				return nil
			}
			if e.State.Capability != cfg.Capability {
				t.Errorf("%+v is offered, want %+v", e.State.Capability, cfg.Capability)
			}
			return found
		})
		if !errors.Is(err, found) {
			t.Error(err)
		}
	}
}

// TestCommitOnATarget has a target that takes epochs, refuses them, and forgets.
func TestCommitOnATarget(t *testing.T) {
	target := newTarget(t)
	_, c := start(t, withTarget(target.Address()))
	events, _ := watch(t, c)
	usable(t, events)
	g := newGroup(t, c, 7, 2)
	g.install(t, c)
	if n := len(target.Entries(p4.TableEpochs)); n != 1 || !g.parent.Addr().IsUnspecified() {
		t.Errorf("committed, and the target holds %d epochs; the tree is at %v", n, g.parent)
	}
	if err := g.commit(testContext(t), c); err != nil {
		t.Errorf("commit again: %v", err)
	}

	target.Refuse(func(u *p4v1.Update) error {
		if u.GetEntity().GetTableEntry().GetTableId() == p4.TableNeighbours {
			return status.Error(codes.ResourceExhausted, "")
		}
		return nil
	})
	refused := newGroup(t, c, 8, 2)
	if err := refused.prepare(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	err := refused.commit(testContext(t), c)
	if !errors.Is(err, agent.ErrSocket) || !strings.Contains(err.Error(), "the table is full") {
		t.Errorf("commit: %v", err)
	}
	ended(t, events, 8)
	target.Refuse(nil)

	if err := target.Restart(); err != nil {
		t.Fatal(err)
	}
	ended(t, events, 7)
	usable(t, events)
	if err := g.commit(testContext(t), c); !errors.Is(err, agent.ErrStaleEpoch) {
		t.Errorf("commit of what was lost: %v", err)
	}
	g.config.Epoch = 4
	g.install(t, c)
}

// TestNoSlotsInOnePiece: slots that the agent has promised by their number, and that
// its target has not side by side, are refused as slots, so that a manager tries a
// smaller window.
func TestNoSlotsInOnePiece(t *testing.T) {
	target := newTarget(t)
	_, c := start(t, withTarget(target.Address()))
	events, _ := watch(t, c)
	usable(t, events)
	quarter := func(id uint32) *group {
		g := newGroup(t, c, id, 2)
		g.config.Window = p4.Slots / 8
		return g
	}
	for id := range uint32(4) {
		quarter(id+1).install(t, c)
	}
	ctx := testContext(t)
	for _, id := range []uint32{1, 3} {
		if err := c.Remove(ctx, agent.Remove{Incarnation: quarter(id).incarnation, Group: id, Epoch: 2}); err != nil {
			t.Fatal(err)
		}
	}
	g := quarter(5)
	g.config.Window *= 2
	if err := g.prepare(ctx, c); err != nil {
		t.Fatal(err)
	}
	var why *agent.Refusal
	if err := g.commit(ctx, c); !errors.As(err, &why) || why.Cause != agent.Slots || why.Need != p4.Slots/2 || why.Free != p4.Slots/4 {
		t.Fatalf("commit: %v", err)
	}
	ended(t, events, 5)
	g.config.Window, g.config.Epoch = uint32(why.Free/2), 4
	g.install(t, c)
}

// usable waits until the agent has its target as it wants it, and returns its
// incarnation.
func usable(t *testing.T, events <-chan rpc.AgentEvent) uint64 {
	t.Helper()
	for e := range events {
		if e.State != nil && e.State.Unusable == "" {
			if e.State.Capability != pipeline.Limits() {
				t.Errorf("it offers %+v", e.State.Capability)
			}
			return e.State.Incarnation
		}
	}
	t.Fatal("the watch has ended")
	return 0
}

// ended waits until the agent reports that its data plane has lost a group's epoch.
func ended(t *testing.T, events <-chan rpc.AgentEvent, group uint32) {
	t.Helper()
	for e := range events {
		if e.Ended != nil {
			if e.Ended.Group != group || e.Ended.Why != agent.PlaneFailed {
				t.Errorf("ended: %+v", e.Ended)
			}
			return
		}
	}
	t.Fatal("the watch has ended")
}

// TestCommitOnAWedgedTarget asks twice. The agent answers meanwhile.
func TestCommitOnAWedgedTarget(t *testing.T) {
	target := newTarget(t)
	_, c := start(t, withTarget(target.Address()))
	events, _ := watch(t, c)
	usable(t, events)
	g := newGroup(t, c, 7, 2)
	if err := g.prepare(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	hung := target.Hang(p4rttest.Write)
	answers := make(chan error, 2)
	for range cap(answers) {
		go func() { answers <- g.commit(testContext(t), c) }()
	}
	<-hung.Reached()
	if _, err := c.State(testContext(t)); err != nil {
		t.Errorf("state: %v", err)
	}
	for range cap(answers) {
		// Whichever comes late finds the epoch lost.
		if err := <-answers; !errors.Is(err, agent.ErrSocket) && !errors.Is(err, agent.ErrStaleEpoch) {
			t.Errorf("commit: %v", err)
		}
	}
	ended(t, events, 7)
	if err := newGroup(t, c, 8, 2).prepare(testContext(t), c); !errors.Is(err, agent.ErrSocket) {
		t.Errorf("prepare: %v", err)
	}
	hung.Release()
	usable(t, events)
}

// TestCommitOnATargetThatDies: a target that dies while it is written to has none of the
// epoch afterwards, and the commit says so.
func TestCommitOnATargetThatDies(t *testing.T) {
	target := newTarget(t)
	_, c := start(t, withTarget(target.Address()))
	events, _ := watch(t, c)
	usable(t, events)
	g := newGroup(t, c, 7, 2)
	if err := g.prepare(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	hung := target.Hang(p4rttest.Write)
	answer := make(chan error, 1)
	go func() { answer <- g.commit(testContext(t), c) }()
	<-hung.Reached()
	if err := target.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, agent.ErrSocket) && !errors.Is(err, agent.ErrStaleEpoch) {
		t.Errorf("commit: %v", err)
	}
	ended(t, events, 7)
	usable(t, events)
	if n := len(target.Entries(p4.TableEpochs)); n != 0 {
		t.Errorf("the target holds %d epochs of its life before", n)
	}
	g.config.Epoch = 4
	g.install(t, c)
}

// TestPortsElsewhere has a target on another machine, whose ports its own gNMI server
// reports: their state is seen and addresses come from the manager, routes are by hand,
// and links are not audited.
func TestPortsElsewhere(t *testing.T) {
	target := newTarget(t)
	ports := func(up bool) []nic.Interface {
		return []nic.Interface{{Name: "1/1/0", Port: 1, Up: true}, {Name: "1/2/0", Port: 2, Up: up}, {Name: "mgmt"}}
	}
	var source nic.Fake
	source.Set(ports(true), nil)
	c := withTarget(target.Address())
	c.Routes, c.Target.Ports, c.Target.Routes = c.Target.Routes, nil, nil
	c.Ports, c.Interfaces, c.Elsewhere, c.AllowPlaintext = []portmap.Spec{{Interface: "1/?/0"}}, &source, true, true
	d, client := start(t, c)
	events, _ := watch(t, client)
	err := client.SetRoutes(testContext(t), portmap.Assignment{
		Addresses: map[uint16]netip.Addr{1: netip.MustParseAddr("127.0.1.1"), 2: netip.MustParseAddr("127.0.1.2")},
		Routes:    []portmap.Route{{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Port: 1, Next: netip.MustParseAddr("127.0.1.9")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	usable(t, events)
	newGroup(t, client, 7, 2).install(t, client)
	if n := len(target.Entries(p4.TableRoutes)); n != 2+1 {
		t.Errorf("%d routes, want those of 2 own addresses and that by hand", n)
	}
	if counted, err := client.Counters(testContext(t)); err != nil || len(counted.Trees) != 1 || len(counted.Epochs) != 0 {
		t.Errorf("counted %+v, %v", counted, err)
	}
	got := leaves(t, d)
	for path, want := range map[string]string{
		"/tributary/state/data-plane":                              `string_val:"p4"`,
		"/tributary/trees/tree[group=7]/state/in-packets":          `uint_val:0`,
		"/interfaces/interface[name=1/1/0]/state/oper-status":      `string_val:"UP"`,
		"/interfaces/interface[name=1/1/0]/state/id":               `uint_val:1`,
		"/interfaces/interface[name=1/1/0]/state/counters/in-pkts": "", // its own gNMI server may have them
	} {
		if got[path] != want {
			t.Errorf("%s is %s, want %s", path, got[path], want)
		}
	}
	source.Set(ports(false), nil)
	for e := range events {
		if x := e.Interfaces; x != nil && len(x.List) == 2 && x.List[0].Up && !x.List[1].Up {
			if !x.List[1].Has(netip.MustParseAddr("127.0.1.2")) {
				t.Errorf("reported: %+v", x.List)
			}
			return
		}
	}
	t.Fatal("the watch has ended")
}

func TestTargetConfig(t *testing.T) {
	for name, spoil := range map[string]func(*agentd.Config){
		"no ports":   func(c *agentd.Config) { c.Target.Ports = nil },
		"no address": func(c *agentd.Config) { c.Target.Address = "" },
		"a password in the open": func(c *agentd.Config) {
			c.Target.Address, c.AllowPlaintext, c.Target.Login = "192.0.2.1:9559", true, p4rt.Login{User: "u", Password: "p"}
		},
		"a remote target":    func(c *agentd.Config) { c.Target.Address = "192.0.2.1:9559" },
		"ports on a network": func(c *agentd.Config) { c.Target.Ports[0].Addr = netip.MustParseAddr("192.0.2.1") },
		"capability":         func(c *agentd.Config) { c.Capability.Slots = p4.Slots + 1 },
	} {
		c := withTarget("127.0.0.1:9559")
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, agentd.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := withTarget("127.0.0.1:9559")
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
