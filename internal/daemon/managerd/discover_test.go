package managerd_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
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
	for name, operator := range map[string]*topology.Graph{"nothing": nil, "a contradiction": wrong} {
		t.Run(name, func(t *testing.T) {
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
			}
		})
	}
}
