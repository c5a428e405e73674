package pathsel

import (
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// maxRoute is the most links of an edge that switches forward.
const maxRoute = 6

// scout finds, from one node after another, the edges over switches that only
// forward and that shortest-path routing cannot but lead over their links.
//
// Each end of an edge sends to the other end's address on the edge's link there,
// so that what is routed is the subnet of that link. An edge over the links 1 to
// n is valid if 1 to n-1 is the only shortest way from its first end to link n, 2
// to n the only one from its other end to link 1, and the ends are not nearer to
// each other than n.
type scout struct {
	p *Planner
	asked
	round int32
	met   []reached // by switch index
	queue []topology.NodeID
}

// reached is what one search knows of a switch.
type reached struct {
	round int32
	away  int32
	ways  int32 // shortest ways there, 2 standing for more
	relay bool  // over links and switches that may be used; of a switch that forwards: and by the only shortest way
	over  topology.LinkID
}

// forward adds the edges over switches that forward to a Steiner input. A member's or
// a switch's place in it is what at returns.
func (s *steinerInput) forward(p *Planner, a asked, at func(topology.NodeID) int32) {
	sc := &scout{p: p, asked: a, met: make([]reached, p.graph.Switches())}
	s.routes = map[int32][]topology.LinkID{}
	for from := range s.nodes {
		sc.search(s.nodes[from], func(n topology.NodeID) {
			to := at(n)
			if int(to) <= from {
				return // found from there
			}
			links := sc.way(n)
			if !p.pinned(a.view, s.nodes[from], links) {
				return
			}
			cost := 0.0
			for _, l := range links {
				cost += p.linkCost(a, l)
			}
			s.routes[int32(len(s.links))] = links
			s.ends, s.links, s.cost = append(s.ends, [2]int32{int32(from), to}), append(s.links, links[0]), append(s.cost, cost)
		})
	}
}

// relays reports whether a switch may pass an edge on, and does not reduce.
func (s *scout) relays(n topology.NodeID) bool {
	return !s.excluded[n] && !s.serves(n)
}

// opens reports whether an edge may lead over a link.
func (s *scout) opens(l topology.LinkID) bool { return !s.excludesLink(l) && !s.narrow(l) }

// anyRelays reports whether there is a switch that may only forward.
func (p *Planner) anyRelays(a asked) bool {
	for i := range p.graph.Switches() {
		if n := p.graph.Switch(i); a.view.NodeUp(n) && !a.excluded[n] && !a.serves(n) {
			return true
		}
	}
	return false
}

// search calls found for every switch that reduces and is reached from a node
// over switches that forward, and by no shorter way. It goes on only as long as
// there is such a way to follow.
func (s *scout) search(from topology.NodeID, found func(topology.NodeID)) {
	g := s.p.graph
	if !s.view.NodeUp(from) {
		return
	}
	s.round++
	s.queue = append(s.queue[:0], from)
	if g.IsSwitch(from) {
		s.met[g.SwitchIndex(from)] = reached{round: s.round, ways: 1}
	}
	begin := 0
	for away := int32(1); away <= maxRoute; away++ {
		end, relays := len(s.queue), 0
		for _, n := range s.queue[begin:end] {
			s.step(n, away)
		}
		for _, n := range s.queue[end:] {
			m := &s.met[g.SwitchIndex(n)]
			switch {
			case !m.relay:
			case s.relays(n):
				if m.relay = m.ways == 1; m.relay {
					relays++
				}
			default:
				m.relay = false
				if away > 1 && s.serves(n) && !s.crowds(n) {
					found(n)
				}
			}
		}
		if begin = end; relays == 0 {
			return
		}
	}
}

// step looks at the links of a node whose neighbours are so far away.
func (s *scout) step(n topology.NodeID, away int32) {
	g := s.p.graph
	follow, ways := true, int32(1)
	if g.IsSwitch(n) {
		m := &s.met[g.SwitchIndex(n)]
		follow, ways = m.relay || away == 1, m.ways
	}
	for _, l := range g.Adjacent(n) {
		to := g.Across(l, n)
		if !g.IsSwitch(to) || !s.view.LinkUp(l) || !s.view.NodeUp(to) {
			continue
		}
		m := &s.met[g.SwitchIndex(to)]
		switch {
		case m.round != s.round:
			*m = reached{round: s.round, away: away, ways: ways, relay: follow && s.opens(l), over: l}
			s.queue = append(s.queue, to)
		case m.away == away:
			m.ways = min(m.ways+ways, 2)
			if follow && s.opens(l) && (!m.relay || s.lighter(l, m.over)) {
				m.relay, m.over = true, l
			}
		}
	}
}

// way returns the links to a switch that was found.
func (s *scout) way(to topology.NodeID) []topology.LinkID {
	g := s.p.graph
	m := &s.met[g.SwitchIndex(to)]
	links := make([]topology.LinkID, m.away)
	for i := len(links) - 1; i >= 0; i-- {
		links[i] = s.met[g.SwitchIndex(to)].over
		to = g.Across(links[i], to)
	}
	return links
}

// pinned reports whether an edge of these links, from one of its ends on, is
// valid; see scout.
func (p *Planner) pinned(view topology.View, from topology.NodeID, links []topology.LinkID) bool {
	last := len(links) - 1
	to := p.follow(from, links)
	back := slices.Clone(links)
	slices.Reverse(back)
	return p.onlyWay(view, from, to, links[:last]) && p.onlyWay(view, to, from, back[:last])
}

// onlyWay reports whether links, from a node on, are the only shortest way to
// where they end, and other is farther away than that.
func (p *Planner) onlyWay(view topology.View, from, other topology.NodeID, links []topology.LinkID) bool {
	end := p.follow(from, links)
	ways := map[topology.NodeID]int{from: 1} // of all nodes that were met
	front := []topology.NodeID{from}
	for range links {
		if ways[end] > 0 {
			return false // there is a shorter one
		}
		more := map[topology.NodeID]int{}
		var next []topology.NodeID
		for _, n := range front {
			for _, l := range p.graph.Adjacent(n) {
				to := p.graph.Across(l, n)
				if _, met := ways[to]; met || !view.Usable(l) {
					continue
				}
				if more[to] == 0 {
					next = append(next, to)
				}
				more[to] += ways[n]
			}
		}
		front = front[:0]
		for _, n := range next {
			ways[n] = min(more[n], 2)
			if p.graph.IsSwitch(n) { // hosts do not forward
				front = append(front, n)
			}
		}
	}
	return ways[end] == 1 && ways[other] == 0
}
