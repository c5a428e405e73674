package main

import (
	"strings"
	"testing"

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
	full, none := sentBytes{1000, 1010}, sentBytes{3, 5}
	limits := bounds{Least: 900, Most: 1050, Stray: 10}
	for name, test := range map[string]struct {
		carried []sentBytes
		want    []string
	}{
		"as planned": {[]sentBytes{full, full, full, none, full, none}, nil},
		"elsewhere": {
			[]sentBytes{full, full, full, none, none, full},
			[]string{
				"link leaf-1:2--spine-0:2 is on a tree, and carried 3 bytes from leaf-1; at least 900",
				"link leaf-1:2--spine-0:2 is on a tree, and carried 5 bytes from spine-0; at least 900",
				"link leaf-1:3--spine-1:2 is on no tree, and carried 1000 bytes from leaf-1; at most 10",
				"link leaf-1:3--spine-1:2 is on no tree, and carried 1010 bytes from spine-1; at most 10",
			},
		},
		"one way twice": {
			[]sentBytes{{1000, 2000}, full, full, none, full, none},
			[]string{"link h0:1--leaf-0:1 is on a tree, and carried 2000 bytes from leaf-0; at most 1050"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := audit(g, []pathsel.Tree{tree}, test.carried, limits)
			if len(wrong) != len(test.want) {
				t.Fatalf("%d alarms: %v", len(wrong), wrong)
			}
			for i, m := range wrong {
				if !strings.HasPrefix(m.Error(), test.want[i]) {
					t.Errorf("%v, want %s", m, test.want[i])
				}
			}
		})
	}
	limits.Most = 0
	if wrong := audit(g, []pathsel.Tree{tree}, []sentBytes{{1000, 2000}, full, full, none, full, none}, limits); len(wrong) > 0 {
		t.Errorf("without a bound: %v", wrong)
	}
}
