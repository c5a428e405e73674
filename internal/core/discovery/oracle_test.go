package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/topology"
)

// oracle computes from all facts anew, and slowly, which ports are linked.
type oracle struct {
	c      *Core
	claims []*claim
}

// pairs returns the links, each by its ends "node port", sorted.
func (o *oracle) pairs() (all []string) {
	for _, n := range o.c.devices {
		for _, p := range n.ports {
			o.claims = append(o.claims, p.hears...)
		}
	}
	type link struct {
		ends   [2]string
		claims []*claim
	}
	links := map[string]*link{}
	for _, k := range o.claims {
		from := [2]string{k.from.node.name, k.from.name}
		to, isDevice, speaks := o.meaning(k)
		if to[0] == "" || to[0] == from[0] {
			continue
		}
		var with []*claim
		for _, m := range o.claims {
			if m.from.node.name != to[0] || !isDevice || to[1] != "" && m.from.name != to[1] {
				continue
			}
			if back, _, _ := o.meaning(m); back[0] == from[0] && (back[1] == from[1] || back[1] == "" && to[1] != "") {
				with = append(with, m)
			}
		}
		if to[1] == "" && len(with) == 0 || speaks && len(with) == 0 {
			continue
		}
		for _, m := range with {
			to[1] = m.from.name
		}
		a, b := strings.Join(from[:], " "), strings.Join(to[:], " ")
		if a > b {
			a, b = b, a
		}
		links[a+"--"+b] = &link{ends: [2]string{a, b}, claims: append(with, k)}
	}
	var sorted []*link
	for _, l := range links {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(x, y *link) int {
		live := func(l *link) (n int) {
			for _, k := range l.claims {
				if k.isLive() {
					n++
				}
			}
			return n
		}
		since := func(l *link) (at int64) {
			at = 1 << 62
			for _, k := range l.claims {
				if k.isLive() {
					at = min(at, int64(k.since))
				}
			}
			return at
		}
		until := func(l *link) (at int64) {
			for _, k := range l.claims {
				at = max(at, int64(k.until))
			}
			return at
		}
		return cmp.Or(cmp.Compare(live(y), live(x)), cmp.Compare(since(x), since(y)), cmp.Compare(until(y), until(x)),
			cmp.Compare(x.ends[0], y.ends[0]), cmp.Compare(x.ends[1], y.ends[1]))
	})
	taken := map[string]bool{}
	for _, l := range sorted {
		if !taken[l.ends[0]] && !taken[l.ends[1]] {
			taken[l.ends[0]], taken[l.ends[1]] = true, true
			all = append(all, l.ends[0]+"--"+l.ends[1])
		}
	}
	slices.Sort(all)
	return all
}

// meaning returns the node and port that a claim means; the port is empty if it cannot
// be found, the node if it is left out.
func (o *oracle) meaning(k *claim) (at [2]string, isDevice, speaks bool) {
	n := &k.neighbor
	d := o.device(n)
	if d == nil {
		return [2]string{o.nameOf(n), n.Port.Value}, false, false
	}
	at[0] = d.name
	var found []string
	for _, by := range []func(p *port) bool{
		func(p *port) bool { return n.Number != 0 && p.facts.Number == n.Number },
		func(p *port) bool { return !n.Port.MAC && p.name == n.Port.Value },
		func(p *port) bool { return n.Port.MAC && p.facts.MAC == n.Port },
		func(p *port) bool { return p.name == n.Description },
		func(p *port) bool {
			return !n.Port.MAC && p.facts.Index > 0 && fmt.Sprint(p.facts.Index) == n.Port.Value
		},
	} {
		found = nil
		for _, p := range d.ports {
			if by(p) {
				found = append(found, p.name)
			}
		}
		if len(found) == 1 {
			at[1] = found[0]
			break
		}
	}
	return at, true, d.target.facts.Speaks
}

func (o *oracle) device(n *Neighbor) *node {
	var by [5][]*node
	for _, d := range o.c.devices {
		if n.Chassis == d.target.facts.Chassis {
			by[0] = append(by[0], d)
		}
		if !d.mayBe(n) {
			continue
		}
		for i, name := range []string{n.Node, n.Name} {
			if name != "" && (d.name == name || d.target.facts.Hostname == name) {
				by[1+i] = append(by[1+i], d)
			}
		}
		for _, a := range n.Management {
			if own, ok := addressOf(d.target.address); ok && own == a {
				by[3] = append(by[3], d)
			}
		}
	}
	slices.SortFunc(by[0], func(x, y *node) int {
		if a, b := hasNameOf(n, x), hasNameOf(n, y); a != b {
			if a {
				return -1
			}
			return 1
		}
		if (x.target.cert != "") != (y.target.cert != "") {
			return cmp.Compare(y.target.cert, x.target.cert)
		}
		return cmp.Or(cmp.Compare(x.since, y.since), cmp.Compare(x.name, y.name))
	})
	if len(by[0]) > 0 {
		return by[0][0]
	}
	for _, all := range by[1:] {
		if len(all) == 1 {
			return all[0]
		}
	}
	return nil
}

