package pathsel

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// detours looks for cheaper trees by local search: a branch, a switch of the
// tree with all beneath it or a member, is taken off its parent and hung
// elsewhere, over the cheapest way there is to what is left of the tree.
type detours struct {
	p *Planner
	asked

	branches []branch
	ranks    int     // the first branches are the members
	vertex   []int32 // by switch: its branch; -1
	reached  []reach // by switch
	round    int32
	asks     int32
	queue    []waypoint
	left     int // links that may yet be looked at
	root     topology.NodeID

	// Of one search: the branch, the first switch above it that stays, and the
	// best way so far: its price, where it ends, its last link.
	at, top, end int32
	best         float64
	last         topology.LinkID
}

// bytes returns the memory that is kept for the next plan.
func (d *detours) bytes() int {
	const branchBytes, reachBytes, waypointBytes = 48, 40, 16
	return branchBytes*cap(d.branches) + 4*cap(d.vertex) + reachBytes*cap(d.reached) + waypointBytes*cap(d.queue)
}

// branch is a vertex or a leaf of the tree.
type branch struct {
	node     topology.NodeID
	parent   int32 // -1: the root, or given up
	up       topology.LinkID
	children int32
	price    float64 // of the switch
	// height is the time to it from the furthest member beneath, or more.
	height time.Duration
	gone   bool
}

// reach is how a switch that is not on the tree is reached in this round.
type reach struct {
	round int32
	asked int32           // the plan for which own is
	link  topology.LinkID // towards the branch
	price float64
	own   float64       // the price of the switch; infinite if it cannot be on the tree
	took  time.Duration // from the furthest member of the branch
}

// waypoint is an entry of the queue.
type waypoint struct {
	price float64
	node  topology.NodeID
}

// The budgets of detours: links that are looked at for one tree and for one of its
// branches, and rounds over all branches. They are counted and not timed, so that a
// plan does not depend on the machine.
const (
	detourWork  = 1 << 16
	searchWork  = 1 << 13
	boundedWork = 1 << 11

	detourRounds = 3
)

// withDetour puts the best candidate with detours before the candidates, where
// that is cheaper, by the load alone.
func (p *Planner) withDetour(a asked, all []candidate) []candidate {
	if a.by != LeastLoad || a.load == nil {
		return all
	}
	best := all[0]
	tree, ok := p.detour(a, best.tree)
	if !ok {
		return all
	}
	c := p.candidate(a, tree, best.method)
	if c.figures.Compare(best.figures, a.by) >= 0 {
		return all
	}
	return append([]candidate{c}, all...)
}

// detour returns a tree that is cheaper than t, if it finds one.
func (p *Planner) detour(a asked, t Tree) (Tree, bool) {
	if len(t.Vertices) < 2 || len(t.Routes) > 0 {
		return t, false
	}
	d := &p.detours
	d.p, d.asked, d.left = p, a, detourWork
	if d.vertex == nil {
		d.vertex, d.reached = make([]int32, p.graph.Switches()), make([]reach, p.graph.Switches())
		for i := range d.vertex {
			d.vertex[i] = -1
		}
	}
	d.root = t.Root()
	d.asks++
	d.take(t)
	changed := false
	for range detourRounds {
		if !d.pass() {
			break
		}
		changed = true
	}
	if changed {
		t = d.tree(t)
	}
	for _, b := range d.branches[d.ranks:] {
		d.vertex[p.graph.SwitchIndex(b.node)] = -1
	}
	return t, changed
}

// take makes branches of a tree: its members, then its switches.
func (d *detours) take(t Tree) {
	g := d.p.graph
	d.ranks = len(t.Leaves)
	d.branches = d.branches[:0]
	for _, l := range t.Leaves {
		d.branches = append(d.branches, branch{node: l.Host, parent: int32(d.ranks) + l.Vertex, up: l.Link})
	}
	for i, v := range t.Vertices {
		b := branch{node: v.Switch, parent: -1, up: v.Up, price: d.switchPrice(v.Switch)}
		if i > 0 {
			b.parent = int32(d.ranks) + v.Parent
		}
		d.branches = append(d.branches, b)
		d.vertex[g.SwitchIndex(v.Switch)] = int32(d.ranks + i)
	}
	for i := range d.branches[:d.ranks] {
		d.lift(int32(i))
	}
	for i := len(d.branches) - 1; i >= d.ranks; i-- { // those beneath first
		d.lift(int32(i))
	}
}

// lift counts a branch among the children of its parent.
func (d *detours) lift(at int32) {
	b := &d.branches[at]
	if b.parent < 0 {
		return
	}
	above := &d.branches[b.parent]
	above.children++
	above.height = max(above.height, b.height+d.hop(b.up))
}

