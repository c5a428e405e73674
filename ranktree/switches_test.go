package ranktree

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestListedIsTheTreeThatWasListed: held against the k-nomial tree, which has
// its answers by arithmetic.
func TestListedIsTheTreeThatWasListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "n")
		want := Rotate(KNomial(n, rapid.IntRange(2, 5).Draw(t, "k")), rapid.IntRange(0, n-1).Draw(t, "root"))
		parents := make([]int32, n)
		for r := range parents {
			parents[r] = -1
			if p, ok := want.Parent(r); ok {
				parents[r] = int32(p)
			}
		}
		got, err := List("listed", parents)
		if err != nil {
			t.Fatal(err)
		}
		for r := range n {
			wantChildren := want.AppendChildren(nil, r)
			slices.Sort(wantChildren)
			gotParent, gotOK := got.Parent(r)
			wantParent, wantOK := want.Parent(r)
			if gotParent != wantParent || gotOK != wantOK || !slices.Equal(got.AppendChildren(nil, r), wantChildren) ||
				got.Count(r) != want.Count(r) || got.Reach(r) != want.Reach(r) {
				t.Fatalf("rank %d: parent %d, children %v, count %d, reach %d", r, gotParent, got.AppendChildren(nil, r), got.Count(r), got.Reach(r))
			}
		}
	})
}

func TestListRefusesWhatIsNoTree(t *testing.T) {
	for name, parents := range map[string][]int32{
		"nobody":         {},
		"no root":        {1, 0},
		"two roots":      {-1, -1},
		"a ring":         {-1, 2, 1},
		"out of range":   {-1, 2},
		"below the root": {-1, -2},
	} {
		if got, err := List(name, parents); !errors.Is(err, ErrList) {
			t.Errorf("%s: %v, %v, want ErrList", name, got, err)
		}
	}
	tree := []int32{-1, 0}
	for name, c := range map[string]struct {
		at      []int32
		root, k int
	}{
		"a rank without a switch": {[]int32{0, 2}, 0, 1},
		"radix 0":                 {[]int32{0, 1}, 0, 0},
		"a root that is no rank":  {[]int32{0, 1}, 2, 1},
	} {
		if _, err := AlongSwitches(tree, c.at, c.root, c.k); !errors.Is(err, ErrList) {
			t.Errorf("%s: %v, want ErrList", name, err)
		}
	}
}

// link is a link between switches in one direction.
type link struct{ from, to int32 }

// crossed counts how often a message that goes down t crosses each link.
func crossed(t Spanning, up, at []int32) map[link]int {
	ancestors := func(s int32) (path []int32) {
		for ; s >= 0; s = up[s] {
			path = append(path, s)
		}
		return path
	}
	counts := map[link]int{}
	for r := range at {
		p, ok := t.Parent(r)
		if !ok {
			continue
		}
		from, to := ancestors(at[p]), ancestors(at[r])
		for len(from) > 1 && len(to) > 1 && from[len(from)-2] == to[len(to)-2] {
			from, to = from[:len(from)-1], to[:len(to)-1]
		}
		for i := 1; i < len(from); i++ {
			counts[link{from[i-1], from[i]}]++
		}
		for i := 1; i < len(to); i++ {
			counts[link{to[i], to[i-1]}]++
		}
	}
	return counts
}

// drawFabric draws a tree of switches, numbered in any order, and hosts on them.
func drawFabric(t *rapid.T) (up, at []int32, root int) {
	n := rapid.IntRange(1, 30).Draw(t, "switches")
	names := rapid.Permutation(ranks(n)).Draw(t, "numbers")
	up = make([]int32, n)
	up[names[0]] = -1
	for i := 1; i < n; i++ {
		up[names[i]] = int32(names[rapid.IntRange(0, i-1).Draw(t, "parent")])
	}
	hosts := rapid.IntRange(1, 40).Draw(t, "hosts")
	at = make([]int32, hosts)
	for r := range at {
		at[r] = int32(rapid.IntRange(0, n-1).Draw(t, "switch"))
	}
	return up, at, rapid.IntRange(0, hosts-1).Draw(t, "root")
}

func ranks(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// TestEveryLinkOnce: along a tree of switches no link is crossed twice the same
// way with k of 1, and every switch with hosts is entered once with any.
func TestEveryLinkOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		up, at, root := drawFabric(t)
		k := rapid.IntRange(1, 4).Draw(t, "k")
		tree, err := AlongSwitches(up, at, root, k)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := tree.Parent(root); ok || tree.Count(root) != len(at) {
			t.Fatalf("rank %d is not the root, or has %d beneath it", root, tree.Count(root))
		}
		for l, n := range crossed(tree, up, at) {
			if k == 1 && n != 1 {
				t.Errorf("link %v is crossed %d times", l, n)
			}
		}
		enters := map[int32]int{at[root]: 1}
		for r := range at {
			if p, ok := tree.Parent(r); ok && at[p] != at[r] {
				enters[at[r]]++
			}
		}
		for s, n := range enters {
			if n != 1 {
				t.Errorf("switch %d is entered %d times", s, n)
			}
		}
	})
}

// TestAlongAFatTree: 16 hosts on 8 edge switches in 4 pods, as a fat tree of
// radix 4 has them, from rank 5.
func TestAlongAFatTree(t *testing.T) {
	up := []int32{-1, 0, 0, 0, 0} // the core, and an aggregation switch a pod
	at := make([]int32, 16)
	for edge := range int32(8) {
		up = append(up, 1+edge/2)
		at[2*edge], at[2*edge+1] = 5+edge, 5+edge
	}
	chain, err := AlongSwitches(up, at, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(crossed(chain, up, at)); got > 2*12 || chain.Reach(5) != 8 {
		t.Errorf("%d links are crossed, to a depth of %d; want at most 24 and 8", got, chain.Reach(5))
	}
	binomial, err := AlongSwitches(up, at, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	if binomial.Reach(5) != 4 {
		t.Errorf("the binomial one has depth %d, want 4", binomial.Reach(5))
	}
	if children := binomial.AppendChildren(nil, 5); len(children) != 4 || !slices.Contains(children, 4) {
		t.Errorf("rank 5 has children %v, want 4 with its neighbour 4 among them", children)
	}
}
