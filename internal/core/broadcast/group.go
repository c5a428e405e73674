package broadcast

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// groupKey is what a group is found by in the table: service, unique index and,
// unless it is out-of-band, the checksum over its members.
type groupKey struct {
	service   broadcastmsg.Service
	outOfBand bool
	index     broadcastmsg.Index
	digest    broadcastmsg.Digest
}

// group is what a node knows of a group: of an out-of-band one, its places in
// trees alone. It lives as long as one of its roots does.
type group struct {
	key     groupKey
	name    string
	tree    broadcastmsg.Tree // of a regular one
	members *Members          // of a regular one
	mine    bool              // made by a call of this node's
	by      broadcastmsg.Node // by whose request, if not by one of this node's
	bytes   int               // that its members took in it
	hearsay bool              // made by the word of another than its creator
	ready   bool              // broadcasts may be made
	spread  spread
	first   uint64   // the broadcast that brings the members along while it is under way
	queue   []uint64 // broadcasts that wait for it
	roots   map[broadcastmsg.Node]*places
	handles []uint64
}

// spread is who has a regular group.
type spread uint8

const (
	everywhere spread = iota // all members, as far as this node can know
	unsent                   // nobody: the parameters of creation ride on the first broadcast to everybody
	somewhere                // another's first broadcast may be on its way to members
)

// handle is how a service calls a group, or the subset of its living members.
type handle struct {
	group *group
	tree  broadcastmsg.Tree
	alive bool
}

// Creation is what a group is made of.
type Creation struct {
	Service broadcastmsg.Service
	Name    string                // at most collect.MaxName bytes
	Targets []broadcastmsg.Target // in the order of their ranks; kept, and not to be changed
	Tree    broadcastmsg.Tree
	Delayed bool // populated by its first broadcast instead of now
}

// CreateGroup begins to make a group and returns its handle, which Created
// reports to be valid: in this very call where it is delayed, otherwise once all
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
			index: broadcastmsg.MakeIndex(c.cfg.Node, c.cfg.Incarnation, c.made),
		},
		name: p.Name, tree: p.Tree, members: m, mine: true, roots: map[broadcastmsg.Node]*places{},
	}
	c.groups[g.key] = g
	id := c.handle(g, p.Tree, false)
	if p.Delayed {
		g.ready, g.spread = true, unsent
		g.root(c.cfg.Node, c.cfg.Incarnation)
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
	if len(p.Name) > broadcastmsg.MaxName {
		return nil, fmt.Errorf("%w: a name of %d bytes, want at most %d", ErrTooLarge, len(p.Name), broadcastmsg.MaxName)
	}
	m, err := NewMembers(p.Service, p.Targets)
	if err != nil {
		return nil, err
	}
	if _, status := newRoute(m, m.digest, c.shapes[p.Tree.Kind], p.Tree, c.cfg.Node, c.cfg.Node); status == broadcastmsg.NotMember {
		return nil, ErrNotMember
	} else if status != broadcastmsg.OK {
		return nil, fmt.Errorf("%w: kind %d of radix %d", ErrTree, p.Tree.Kind, p.Tree.Radix)
	}
	size := (&broadcastmsg.Creation{Name: p.Name, Targets: p.Targets}).Size()
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
	if c.proves() {
		others += broadcastmsg.MostProof
	}
	return broadcastmsg.MaxRequest - (&broadcastmsg.Request{Key: broadcastmsg.Key{Root: c.cfg.Node}}).Size() - others
}

// populate broadcasts the parameters of creation. What is ready, having come from
// elsewhere, goes to the living.
func (c *Core) populate(g *group) {
	r := c.announce(g, g.members, false)
	g.first = r.id
	if err := c.launch(r); err != nil {
		c.end(r, err)
	}
}

// dissolve broadcasts that nothing follows over g.
func (c *Core) dissolve(g *group, m *Members) *request {
	r := c.announce(g, m, true)
	if err := c.launch(r); err != nil {
		c.end(r, err)
	}
	return r
}

// announce makes a broadcast of the library's own, which makes a group or, if it
// is the last, frees it. Its members ride along, in the message or, where they do
// not fit, as bulk data for those that do not know the group, so that who lacks it
// passes on what is beneath it. To make a group all members have to live; later
// ones leave out the dead.
func (c *Core) announce(g *group, m *Members, last bool) *request {
	var f broadcastmsg.Filter
	if last || g.ready {
		f = c.living(m)
	}
	t, _, _ := c.ownPlace(g, g.tree, m, subsetOf(f, false), f) // there is one: of the group's own tree
	r := c.begin(g, g.tree, t)
	r.own, r.last, r.patience = true, last, c.cfg.Patience
	r.subset, r.filter = subsetOf(f, false), f
	if !last && !g.ready {
		r.members = m
	}
	if g.key.outOfBand {
		return r
	}
	creation := &broadcastmsg.Creation{Name: g.name, Targets: m.targets}
	if c.room(creation.Size()+len(f)) >= filterLength {
		r.creation = creation
	} else {
		r.bulk = uint64(creation.Size()) // see ownBlob
	}
	return r
}

