package pathsel

import (
	"math"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// prices are what LeastLoad minimises: a tree that adds p to a use u costs
//
//	exp((u+p)/S) - exp(u/S)
//
// divided by what measurements say is left there. docs/planning.md has the rule; S is
// the scale of a class.
type prices struct {
	// layer is that of a node; where links join other than neighbouring layers, 1 of
	// every switch.
	layer   func(topology.NodeID) int
	grades  []grade   // of links, then of the switches of each layer
	cpus    int32     // the grade of layer 0
	beside  [][]int32 // by layer: the grades of its switches' links to switches
	least   []float64 // by layer: the least floor of these; 0: to be computed
	classes []priceClass
	ups     []float64 // by switch: its links upwards, each by the trees that make a use of 1
	slots   []slotPrice
}

// slotPrice is what slots of a switch cost, as it was last asked for: most are asked
// for several times in a plan.
type slotPrice struct {
	used         int64
	slots, all   int
	scale, price float64
}

// priceClass is the resources whose uses are compared with one another.
type priceClass struct {
	n       int
	weight  float64
	squares float64 // of the uses, in sum
	// most is the largest use of a CPU or of slots. Of links it is the largest mean
	// use of those upwards from one switch by the trees with members there and
	// elsewhere: where members have one link, every placement has as much.
	most  float64
	stale bool    // most may be less by now
	scale float64 // a use that is larger by it has e times the price; 0: nothing is used
	// expected is the use of a link up to which no longer tree pays.
	expected float64

	// Of the last volume and scale that were asked for: what part of e to the use
	// with the volume is not that of the use without.
	volume, sharpness, part float64
}

// grade is links or switches whose next tree has the same price if they have the
// same number of trees.
type grade struct {
	class  int
	volume float64   // what a tree adds to the use
	price  []float64 // by the trees that are there; unknown until it is asked for
	floor  float64   // what detours count a link at, at least; 0: to be computed
}

const (
	// steepness is how many times the price of something grows e-fold until its
	// use is the level of its class.
	steepness = 12
	// switchWeight is what a switch's CPU, or slots, count against a link.
	switchWeight = 1.0 / 16
	// priceUnit is the finest price: prices are whole multiples of it, so that
	// sums of them are exact and do not depend on their order.
	priceUnit = 1.0 / (1 << 8)
	unknown   = -1.0
	// slowestVolume is the most that a tree takes of a CPU, against one of usual speed.
	slowestVolume = 1 << 10
	// scaleSteps are the steps in which a scale doubles.
	scaleSteps = 16
)

// kinds of classes, of each layer.
const (
	linkClass = iota
	cpuClass
	slotClass
	classKinds
)

func classOf(kind, layer int) int { return classKinds*layer + kind }

// newPrices counts the classes and what they carry.
func newPrices(l *Load) *prices {
	g := l.graph
	layers := max(g.Layers(), 2)
	p := &prices{
		layer: g.Layer, classes: make([]priceClass, classKinds*layers), beside: make([][]int32, layers), least: make([]float64, layers),
		ups: make([]float64, g.Switches()), slots: make([]slotPrice, g.Switches()),
	}
	if !inLayers(g) {
		p.layer = func(n topology.NodeID) int {
			if g.IsHost(n) {
				return 0
			}
			return 1
		}
	}
	p.gradeLinks(l)
	p.cpus = int32(len(p.grades))
	for layer := range layers {
		p.grades = append(p.grades, grade{class: classOf(cpuClass, layer), volume: 1})
	}
	for c := range p.classes {
		p.classes[c].weight = 1
		if c%classKinds != linkClass {
			p.classes[c].weight = switchWeight
		}
	}
	for i := range g.Switches() {
		layer := p.layer(g.Switch(i))
		p.classes[classOf(cpuClass, layer)].n++
		p.classes[classOf(slotClass, layer)].n++
	}
	for _, use := range l.links {
		p.moveLink(use.grade, 0, use.trees)
	}
	for i := range l.switches {
		p.moveMembers(g, i, 0, l.members[i])
		p.moveCPU(g, i, 0, l.switches[i])
		p.moveSlots(g, i, 0, l.slots[i])
	}
	p.settle(l)
	return p
}

// gradeLinks puts links of one layer and one bandwidth in one grade.
func (p *prices) gradeLinks(l *Load) {
	g := l.graph
	fast := int64(0)
	for _, link := range g.AllLinks() {
		fast = max(fast, link.Bandwidth)
	}
	type kind struct {
		class     int
		bandwidth int64
	}
	known := map[kind]int32{}
	last, at := kind{class: -1}, int32(0)
	for id, link := range g.AllLinks() {
		k := kind{classOf(linkClass, min(p.layer(link.Ends[0].Node), p.layer(link.Ends[1].Node))), link.Bandwidth}
		if k != last {
			if old, met := known[k]; met {
				at = old
			} else {
				at = int32(len(p.grades))
				known[k] = at
				p.grades = append(p.grades, grade{class: k.class, volume: float64(fast) / float64(link.Bandwidth)})
			}
			last = k
		}
		l.links[id].grade = at
		p.classes[k.class].n++
		for _, end := range link.Ends {
			if layer := p.layer(end.Node); k.class >= classKinds && !slices.Contains(p.beside[layer], at) {
				p.beside[layer] = append(p.beside[layer], at)
			}
		}
		for lower := range p.lowerEnds(g, id) {
			p.ups[lower] += 1 / p.grades[at].volume
		}
	}
}

// lowerEnds iterates over the switches from which a link leads upwards: one of a
// lower layer than the other end, or both of one layer.
func (p *prices) lowerEnds(g *topology.Graph, id topology.LinkID) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		ends := g.Link(id).Ends
		for end, e := range ends {
			other := ends[1-end].Node
			if g.IsSwitch(e.Node) && g.IsSwitch(other) && p.layer(e.Node) <= p.layer(other) && !yield(g.SwitchIndex(e.Node)) {
				return
			}
		}
	}
}