// hop returns how long a packet takes over a link to a switch that reduces.
func (d *detours) hop(l topology.LinkID) time.Duration {
	return d.p.latency(l) + d.p.cfg.Model.SwitchHop
}

// inTime reports whether what takes so long to a switch on the tree is in time at the
// root.
func (d *detours) inTime(v int32, took time.Duration) bool {
	if d.within == 0 {
		return true
	}
	for ; d.branches[v].parent >= 0 && took <= d.within; v = d.branches[v].parent {
		took += d.hop(d.branches[v].up)
	}
	return took <= d.within
}

// pass tries every branch once, the dearest link first.
func (d *detours) pass() (better bool) {
	type dear struct {
		price float64
		at    int32
	}
	var order []dear
	prices := d.load.priced()
	for i, b := range d.branches {
		if b.gone || b.parent < 0 || i < d.ranks && len(d.p.graph.Adjacent(b.node)) < 2 {
			continue
		}
		if price := d.load.linkPrice(d.view, b.up); price > prices.floor(d.load.links[b.up].grade) {
			order = append(order, dear{price, int32(i)})
		}
	}
	slices.SortFunc(order, func(x, y dear) int { return cmp.Or(cmp.Compare(y.price, x.price), cmp.Compare(x.at, y.at)) })
	for _, o := range order {
		if d.left <= 0 {
			break
		}
		if !d.branches[o.at].gone && d.rehang(o.at) {
			better = true
		}
	}
	return better
}

// rehang hangs a branch elsewhere, if that is cheaper.
func (d *detours) rehang(at int32) bool {
	// What goes with the link: switches above that lead to nothing else.
	b := &d.branches[at]
	saved := d.load.linkPrice(d.view, b.up)
	top := b.parent
	for d.branches[top].children == 1 && d.branches[top].parent >= 0 {
		saved += d.branches[top].price + d.load.linkPrice(d.view, d.branches[top].up)
		top = d.branches[top].parent
	}
	end, link := d.search(at, top, saved)
	if end < 0 {
		return false
	}
	for v := b.parent; v != top; {
		c := &d.branches[v]
		c.gone = true
		d.vertex[d.p.graph.SwitchIndex(c.node)] = -1
		v, c.parent = c.parent, -1
	}
	d.branches[top].children--
	d.hang(at, end, link)
	return true
}

// hang joins a branch to another over the way that search has found, whose last
// link is given.
func (d *detours) hang(at, end int32, link topology.LinkID) {
	g := d.p.graph
	parent := end
	n := g.Across(link, d.branches[end].node)
	d.branches[end].children++
	for n != d.branches[at].node {
		i := int32(len(d.branches))
		d.branches = append(d.branches, branch{
			node: n, parent: parent, up: link, children: 1, price: d.switchPrice(n),
		})
		d.vertex[g.SwitchIndex(n)] = i
		parent, link = i, d.reached[g.SwitchIndex(n)].link
		n = g.Across(link, n)
	}
	d.branches[at].parent, d.branches[at].up = parent, link
	for v := at; d.branches[v].parent >= 0; v = d.branches[v].parent {
		above := &d.branches[d.branches[v].parent]
		above.height = max(above.height, d.branches[v].height+d.hop(d.branches[v].up))
	}
}

// budget returns the links that a search may look at: fewer where most of what it finds
// is too late.
func (d *detours) budget() int {
	if d.within > 0 {
		return boundedWork
	}
	return searchWork
}

// search finds the cheapest way from a branch to the tree without it and without
// what is between it and top, cheaper than saved: where it ends, and its last link.
func (d *detours) search(at, top int32, saved float64) (end int32, last topology.LinkID) {
	prices := d.load.priced()
	d.round++
	d.queue = d.queue[:0]
	d.at, d.top, d.best = at, top, saved
	d.end, d.last = -1, topology.NoLink
	d.expand(d.branches[at].node, 0, d.branches[at].height)
	for begun := d.left; len(d.queue) > 0 && begun-d.left < d.budget(); {
		w := d.pop()
		if w.price >= d.best {
			break
		}
		if r := &d.reached[d.p.graph.SwitchIndex(w.node)]; w.price == r.price && w.price+prices.leastFloor(prices.layer(w.node)) < d.best {
			d.expand(w.node, w.price, r.took)
		}
	}
	return d.end, d.last
}

