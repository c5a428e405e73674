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
	for dead := range n {
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
				if !errors.As(err, &m) || m.Rank != dead || !strings.Contains(m.Reason, "membership reports: "+hosts[dead].Name()) {
					t.Errorf("rank %d: got %v, want that the zone says that rank %d is dead", i, err, dead)
				}
			})
		})
	}
}

// byName returns members by their names alone.
func byName(hosts ...*hostlib.Host) (members []hostlib.Member) {
	for _, h := range hosts {
		members = append(members, hostlib.Member{Host: h.Name()})
	}
	return members
}

// TestSecondOfOneName: of two processes under one name the second is refused: its node ends
// with who has the name, and where, and it forms no communicators. The first one's go on.
func TestSecondOfOneName(t *testing.T) {
	hosts := zoneOf(t, 3)
	comms := form(t, hosts, byName(hosts...))
	second, err := hostlib.Join(t.Context(), hostlib.Config{
		Name: "h1", Membership: &membership.Config{Bootstrap: []string{hosts[0].Addr()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close(context.Background())
	<-second.Done()
	why := second.Err()
	if !errors.Is(why, membership.ErrName) || !strings.Contains(why.Error(), `"h1" is at `+hosts[1].Addr()) {
		t.Errorf("%v, want who has the name, and that it is at %s", why, hosts[1].Addr())
	}
	if _, err := second.Communicator(t.Context(), "another", byName(hosts...)); !errors.Is(err, membership.ErrName) {
		t.Errorf("its communicator: %v", err)
	}
	each(len(hosts), func(i int) {
		if _, err := hostlib.Barrier(t.Context(), comms[i]); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
		if err := hosts[i].Err(); err != nil {
			t.Errorf("host %d: %v", i, err)
		}
	})
	if err := hosts[0].Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-hosts[0].Done()
	if err := hosts[0].Err(); !errors.Is(err, hostlib.ErrClosed) {
		t.Error(err)
	}
}

// TestBackElsewhere: a host that starts again, at another address, is found by its name.
func TestBackElsewhere(t *testing.T) {
	hosts := zoneOf(t, 3)
	was := hosts[2].Addr()
	if err := hosts[2].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := hostlib.Join(t.Context(), hostlib.Config{
		Name: "h2", DeadAfter: time.Hour, Membership: &membership.Config{Bootstrap: []string{hosts[0].Addr()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if again.Addr() == was || again.Incarnation() <= hosts[2].Incarnation() {
		t.Errorf("at %s in %d, after %s in %d", again.Addr(), again.Incarnation(), was, hosts[2].Incarnation())
	}
	hosts[2] = again
	agree(t, hosts...)
	comms := form(t, hosts, byName(hosts...))
	each(len(hosts), func(i int) {
		if _, err := hostlib.Barrier(t.Context(), comms[i]); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	})
}

// TestOffLoopbackTakesCertificates: keys alone tie nobody to a name, so that a host that has
// no certificates is at loopback addresses alone.
func TestOffLoopbackTakesCertificates(t *testing.T) {
	c := hostlib.Config{
		Name: "h0", Listen: "0.0.0.0:0",
		Membership: &membership.Config{Advertise: "192.0.2.1:7946", Keys: []membership.Key{{Number: 1}}},
	}
	if h, err := hostlib.Join(t.Context(), c); !errors.Is(err, hostlib.ErrConfig) || !strings.Contains(err.Error(), "AllowPlaintext") {
		t.Errorf("%v, %v", h, err)
	}
	for _, change := range []func(*hostlib.Config){
		func(c *hostlib.Config) { c.Membership.Name = "h1" },
		func(c *hostlib.Config) { c.Membership.Listen = "127.0.0.1:0" },
		func(c *hostlib.Config) { c.Incarnation = 7 },
		func(c *hostlib.Config) { c.TLS, c.Membership.Keys = &hostlib.TLS{}, nil },
	} {
		c, m := c, *c.Membership
		c.Membership = &m
		change(&c)
		if err := c.Validate(); !errors.Is(err, hostlib.ErrConfig) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
