package collective

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// groupKey is what a group is found by in the table: service, unique index and,
// unless it is out-of-band, the checksum over its members.
type groupKey struct {
	service   collect.Service
	outOfBand bool
	index     collect.Index
	digest    collect.Digest
}

// group is what a node knows of a group: of an out-of-band one, its places in
// trees alone.
type group struct {
	key         groupKey
	name        string
	tree        collect.Tree // of a regular one
	members     *Members     // of a regular one
	creator     collect.Node // of a regular one
	incarnation uint64       // of the creator
	mine        bool         // made by a call of this node's
	ready       bool         // broadcasts may be made
	populated   bool         // the parameters of creation were sent
	first       uint64       // the delayed group's first broadcast while it is under way
	queue       []uint64     // broadcasts that wait for it
	routes      map[collect.Node]*route
	handles     []uint64
}

// handle is how a service calls a group, or the subset of its living members.
type handle struct {
	group *group
	tree  collect.Tree
	alive bool
}

// Creation is what a group is made of.
type Creation struct {
	Service collect.Service
	Name    string           // at most collect.MaxName bytes
	Targets []collect.Target // in the order of their ranks; kept, and not to be changed
	Tree    collect.Tree
	Delayed bool // populated by its first broadcast instead of now
}

// CreateGroup begins to make a group and returns its handle, which Created
// tells to be valid: in this very call where it is delayed, otherwise once all
// members have it.
func (c *Core) CreateGroup(now core.Time, p Creation, out *Output) (uint64, error) {
	c.enter(now, out)
	m, err := c.checkCreation(&p)
	if err != nil {
		return 0, fmt.Errorf("create group %q: %w", p.Name, err)
	}
	c.made++
	g := &group{
		key: groupKey{
			service: p.Service, digest: m.digest,
			index: collect.MakeIndex(c.cfg.Node, c.cfg.Incarnation, c.made),
		},
		name: p.Name, tree: p.Tree, members: m, creator: c.cfg.Node, incarnation: c.cfg.Incarnation,
		mine: true, routes: map[collect.Node]*route{},
	}
	route, _ := newRoute(m, c.shapes[p.Tree.Kind], p.Tree, c.cfg.Node, c.cfg.Node)
	route.incarnation = c.cfg.Incarnation
	g.routes[c.cfg.Node] = route
	c.groups[g.key] = g
	id := c.handle(g, p.Tree, false)
	if p.Delayed {
		g.ready = true
		c.call(Call{Kind: Created, Service: p.Service, Group: id})
		return id, nil
	}
	c.populate(g)
	return id, nil
}

func (c *Core) checkCreation(p *Creation) (*Members, error) {
	if _, ok := c.services[p.Service]; !ok {
		return nil, ErrService
	}
	if len(p.Name) > collect.MaxName {
		return nil, fmt.Errorf("%w: a name of %d bytes, want at most %d", ErrTooLarge, len(p.Name), collect.MaxName)
	}
	m, err := NewMembers(p.Service, p.Targets)
	if err != nil {
		return nil, err
	}
	if _, status := newRoute(m, c.shapes[p.Tree.Kind], p.Tree, c.cfg.Node, c.cfg.Node); status == collect.NotMember {
		return nil, ErrNotMember
	} else if status != collect.OK {
		return nil, fmt.Errorf("%w: kind %d of radix %d", ErrTree, p.Tree.Kind, p.Tree.Radix)
	}
	size := (&collect.Creation{Name: p.Name, Targets: p.Targets}).Size()
	if p.Delayed && c.room(size) < 0 {
		return nil, ErrDelayed
	}
	if uint64(size) > c.cfg.CreationBytes {
		return nil, fmt.Errorf("%w: %d bytes of members, want at most %d", ErrTooLarge, size, c.cfg.CreationBytes)
	}
	return m, nil
}

// room returns the bytes left for a payload beside so many others.
func (c *Core) room(others int) int {
	return collect.MaxRequest - (&collect.Request{Key: collect.Key{Root: c.cfg.Node}}).Size() - others
}

// populate broadcasts the parameters of creation: in the message where they
// fit, else as bulk data.
func (c *Core) populate(g *group) {
	r := c.begin(g, g.tree, g.routes[c.cfg.Node])
	r.own, r.members = true, g.members
	creation := &collect.Creation{Name: g.name, Targets: g.members.targets}
	if c.room(creation.Size()) >= 0 {
		r.creation = creation
	} else {
		r.blob = creation.Append(make([]byte, 0, creation.Size()))
		r.bulk = uint64(len(r.blob))
	}
	g.populated, g.first = true, r.id
	if err := c.launch(r); err != nil {
		c.end(r, err)
	}
}

// populationEnded tells what came of a creation. Members that have a group
// which others lack are told to free it.
func (c *Core) populationEnded(g *group, err error) {
	call := Call{Kind: Created, Service: g.key.service, Group: g.handles[0], Err: err}
	if err != nil {
		c.dissolve(g)
		c.freeGroup(g)
	}
	g.ready = err == nil
	c.call(call)
}

// dissolve broadcasts that nothing follows over g.
func (c *Core) dissolve(g *group) *request {
	r := c.begin(g, g.tree, g.routes[c.cfg.Node])
	r.own, r.last = true, true
	if err := c.launch(r); err != nil {
		c.end(r, err)
	}
	return r
}