// expand goes over the links of a switch that is reached at a price, and after a time.
func (d *detours) expand(n topology.NodeID, price float64, took time.Duration) {
	g, prices := d.p.graph, d.load.priced()
	least := price + prices.leastFloor(prices.layer(n))
	for _, l := range g.Adjacent(n) {
		d.left--
		m := g.Across(l, n)
		if !g.IsSwitch(m) {
			continue
		}
		i := g.SwitchIndex(m)
		r := &d.reached[i]
		if r.round == d.round && r.price <= least || !d.view.LinkUp(l) || d.excludesLink(l) {
			continue
		}
		cost := price + d.load.detourPrice(d.view, l)
		if cost >= d.best {
			continue
		}
		if v := d.vertex[i]; v >= 0 && d.beneath(v, d.at) {
			continue
		} else if v >= 0 && !d.leaving(v) {
			if d.takes(v) && d.inTime(v, took+d.hop(l)) {
				d.end, d.last, d.best = v, l, cost
			}
			continue
		}
		onward := prices.leastFloor(prices.layer(m))
		if cost+onward >= d.best || d.tooLate(m, took+d.hop(l)) {
			continue
		}
		if r.asked != d.asks {
			r.asked, r.own = d.asks, d.own(m)
		}
		if cost += r.own; cost+onward >= d.best || r.round == d.round && r.price <= cost {
			continue
		}
		r.round, r.price, r.link, r.took = d.round, cost, l, took+d.hop(l)
		d.push(waypoint{cost, m})
	}
}

// own returns the price of a switch that is not on the tree yet.
func (d *detours) own(n topology.NodeID) float64 {
	if !d.serves(n) {
		return math.Inf(1)
	}
	return d.switchPrice(n)
}

// beneath reports whether branch v is branch at or on it.
func (d *detours) beneath(v, at int32) bool {
	for ; v >= 0; v = d.branches[v].parent {
		if v == at {
			return true
		}
	}
	return false
}

// leaving reports whether a switch goes with the link that is given up.
func (d *detours) leaving(v int32) bool {
	for w := d.branches[d.at].parent; w != d.top; w = d.branches[w].parent {
		if w == v {
			return true
		}
	}
	return false
}

// takes reports whether a switch on the tree has room for a child.
func (d *detours) takes(v int32) bool {
	n := d.branches[v].children
	if v == d.top {
		n-- // the branch is one, or what goes with its link
	}
	return int(n) < d.view.Capability(d.branches[v].node).Children
}

// tooLate reports whether what takes so long to a switch off the tree cannot be in time
// at the root, from which it is a link away for each layer between, or two in its own.
func (d *detours) tooLate(n topology.NodeID, took time.Duration) bool {
	if d.within == 0 {
		return false
	}
	links := 1
	if d.p.layers != nil {
		switch up := d.p.graph.Layer(d.root) - d.p.graph.Layer(n); {
		case up < 0:
			links = -up
		case up == 0:
			links = 2
		default:
			links = up
		}
	}
	return took+time.Duration(links)*d.p.cfg.Model.SwitchHop > d.within
}

func (d *detours) push(w waypoint) {
	q := append(d.queue, w)
	i := len(q) - 1
	for i > 0 && q[(i-1)/2].price > w.price {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = w
	d.queue = q
}

func (d *detours) pop() waypoint {
	q := d.queue
	top, w := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	i := 0
	for 2*i+1 < len(q) {
		c := 2*i + 1
		if c+1 < len(q) && q[c+1].price < q[c].price {
			c++
		}
		if q[c].price >= w.price {
			break
		}
		q[i] = q[c]
		i = c
	}
	if len(q) > 0 {
		q[i] = w
	}
	d.queue = q
	return top
}

// tree returns the tree of the branches.
func (d *detours) tree(old Tree) Tree {
	root := int32(-1)
	below := make([][]int32, len(d.branches))
	for i, b := range d.branches {
		if b.parent >= 0 {
			below[b.parent] = append(below[b.parent], int32(i))
		} else if !b.gone {
			root = int32(i)
		}
	}
	for len(below[root]) == 1 && below[root][0] >= int32(d.ranks) {
		root = below[root][0]
	}
	t := Tree{Leaves: slices.Clone(old.Leaves)}
	t.Vertices = append(t.Vertices, Vertex{Switch: d.branches[root].node, Parent: -1, Up: topology.NoLink})
	order := []int32{root}
	for k := 0; k < len(order); k++ {
		for _, i := range below[order[k]] {
			b := &d.branches[i]
			if i < int32(d.ranks) {
				t.Leaves[i] = Leaf{Host: b.node, Vertex: int32(k), Link: b.up}
				continue
			}
			t.Vertices = append(t.Vertices, Vertex{Switch: b.node, Parent: int32(k), Up: b.up})
			order = append(order, i)
		}
	}
	return t
}
