package topology

import (
	"errors"
	"fmt"
	"iter"
)

// Overlay is a snapshot of what has changed in a fabric since its graph was
// built. It never changes itself: With returns a new one, of the next version,
// that shares all but the changed pages.
type Overlay struct {
	graph     *Graph
	version   uint64
	nodesDown bitPages
	linksDown bitPages
	caps      pages[*Capability] // by switch index; nil: as it was built
	nodeUse   pages[float32]     // by node
	linkUse   pages[[8]float32]  // by link, eight an entry
}

// NewOverlay returns the overlay of g that changes nothing, of version 0.
func NewOverlay(g *Graph) *Overlay { return &Overlay{graph: g} }

// Version counts the snapshots since NewOverlay.
func (o *Overlay) Version() uint64 { return o.version }

// View returns the graph as this overlay shows it.
func (o *Overlay) View() View { return View{graph: o.graph, overlay: o} }

// Change is one event in a fabric, for Overlay.With and Overlay.Apply: a link,
// switch or host that is down or up, a capability or a load that is another.
type Change struct {
	what changeKind
	node NodeID
	link LinkID
	up   bool
	cap  Capability
	use  float64
}

type changeKind uint8

const (
	changeNode changeKind = iota + 1
	changeLink
	changeCapability
	changeNodeUse
	changeLinkUse
)

// NodeState says that host or switch n is up or down.
func NodeState(n NodeID, up bool) Change { return Change{what: changeNode, node: n, up: up} }

// LinkState says that link l is up or down.
func LinkState(l LinkID, up bool) Change { return Change{what: changeLink, link: l, up: up} }

// SwitchCapability says what switch n can do from now on.
func SwitchCapability(n NodeID, c Capability) Change {
	return Change{what: changeCapability, node: n, cap: c}
}

// NodeUtilization says how busy the CPU of n is, from 0 to 1.
func NodeUtilization(n NodeID, share float64) Change {
	return Change{what: changeNodeUse, node: n, use: share}
}

// LinkUtilization says how busy the busier direction of l is, from 0 to 1.
func LinkUtilization(l LinkID, share float64) Change {
	return Change{what: changeLinkUse, link: l, use: share}
}

// State returns what a change of state is about, a node or a link, and whether that is
// up; the other is NoNode or NoLink. For other changes ok is false.
func (c Change) State() (n NodeID, l LinkID, up, ok bool) {
	switch c.what {
	case changeNode:
		return c.node, NoLink, c.up, true
	case changeLink:
		return NoNode, c.link, c.up, true
	}
	return NoNode, NoLink, false, false
}

// ErrChange is wrapped by every error about a change that cannot be: of a node
// or link that the graph does not have, of a host's capability, or to a value
// out of range.
var ErrChange = errors.New("invalid topology change")

func (c Change) check(g *Graph) error {
	switch c.what {
	case changeNode, changeNodeUse:
		if !g.HasNode(c.node) {
			return fmt.Errorf("there is no node %d: %w", c.node, ErrChange)
		}
	case changeLink, changeLinkUse:
		if !g.HasLink(c.link) {
			return fmt.Errorf("there is no link %d: %w", c.link, ErrChange)
		}
	case changeCapability:
		if !g.IsSwitch(c.node) {
			return fmt.Errorf("%s is not a switch: %w", g.Name(c.node), ErrChange)
		}
		if err := c.cap.Validate(); err != nil {
			return fmt.Errorf("switch %s: %w: %w", g.Name(c.node), err, ErrChange)
		}
	default:
		return fmt.Errorf("the zero change: %w", ErrChange)
	}
	if !(c.use >= 0 && c.use <= 1) {
		return fmt.Errorf("utilization %v is not within 0 and 1: %w", c.use, ErrChange)
	}
	return nil
}

