package membership

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// hierarchyOf starts management nodes, and two zones of four that may call all of
// them first.
func hierarchyOf(t *testing.T, size int) (management []*Node, zones [2][]*Node) {
	t.Helper()
	keys := []Key{{Number: 1, Secret: [32]byte{9}}}
	for i := range size {
		c := Config{Name: fmt.Sprintf("m%d", i), Management: true, Keys: keys}
		if i > 0 {
			c.Bootstrap = []string{management[0].Addr().String()}
		}
		management = append(management, join(t, c))
	}
	for z := range zones {
		zones[z] = zoneOf(t, 4, func(i int, c *Config) {
			c.Name = fmt.Sprintf("z%d-n%d", z, i)
			c.Zone, c.Keys = uint32(z), keys
			for _, m := range management {
				c.Supervisors = append(c.Supervisors, m.Addr().String())
			}
		})
	}
	return management, zones
}

// census waits until a node's census is that: the size of each zone, with
// delegates and supervisors.
func census(t *testing.T, n *Node, sizes ...int) []Zone {
	t.Helper()
	var all []Zone
	await(t, func() bool {
		var err error
		if all, err = n.Census(within(t)); err != nil {
			t.Fatal(err)
		}
		if len(all) != len(sizes) {
			return false
		}
		for i, z := range all {
			if int(z.Number) != i || z.Size != sizes[i] || z.Delegates == 0 || len(z.Supervisors) == 0 {
				return false
			}
		}
		return true
	})
	return all
}

// TestHierarchy has every management node know how many nodes each zone has,
// fetch their names, and learn who dies; also after a supervisor has died.
func TestHierarchy(t *testing.T) {
	management, zones := hierarchyOf(t, 3)
	for _, m := range management {
		census(t, m, 4, 4)
	}
	for _, m := range management {
		view, err := m.Fetch(within(t), 1)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, x := range view {
			names = append(names, x.Name)
		}
		if !slices.Equal(names, []string{"z1-n0", "z1-n1", "z1-n2", "z1-n3"}) {
			t.Errorf("%s fetched %v", m.Name(), names)
		}
	}
	if _, err := management[0].Fetch(within(t), 7); !errors.Is(err, ErrUnknown) {
		t.Errorf("a zone that is not: %v", err)
	}

	for _, m := range management {
		if err := m.Follow(within(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	var watchers []*Watcher
	for _, m := range management {
		w := m.BelowWatcher()
		defer w.Close()
		watchers = append(watchers, w)
	}
	for _, m := range management {
		census(t, m, 4, 4)
	}
	victim := zones[1][3]
	shut(t, victim)
	for i, m := range management {
		census(t, m, 4, 3)
		seen(t, watchers[i], Left, victim.Name())
	}

	// A supervisor dies: its zones get another one.
	supervisor := census(t, management[0], 4, 3)[1].Supervisors[0]
	dead := slices.IndexFunc(management, func(n *Node) bool { return n.Name() == supervisor })
	gone := management[dead]
	shut(t, gone)
	for i, m := range management {
		if i == dead {
			continue
		}
		await(t, func() bool {
			all := census(t, m, 4, 3)
			return !slices.Contains(all[0].Supervisors, gone.Name()) && !slices.Contains(all[1].Supervisors, gone.Name())
		})
	}
}

// TestFollowAcrossDeaths kills all supervisors of a zone that a third node
// follows, and with them a node of the zone. The follower hears of that by name,
// of who comes and goes later, and of nobody twice.
func TestFollowAcrossDeaths(t *testing.T) {
	management, zones := hierarchyOf(t, 5)
	var supervise []string
	i := slices.IndexFunc(management, func(n *Node) bool {
		supervise = census(t, n, 4, 4)[1].Supervisors
		return !slices.Contains(supervise, n.Name())
	})
	follower := management[i]
	if err := follower.Follow(within(t), 1); err != nil {
		t.Fatal(err)
	}
	w := follower.BelowWatcher()
	defer w.Close()
	victim := zones[1][3]
	var blow sync.WaitGroup
	for _, n := range management {
		if slices.Contains(supervise, n.Name()) {
			blow.Go(func() { shut(t, n) })
		}
	}
	blow.Go(func() { shut(t, victim) })
	blow.Wait()

	reported := seen(t, w, Left, victim.Name())
	late := join(t, Config{
		Name: "z1-n4", Zone: 1, Keys: victim.cfg.Keys, Supervisors: victim.cfg.Supervisors, Bootstrap: []string{zones[1][0].Addr().String()},
	})
	agree(t, append(zones[1][:3:3], late)...)
	reported = append(reported, seen(t, w, Joined, late.Name())...)
	if err := late.Leave(within(t), 5); err != nil {
		t.Fatal(err)
	}
	reported = append(reported, seen(t, w, Left, late.Name())...)
	there := map[string]bool{victim.Name(): true}
	for _, n := range zones[1][:3] {
		there[n.Name()] = true
	}
	for _, x := range reported {
		if x.Zone != 1 {
			continue // which it may have begun to supervise
		}
		if there[x.Member.Name] == (x.Kind == Joined) {
			t.Errorf("reported %v while there are %v", x, there)
		}
		there[x.Member.Name] = x.Kind == Joined
	}
	if last := reported[len(reported)-1]; last.Cause == Departed && (last.Exit == nil || *last.Exit != 5) {
		t.Errorf("the last one: %v", last)
	}
	await(t, func() bool { // it may just be changing supervisors
		view, err := follower.Fetch(within(t), 1)
		same := func(m Member, name string) bool { return m.Name == name }
		return err == nil && slices.EqualFunc(view, []string{"z1-n0", "z1-n1", "z1-n2"}, same)
	})
}

// seen returns what a reader gets up to the first notice of a kind about a
// node.
func seen(t *testing.T, w *Watcher, kind Kind, name string) (all []Notice) {
	t.Helper()
	for {
		batch, err := w.Next(within(t))
		if err != nil {
			t.Fatalf("waiting until %s %v: %v", name, kind, err)
		}
		all = append(all, batch...)
		for _, x := range batch {
			if x.Member.Name == name && x.Kind == kind {
				return all
			}
		}
	}
}

func TestRoles(t *testing.T) {
	n := join(t, Config{Name: "a"})
	if _, err := n.Census(within(t)); !errors.Is(err, ErrRole) {
		t.Errorf("the census of a base node: %v", err)
	}
	if _, err := n.Fetch(within(t), 1); !errors.Is(err, ErrRole) {
		t.Errorf("what a base node fetches: %v", err)
	}
	if err := n.Follow(within(t), 1); !errors.Is(err, ErrRole) {
		t.Errorf("what a base node follows: %v", err)
	}
}
