package pathsel

import (
	"fmt"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// Figures are what a tree costs by every criterion.
type Figures struct {
	Hops      int           // links used, each counted once for each edge over it
	Depth     int           // links from the root to the furthest member
	Latency   time.Duration // from the furthest member to the root, switches included
	Bandwidth int64         // bit/s that are left for the group on the narrowest link
	Use       int           // trees on its links and switches already: Cost.Load
	Price     float64       // of the links, switch CPUs and slots
	Share     float64       // the largest share of its free slots or its children that a switch gives
	Speed     int64         // bytes of a child a second that its slowest switch reduces
}

// Cost returns what trees that are equal by the criterion are distinguished by.
func (f Figures) Cost() Cost { return Cost{Hops: f.Hops, Depth: f.Depth, Load: f.Use} }

// value returns what f is by a criterion, less being better.
func (f Figures) value(by Criterion) float64 {
	switch by {
	case LeastLatency:
		return float64(f.Latency)
	case WidestLink:
		return 1e15 / float64(max(f.Bandwidth, 1))
	case LeastLoad:
		return f.Price
	case MostCapable:
		return f.Share
	}
	return float64(f.Hops)
}

// lost says by what f is behind best.
func (f Figures) lost(best Figures, by Criterion) string {
	switch {
	case by == LeastLatency && f.Latency != best.Latency:
		return fmt.Sprintf("%v of latency (%v against %v)", f.Latency-best.Latency, f.Latency, best.Latency)
	case by == WidestLink && f.Bandwidth != best.Bandwidth:
		return fmt.Sprintf("%s of bandwidth (%s against %s)", bitRate(best.Bandwidth-f.Bandwidth), bitRate(f.Bandwidth), bitRate(best.Bandwidth))
	case by == LeastLoad && f.Price != best.Price:
		return f.dearer(best)
	case by == MostCapable && f.Share != best.Share:
		return fmt.Sprintf("%.1f points of a switch's room (%.1f %% against %.1f %%)", 100*(f.Share-best.Share), 100*f.Share, 100*best.Share)
	}
	text := lost(f.Cost(), best.Cost())
	if text == tied && f.slow(best) {
		return slowText(f.Speed, best.Speed)
	}
	return text
}

// dearer says how much higher the price of f is.
func (f Figures) dearer(best Figures) string {
	text := fmt.Sprintf("%.1f %% of the load's price", 100*(f.Price/math.Max(best.Price, 1)-1))
	if ratio := f.Price / math.Max(best.Price, 1); ratio >= 10 {
		text = fmt.Sprintf("%.3g times the load's price", ratio)
	}
	if f.slow(best) {
		text = slowText(f.Speed, best.Speed) + ", " + text
	}
	return text
}

// slow reports whether f's slowest switch is slow beside best's.
func (f Figures) slow(best Figures) bool {
	return f.Speed > 0 && slack*float64(f.Speed) < float64(best.Speed)
}

// bitRate writes a bandwidth for people.
func bitRate(bits int64) string {
	for _, u := range []struct {
		bits float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if float64(bits) >= u.bits {
			return fmt.Sprintf("%.4g %sbit/s", float64(bits)/u.bits, u.name)
		}
	}
	return fmt.Sprintf("%d bit/s", bits)
}

// width returns the bandwidth that is left for one more tree on a link.
func width(view topology.View, load *Load, l topology.LinkID, spec topology.LinkSpec) int64 {
	trees, busy := load.LinkTrees(l), view.LinkUtilization(l)
	if trees == 0 && busy == 0 {
		return spec.Bandwidth
	}
	return int64(float64(spec.Bandwidth) * (1 - busy) / float64(trees+1))
}

// share returns what a switch would give of its free slots or its children to a
// tree with so many children there.
func share(c topology.Capability, used int, req *Request, children int) float64 {
	of := float64(children) / float64(max(c.Children, 1))
	if free := c.Slots - used; req.Slots > 0 {
		of = math.Max(of, float64(req.Slots)/float64(max(free, 1)))
	}
	return of
}

// Measure returns what a tree costs in view, beside what load counts.
func (p *Planner) Measure(view topology.View, load *Load, req Request, t Tree) Figures {
	g := p.graph
	speeds := p.paced(view)
	a := asked{Request: &req, view: view, load: load, usual: speeds.usual, volumes: speeds.volumes, own: p.ownOf(view, &req)}
	slowest := math.Inf(1)
	f := Figures{Hops: t.Hops(), Bandwidth: math.MaxInt64}
	away := make([]time.Duration, len(t.Vertices)) // of the root
	deep := make([]int32, len(t.Vertices))
	children := make([]int32, len(t.Vertices))
	if load != nil {
		load.priced()
	}
	times := t.times()
	count := func(link topology.LinkID) time.Duration {
		spec := g.Link(link).LinkSpec
		left := width(view, load, link, spec)
		if n := times[link]; n > 1 { // edges of the tree itself share it
			left = int64(float64(left) * float64(load.LinkTrees(link)+1) / float64(load.LinkTrees(link)+n))
		}
		f.Bandwidth = min(f.Bandwidth, left)
		f.Use += load.LinkTrees(link)
		f.Price += load.linkPrice(view, link)
		return spec.Latency
	}
	routes := t.routesByChild()
	beyond := make(map[int32]time.Duration, len(t.Routes)) // over the links of a route but the first
	for _, r := range t.Routes {
		for _, link := range r.Links[1:] {
			beyond[r.child()] += count(link)
		}
	}
	for i, v := range t.Vertices {
		f.Use += load.SwitchTrees(v.Switch)
		f.Price += a.switchPrice(v.Switch)
		if i > 0 {
			took, links := count(v.Up)+p.cfg.Model.SwitchHop, 1
			if routes != nil { // switches that only forward take no time
				took, links = took+beyond[int32(i)], routes.links(int32(i))
			}
			away[i] = away[v.Parent] + took
			deep[i] = deep[v.Parent] + int32(links)
			children[v.Parent]++
		}
	}
	for rank, l := range t.Leaves {
		took, links := count(l.Link)+p.cfg.Model.SwitchHop, 1
		if routes != nil {
			took, links = took+beyond[ofRank(rank)], routes.links(ofRank(rank))
		}
		f.Latency = max(f.Latency, away[l.Vertex]+took)
		f.Depth = max(f.Depth, int(deep[l.Vertex])+links)
		children[l.Vertex]++
	}
	for i, v := range t.Vertices {
		c := view.Capability(v.Switch)
		f.Share = math.Max(f.Share, share(c, load.UsedSlots(v.Switch), &req, int(children[i])))
		slowest = min(slowest, a.paceAs(v.Switch, c.Speed))
	}
	f.Speed = int64(slowest)
	return f
}
