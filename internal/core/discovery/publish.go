package discovery

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// pending is what may have to change in the map.
type pending struct {
	fresh map[*port]bool    // ports that were touched in this step
	ports map[*port]bool    // and before it
	nodes map[string]string // causes, by name
	links map[Ends]string   // of the operator's part
	due   core.Time
}

func (p *pending) init() {
	*p = pending{fresh: map[*port]bool{}, ports: map[*port]bool{}, nodes: map[string]string{}, links: map[Ends]string{}, due: core.Never}
}

func (p *pending) isEmpty() bool { return len(p.ports)+len(p.nodes)+len(p.links) == 0 }

// publish brings the map up to date: what has gone down at once, the rest after
// Config.Batch.
func (c *Core) publish() {
	fresh := slices.Collect(maps.Keys(c.pending.fresh))
	slices.SortFunc(fresh, func(p, q *port) int { return cmp.Compare(p.turn, q.turn) })
	clear(c.pending.fresh)
	for _, p := range fresh {
		c.pending.ports[p] = true
		c.sense(p)
	}
	if c.now >= c.pending.due {
		c.flush()
	}
	switch {
	case c.pending.isEmpty():
		c.pending.due = core.Never
	case c.pending.due == core.Never:
		c.pending.due = c.now.Add(c.cfg.Batch)
	}
}

// sense counts the changes of a port's link, and reports at once that it is down.
func (c *Core) sense(p *port) {
	is := Link{}
	if p.peer != nil {
		is, _ = c.record(endsOf(p.end(), p.peer.end()))
	}
	if was := p.last; was.Up && (was.Up != is.Up || was.Ends != is.Ends) {
		p.flaps.count(c)
	}
	p.last = is
	c.alarms.set(c, flapOf{p}, c.flapping(p))
	c.alarms.set(c, fileOf{p}, c.contradictions(p))
	old, had := c.links[p.ends]
	if !had || !old.Up {
		return
	}
	if now, ok := c.record(p.ends); ok && !now.Up {
		old.Up = false
		c.links[p.ends] = old
		c.emit(Change{What: LinkDown, Link: old, Cause: p.cause})
		c.soil(old.Ends, p.cause)
	}
}

// flapOf and fileOf own the alarms about a port's changes, and about its end of a link
// in the operator's part.
type (
	flapOf struct{ p *port }
	fileOf struct{ p *port }
)

func (c *Core) flapping(p *port) []Alarm {
	if !p.flaps.isHeld(c) {
		return nil
	}
	c.arm(p, p.flaps.until)
	return []Alarm{c.alarm(Flapping, p.place(), Place{}, "its link has changed more than %d times in %v; what comes up has to be stable before it is used", c.cfg.Flaps, FlapWindow)}
}

// soil has the nodes of a link looked at again.
func (c *Core) soil(e Ends, cause string) {
	for _, end := range e {
		if c.pending.nodes[end.Node] == "" {
			c.pending.nodes[end.Node] = cause
		}
	}
}

