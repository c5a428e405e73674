package managerd_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/membership"
	"github.com/tributary-fabric/tributary/internal/agentd"
	"github.com/tributary-fabric/tributary/internal/loopback"
	"github.com/tributary-fabric/tributary/internal/managerd"
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
	defer seed.Close()
	seeds := []string{seed.Addr().String()}
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Membership = &membership.Config{Name: "manager", Zone: zone, Keys: keys, Bootstrap: seeds}
	})
	start := func(host, listen string) *membership.Node {
		n, err := membership.Join(t.Context(), membership.Config{Name: host, Listen: listen, Zone: zone, Keys: keys, Bootstrap: seeds})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		return n
	}
	up := func(host string, want bool) {
		t.Helper()
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
	up(victim, true)
	node.Close()
	up(victim, false)
	up(other, true)
	start(victim, at)
	up(victim, true)
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
