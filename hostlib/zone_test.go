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

// zoneOf joins hosts of one zone, and waits until all know all.
func zoneOf(t *testing.T, n int) []*hostlib.Host {
	t.Helper()
	hosts := make([]*hostlib.Host, n)
	for i := range hosts {
		c := hostlib.Config{Name: fmt.Sprintf("h%d", i), DeadAfter: time.Hour, Membership: &membership.Config{}}
		if i > 0 {
			c.Membership.Bootstrap = []string{hosts[0].Addr()}
		}
		h, err := hostlib.Join(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		hosts[i] = h
	}
	agree(t, hosts...)
	return hosts
}

// agree waits until hosts know each other.
func agree(t *testing.T, hosts ...*hostlib.Host) {
	t.Helper()
	for _, h := range hosts {
		there := map[string]bool{}
		for x := range h.Members().Notices(t.Context()) {
			if there[x.Member.Name] = x.Kind == membership.Joined; !there[x.Member.Name] {
				delete(there, x.Member.Name)
			}
			if len(there) == len(hosts) {
				break
			}
		}
	}
}

// TestZoneReportsOfDeaths: a member whose node in the zone dies is dead for all,
// though its connections stand and would be waited for for long.
func TestZoneReportsOfDeaths(t *testing.T) {
	const n = 5
	for _, dead := range []int{0, 3} {
		t.Run(fmt.Sprintf("rank=%d", dead), func(t *testing.T) {
			hosts := zoneOf(t, n)
			members := make([]hostlib.Member, n)
			for i, h := range hosts {
				members[i] = hostlib.Member{Host: h.Name()}
			}
			comms := form(t, hosts, members)
			if err := hosts[dead].Members().Close(t.Context()); err != nil {
				t.Fatal(err)
			}
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
