package pathsel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

const (
	// slack is how many times slower than another a switch may be and does not count as
	// slow yet, so that no tree moves for what measurements differ by.
	slack = 1.5
	// usualPayload is that of the packets by which switches are compared, in bytes.
	usualPayload = 1024
)

// rate returns the bytes of a child a second that a node reduces, of packets of so
// many bytes, with so much of its CPU in use by others. model is the rate of a node
// of which it is not known.
func rate(s topology.Speed, model float64, payload int, busy float64) float64 {
	if s.None() {
		return 0
	}
	if s.Bytes > 0 {
		model = float64(s.Bytes)
	}
	if s.Packets > 0 {
		model = min(model, float64(s.Packets)*float64(payload))
	}
	return model * max(1-busy, spare)
}

// busy returns how much of the CPU with which a switch of that speed reduces is in use
// by others. Of a switch of the tree that the group has or had, the group's own part is
// not known: it counts as idle, so that no tree moves away from its own use. What reduces
// at line rate is no CPU.
func (a *asked) busy(n topology.NodeID, s topology.Speed) float64 {
	if s.AtLineRate() || a.own[n] {
		return 0
	}
	return a.view.NodeUtilization(n)
}

// ownOf returns the switches of the tree that a request's group has or had, if speeds
// differ.
func (p *Planner) ownOf(view topology.View, req *Request) map[topology.NodeID]bool {
	if len(req.Old.Vertices) == 0 || p.paced(view).alike {
		return nil
	}
	own := make(map[topology.NodeID]bool, len(req.Old.Vertices))
	for _, v := range req.Old.Vertices {
		own[v.Switch] = true
	}
	return own
}

// pace is the rate of a switch for packets of the usual size.
func (a *asked) pace(n topology.NodeID) float64 {
	return a.paceAs(n, a.view.Capability(n).Speed)
}

func (a *asked) paceAs(n topology.NodeID, s topology.Speed) float64 {
	return rate(s, a.usual, usualPayload, a.busy(n, s))
}

// slowest returns the slowest switch of a tree, and its pace.
func (a *asked) slowest(t *Tree) (slowest topology.NodeID, pace float64) {
	pace = math.Inf(1)
	for _, v := range t.Vertices {
		if x := a.pace(v.Switch); x < pace {
			slowest, pace = v.Switch, x
		}
	}
	return slowest, pace
}

// paces is what a planner knows of the speeds of a view's switches.
type paces struct {
	view  topology.View
	known bool
	alike bool    // none counts as slow beside another
	usual float64 // the pace of a switch of which it is not known: the median of the others that are not at line rate
	// volumes are, by switch, what a tree takes of its CPU; nil: 1 of each.
	volumes []float64
}

// paced returns what holds in a view.
func (p *Planner) paced(view topology.View) *paces {
	s := &p.paces
	if s.known && s.view == view {
		return s
	}
	*s = paces{view: view, known: true, usual: p.cfg.Model.SwitchReduce}
	var own []float64
	for i := range p.graph.Switches() {
		if c := view.Capability(p.graph.Switch(i)); c.CanReduce() && c.Speed.Bytes > 0 && !c.Speed.AtLineRate() {
			own = append(own, rate(c.Speed, 0, usualPayload, 0))
		}
	}
	if len(own) > 0 {
		slices.Sort(own)
		s.usual = own[len(own)/2]
	}
	s.volumes = p.volumes(view, s.usual)
	a := asked{view: view, usual: s.usual}
	least, most := math.Inf(1), 0.0
	for i := range p.graph.Switches() {
		if n := p.graph.Switch(i); view.Capability(n).CanReduce() {
			x := a.pace(n)
			least, most = min(least, x), max(most, x)
		}
	}
	s.alike = slack*least >= most
	return s
}

// volumes returns, by switch, how many times slower than usual it is by its own speed:
// what differs by no more than measurements do counts as usual, and a switch at line
// rate has no CPU to share. It is nil where all are usual.
func (p *Planner) volumes(view topology.View, usual float64) []float64 {
	var volumes []float64
	for i := range p.graph.Switches() {
		c := view.Capability(p.graph.Switch(i))
		volume := 1.0
		switch own := rate(c.Speed, usual, usualPayload, 0); {
		case !c.CanReduce() || !c.Speed.Known():
		case c.Speed.AtLineRate():
			volume = 0
		case own > slack*usual || slack*own < usual:
			volume = usual / own
		}
		if volume == 1 {
			continue
		}
		if volumes == nil {
			volumes = slices.Repeat([]float64{1}, p.graph.Switches())
		}
		volumes[i] = volume
	}
	return volumes
}

