package scoll_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/membership"
)

// addressKey is the attribute by which nodes tell each other where they serve
// collectives.
const addressKey = "scoll.address"

// TestMembership: the membership service tells who lives, in which incarnation,
// and where. A node that leaves while it is waited for counts as dead at once; a
// broadcast after that fails at once; and when it is back, in a new incarnation,
// it takes part again.
func TestMembership(t *testing.T) {
	ctx := background(t)
	var seeds []string
	members := make([]*membership.Node, 3)
	join := func(i int) *membership.Node {
		t.Helper()
		m, err := membership.Join(ctx, membership.Config{Name: fmt.Sprint("n", i), Bootstrap: seeds})
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, m.Addr().String())
		return m
	}
	resolve := func(m *membership.Node) func(context.Context, string) (string, error) {
		return func(ctx context.Context, node string) (string, error) {
			address, there, err := m.Attribute(ctx, node, addressKey)
			if err == nil && !there {
				err = errNowhere
			}
			return string(address), err
		}
	}
	for i := range members {
		members[i] = join(i)
	}
	c := start(t, 3, func(i int, cfg *config) {
		cfg.host.Membership, cfg.host.Resolve = members[i], resolve(members[i])
	})
	defer func() {
		for _, m := range members {
			_ = m.Close(context.Background())
		}
	}()
	for i, n := range c.nodes {
		if err := members[i].Set(ctx, addressKey, []byte(n.host.Addr())); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the addresses to be known", func() bool {
		for i := range members {
			for _, node := range names(3) {
				if _, err := resolve(members[i])(ctx, node); err != nil {
					return false
				}
			}
		}
		return true
	})
	rolls := c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all", Tree: scoll.Flat()})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(3) {
		t.Fatal(err)
	}
	there, release := rolls[2].hold()
	r, err := g.NewRequest(scoll.Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(); err != nil {
		t.Fatal(err)
	}
	<-there
	if err := members[2].Leave(ctx, 0); err != nil {
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

	members[2] = join(2)
	if err := c.nodes[2].Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	cfg := c.settings("n2")
	cfg.host.Membership, cfg.host.Resolve = members[2], resolve(members[2])
	reborn, err := open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[2] = reborn
	if err := members[2].Set(ctx, addressKey, []byte(reborn.host.Addr())); err != nil {
		t.Fatal(err)
	}
	again := &rollCall{node: "n2"}
	if _, err := reborn.Register(testService, again.callbacks()); err != nil {
		t.Fatal(err)
	}
	await(t, "n2 to be back", func() bool {
		address, err := resolve(members[0])(ctx, "n2")
		if err != nil || address != reborn.host.Addr() {
			return false
		}
		g, err = c.tryGroup(0, scoll.GroupSpec{Name: "again", Tree: scoll.Flat()})
		return err == nil
	})
	if r, err := call(t, g, scoll.Broadcast{}); err != nil || heard(r) != sorted(3) || !slices.Equal(again.has(), []string{""}) {
		t.Errorf("in its new life: %v", err)
	}
}

// moved is the Liveness of a zone in which n1 has begun again at another address:
// the new life is told before the end of the old one.
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
	m, err := membership.Join(background(t), membership.Config{Name: "n0"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	c := start(t, 1, func(_ int, cfg *config) { cfg.host.Membership = m })
	if got := c.nodes[0].host.Incarnation(); got != m.Incarnation() {
		t.Errorf("incarnation %d, and others see %d", got, m.Incarnation())
	}
	err = hostlib.Config{Name: "n0", Membership: m, Incarnation: m.Incarnation() + 1}.Validate()
	if !errors.Is(err, hostlib.ErrConfig) {
		t.Errorf("another one: %v", err)
	}
}