// hasNameOf reports whether a neighbour has the name of a device.
func hasNameOf(n *Neighbor, d *node) bool {
	is := []string{d.name, d.target.facts.Hostname}
	return n.Node != "" && slices.Contains(is, n.Node) || n.Name != "" && slices.Contains(is, n.Name)
}

// nameOf returns the name in the map of a neighbour that is no device; empty: none.
func (o *oracle) nameOf(n *Neighbor) string {
	isNobody := func(n *Neighbor) bool { return n.Chassis == ID{} || n.name() == "" && !n.Switch }
	if isNobody(n) {
		return ""
	}
	called := func(n *Neighbor) string {
		if n.name() == "" {
			return "switch-" + safe(n.Chassis.Value)
		}
		return n.name()
	}
	type id struct {
		chassis ID
		name    string
	}
	idOf := func(n *Neighbor) id {
		if n.Name == "" {
			return id{n.Chassis, n.Node}
		}
		return id{n.Chassis, n.Name}
	}
	leads := func(k, m *claim) bool {
		return k.isLive() && !m.isLive() || k.isLive() == m.isLive() && k.before(m) < 0
	}
	best := map[id]*claim{}
	for _, k := range o.claims {
		if isNobody(&k.neighbor) || o.device(&k.neighbor) != nil {
			continue
		}
		if m := best[idOf(&k.neighbor)]; m == nil || leads(k, m) {
			best[idOf(&k.neighbor)] = k
		}
	}
	own := best[idOf(n)]
	name := called(&own.neighbor)
	if topology.CheckName(name) != nil || o.c.devices[name] != nil {
		return ""
	}
	for _, k := range best {
		if called(&k.neighbor) == name && k != own && leads(k, own) {
			return ""
		}
	}
	return name
}

// check compares the core with the oracle.
func check(t fataler, c *Core) {
	t.Helper()
	var got []string
	seen := map[*port]bool{}
	for _, n := range c.devices {
		for _, p := range n.ports {
			q := p.peer
			if q == nil || seen[p] {
				continue
			}
			if q.peer != p {
				t.Fatalf("%v is linked to %v, which is linked to somebody else", p.place(), q.place())
			}
			seen[p], seen[q] = true, true
			a, b := p.node.name+" "+p.name, q.node.name+" "+q.name
			got = append(got, min(a, b)+"--"+max(a, b))
		}
	}
	slices.Sort(got)
	want := (&oracle{c: c}).pairs()
	if !slices.Equal(got, want) {
		t.Fatalf("links\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	checkPublished(t, c)
	open := 0
	for _, x := range c.targets {
		if x.state == dialled {
			open++
		}
	}
	held := 0
	for _, n := range c.calls.held {
		held += n
	}
	if open != c.calls.open || open != held || open > maxOpen {
		t.Fatalf("%d targets are dialled, and %d are counted, %d by ports", open, c.calls.open, held)
	}
	for l, is := range c.links {
		if c.degree[l[0].Node] == 0 || c.degree[l[1].Node] == 0 || is.Ends != l {
			t.Fatalf("the map's link %v: %+v", l, is)
		}
		_, a := c.nodes[l[0].Node]
		_, b := c.nodes[l[1].Node]
		if !a || !b {
			t.Fatalf("the map has link %v, and not its nodes", l)
		}
	}
	if _, _, err := c.Map().Graph(""); err != nil {
		t.Fatal(err)
	}
}

// checkPublished compares the map with what follows from the facts, where nothing is
// pending or held.
func checkPublished(t fataler, c *Core) {
	t.Helper()
	if !c.pending.isEmpty() {
		return
	}
	for e, is := range c.links {
		if want, ok := c.record(e); !c.isHeld(e) && (!ok || is != want) {
			t.Fatalf("the map has %#v, want %v %#v", is, ok, want)
		}
	}
	for _, n := range c.devices {
		for _, p := range n.ports {
			if p.peer == nil || p.peer.node.name == "" {
				continue
			}
			e := endsOf(p.end(), p.peer.end())
			want, ok := c.record(e)
			if _, had := c.links[e]; ok && !had && !c.isHeld(e) {
				t.Fatalf("the map has not %+v", want)
			}
		}
	}
	for name, is := range c.nodes {
		if want, ok := c.nodeRecord(name); !ok || is != want {
			t.Fatalf("the map has %#v, want %v %#v", is, ok, want)
		}
	}
}
