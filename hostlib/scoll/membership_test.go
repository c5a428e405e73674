package scoll_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/membership"
)

// TestMembership: the membership service reports who lives, in which incarnation,
// and where. A node that leaves while it is waited for counts as dead at once; a
// broadcast after that fails at once; and when it is back, in a new incarnation,
// it takes part again.
func TestMembership(t *testing.T) {
	ctx := background(t)
	at := loopback.Address(t)
	zone := func(i int, cfg *config) {
		cfg.host.Membership, cfg.host.Resolve = &membership.Config{Bootstrap: []string{at}}, nil
		if i == 0 {
			cfg.host.Listen = at
		}
	}
	c := start(t, 3, zone)
	allKnown := func() {
		await(t, "all to be known", func() bool {
			for _, n := range c.nodes {
				if view, err := n.host.Members().View(ctx); err != nil || len(view) != 3 {
					return false
				}
			}
			return true
		})
	}
	allKnown()
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all", Tree: scoll.Flat()})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(3) {
		t.Fatal(err)
	}
	r, release := rolls[2].holds(t, g)
	if err := c.nodes[2].host.Members().Leave(ctx, 0); err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	close(release)
	if m := missing(t, r.Err()); m != (scoll.Missing{Node: "n2", Nodes: 1, Status: scoll.StatusDead}) {
		t.Errorf("%+v", m)
	}
	if _, err := call(t, g, scoll.Broadcast{}); !errors.Is(err, scoll.ErrDead) || !strings.Contains(err.Error(), "n2") {
		t.Errorf("with a dead member: %v", err)
	}

	if err := c.nodes[2].Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	cfg := c.settings("n2")
	zone(2, &cfg)
	reborn, err := open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[2] = reborn
	again := &rollCall{node: "n2"}
	if _, err := reborn.Register(testService, again.callbacks()); err != nil {
		t.Fatal(err)
	}
	await(t, "n2 to be back", func() bool {
		g, err = c.tryGroup(0, scoll.GroupSpec{Name: "again", Tree: scoll.Flat()})
		return err == nil
	})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(3) || !slices.Equal(again.has(), []string{""}) {
		t.Errorf("in its new life: %v", err)
	}
}

// moved is the Liveness of a zone in which n1 has begun again at another address:
// the new life is reported before the end of the old one.
type moved struct{ before, now uint64 }

func (m moved) Watch(up, down func(node string, incarnation uint64)) (cancel func()) {
	up("n1", m.before)
	up("n1", m.now)
	down("n1", m.before)
	return func() {}
}

// TestRestartBeforeItsDeath: a server that starts again, at another address,
// before its old life is found dead takes part in collectives.
func TestRestartBeforeItsDeath(t *testing.T) {
	c := start(t, 3, func(i int, cfg *config) {
		cfg.host.Incarnation = 5
		if i != 1 {
			cfg.Liveness = moved{4, 5}
		}
	})
	c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(3) {
		t.Errorf("%v", err)
	}
}

// TestIncarnationOfTheMembership: where membership knows how others see this
// host, no other incarnation is taken.
func TestIncarnationOfTheMembership(t *testing.T) {
	c := start(t, 1, func(_ int, cfg *config) { cfg.host.Membership = &membership.Config{} })
	if host := c.nodes[0].host; host.Incarnation() != host.Members().Incarnation() {
		t.Errorf("incarnation %d, and others see %d", host.Incarnation(), host.Members().Incarnation())
	}
	err := hostlib.Config{Name: "n0", Membership: &membership.Config{}, Incarnation: 1}.Validate()
	if !errors.Is(err, hostlib.ErrConfig) {
		t.Errorf("another one: %v", err)
	}
}
