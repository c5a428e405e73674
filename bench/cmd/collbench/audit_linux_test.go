package main

import (
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

func TestAudit(t *testing.T) {
	g, err := topology.LeafSpine(1, 2, 2) // links 0, 1: hosts; 2, 3: leaf-0 to the spines; 4, 5: leaf-1
	if err != nil {
		t.Fatal(err)
	}
	leaf0, leaf1, spine0 := g.Switch(0), g.Switch(1), g.Switch(2)
	tree := pathsel.Tree{
		Vertices: []pathsel.Vertex{{Switch: spine0, Parent: -1, Up: topology.NoLink}, {Switch: leaf0, Parent: 0, Up: 2}, {Switch: leaf1, Parent: 0, Up: 4}},
		Leaves:   []pathsel.Leaf{{Host: 0, Vertex: 1, Link: 0}, {Host: 1, Vertex: 2, Link: 1}},
	}
	if err := tree.Validate(g.View()); err != nil {
		t.Fatal(err)
	}
	full, none := [2]netlab.Count{{Bytes: 1000}, {Bytes: 1010}}, [2]netlab.Count{{Bytes: 3}, {Bytes: 5, Dropped: 1}}
	for name, test := range map[string]struct {
		carried netlab.Counts
		want    []string
	}{
		"as planned": {netlab.Counts{full, full, full, none, full, none}, nil},
		"elsewhere": {
			netlab.Counts{full, full, full, none, none, full},
			[]string{
				"link leaf-1:2--spine-0:2 is on a tree, and carried 3 bytes from leaf-1; at least 900",
				"link leaf-1:2--spine-0:2 is on a tree, and carried 5 bytes from spine-0; at least 900",
				"link leaf-1:3--spine-1:2 is on no tree, and carried 1000 bytes from leaf-1; at most 10",
				"link leaf-1:3--spine-1:2 is on no tree, and carried 1010 bytes from spine-1; at most 10",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := audit(g, tree, test.carried, 900, 10)
			if len(c.alarms) != len(test.want) {
				t.Fatalf("%d alarms: %v", len(c.alarms), c.alarms)
			}
			for i, alarm := range c.alarms {
				if !strings.HasPrefix(alarm, test.want[i]) {
					t.Errorf("%s, want %s", alarm, test.want[i])
				}
			}
		})
	}
	if c := audit(g, tree, netlab.Counts{full, full, full, none, full, none}, 900, 10); c.least != 1000 || c.most != 1010 || c.stray != 5 || c.dropped != 2 {
		t.Errorf("%+v", c)
	}
}
