package pathsel

import (
	"math"

	"github.com/tributary-fabric/tributary/topology"
)

// prices are what LeastLoad minimises, by the rule in the package's
// documentation.
type prices struct {
	class  []uint8 // by link
	at     []float64
	volume []float64 // p of a tree, by link
	cpu    []float64 // by switch
	groups []priceClass
	fast   int64 // bit/s of the fastest link
}

// priceClass is the scale of one class.
type priceClass struct {
	scale float64
	limit float64 // uses above it, in units of scale, double the scale
	worth float64 // a class of few resources counts as much as one of many
	n     int
}

// priceBase is a, and priceUnit the finest price: prices are whole multiples of
// it, so that sums are exact and do not depend on their order.
const (
	priceBase  = 1.5
	priceUnit  = 1.0 / (1 << 12)
	leastShare = 1.0 / (1 << 20) // with which the scales of slots begin
)

// kinds of classes, of each layer.
const (
	linkClass = iota
	cpuClass
	slotClass
	classKinds
)

func classOf(kind, layer int) int { return classKinds*layer + kind }

// newPrices counts the classes and prices everything as l has it.
func newPrices(l *Load) *prices {
	g := l.graph
	p := &prices{
		class: make([]uint8, g.Links()), at: make([]float64, g.Links()), volume: make([]float64, g.Links()),
		cpu: make([]float64, g.Switches()), groups: make([]priceClass, classKinds*(g.Layers()+1)),
	}
	for _, link := range g.AllLinks() {
		p.fast = max(p.fast, link.Bandwidth)
	}
	for id, link := range g.AllLinks() {
		lower := min(g.Layer(link.Ends[0].Node), g.Layer(link.Ends[1].Node))
		p.class[id] = uint8(classOf(linkClass, min(lower, 80)))
		p.volume[id] = float64(p.fast) / float64(link.Bandwidth)
		p.groups[p.class[id]].n++
	}
	for i := range g.Switches() {
		layer := g.Layer(g.Switch(i))
		p.groups[classOf(cpuClass, layer)].n++
		p.groups[classOf(slotClass, layer)].n++
	}
	classes, largest := 0, 1
	for _, c := range p.groups {
		classes, largest = classes+min(c.n, 1), max(largest, c.n)
	}
	for c := range p.groups {
		n := max(p.groups[c].n, 1)
		p.groups[c].scale, p.groups[c].limit = 1, math.Log(float64(2*n*max(classes, 1)))/math.Log(priceBase)
		p.groups[c].worth = float64(largest) / float64(n)
		if c%classKinds == slotClass {
			p.groups[c].scale = leastShare
		}
	}
	for id, trees := range l.links {
		p.grow(int(p.class[id]), float64(trees)*p.volume[id])
	}
	for i := range l.switches {
		p.growSwitch(l, i)
	}
	p.all(l)
	return p
}

// grow doubles the scale of a class until a use is within its limit, and
// reports whether it did.
func (p *prices) grow(class int, use float64) bool {
	c, grown := &p.groups[class], false
	for use > c.scale*c.limit {
		c.scale, grown = 2*c.scale, true
	}
	return grown
}

// growSwitch does so for the CPU and the slots of a switch.
func (p *prices) growSwitch(l *Load, i int) bool {
	n := l.graph.Switch(i)
	layer := l.graph.Layer(n)
	if all := l.graph.Capability(n).Slots; all > 0 {
		p.grow(classOf(slotClass, layer), float64(l.slots[i])/float64(all))
	}
	return p.grow(classOf(cpuClass, layer), float64(l.switches[i]))
}

// price returns what adding volume to use costs in a class.
func (p *prices) price(class int, use, volume float64) float64 {
	s, worth := p.groups[class].scale, p.groups[class].worth
	for s < volume {
		s *= 2
	}
	x := math.Exp2(use / s * log2Base)
	return math.Round(worth*x*(math.Exp2(volume/s*log2Base)-1)/priceUnit) * priceUnit
}

var log2Base = math.Log2(priceBase)

func (p *prices) all(l *Load) {
	for id := range p.at {
		p.link(l, topology.LinkID(id))
	}
	for i := range p.cpu {
		p.setCPU(l, i)
	}
}

func (p *prices) link(l *Load, id topology.LinkID) {
	p.at[id] = p.price(int(p.class[id]), float64(l.links[id])*p.volume[id], p.volume[id])
}

func (p *prices) setCPU(l *Load, i int) {
	layer := l.graph.Layer(l.graph.Switch(i))
	p.cpu[i] = p.price(classOf(cpuClass, layer), float64(l.switches[i]), 1)
}

// follow prices anew what a tree has changed.
func (p *prices) follow(l *Load, t Tree) {
	grown := false
	for id := range t.Links() {
		grown = p.grow(int(p.class[id]), float64(l.links[id])*p.volume[id]) || grown
		p.link(l, id)
	}
	for _, v := range t.Vertices {
		i := l.graph.SwitchIndex(v.Switch)
		grown = p.growSwitch(l, i) || grown
		p.setCPU(l, i)
	}
	if grown {
		p.all(l)
	}
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

// linkPrice returns the price of one more tree on a link.
func (l *Load) linkPrice(view topology.View, link topology.LinkID) float64 {
	price := 0.125 // of an idle fabric: all links are equal
	if l != nil {
		price = l.priced().at[link]
	}
	if busy := view.LinkUtilization(link); busy > 0 {
		return math.Round(price/max(1-busy, spare)/priceUnit) * priceUnit
	}
	return price
}

// switchPrice returns the price of one more tree with so many slots on switch n.
func (l *Load) switchPrice(view topology.View, n topology.NodeID, slots int) float64 {
	if l == nil {
		return 0.125
	}
	p, i := l.priced(), l.graph.SwitchIndex(n)
	price := p.cpu[i]
	if busy := view.NodeUtilization(n); busy > 0 {
		price = math.Round(price/max(1-busy, spare)/priceUnit) * priceUnit
	}
	if all := view.Capability(n).Slots; slots > 0 && all > 0 {
		price += p.slotPrice(l.graph.Layer(n), float64(l.slots[i])/float64(all), float64(slots)/float64(all))
	}
	return price
}

// slotPrice returns what a share of a switch's slots costs.
func (p *prices) slotPrice(layer int, used, share float64) float64 {
	return p.price(classOf(slotClass, layer), used, share)
}
