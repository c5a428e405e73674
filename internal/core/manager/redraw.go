package manager

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// redrawn goes over to another graph. Everything is renumbered by name; trees that
// the new graph does not have are lost like those on what goes down; plans that are
// out are void, and asked for again.
func (c *Core) redrawn(in Redrawn) {
	if in.View.Graph() == c.graph {
		c.attend(in.Unattended)
		c.changed, c.rebuilt = true, true
		c.topologyChanged(TopologyChanged{View: in.View})
		return
	}
	m := topology.NewMapping(c.graph, in.View.Graph())
	reached := c.reached()
	c.graph, c.view = m.To(), in.View
	c.changed, c.rebuilt = true, true
	gone := c.regroupFleet()
	c.attend(in.Unattended)
	c.renumber(m, in.Grown)
	for _, d := range gone {
		c.leave(d)
	}
	for _, id := range c.order {
		g := c.groups[id]
		if why := c.foreign(g); why != nil { // the topology has its addresses now
			for _, t := range g.trees() {
				if !t.removing {
					c.giveWay(g, t, why)
				}
			}
		}
		for _, t := range g.trees() {
			if why := c.missing(g, t, reached[t]); why != nil && !t.removing {
				c.giveWay(g, t, because(why, in.Cause))
			}
		}
		c.miss(g)
		c.touch(g)
	}
}

func because(why error, cause string) error {
	if cause == "" {
		return why
	}
	return fmt.Errorf("%w: %s", why, cause)
}

// regroupFleet puts the switches in the order of the graph. It returns those that
// have left.
func (c *Core) regroupFleet() (gone []*device) {
	before := make(map[string]*device, len(c.fleet))
	for _, d := range c.fleet {
		before[d.name] = d
	}
	c.fleet = make([]*device, c.graph.Switches())
	for i := range c.fleet {
		n := c.graph.Switch(i)
		d := before[c.graph.Name(n)]
		if d == nil {
			d = &device{name: c.graph.Name(n), quota: c.cfg.SwitchSlots}
			d.timer.Of = d
			if k := slices.Index(c.drainedAway, d.name); k >= 0 {
				d.drained, c.drainedAway = true, slices.Delete(c.drainedAway, k, k+1)
			}
		}
		delete(before, d.name)
		d.node = n
		c.fleet[i] = d
	}
	for _, d := range before {
		gone = append(gone, d)
	}
	slices.SortFunc(gone, func(a, b *device) int { return int(a.node - b.node) })
	for _, d := range gone {
		d.node, d.up, d.why = topology.NoNode, false, errLeft.Error()
		if d.drained {
			c.drainedAway = append(c.drainedAway, d.name)
		}
	}
	return gone
}

// attend notes which switches have no agent.
func (c *Core) attend(unattended []string) {
	for _, d := range c.fleet {
		d.unattended = false
	}
	for _, name := range unattended {
		if d := c.named(name); d != nil {
			d.unattended = true
		}
	}
}

var errLeft = errors.New("it is not in the fabric any more")

// leave forgets what is being removed from a switch that has left the fabric; other
// trees on it are not whole.
func (c *Core) leave(d *device) {
	orphans := d.orphans
	d.orphans = nil
	for _, o := range orphans {
		c.account(d, o.Group)
	}
	c.timers.Set(&d.timer, core.Never)
	c.eachSite(d, func(g *group, t *tree, s *site) {
		if t.removing {
			c.onPeerLost(g, t, s, d.why)
		}
	})
}

// renumber gives groups and trees the numbers of the graph, and the planner all that
// counts. What was asked of it, and not answered, is void.
func (c *Core) renumber(m topology.Mapping, grown bool) {
	c.out.Anew, c.out.View = true, c.view
	reset(&c.out.Loads)
	reset(&c.out.Unloads)
	reset(&c.out.Plans)
	c.void, c.reviews, c.reviewing = c.plans, nil, 0
	c.places, c.tenants, c.vacant = pathsel.NewIndex(c.graph), nil, nil
	for _, d := range c.fleet {
		c.mark(d)
	}
	for _, id := range c.order {
		g := c.groups[id]
		before := g.links
		if c.place(g); g.links != before {
			c.notifyLinks(g)
		}
		g.plan, g.review, g.round, g.starved = 0, false, round{}, nil
		trees := g.trees()
		if g.lost != nil && !slices.Contains(trees, g.lost) {
			g.lost.renumber(m)
		}
		for _, t := range trees {
			t.listed = false
			if whole := t.renumber(m); whole && !t.removing {
				c.enlist(g, t)
				c.out.Loads = append(c.out.Loads, t.plan.Tree)
			}
			t.makeshift = t.makeshift || grown
		}
		c.count(g)
	}
}

