package pathsel

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// Request is what a group asks of a tree.
type Request struct {
	// Members are the group's hosts by rank, each once.
	Members []topology.NodeID
	// Functions and Types must all be known to every switch on the tree; zero
	// for a group that only copies.
	Functions topology.Functions
	Types     topology.Types
	// Slots are the slots that the tree reserves on each of its switches.
	Slots int
	// ChunkBytes is the largest payload of the group's packets.
	ChunkBytes int
	// Protected packets need switches that are not Plain.
	Protected bool
	// Exclude are switches, ExcludeLinks links, that the tree must not use.
	Exclude      []topology.NodeID
	ExcludeLinks []topology.LinkID
	// Idle are switches that must not reduce. With Forward they may forward.
	Idle []topology.NodeID

	// Old is the tree that the group has lost, if it had one: it is repaired,
	// and the plan is the outcome unless a new tree is better by more than
	// Config.Keep. It counts no longer in the load.
	Old Tree

	// Avoid are trees of the same communicator, which the tree is to be apart
	// from: off their links and switches, as far as there is a tree without them.
	// They count in the load.
	Avoid []Tree

	// Purpose decides which tree is the best.
	Purpose
	// Forward lets switches that cannot reduce forward, so that an edge of the
	// tree may lead over several links: where routing by shortest paths, to the
	// subnets of the links at its ends, cannot but take exactly these.
	Forward bool
	// Slim has switches forward that could reduce, where the tree is better by
	// that: those with one child, and a root between two.
	Slim bool
	// HostSpeeds are those of members of which the graph has none, as far as they are
	// known.
	HostSpeeds map[topology.NodeID]topology.Speed
	// Hosts lets the answer be a *HostsFaster; it takes Bytes, or a Barrier.
	Hosts bool
}

// Validate reports what no fabric of this graph could fulfil: no members, a
// member that is not a host or is one twice, an excluded switch or link that is
// not there, a negative number. Its errors wrap ErrRequest.
func (r Request) Validate(g *topology.Graph) error {
	if len(r.Members) == 0 {
		return fmt.Errorf("%w: %w", ErrRequest, ErrNoMembers)
	}
	ranks := make(map[topology.NodeID]int, len(r.Members))
	for rank, m := range r.Members {
		if !g.IsHost(m) {
			return fmt.Errorf("%w: rank %d, %s: %w", ErrRequest, rank, g.Name(m), ErrUnknownHost)
		}
		if first, twice := ranks[m]; twice {
			return fmt.Errorf("%w: %s is rank %d and rank %d: %w", ErrRequest, g.Name(m), first, rank, ErrDuplicateMember)
		}
		ranks[m] = rank
	}
	return r.validateRest(g)
}

// validateRest reports what is wrong beside the members.
func (r Request) validateRest(g *topology.Graph) error {
	for _, list := range [2][]topology.NodeID{r.Exclude, r.Idle} {
		for _, n := range list {
			if !g.IsSwitch(n) {
				return fmt.Errorf("%w: %s to exclude is not a switch", ErrRequest, g.Name(n))
			}
		}
	}
	for _, l := range r.ExcludeLinks {
		if !g.HasLink(l) {
			return fmt.Errorf("%w: there is no link %d to exclude", ErrRequest, l)
		}
	}
	for _, t := range r.Avoid {
		for l := range t.Links() {
			if !g.HasLink(l) {
				return fmt.Errorf("%w: there is no link %d to avoid", ErrRequest, l)
			}
		}
		for _, v := range t.Vertices {
			if !g.IsSwitch(v.Switch) {
				return fmt.Errorf("%w: %s to avoid is not a switch", ErrRequest, g.Name(v.Switch))
			}
		}
	}
	if r.Slots < 0 || r.ChunkBytes < 0 {
		return fmt.Errorf("%w: %d slots and %d bytes a chunk must not be negative", ErrRequest, r.Slots, r.ChunkBytes)
	}
	return r.Purpose.Validate()
}

// Cost is what a tree costs. Fewer is better, and earlier fields decide before
// later ones.
type Cost struct {
	Hops  int // links that the tree uses
	Depth int // links from the root to the furthest member
	// Load is the present use: it sums, over the links and switches of the
	// tree, the trees that each carries already. Adding a tree raises the sum of
	// the squares of all these counts by twice this and a constant, so that
	// taking the least keeps the fabric evenly used.
	Load int
}

// Compare orders costs, the better first.
func (c Cost) Compare(d Cost) int {
	return cmp.Or(cmp.Compare(c.Hops, d.Hops), cmp.Compare(c.Depth, d.Depth), cmp.Compare(c.Load, d.Load))
}

// String says the cost in words.
func (c Cost) String() string {
	return fmt.Sprintf("%s, depth %d, present use %d", count(c.Hops, "hop"), c.Depth, c.Load)
}

// shortest is the best tree of shortest paths, and the roots that lost.
type shortest struct {
	outcome
	tree     Tree
	others   []outcome // best first; of one that could not have won any tree
	examined int       // the roots that were tried
}

// The budgets of one search for shortest paths, in steps that are counted and not timed, so that
// the same request has the same answer on every machine. On fabrics of up to
// some 400 switches the first covers every root.
const (
	rootBudget  = 1 << 24 // links looked at, over all roots
	minRoots    = 8
	exactBudget = 1 << 16 // steps of branch and bound, over all roots
	exactRoot   = 1 << 12 // the same for one root
)

// chooseRoot tries the roots in their order while the budget lasts.
func (f *subgraph) chooseRoot(roots []int32) (shortest, error) {
	try := rootBudget / (len(f.edges) + len(f.switches) + 1)
	try = max(try, minRoots)
	s := newSpanner(f)
	best := outcome{root: -1}
	var tree Tree
	var others []outcome
	examined := 0
	for i, root := range roots {
		// Where children limits are in the way of the first ones, a few more
		// are worth a try before the group is refused.
		if i >= try && best.root >= 0 || i >= 4*try {
			break
		}
		examined++
		var target *Cost
		if best.root >= 0 {
			target = &best.cost
		}
		if !s.span(root, target) {
			continue
		}
		o := outcome{root: root, cost: s.cost(), hash: mix(f.hash, uint64(f.switches[root]))}
		if best.root >= 0 && o.compare(best) > 0 {
			others = append(others, o)
			continue
		}
		if best.root >= 0 {
			others = append(others, best)
		}
		best, tree = o, s.tree()
	}
	if best.root < 0 {
		return shortest{}, s.refuseChildren()
	}
	slices.SortFunc(others, outcome.compare)
	return shortest{best, tree, others, examined}, nil
}

// outcome is what became of one root.
type outcome struct {
	root int32
	cost Cost
	hash uint64
}

func (o outcome) compare(p outcome) int {
	return cmp.Or(o.cost.Compare(p.cost), cmp.Compare(o.hash, p.hash), cmp.Compare(o.root, p.root))
}

// mix folds x into hash h: the finalizer of SplitMix64 (Steele,
// Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
func mix(h, x uint64) uint64 {
	h ^= x + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