// moveLink notes that the trees on a link of a grade become others in number.
func (p *prices) moveLink(at, before, after int32) {
	r := &p.grades[at]
	p.classes[r.class].move(float64(before)*r.volume, float64(after)*r.volume)
}

// moveMembers does so for the trees that lead from members of a switch upwards.
func (p *prices) moveMembers(g *topology.Graph, i int, before, after int32) {
	if p.ups[i] > 0 {
		p.classes[classOf(linkClass, p.layer(g.Switch(i)))].peak(float64(before)/p.ups[i], float64(after)/p.ups[i])
	}
}

// moveCPU does so for the CPU of a switch, and moveSlots for its slots.
func (p *prices) moveCPU(g *topology.Graph, i int, before, after int32) {
	c := &p.classes[classOf(cpuClass, p.layer(g.Switch(i)))]
	c.move(float64(before), float64(after))
	c.peak(float64(before), float64(after))
}

func (p *prices) moveSlots(g *topology.Graph, i int, before, after int64) {
	n := g.Switch(i)
	if all := g.Capability(n).Slots; all > 0 && before != after {
		c := &p.classes[classOf(slotClass, p.layer(n))]
		c.move(float64(before)/float64(all), float64(after)/float64(all))
		c.peak(float64(before)/float64(all), float64(after)/float64(all))
	}
}

func (c *priceClass) move(before, after float64) { c.squares += after*after - before*before }

func (c *priceClass) peak(before, after float64) {
	c.stale = c.stale || before >= c.most && after < before
	c.most = max(c.most, after)
}

// settle gives every class its scale, and forgets the prices of those whose
// scale is another now.
func (p *prices) settle(l *Load) {
	changed := false
	for c := range p.classes {
		class := &p.classes[c]
		if class.stale {
			p.lookAgain(l, c)
		}
		level, scale := class.level(), 0.0
		if level > 0 {
			scale = math.Exp2(math.Ceil(math.Log2(level)*scaleSteps)/scaleSteps) / steepness
		}
		expected := math.Ceil(math.Max(level, class.most) - 1e-9)
		changed = changed || scale != class.scale || expected != class.expected
		class.scale, class.expected = scale, expected
	}
	if !changed {
		return
	}
	for r := range p.grades {
		p.grades[r].price, p.grades[r].floor = p.grades[r].price[:0], 0
	}
	clear(p.least)
}

// level is the use that prices are measured by: the root mean square, but no less
// than half of most, where a part of the fabric has nearly all.
func (c *priceClass) level() float64 {
	if c.n == 0 || c.squares <= 0 {
		return 0
	}
	return math.Max(math.Sqrt(c.squares/float64(c.n)), c.most/2)
}

// lookAgain finds what class has the most of.
func (p *prices) lookAgain(l *Load, class int) {
	c := &p.classes[class]
	c.most, c.stale = 0, false
	g := l.graph
	for i := range l.switches {
		n := g.Switch(i)
		if p.layer(n) != class/classKinds {
			continue
		}
		switch class % classKinds {
		case linkClass:
			if p.ups[i] > 0 {
				c.most = max(c.most, float64(l.members[i])/p.ups[i])
			}
		case cpuClass:
			c.most = max(c.most, float64(l.switches[i]))
		case slotClass:
			if all := g.Capability(n).Slots; all > 0 {
				c.most = max(c.most, float64(l.slots[i])/float64(all))
			}
		}
	}
}