// renumber gives t the numbers of another graph, and reports whether it has all of t.
func (t *tree) renumber(m topology.Mapping) (whole bool) {
	before := t.plan.Tree
	if t.plan, whole = t.plan.Renumbered(m); !whole {
		for l := range before.Links() {
			if _, ok := m.Link(l); !ok {
				t.without = m.From().LinkName(l)
				break
			}
		}
	}
	t.upper = upperLinks(&t.plan.Tree)
	if t.links != nil {
		t.index(t.plan.Tree.AllChildren())
	}
	return whole
}

// missing returns why t cannot go on in the graph, or nil.
func (c *Core) missing(g *group, t *tree, reached []netip.AddrPort) error {
	if t.listed {
		if err := t.plan.Tree.Validate(c.view); err != nil {
			return err
		}
		if reached != nil && !slices.Equal(reached, c.addresses(t)) {
			return errors.New("a link of it has other addresses")
		}
		return nil
	}
	for i := range t.sites {
		if s := &t.sites[i]; s.on.node == topology.NoNode {
			return fmt.Errorf("switch %s: %w", s.on.name, errLeft)
		}
	}
	for rank, name := range g.spec.Members {
		if g.hosts[rank] == topology.NoNode {
			return fmt.Errorf("host %s: %w", name, errLeft)
		}
	}
	return fmt.Errorf("link %s: %w", t.without, errLeft)
}

// giveWay gives up a tree that the fabric no longer has.
func (c *Core) giveWay(g *group, t *tree, why error) {
	if t == g.building {
		c.fail(g, &Refusal{Reason: ErrNoTree, Resource: "path", Cause: why})
	} else {
		c.lose(g, t, why.Error())
	}
}

// reached returns, of the trees whose switches may know them, the addresses on their
// links.
func (c *Core) reached() map[*tree][]netip.AddrPort {
	all := map[*tree][]netip.AddrPort{}
	for _, g := range c.groups {
		for _, t := range g.trees() {
			if !t.removing && t.members != nil {
				all[t] = c.addresses(t)
			}
		}
	}
	return all
}

// addresses returns where the ends of t's edges are reached.
func (c *Core) addresses(t *tree) (all []netip.AddrPort) {
	for i := range t.sites[1:] {
		all = append(all, c.childAt(t, int32(i+1)), c.parentOf(t, i+1))
	}
	for rank := range t.members {
		all = append(all, c.memberAt(t, uint32(rank)), c.leafOf(t, uint32(rank)))
	}
	return all
}

// ErrAbsent is the reason of a group whose members are not all hosts of the fabric.
var ErrAbsent = errors.New("manager: hosts are not in the fabric")

// maxAbsent is the most of them that a refusal names.
const maxAbsent = 8

// find returns the hosts of these names, and the names of those that are none.
func find(graph *topology.Graph, names []string) (hosts []topology.NodeID, absent []string) {
	hosts = make([]topology.NodeID, len(names))
	for rank, name := range names {
		host, ok := graph.Lookup(name)
		if !ok || !graph.IsHost(host) {
			host, absent = topology.NoNode, append(absent, name)
		}
		hosts[rank] = host
	}
	return hosts, absent
}

// miss refuses a group whose members are not all there, and lets it go on when
// they are.
func (c *Core) miss(g *group) {
	switch {
	case g.released:
	case len(g.absent) > 0:
		names := g.absent[:min(len(g.absent), maxAbsent)]
		c.declare(g, &Refusal{Reason: ErrAbsent, Resource: "members", Cause: &Absence{names, len(g.absent) - len(names)}})
	case g.refusal != nil && g.refusal.Reason == ErrAbsent:
		g.refusal, g.reported = nil, ""
		g.notBefore = c.now.Add(c.cfg.RetryMin)
	}
}

// Absence names members that are not hosts of the fabric: they are refused until the
// fabric has them.
type Absence struct {
	Hosts []string // the first few
	More  int      // beyond those
}

// Error names them.
func (a *Absence) Error() string {
	text := fmt.Sprint(a.Hosts)
	text = text[1 : len(text)-1]
	if a.More > 0 {
		text += fmt.Sprintf(" and %d more", a.More)
	}
	return text
}
