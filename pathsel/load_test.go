package pathsel

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// TestLoadSpreads places equal groups one after another: over the roots and the
// switches' links they differ by one at most.
func TestLoadSpreads(t *testing.T) {
	for _, test := range []struct{ fabric, over string }{
		{"fat-tree:4", "core-"}, {"leaf-spine:2,4,3", "spine-"},
	} {
		t.Run(test.fabric, func(t *testing.T) {
			g := fabric(t, test.fabric)
			load := NewLoad(g)
			for n := range 11 {
				c := mustSelect(t, g.View(), load, usual(g.AllHosts()))
				load.Add(c.Tree, 64)
				least, most := n+1, 0
				for i := range g.Switches() {
					if strings.HasPrefix(g.Name(g.Switch(i)), test.over) {
						least, most = min(least, load.SwitchTrees(g.Switch(i))), max(most, load.SwitchTrees(g.Switch(i)))
					}
				}
				if most > least+1 {
					t.Fatalf("after %d groups one root has %d trees and another %d", n+1, most, least)
				}
			}
		})
	}
}

// TestParallelLinksSpread uses the six links between two switches in turn.
func TestParallelLinksSpread(t *testing.T) {
	g := fabric(t, "four-switches")
	a, b := node(t, g, "A"), node(t, g, "B")
	load := NewLoad(g)
	for range 12 {
		c := mustSelect(t, g.View(), load, usual(hosts(t, g, "h0", "h18")))
		load.Add(c.Tree, 64)
	}
	for _, l := range g.Adjacent(a) {
		if g.Across(l, a) == b && load.LinkTrees(l) != 2 {
			t.Errorf("%s carries %d trees, not 2", g.LinkName(l), load.LinkTrees(l))
		}
	}
}

// TestHashSpreads has different groups, none of which knows of another, choose
// among equal roots: all are chosen.
func TestHashSpreads(t *testing.T) {
	g := fabric(t, "fat-tree:8")
	rng := rand.New(rand.NewPCG(7, 8))
	roots := map[topology.NodeID]int{}
	for range 100 {
		members := randomGroup(rng, g, g.Hosts())
		if c := mustSelect(t, g.View(), nil, usual(members)); c.Cost.Depth == 3 {
			roots[c.Tree.Root()]++
		}
	}
	if len(roots) != 16 {
		t.Errorf("%d of 16 core switches were chosen: %v", len(roots), roots)
	}
}

func TestSelectIsDeterministic(t *testing.T) {
	g := fabric(t, "fat-tree:8")
	rng := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		req := usual(randomGroup(rng, g, g.Hosts()))
		view, load := damage(t, rng, g, &req)
		first, err1 := selectTree(view, load, req)
		second, err2 := selectTree(view, load, req)
		if !reflect.DeepEqual(first, second) || fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Fatalf("two answers:\n%+v %v\n%+v %v", first, err1, second, err2)
		}
	}
}

func TestLoadRemoveUndoesAdd(t *testing.T) {
	g := fabric(t, "fat-tree:4")
	load, rng := NewLoad(g), rand.New(rand.NewPCG(11, 12))
	var trees []Tree
	for range 10 {
		c := mustSelect(t, g.View(), load, usual(randomGroup(rng, g, 16)))
		load.Add(c.Tree, 100)
		trees = append(trees, c.Tree)
	}
	if load.UsedSlots(trees[0].Root()) < 100 || load.SwitchTrees(trees[0].Root()) < 1 || load.LinkTrees(trees[0].Leaves[0].Link) < 1 {
		t.Error("a tree that was added is not counted")
	}
	for _, tree := range trees {
		load.Remove(tree, 100)
	}
	if !reflect.DeepEqual(load, NewLoad(g)) {
		t.Error("something is left after every tree was removed")
	}
}
