package membership

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// hierarchyOf starts three management nodes, and two zones of four that have two of
// them as supervisors to call first.
func hierarchyOf(t *testing.T) (management []*Node, zones [2][]*Node) {
	t.Helper()
	keys := []Key{{Number: 1, Secret: [32]byte{9}}}
	for i := range 3 {
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
			c.Supervisors = []string{management[0].Addr().String(), management[1].Addr().String()}
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
// fetch their names, and be told who dies; also after a supervisor has died.
func TestHierarchy(t *testing.T) {
	management, zones := hierarchyOf(t)
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
	victim.Close()
	told := 0
	for i, m := range management {
		census(t, m, 4, 3)
		if left, _ := seen(t, watchers[i], "z1-n3"); left {
			told++
		}
	}
	if told == 0 {
		t.Error("no management node was told of the death by name")
	}

	// A supervisor dies: its zones get another one.
	dead := slices.IndexFunc(management, func(n *Node) bool { return n.Name() == census(t, management[0], 4, 3)[1].Supervisors[0] })
	gone := management[dead]
	gone.Close()
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

// seen reports whether a reader that waits for nothing was told that a node left.
func seen(t *testing.T, w *Watcher, name string) (left bool, all []Notice) {
	t.Helper()
	for {
		batch, err := w.Next(within(t))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, batch...)
		for _, x := range batch {
			if x.Member.Name == name && x.Kind == Left {
				return true, all
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