// price returns what adding volume to use costs in a class.
func (c *priceClass) price(use, volume float64) float64 {
	scale := max(c.scale, volume/steepness)
	if c.volume != volume || c.sharpness != scale {
		c.volume, c.sharpness, c.part = volume, scale, 1-math.Exp(-volume/scale)
	}
	x := min((use+volume)/scale, 3*steepness)
	return math.Round(c.weight*math.Exp(x)*c.part/priceUnit) * priceUnit
}

// paced returns what one more tree costs on the CPU of a switch of other than the usual
// speed, of which each takes so much.
func (c *priceClass) paced(trees, volume float64) float64 {
	volume = min(volume, slowestVolume)
	scale := max(c.scale, 1.0/steepness)
	x := min((trees+1)*volume/scale, 2.5*steepness)
	return math.Round(c.weight*math.Exp(x)*(1-math.Exp(-volume/scale))/priceUnit) * priceUnit
}

// of returns what one more costs where there are so many trees.
func (p *prices) of(at, trees int32) float64 {
	if r := &p.grades[at]; int(trees) < len(r.price) && r.price[trees] != unknown {
		return r.price[trees]
	}
	return p.ask(&p.grades[at], int(trees))
}

func (p *prices) ask(r *grade, trees int) float64 {
	for len(r.price) <= trees {
		r.price = append(r.price, unknown)
	}
	r.price[trees] = p.classes[r.class].price(float64(trees)*r.volume, r.volume)
	return r.price[trees]
}

// floor returns what a link counts in a detour at least: its price at the use
// that is to be expected there. So no tree is longer than it need be for what is
// used no more than that.
func (p *prices) floor(at int32) float64 {
	r := &p.grades[at]
	if r.floor == 0 {
		c := &p.classes[r.class]
		r.floor = c.price(math.Max(c.expected-r.volume, 0), r.volume)
	}
	return r.floor
}

// leastFloor returns what any link from a switch of a layer to another counts in
// a detour at least.
func (p *prices) leastFloor(layer int) float64 {
	if p.least[layer] == 0 {
		p.least[layer] = math.Inf(1)
		for _, at := range p.beside[layer] {
			p.least[layer] = min(p.least[layer], p.floor(at))
		}
	}
	return p.least[layer]
}

// priced returns the load's prices, made at the first question.
func (l *Load) priced() *prices {
	if l.prices == nil {
		l.prices = newPrices(l)
	}
	return l.prices
}

// spare is the least share of a link or CPU that counts as left, however busy
// it is measured to be.
const spare = 1.0 / 16

// busier returns a price where a share is measured to be in use.
func busier(price, busy float64) float64 {
	if busy > 0 {
		return math.Round(price/max(1-busy, spare)/priceUnit) * priceUnit
	}
	return price
}

// linkPrice returns the price of one more tree on a link.
func (l *Load) linkPrice(view topology.View, link topology.LinkID) float64 {
	price := 0.125 // of an idle fabric: all links are equal
	if l != nil {
		p, use := l.priced(), l.links[link]
		price = p.of(use.grade, use.trees)
	}
	return busier(price, view.LinkUtilization(link))
}

// detourPrice returns what a link counts in a detour.
func (l *Load) detourPrice(view topology.View, link topology.LinkID) float64 {
	p := l.priced()
	return max(l.linkPrice(view, link), p.floor(l.links[link].grade))
}

// switchPrice returns the price of one more tree with so many slots on switch n, of whose
// CPU it takes a volume: 1 of a switch of usual speed.
func (l *Load) switchPrice(view topology.View, n topology.NodeID, slots int, volume float64) float64 {
	if l == nil {
		return math.Round(0.125*min(volume, slowestVolume)/priceUnit) * priceUnit
	}
	p, i := l.priced(), l.graph.SwitchIndex(n)
	layer := p.layer(n)
	own := 0.0
	if volume == 1 {
		own = p.of(p.cpus+int32(layer), l.switches[i])
	} else {
		own = p.classes[classOf(cpuClass, layer)].paced(float64(l.switches[i]), volume)
	}
	price := busier(own, view.NodeUtilization(n))
	if all := view.Capability(n).Slots; slots > 0 && all > 0 {
		price += p.slots[i].of(&p.classes[classOf(slotClass, layer)], l.slots[i], slots, all)
	}
	return price
}

// of returns what so many slots cost beside those that are used.
func (s *slotPrice) of(c *priceClass, used int64, slots, all int) float64 {
	if s.used != used || s.slots != slots || s.all != all || s.scale != c.scale {
		*s = slotPrice{used, slots, all, c.scale, c.price(float64(used)/float64(all), float64(slots)/float64(all))}
	}
	return s.price
}
