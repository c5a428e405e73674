package managerd_test

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// TestDiscovery: a manager that was given nothing but an address has the switch there, with
// its agent; where the operator's part says something else, the history has the alarm.
func TestDiscovery(t *testing.T) {
	loop := netip.MustParseAddr("127.0.0.1")
	a, err := agentd.Start(agentd.Config{Switch: "leaf-0", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: loop})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	b := &topology.Builder{}
	if _, err := b.AddHost("leaf-0"); err != nil {
		t.Fatal(err)
	}
	wrong, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := agentd.Start(agentd.Config{Switch: "leaf-0", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: loop})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(elsewhere.Close)
	t.Run("an agent at another address", func(t *testing.T) {
		m, err := managerd.Start(managerd.Config{
			Listen: "127.0.0.1:0", Agents: map[string]string{"leaf-0": elsewhere.Addr()},
			Discovery: &discoverer.Config{Core: discovery.Config{Seeds: []string{a.Addr()}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		ctx := testContext(t)
		at := func(want string) {
			t.Helper()
			isThere := func(n rpc.FabricNode) bool { return n.Name == "leaf-0" && n.Switch != nil && n.Switch.Agent == want }
			for f := (rpc.Fabric{}); !slices.ContainsFunc(f.Nodes, isThere); {
				if f, err = m.Topology(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		at(elsewhere.Addr())
		if _, err := m.EditTopology(ctx, rpc.TopologyFile{Name: "p", Content: []byte("hosts: [h0]")}); err != nil {
			t.Fatal(err)
		}
		if o := m.Operator(); o.Agents["leaf-0"] != elsewhere.Addr() {
			t.Errorf("the operator's part has %v", o.Agents)
		}
		for _, address := range []string{"", elsewhere.Addr()} { // the wire has the same throughout
			if _, err := m.SetTopology(ctx, rpc.TopologyFile{Name: "t", Content: []byte("version: 1\nhosts: [h0]"), Agents: map[string]string{"leaf-0": address}}); err != nil {
				t.Fatal(err)
			}
			at(cmp.Or(address, a.Addr()))
		}
		if _, err := m.EditTopology(ctx, rpc.TopologyFile{Name: "p", Content: []byte("name: mine")}); err != nil {
			t.Fatal(err)
		}
		for f := (rpc.Fabric{}); f.Name != "mine"; { // the wire knows no name
			if f, err = m.Topology(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
	for name, operator := range map[string]*topology.Graph{"nothing": nil, "a contradiction": wrong} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			m, err := managerd.Start(managerd.Config{
				Listen: "127.0.0.1:0", Topology: operator,
				Discovery: &discoverer.Config{Core: discovery.Config{Seeds: []string{a.Addr()}, Allow: []netip.Prefix{netip.PrefixFrom(loop, 32)}, Settle: 1}},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			for isDone := false; !isDone; {
				if err := t.Context().Err(); err != nil {
					t.Fatal(err)
				}
				f, err := m.Topology(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				h, err := m.TopologyHistory(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if operator == nil {
					isDone = len(f.Nodes) == 1 && f.Nodes[0].Name == "leaf-0" && f.Nodes[0].Switch != nil && f.Nodes[0].Switch.Connected
					continue
				}
				for _, c := range h {
					isDone = isDone || strings.Contains(strings.Join(c.What, "\n"), "alarm: file-kind: leaf-0")
				}
				if !isDone {
					continue
				}
				if f, err = m.Topology(t.Context()); err != nil || len(f.Alarms) != 1 || f.Alarms[0].Kind != "file-kind" || f.Alarms[0].What == "" ||
					f.Alarms[0].Places[0] != (rpc.AlarmPlace{Node: "leaf-0"}) || !f.Alarms[0].Since.After(begun) || f.Alarms[0].Since.After(time.Now()) {
					t.Errorf("alarms %+v, %v", f.Alarms, err)
				}
			}
		})
	}
}