// filterLength is what a filter takes beside itself.
var filterLength = broadcastmsg.FilterSize(nil)

// living returns the filter of those members that live; nil: all do, or it would
// not fit into a message.
func (c *Core) living(m *Members) broadcastmsg.Filter {
	if len(c.deadOf(m, nil)) == 0 {
		return nil
	}
	f := broadcastmsg.MakeFilter(m.Len(), func(rank int) bool {
		_, dead := c.dead[m.targets[rank].Node]
		return !dead
	})
	if c.room(broadcastmsg.FilterSize(f)+bulkLength) < 0 {
		return nil
	}
	return f
}

// ownBlob returns the parameters of creation as bulk data.
func (g *group) ownBlob() []byte {
	creation := broadcastmsg.Creation{Name: g.name, Targets: g.members.targets}
	return creation.Append(make([]byte, 0, creation.Size()))
}

// populationEnded reports what came of a creation. Members that have a group
// which others lack have to free it.
func (c *Core) populationEnded(g *group, err error) {
	call := Call{Kind: Created, Service: g.key.service, Group: g.handles[0], Err: err}
	if err != nil {
		c.dissolve(g, g.members)
		c.freeGroup(g)
	}
	g.ready = err == nil
	c.call(call)
}

// CreateOutOfBand returns a handle to a group that all members know without
// being reported. Nothing is sent.
func (c *Core) CreateOutOfBand(s broadcastmsg.Service, index broadcastmsg.Index, kind broadcastmsg.Tree) (uint64, error) {
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
	Service   broadcastmsg.Service
	Name      string // of a group made here by CreateGroup, or by another member
	Index     broadcastmsg.Index
	OutOfBand bool
	Tree      broadcastmsg.Tree // of the handle
	Alive     bool              // the handle is of the subset of the living
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
		g = &group{key: key, ready: true, roots: map[broadcastmsg.Node]*places{}}
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

// Destroy frees a group at all its living members by a broadcast of no size, with
// the members along, so that who does not have the group any more passes it on. The
// request that it returns ends when they have answered; what could not be reached
// frees the group when its roots are dead or have rebooted, or when Destroy is
// called again and reaches it. A subset's handle alone is given back.
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
	m, err := g.membersOr(members)
	if err == nil {
		_, _, err = c.ownPlace(g, h.tree, m, broadcastmsg.Everybody, nil)
	}
	if err != nil {
		return 0, fmt.Errorf("destroy: %w", err)
	}
	if g.spread == unsent {
		c.freeGroup(g)
		return 0, nil
	}
	g.tree = h.tree
	return c.dissolve(g, m).id, nil
}

// Children returns this node's children in the tree of which it is the root, in
// the order of their numbers. Of an out-of-band group it takes the members.
func (c *Core) Children(id uint64, members *Members) ([]Branch, error) {
	h := c.handles[id]
	if h == nil || !h.group.ready {
		return nil, fmt.Errorf("children: %w", ErrGroup)
	}
	m, err := h.group.membersOr(members)
	if err != nil {
		return nil, fmt.Errorf("children: %w", err)
	}
	route, _, err := c.ownPlace(h.group, h.tree, m, subsetOf(nil, h.alive), nil)
	if err != nil {
		return nil, fmt.Errorf("children: %w", err)
	}
	return route.children, nil
}

// membersOr returns the members of a regular group, or those given of an
// out-of-band one.
func (g *group) membersOr(m *Members) (*Members, error) {
	if g.members != nil {
		m = g.members
	}
	if m == nil || m.service != g.key.service {
		return nil, ErrMembers
	}
	return m, nil
}

func (c *Core) handle(g *group, kind broadcastmsg.Tree, alive bool) uint64 {
	id := c.next()
	c.handles[id] = &handle{g, kind, alive}
	g.handles = append(g.handles, id)
	return id
}

// freeGroup forgets g; requests over it that are under way go on.
func (c *Core) freeGroup(g *group) {
	if c.groups[g.key] == g {
		delete(c.groups, g.key)
		if g.by != "" {
			c.quotas.free(g)
		}
	}
	for _, id := range g.handles {
		delete(c.handles, id)
	}
}

// freeTree forgets g after its last broadcast from a root. Other roots may
// still use an out-of-band group, and this node a handle to it.
func (c *Core) freeTree(g *group, root broadcastmsg.Node) {
	if g.key.outOfBand {
		delete(g.roots, root)
		if (g.mine && root != c.cfg.Node) || len(g.roots) > 0 {
			return
		}
	}
	c.freeGroup(g)
}