// With returns the overlay after the changes, made in their order: all of them
// or, with an error, none. Where they change nothing it returns o itself.
func (o *Overlay) With(changes ...Change) (*Overlay, error) {
	for _, c := range changes {
		if err := c.check(o.graph); err != nil {
			return nil, fmt.Errorf("change topology: %w", err)
		}
	}
	next := *o
	w := &pageWriter{}
	for _, c := range changes {
		next.apply(c, w)
	}
	if !w.wrote {
		return o, nil
	}
	next.version++
	return &next, nil
}

func (o *Overlay) apply(c Change, w *pageWriter) {
	g := o.graph
	switch c.what {
	case changeNode:
		o.nodesDown.set(w, int(c.node), !c.up, g.Nodes())
	case changeLink:
		o.linksDown.set(w, int(c.link), !c.up, g.Links())
	case changeCapability:
		i, is := g.SwitchIndex(c.node), &c.cap
		if c.cap == g.Capability(c.node) {
			is = nil
		}
		if was := o.caps.at(i); is == nil || was == nil || *is != *was {
			o.caps.set(w, i, is, g.Switches())
		}
	case changeNodeUse:
		o.nodeUse.set(w, int(c.node), float32(c.use), g.Nodes())
	case changeLinkUse:
		eight := o.linkUse.at(int(c.link) / 8)
		eight[c.link%8] = float32(c.use)
		o.linkUse.set(w, int(c.link)/8, eight, g.Links()/8+1)
	}
}

// View is a graph as one overlay shows it: a value to pass and to keep, that
// never changes.
type View struct {
	graph   *Graph
	overlay *Overlay // nil: nothing has changed
}

// View returns the graph as it was built, everything up.
func (g *Graph) View() View { return View{graph: g} }

// Graph returns the graph beneath.
func (v View) Graph() *Graph { return v.graph }

// Version returns the overlay's version; 0 where nothing has changed.
func (v View) Version() uint64 {
	if v.overlay == nil {
		return 0
	}
	return v.overlay.version
}

// NodeUp reports whether n is up.
func (v View) NodeUp(n NodeID) bool {
	return v.overlay == nil || !v.overlay.nodesDown.at(int(n))
}

// LinkUp reports whether l is up; its ends may yet be down.
func (v View) LinkUp(l LinkID) bool {
	return v.overlay == nil || !v.overlay.linksDown.at(int(l))
}

// Usable reports whether l and the nodes at both its ends are up.
func (v View) Usable(l LinkID) bool {
	if v.overlay == nil {
		return true
	}
	ends := v.graph.ends[l]
	return v.LinkUp(l) && v.NodeUp(ends[0]) && v.NodeUp(ends[1])
}

// Capability returns what switch n can do now; the zero value for a host.
func (v View) Capability(n NodeID) Capability {
	if v.overlay != nil && v.graph.IsSwitch(n) {
		if c := v.overlay.caps.at(v.graph.SwitchIndex(n)); c != nil {
			return *c
		}
	}
	return v.graph.Capability(n)
}

// NodeUtilization returns how busy the CPU of n is, from 0 to 1.
func (v View) NodeUtilization(n NodeID) float64 {
	if v.overlay == nil {
		return 0
	}
	return float64(v.overlay.nodeUse.at(int(n)))
}

// LinkUtilization returns how busy l is, from 0 to 1.
func (v View) LinkUtilization(l LinkID) float64 {
	if v.overlay == nil {
		return 0
	}
	return float64(v.overlay.linkUse.at(int(l) / 8)[l%8])
}

// NodesDown iterates over the nodes that are down, in ascending order.
func (v View) NodesDown() iter.Seq[NodeID] {
	return func(yield func(NodeID) bool) {
		if v.overlay != nil {
			v.overlay.nodesDown.each(func(i int) bool { return yield(NodeID(i)) })
		}
	}
}

// LinksDown iterates over the links that are down themselves, in ascending
// order.
func (v View) LinksDown() iter.Seq[LinkID] {
	return func(yield func(LinkID) bool) {
		if v.overlay != nil {
			v.overlay.linksDown.each(func(i int) bool { return yield(LinkID(i)) })
		}
	}
}