// switchPrice returns the price of the request's tree on a switch, by its own speed.
func (a *asked) switchPrice(n topology.NodeID) float64 {
	volume := 1.0
	if a.volumes != nil {
		volume = a.volumes[a.view.Graph().SwitchIndex(n)]
	}
	return a.load.switchPrice(a.view, n, a.Slots, volume)
}

// fastest returns the pace of the slowest switch of the tree where that is the highest:
// of those with the fewest hops, where these count, and otherwise of all, up to
// children limits.
func (p *Planner) fastest(a asked) float64 {
	lowest, highest := 0.0, p.reachable(&a)
	if p.layers != nil && !a.Forward {
		lowest = p.levelwise.fastest(p, a)
		if lowest >= highest/slack || lowest > 0 && a.fewest() {
			return lowest
		}
	}
	var all []float64
	for i := range p.graph.Switches() {
		n := p.graph.Switch(i)
		if x := a.pace(n); a.serves(n) && x >= lowest && x <= highest {
			all = append(all, x)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for from := 0; from < len(all); { // they hang together over those from lowest on
		mid := (from + len(all)) / 2
		if a.least = all[mid]; p.holds(a) {
			lowest, from = all[mid], mid+1
		} else {
			all = all[:mid]
		}
	}
	return lowest
}

// reachable returns a pace that no tree exceeds: every member needs a switch that it
// has a link to, unless that only forwards.
func (p *Planner) reachable(a *asked) float64 {
	most := math.Inf(1)
	for _, m := range a.Members {
		best := 0.0
		for _, l := range p.graph.Adjacent(m) {
			if n := p.graph.Across(l, m); a.view.LinkUp(l) && !a.excludesLink(l) && a.serves(n) {
				best = max(best, a.pace(n))
			}
		}
		if best > 0 {
			most = min(most, best)
		}
	}
	return most
}

// fewest reports whether a tree may have no more hops than another.
func (a *asked) fewest() bool {
	return a.by == FewestHops || a.need == FewestHops || a.Weights.given()
}

// timed reports whether slow switches matter to a request. Trees of the least load that
// was asked for, or with the most room, are for the sake of others.
func (a *asked) timed() bool {
	if a.Weights.given() {
		return a.Weights[FewestHops]+a.Weights[LeastLatency]+a.Weights[WidestLink] > 0
	}
	return a.byDefault() || a.by != LeastLoad && a.by != MostCapable
}

// withoutSlow replaces trees by those that leave slow switches out, if the best has
// any, and it is better without. A switch is slow beside the slowest one of the
// fastest tree.
func (p *Planner) withoutSlow(a asked, all []candidate) []candidate {
	if p.paced(a.view).alike || !a.timed() {
		return all
	}
	slow, pace := a.slowest(&all[0].tree)
	fastest := p.fastest(a)
	for least, tries := fastest/slack, 0; pace < least && tries < 4; least, tries = math.Sqrt(least*pace), tries+1 {
		fast := p.faster(a, all[0], least)
		if fast == nil {
			continue // it is too far, or too narrow: perhaps with one that is less slow
		}
		_, found := a.slowest(&fast[0].tree)
		return setAside(&all[0], fast, fmt.Sprintf("a slow switch (%s reduces %s%s, here it is %s)",
			p.graph.Name(slow), speedText(pace), busyText(a.busy(slow, a.view.Capability(slow).Speed)), speedText(found)))
	}
	return all
}

// faster returns the trees over switches of a pace or more, if the best of them is
// better than the one that was found: an operation takes less time by the model and,
// where the fewest hops are asked for, it has as few.
func (p *Planner) faster(a asked, found candidate, least float64) []candidate {
	b := a
	b.least = least
	all, err := p.trees(b)
	if err != nil || a.fewest() && all[0].figures.Hops > found.figures.Hops {
		return nil
	}
	if p.shared(a, &all[0]) >= p.shared(a, &found) {
		return nil
	}
	return all
}

// shared returns how long an operation takes over a tree while all trees on its
// switches and links are in use.
func (p *Planner) shared(a asked, c *candidate) time.Duration {
	t := p.trip(a, &c.tree, &c.figures, true)
	t.Bytes = max(t.Bytes, usualPayload)
	if a.by == WidestLink || a.need == WidestLink {
		t.Bytes = max(t.Bytes, p.cfg.Model.even())
	}
	return p.cfg.Model.Switches(t)
}

// setAside makes a tree with a slow switch the first alternative to one without.
func setAside(slow *candidate, fast []candidate, why string) []candidate {
	best := fast[0]
	best.exact = false
	best.tried, best.work = best.tried+slow.tried, best.work+slow.work
	best.rivals = append([]Rival{{Root: slow.tree.Root(), Method: slow.method, Figures: slow.figures, Lost: why}}, best.rivals...)
	return append([]candidate{best}, fast[1:]...)
}

func speedText(bytes float64) string {
	if bytes < 1 {
		return "nothing"
	}
	return topology.Speed{Bytes: int64(bytes)}.String()
}

func slowText(slow, here int64) string {
	return fmt.Sprintf("a slow switch (%s, here it is %s)", speedText(float64(slow)), speedText(float64(here)))
}

func busyText(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf(", its CPU being in use for %.0f %% of the time", 100*share)
}

// trip returns what the model has to know of a tree, its switches being shared with
// the other trees on them or not.
func (p *Planner) trip(a asked, tree *Tree, figures *Figures, shared bool) Trip {
	t := Trip{
		Members: len(a.Members), Latency: figures.Latency, Bandwidth: figures.Bandwidth, Bytes: a.Bytes, Collective: a.Collective,
	}
	children := make([]int, len(tree.Vertices))
	count := func(v int32) {
		children[v]++
		t.Children = max(t.Children, children[v])
	}
	for _, v := range tree.Vertices[1:] {
		count(v.Parent)
	}
	for _, l := range tree.Leaves {
		count(l.Vertex)
	}
	payload, known, usual, model := a.ChunkBytes, false, a.usual, &p.cfg.Model
	if payload == 0 {
		payload = usualPayload
	}
	if a.blind {
		usual = model.SwitchReduce
	}
	t.Reduce = math.Inf(1)
	for i, v := range tree.Vertices {
		s, n := a.view.Capability(v.Switch).Speed, float64(children[i])
		busy := a.busy(v.Switch, s)
		if a.blind {
			s = topology.Speed{}
		}
		known = known || s.Known() || busy > 0
		if shared {
			n *= float64(1 + a.load.SwitchTrees(v.Switch))
		}
		t.Reduce = min(t.Reduce, rate(s, usual, payload, busy)/n)
		each := model.SwitchHop.Seconds()
		if s.Packets > 0 {
			each = n / float64(s.Packets)
		}
		t.Packet = max(t.Packet, seconds(each/max(1-busy, spare))-model.SwitchHop)
	}
	if !known && !shared {
		t.Reduce, t.Packet = 0, 0
	}
	t.HostReduce = p.hostRate(&a, payload)
	return t
}

// hostRate returns the rate of the slowest member; 0: as the model has it. One of which
// nothing is known counts as the slowest of those that were reported.
func (p *Planner) hostRate(a *asked, payload int) float64 {
	model := p.cfg.Model.HostReduce
	slowest, known, reported := math.Inf(1), false, a.leastReported()
	for _, m := range a.Members {
		s, busy := topology.Speed{}, a.view.NodeUtilization(m)
		if !a.blind {
			s = cmp.Or(p.graph.Speed(m), a.HostSpeeds[m], reported)
		}
		known = known || s.Known() || busy > 0
		slowest = min(slowest, rate(s, model, payload, busy))
	}
	if !known {
		return 0
	}
	return max(slowest, 1)
}

// leastReported returns the least bytes, and the least packets, of Request.HostSpeeds.
func (a *asked) leastReported() (s topology.Speed) {
	least := func(x, y int64) int64 {
		if x == 0 || y == 0 {
			return cmp.Or(x, y)
		}
		return min(x, y)
	}
	for _, is := range a.HostSpeeds {
		s = topology.Speed{Bytes: least(s.Bytes, is.Bytes), Packets: least(s.Packets, is.Packets)}
	}
	return s
}

// likeKnown reports whether speeds are known of both a tree's switches and the members:
// what was measured of some is not compared with a guess of the others.
func (p *Planner) likeKnown(a *asked, t *Tree) bool {
	return slices.ContainsFunc(t.Vertices, func(v Vertex) bool { return a.view.Capability(v.Switch).Speed.Known() }) &&
		(a.leastReported().Known() || slices.ContainsFunc(a.Members, func(m topology.NodeID) bool { return p.graph.Speed(m).Known() }))
}
