package managerd

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// Who says that something is down. What several say is down is up when none does any
// more.
const (
	byMembership = "membership"
	byOperator   = "operator"
	byDiscovery  = "discovery"
	byCaller     = "manager" // of ChangeTopology
)

// byAgent is the source for what the agent of a switch says of its ports.
func byAgent(name string) string { return "agent of " + name }

// outages are what is down, by the name of a node, or of a link as linkName gives it,
// and by who says so. Names outlive graphs: what comes back is down if it still is.
type outages map[string]map[string]outage

// outage is what one source says.
type outage struct {
	why   string
	since time.Time
}

// linkName names a link whichever of its ends the graph has first.
func linkName(g *topology.Graph, l topology.LinkID) string {
	ends := g.Link(l).Ends
	return linkBetween(g.EndName(ends[0]), g.EndName(ends[1]))
}

func linkBetween(a, b string) string { return min(a, b) + "--" + max(a, b) }

// mark is one source's word on one thing.
type mark struct {
	what, source string
	up           bool
	why          string // down
}

// set takes a mark, and reports whether the thing is down for another reason, or up,
// than before.
func (o outages) set(m mark, at time.Time) (news bool) {
	_, known := o[m.what][m.source]
	switch {
	case m.up == !known:
		return false
	case m.up:
		delete(o[m.what], m.source)
		if len(o[m.what]) == 0 {
			delete(o, m.what)
		}
	default:
		if o[m.what] == nil {
			o[m.what] = map[string]outage{}
		}
		o[m.what][m.source] = outage{m.why, at}
	}
	return true
}

// of returns the marks that take back what a source has said.
func (o outages) of(source string) (all []mark) {
	for what, by := range o {
		if _, ok := by[source]; ok {
			all = append(all, mark{what: what, source: source, up: true})
		}
	}
	return all
}

// why says why something is down; empty: it is up.
func (o outages) why(what string) string {
	var all []string
	for _, source := range slices.Sorted(maps.Keys(o[what])) {
		text := source
		if why := o[what][source].why; why != "" {
			text += ": " + why
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// changes returns what makes view show them.
func (o outages) changes(view topology.View) (all []topology.Change) {
	g := view.Graph()
	for n := range view.NodesDown() {
		if len(o[g.Name(n)]) == 0 {
			all = append(all, topology.NodeState(n, true))
		}
	}
	for l := range view.LinksDown() {
		if len(o[linkName(g, l)]) == 0 {
			all = append(all, topology.LinkState(l, true))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if l, ok := g.LookupLink(name); ok && view.LinkUp(l) {
			all = append(all, topology.LinkState(l, false))
		} else if n, ok := g.Lookup(name); ok && view.NodeUp(n) && !o.ofAnother(name, g.IsSwitch(n)) {
			all = append(all, topology.NodeState(n, false))
		}
	}
	return all
}

// ofAnother reports whether a switch only has the name of a member of the zone, which
// is another thing.
func (o outages) ofAnother(name string, isSwitch bool) bool {
	_, member := o[name][byMembership]
	return isSwitch && member && len(o[name]) == 1
}