// flush makes all pending changes of the map.
func (c *Core) flush() {
	before := len(c.out.Changes)
	causes := c.pending.links
	turns := map[Ends]uint64{}
	for p := range c.pending.ports {
		for _, e := range c.keysAt(p) {
			if p.turn >= turns[e] {
				causes[e], turns[e] = p.cause, p.turn
			}
		}
	}
	for _, e := range slices.SortedFunc(maps.Keys(causes), compareEnds) {
		c.put(e, causes[e])
		c.soil(e, causes[e])
	}
	for p := range c.pending.ports {
		p.ends = Ends{}
		if keys := c.keysAt(p); len(keys) > 0 {
			p.ends = keys[len(keys)-1]
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(c.pending.nodes), compareNames) {
		c.putNode(name, c.pending.nodes[name])
	}
	c.out.Changes = append(c.out.Changes[:before], join(c.out.Changes[before:])...)
	clear(c.pending.ports)
	clear(c.pending.nodes)
	clear(c.pending.links)
	c.pending.due = core.Never
}

func compareEnds(a, b Ends) int { return cmp.Or(a[0].compare(b[0]), a[1].compare(b[1])) }

// keysAt returns the links that the map has at a port, or may have; the last is the
// operator's, if there is one.
func (c *Core) keysAt(p *port) (all []Ends) {
	if p.ends != (Ends{}) {
		all = append(all, p.ends)
	}
	if p.node.name == "" || c.nodeAt(p.node.name) != p.node || p.node.ports[p.name] != p {
		return all
	}
	if q := p.peer; q != nil && q.node.name != "" {
		all = append(all, endsOf(p.end(), q.end()))
	}
	if l, ok := c.file.link(p.end()); ok {
		all = append(all, c.file.ends(l))
	}
	return all
}

// put brings one link of the map up to date.
func (c *Core) put(e Ends, cause string) {
	old, had := c.links[e]
	is, ok := c.record(e)
	held := c.isHeld(e)
	change := Change{Link: is, Cause: cause}
	switch {
	case had && !ok:
		change.What, change.Link = LinkRemoved, old
		delete(c.links, e)
		c.count(e, -1)
		c.emit(change)
		return
	case !ok || !had && held:
		return
	case !had:
		c.count(e, 1)
		change.What = LinkAdded
		c.links[e] = is
		c.emit(change)
		return
	}
	if held {
		up := is.Up && old.Up
		if is = old; is.Up == up {
			return
		}
		is.Up = up
	}
	if specs := old; old != is {
		if specs.Up = is.Up; specs != is {
			change.What, change.Link = LinkChanged, is
			c.emit(change)
		}
		if old.Up != is.Up {
			change.What, change.Link = LinkDown, is
			if is.Up {
				change.What = LinkUp
			}
			c.emit(change)
		}
		c.links[e] = is
	}
}

func (c *Core) emit(x Change) { c.out.Changes = append(c.out.Changes, x) }

func (c *Core) count(e Ends, by int) {
	for _, end := range e {
		if c.degree[end.Node] += by; c.degree[end.Node] == 0 {
			delete(c.degree, end.Node)
		}
	}
}

// isHeld reports whether a link has changed too often, and has it looked at again.
func (c *Core) isHeld(e Ends) (held bool) {
	for _, end := range e {
		if p := c.portAt(end); p != nil && p.flaps.isHeld(c) {
			c.arm(p, p.flaps.until)
			held = true
		}
	}
	return held
}

// record derives a link of the map; false: there is none of these ends.
func (c *Core) record(e Ends) (link Link, ok bool) {
	a, b := c.portAt(e[0]), c.portAt(e[1])
	wired := a != nil && b != nil && a.peer == b
	l, inFile := c.file.link(e[0])
	if inFile = inFile && c.file.ends(l) == e; !inFile {
		if _, other := c.file.link(e[0]); other || !wired {
			return Link{}, false
		}
		if _, other := c.file.link(e[1]); other || c.kind(e[0].Node) == topology.Host && c.kind(e[1].Node) == topology.Host {
			return Link{}, false
		}
	}
	link = Link{Ends: e, LinkSpec: topology.DefaultLink(), Up: isUp(a, b)}
	for i, p := range []*port{a, b} {
		if p != nil && p.node.target != nil {
			link.Interfaces[i] = p.name
		}
	}
	if wired {
		link.wire(a, b)
	}
	var found []Alarm
	if inFile {
		if c.file.apply(l, &link, wired, wired && (a.facts.Speed > 0 || b.facts.Speed > 0)) {
			found = append(found, c.alarm(FileSpec, a.place(), b.place(), "the operator's file has another speed, or other addresses, than the wire"))
		}
		if !wired && c.isAbsent(a, b) {
			found = append(found, c.alarm(FileAbsent, e[0].place(), e[1].place(), "the operator's file has this link, and the wire has none there"))
		}
		c.alarms.set(c, fileLink(e), found)
	}
	return link, true
}

// isAbsent reports whether the wire denies a link: a port's node is there, and nothing
// is heard at it.
func (c *Core) isAbsent(a, b *port) bool {
	for _, p := range []*port{a, b} {
		if p != nil && p.node.target != nil && (p.peer != nil || len(p.hears) > 0) {
			return false // is a contradiction of its own
		}
	}
	return true
}

// kind returns what a node is in the map: the operator decides.
func (c *Core) kind(name string) topology.Kind {
	if c.file != nil {
		if f, ok := c.file.graph.Lookup(name); ok {
			return c.file.graph.Kind(f)
		}
	}
	if n := c.nodeAt(name); n != nil && n.forwards() {
		return topology.Switch
	}
	return topology.Host
}

// isUp reports whether a link is up, by those of its ends that report now, and by what
// they reported last if none does.
func isUp(a, b *port) bool {
	up, isReported := true, false
	for _, reported := range []bool{true, false} {
		for _, p := range []*port{a, b} {
			if p != nil && p.node.target != nil && (p.node.target.state == connected) == reported {
				up, isReported = up && p.facts.Up, true
			}
		}
		if isReported {
			break
		}
	}
	return up
}

// wire takes what both ends say of a link.
func (l *Link) wire(a, b *port) {
	l.From = Wire
	l.Bandwidth = lowest(a.facts.Speed, b.facts.Speed, topology.DefaultBandwidth)
	l.Latency = lowest(a.facts.Latency, b.facts.Latency, topology.DefaultLatency)
	l.Addresses = addressesOf(a, b)
}

// lowest returns the lower of two numbers of which 0 is not known; none: neither is.
func lowest[T ~int64](a, b, none T) T {
	if a == 0 || b == 0 {
		return cmp.Or(a, b, none)
	}
	return min(a, b)
}

// putNode brings one node of the map up to date.
func (c *Core) putNode(name, cause string) {
	old, had := c.nodes[name]
	is, ok := c.nodeRecord(name)
	x := Change{Node: is, Cause: cause}
	switch {
	case !had && !ok:
		return
	case !ok:
		x.What, x.Node = NodeRemoved, old
		delete(c.nodes, name)
		c.emit(x)
		return
	case !had:
		x.What = NodeAdded
		c.emit(x)
	default:
		same := old
		if same.Up = is.Up; same != is {
			x.What = NodeChanged
			c.emit(x)
		}
		if old.Up != is.Up {
			if x.What = NodeDown; is.Up {
				x.What = NodeUp
			}
			c.emit(x)
		}
	}
	c.nodes[name] = is
}

// nodeRecord derives a node of the map; false: there is none of that name.
func (c *Core) nodeRecord(name string) (Node, bool) {
	is := Node{Name: name, Kind: c.kind(name), Up: true}
	n := c.nodeAt(name)
	if n != nil && (n.target != nil || c.degree[name] > 0) {
		is.From |= Wire
	}
	if n != nil && n.target != nil {
		is.Certified = n.target.cert != ""
		if a := n.target.facts.Agent; a != nil {
			is.Agent, is.Capability = n.target.address, a.Capability
		}
		is.Up = n.target.state == connected || !c.isCutOff(n)
	}
	if c.file != nil {
		f, ok := c.file.graph.Lookup(name)
		var found []Alarm
		if ok {
			is.From |= File
			if said := c.file.graph.Capability(f); said != topology.DefaultCapability() || is.Agent == "" {
				is.Capability = said
			}
			switch {
			case is.From&Wire == 0:
				found = append(found, c.alarm(FileAbsent, Place{Node: name}, Place{}, "the operator's file has this %v, and the wire has not", is.Kind))
			case (n.target != nil || n.forwards()) != (is.Kind == topology.Switch):
				found = append(found, c.alarm(FileKind, Place{Node: name}, Place{}, "the operator's file says that it is a %v; the wire says otherwise", is.Kind))
			}
		}
		c.alarms.set(c, fileNode(name), found)
	}
	if is.Kind == topology.Host {
		is.Capability = topology.Capability{}
	}
	return is, is.From != 0
}

// isCutOff reports whether a target that is away is down: everybody who can see it says
// that the link to it is, or has said so last.
func (c *Core) isCutOff(n *node) bool {
	down := false
	for _, p := range n.ports {
		if q := p.peer; q != nil && q.node.target != nil {
			if q.facts.Up {
				return false
			}
			down = true
		}
	}
	return down
}

// join makes a link that goes and one that comes at the same port one change.
func join(all []Change) []Change {
	gone := map[End]int{}
	for i := range all {
		if all[i].What == LinkRemoved {
			for _, e := range all[i].Link.Ends {
				gone[e] = i
			}
		}
	}
	joined := map[int]bool{}
	for i := range all {
		x := &all[i]
		if x.What != LinkAdded {
			continue
		}
		for _, e := range x.Link.Ends {
			if j, ok := gone[e]; ok && !joined[j] {
				x.What, x.Was = LinkMoved, all[j].Link
				joined[j] = true
				break
			}
		}
	}
	left := all[:0]
	for i := range all {
		if !joined[i] {
			left = append(left, all[i])
		}
	}
	slices.SortStableFunc(left, func(a, b Change) int { return cmp.Compare(rank(a.What), rank(b.What)) })
	return left
}

// rank orders the changes of one moment so that each can be made after those before it:
// links go before their nodes, and come after them.
func rank(w What) int {
	return slices.Index([]What{LinkDown, LinkRemoved, NodeRemoved, NodeAdded, NodeChanged, LinkMoved, LinkAdded, LinkChanged, NodeDown, NodeUp, LinkUp}, w)
}
