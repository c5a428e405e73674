package managerd_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/membership"
)

// TestDeathOfAHostIsKnown has the manager be a node of its hosts' zone. It knows
// of a host's death without any packet of a collective, and that it is back.
func TestDeathOfAHostIsKnown(t *testing.T) {
	const zone = 5
	keys := []membership.Key{{Number: 1, Secret: [32]byte{1}}}
	seed, err := membership.Join(t.Context(), membership.Config{Name: "beside", Zone: zone, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer seed.Close(context.Background())
	seeds := []string{seed.Addr().String()}
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Membership = &membership.Config{Name: "manager", Zone: zone, Keys: keys, Bootstrap: seeds}
	})
	start := func(host, listen string) *membership.Node {
		return f.member(membership.Config{Name: host, Listen: listen, Zone: zone, Keys: keys, Bootstrap: seeds})
	}
	victim, other := f.hosts()[1], f.hosts()[2]
	at := loopback.Address(t)
	node := start(victim, at)
	start(other, "")
	f.eventually("the manager sees both", func(ctx context.Context) (bool, error) {
		s := f.members(ctx)
		monitors := 0
		for _, m := range s.Members {
			if m.Monitor {
				monitors++
			}
		}
		return len(s.Members) == 4 && monitors == 1, nil
	})
	f.up(victim, true)
	_ = node.Close(context.Background())
	f.up(victim, false)
	f.up(other, true)
	start(victim, at)
	f.up(victim, true)
}

// TestDeathInAZoneBelow has the manager be the management zone. It follows the
// zones of its hosts, and shows them.
func TestDeathInAZoneBelow(t *testing.T) {
	at := loopback.Address(t)
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Membership = &membership.Config{Name: "manager", Listen: at, Management: true}
	})
	victim, other := f.hosts()[1], f.hosts()[2]
	var nodes []*membership.Node
	for zone, hosts := range [][]string{1: {victim, "a"}, 2: {other, "b"}} {
		var seeds []string
		for _, host := range hosts {
			n := f.member(membership.Config{Name: host, Zone: uint32(zone), Supervisors: []string{at}, Bootstrap: seeds})
			nodes, seeds = append(nodes, n), append(seeds, n.Addr().String())
		}
	}
	f.eventually("the manager's page has both zones", func(ctx context.Context) (bool, error) {
		s := f.members(ctx)
		whole := len(s.Zones) == 2
		for _, z := range s.Zones {
			whole = whole && z.Size == 2 && z.Delegates > 0 && len(z.Supervisors) == 1
		}
		return whole && s.Management, nil
	})
	f.up(victim, true)
	_ = nodes[0].Close(context.Background())
	f.up(victim, false)
	f.up(other, true)
	f.member(membership.Config{Name: victim, Zone: 1, Supervisors: []string{at}, Bootstrap: []string{nodes[1].Addr().String()}})
	f.up(victim, true)
}

// TestHostAtANewAddress: a host that starts again at another address is up, also
// where its earlier life is found dead only afterwards.
func TestHostAtANewAddress(t *testing.T) {
	seed, err := membership.Join(t.Context(), membership.Config{Name: "beside"})
	if err != nil {
		t.Fatal(err)
	}
	defer seed.Close(context.Background())
	seeds := []string{seed.Addr().String()}
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Membership = &membership.Config{Name: "manager", Bootstrap: seeds}
	})
	host := f.hosts()[1]
	old := f.member(membership.Config{Name: host, Bootstrap: seeds})
	f.eventually("the manager sees the host", func(ctx context.Context) (bool, error) { return len(f.members(ctx).Members) == 3, nil })
	for range 5 {
		_ = old.Close(context.Background())
		again := f.member(membership.Config{Name: host, Bootstrap: seeds})
		f.eventually("the earlier life is found dead, and the host is there", func(ctx context.Context) (bool, error) {
			s := f.members(ctx)
			there := 0
			for _, m := range s.Members {
				if m.Name == host && m.Addr == again.Addr() {
					there++
				}
			}
			return len(s.Members) == 3 && there == 1, nil
		})
		f.up(host, true)
		old = again
	}
}

// member starts a node beside the manager.
func (f *fabric) member(c membership.Config) *membership.Node {
	f.Helper()
	n, err := membership.Join(context.Background(), c)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = n.Close(context.Background()) })
	return n
}

// up waits until the manager holds a host for up, or down.
func (f *fabric) up(host string, want bool) {
	f.Helper()
	f.eventually(host+" is up or down as it is", func(ctx context.Context) (bool, error) {
		fabric, err := f.client.Topology(ctx)
		if err != nil {
			return false, err
		}
		for _, n := range fabric.Nodes {
			if n.Name == host {
				return n.Up == want, nil
			}
		}
		return false, nil
	})
}

// members asks the manager's page.
func (f *fabric) members(ctx context.Context) (s membership.Status) {
	f.Helper()
	page := f.manager.Pages()[membership.StatusPage]
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "GET", membership.StatusPage, nil))
	if err := json.Unmarshal(answer.Body.Bytes(), &s); err != nil {
		f.Fatalf("%v: %s", err, answer.Body)
	}
	return s
}