// CreateOutOfBand returns a handle to a group that all members know without
// being told. Nothing is sent.
func (c *Core) CreateOutOfBand(s collect.Service, index collect.Index, kind collect.Tree) (uint64, error) {
	if svc, ok := c.services[s]; !ok || !svc.OutOfBand {
		return 0, fmt.Errorf("create out-of-band group: %w", ErrService)
	}
	if c.shapes[kind.Kind] == nil {
		return 0, fmt.Errorf("create out-of-band group: %w: kind %d", ErrTree, kind.Kind)
	}
	g := c.outOfBand(groupKey{service: s, outOfBand: true, index: index})
	g.mine = true
	return c.handle(g, kind, false), nil
}

// GroupInfo is what a handle's group is called.
type GroupInfo struct {
	Service   collect.Service
	Name      string // of a group made here by CreateGroup, or by another member
	Index     collect.Index
	OutOfBand bool
	Tree      collect.Tree // of the handle
	Alive     bool         // the handle is of the subset of the living
}

// GroupInfo returns what the group of a handle is called. It fails with ErrGroup
// where the group was freed.
func (c *Core) GroupInfo(id uint64) (GroupInfo, error) {
	h := c.handles[id]
	if h == nil {
		return GroupInfo{}, fmt.Errorf("group: %w", ErrGroup)
	}
	k := &h.group.key
	return GroupInfo{k.service, h.group.name, k.index, k.outOfBand, h.tree, h.alive}, nil
}

func (c *Core) outOfBand(key groupKey) *group {
	g := c.groups[key]
	if g == nil {
		g = &group{key: key, ready: true, populated: true, routes: map[collect.Node]*route{}}
		c.groups[key] = g
	}
	return g
}

// Subset returns a handle to the members of a group that are alive whenever a
// broadcast is made.
func (c *Core) Subset(of uint64) (uint64, error) {
	h := c.handles[of]
	if h == nil || !h.group.ready {
		return 0, fmt.Errorf("subset: %w", ErrGroup)
	}
	return c.handle(h.group, h.tree, true), nil
}

// Destroy frees a group at all its members by a broadcast of no size. The
// request that it returns ends when they have answered; what could not be
// reached frees the group when this node is dead or has rebooted, or when
// Destroy is called again and reaches it. A subset's handle alone is given back.
// It fails with ErrBusy while the first broadcast over a delayed group is under
// way.
func (c *Core) Destroy(now core.Time, id uint64, members *Members, out *Output) (uint64, error) {
	c.enter(now, out)
	h := c.handles[id]
	if h == nil || !h.group.ready {
		return 0, fmt.Errorf("destroy: %w", ErrGroup)
	}
	g := h.group
	if h.alive {
		delete(c.handles, id)
		g.handles = slices.DeleteFunc(g.handles, func(other uint64) bool { return other == id })
		return 0, nil
	}
	if g.first != 0 {
		return 0, fmt.Errorf("destroy: %w", ErrBusy)
	}
	route, _, err := c.ownRoute(h, members)
	if err != nil {
		return 0, fmt.Errorf("destroy: %w", err)
	}
	if !g.populated {
		c.freeGroup(g)
		return 0, nil
	}
	g.routes[c.cfg.Node] = route
	g.tree = h.tree
	return c.dissolve(g).id, nil
}

// Children returns this node's children in the tree of which it is the root, in
// the order of their numbers. Of an out-of-band group it takes the members.
func (c *Core) Children(id uint64, members *Members) ([]Branch, error) {
	h := c.handles[id]
	if h == nil || !h.group.ready {
		return nil, fmt.Errorf("children: %w", ErrGroup)
	}
	route, _, err := c.ownRoute(h, members)
	if err != nil {
		return nil, fmt.Errorf("children: %w", err)
	}
	return route.children, nil
}

// ownRoute returns this node's place in the tree from itself, and the members
// of it.
func (c *Core) ownRoute(h *handle, m *Members) (*route, *Members, error) {
	g := h.group
	if g.members != nil {
		m = g.members
	}
	if m == nil || m.service != g.key.service {
		return nil, nil, ErrMembers
	}
	if h.alive {
		var err error
		if m, err = m.without(c.dead); err != nil {
			return nil, nil, err
		}
	}
	if r := g.routes[c.cfg.Node]; r != nil && r.digest == m.digest && r.tree == h.tree {
		return r, m, nil
	}
	r, status := newRoute(m, c.shapes[h.tree.Kind], h.tree, c.cfg.Node, c.cfg.Node)
	switch status {
	case collect.OK:
	case collect.NotMember:
		return nil, nil, ErrNotMember
	default:
		return nil, nil, fmt.Errorf("%w: kind %d of radix %d", ErrTree, h.tree.Kind, h.tree.Radix)
	}
	r.incarnation = c.cfg.Incarnation
	if !h.alive {
		g.routes[c.cfg.Node] = r
	}
	return r, m, nil
}

func (c *Core) handle(g *group, kind collect.Tree, alive bool) uint64 {
	id := c.next()
	c.handles[id] = &handle{g, kind, alive}
	g.handles = append(g.handles, id)
	return id
}

// freeGroup forgets g; requests over it that are under way go on.
func (c *Core) freeGroup(g *group) {
	if c.groups[g.key] == g {
		delete(c.groups, g.key)
	}
	for _, id := range g.handles {
		delete(c.handles, id)
	}
}

// freeTree forgets g after its last broadcast from a root. Other roots may
// still use an out-of-band group, and this node a handle to it.
func (c *Core) freeTree(g *group, root collect.Node) {
	if g.key.outOfBand {
		delete(g.routes, root)
		if (g.mine && root != c.cfg.Node) || len(g.routes) > 0 {
			return
		}
	}
	c.freeGroup(g)
}
