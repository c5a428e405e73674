package hostlib_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/membership"
)

// TestZoneReportsOfDeaths: a member whose node in the zone dies is dead for all,
// though its connections stand and would be waited for for long.
func TestZoneReportsOfDeaths(t *testing.T) {
	const n = 5
	for dead := range n {
		t.Run(fmt.Sprintf("rank=%d", dead), func(t *testing.T) {
			hosts, members := make([]*hostlib.Host, n), make([]hostlib.Member, n)
			nodes := make([]*membership.Node, n)
			for i := range n {
				c := membership.Config{Name: fmt.Sprintf("h%d", i)}
				if i > 0 {
					c.Bootstrap = []string{nodes[0].Addr().String()}
				}
				node, err := membership.Join(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = node.Close(context.Background()) })
				h, err := hostlib.Join(t.Context(), hostlib.Config{Name: c.Name, DeadAfter: time.Hour, Membership: node})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := h.Close(context.Background()); err != nil {
						t.Error(err)
					}
				})
				nodes[i], hosts[i], members[i] = node, h, h.Member()
			}
			for _, node := range nodes {
				there := 0
				for range node.Notices(t.Context()) {
					if there++; there == n {
						break
					}
				}
			}
			comms := form(t, hosts, members)
			_ = nodes[dead].Close(t.Context())
			each(n, func(i int) {
				if i == dead {
					return // it lives on, and hears of its death
				}
				_, err := hostlib.Barrier(t.Context(), comms[i])
				var m *hostlib.MemberError
				if !errors.As(err, &m) || m.Rank != dead || !strings.Contains(m.Reason, "zone") {
					t.Errorf("rank %d: got %v, want that the zone says that rank %d is dead", i, err, dead)
				}
			})
		})
	}
}
