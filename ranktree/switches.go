package ranktree

import (
	"fmt"
	"slices"
)

// AlongSwitches returns a tree over hosts that follows a tree of switches: up
// has the parent of each switch, -1 for the topmost one, and at has, for each
// rank, the switch that its host hangs on.
//
// On each switch with hosts one stands for the others: the root on its own, the
// lowest rank elsewhere. It has the message from outside and passes it to all
// others of its switch. Those that stand for switches pass it on in the order in
// which a walk around the tree of switches, from the root's on, comes by.
//
// With k of 1 each passes it to the next one. The ways from switch to switch are
// then pieces of one walk around the tree, which goes along every link once in
// each direction: no link between switches is crossed twice the same way, by the
// message or by the replies. That is the least that hosts can do, who receive a
// message before they send it, and as deep as there are switches. With a larger
// k they form a k-nomial tree in that order: of logarithmic depth, for which a
// link is crossed up to (k-1) log_k times.
//
// It fails with ErrList where up is no tree, or a rank has no switch.
func AlongSwitches(up, at []int32, root, k int) (*Listed, error) {
	switches, err := List("switches", up)
	if err != nil {
		return nil, err
	}
	if k < 1 || root < 0 || root >= len(at) {
		return nil, fmt.Errorf("%w: of radix %d from rank %d of %d", ErrList, k, root, len(at))
	}
	stands := make([]int32, len(up)) // rank by switch, -1: no hosts
	for s := range stands {
		stands[s] = -1
	}
	for r := len(at) - 1; r >= 0; r-- {
		if at[r] < 0 || int(at[r]) >= len(up) {
			return nil, fmt.Errorf("%w: rank %d is on switch %d of %d", ErrList, r, at[r], len(up))
		}
		stands[at[r]] = int32(r)
	}
	stands[at[root]] = int32(root)
	parents := make([]int32, len(at))
	for r := range parents {
		parents[r] = stands[at[r]]
	}
	parents[root] = -1
	walk := switches.walk(at[root], stands)
	for i := 1; i < len(walk); i++ {
		parents[walk[i]] = walk[i-1]
		if k > 1 {
			p, _ := KNomial(len(walk), k).Parent(i)
			parents[walk[i]] = walk[p]
		}
	}
	return List(fmt.Sprintf("tree of radix %d along switches", k), parents)
}

// walk returns what stands for the switches, those without hosts left out, in
// the order in which a walk from one of them comes by.
func (t *Listed) walk(from int32, stands []int32) []int32 {
	type step struct{ at, came int32 }
	var order []int32
	for stack := []step{{from, -1}}; len(stack) > 0; {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if stands[s.at] >= 0 {
			order = append(order, stands[s.at])
		}
		from := len(stack)
		for c := t.first[s.at]; c >= 0; c = t.next[c] {
			if c != s.came {
				stack = append(stack, step{c, s.at})
			}
		}
		if p := t.parent[s.at]; p >= 0 && p != s.came {
			stack = append(stack, step{p, s.at})
		}
		slices.Reverse(stack[from:]) // the last is the next
	}
	return order
}
