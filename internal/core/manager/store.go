package manager

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// action is what waits for a record to be stored.
type action struct {
	seq   uint64
	do    deed
	group uint32
	epoch uint32
	reply Reply
	what  string // that the reply is to, for an error
}

type deed uint8

const (
	sendReply deed = iota + 1
	sendPrepares
	sendOffers
	sendRemoves
)

// save has a record stored, and returns its number.
func (c *Core) save(r Record) uint64 {
	c.seq++
	r.Seq = c.seq
	c.out.Persist = append(c.out.Persist, r)
	return c.seq
}

func (c *Core) saveFleet() {
	f := &Fleet{LastGroup: c.lastGroup, Term: c.term}
	for _, d := range c.fleet {
		if d.drained {
			f.Drained = append(f.Drained, d.name)
		}
	}
	f.Drained = append(f.Drained, c.drainedAway...)
	c.save(Record{Kind: FleetRecord, Fleet: f})
}

// keep stores what is the driver's.
func (c *Core) keep(in Keep) {
	if in.Kind < OperatorRecord || in.Kind > HistoryRecord || in.Place > 0 && in.Kind != HistoryRecord || len(in.Kept) == 0 {
		c.reply(Reply{Req: in.Req, Err: fmt.Errorf("keep a record of kind %d at place %d, %d bytes: %w", in.Kind, in.Place, len(in.Kept), ErrRequest)})
		return
	}
	seq := c.save(Record{Kind: in.Kind, Group: in.Place, Kept: in.Kept})
	if in.Req == 0 {
		return
	}
	c.after(seq, action{do: sendReply, reply: Reply{Req: in.Req}, what: "store the topology (in effect; stored once the store works)"})
}

// saveTrees stores g's epoch, and the trees that members may know of.
func (c *Core) saveTrees(g *group) uint64 {
	r := &Trees{Epoch: g.epoch, Ended: g.released}
	for _, t := range g.trees() {
		if !t.recorded {
			continue
		}
		live := Tree{Epoch: t.epoch, Window: t.window, Plan: t.plan, Members: t.members, graph: c.graph}
		for i := range t.sites {
			s := &t.sites[i]
			live.Switches = append(live.Switches, Site{Name: s.on.name, Incarnation: s.incarnation, Addr: s.addr})
		}
		r.Live = append(r.Live, live)
	}
	return c.save(Record{Kind: TreesRecord, Group: g.id, Trees: r})
}

// after does a when the records up to seq are stored.
func (c *Core) after(seq uint64, a action) {
	if seq <= c.stored {
		c.perform(a)
		return
	}
	if a.do == sendReply && c.broken != nil {
		c.replyUnstored(a)
		return
	}
	a.seq = seq
	c.waiting = append(c.waiting, a)
}

// unstored answers who waits for records that the store has refused, and forgets
// the groups whose specs are among them. Until the store works again no group is
// created; a release and a drain are in effect, and stored when it does.
func (c *Core) unstored(in Unstored) {
	seq := min(in.Seq, c.seq)
	if seq <= c.stored || in.Err == nil {
		return
	}
	c.broken = in.Err
	c.waiting = slices.DeleteFunc(c.waiting, func(a action) bool {
		refused := a.do == sendReply && a.seq <= seq
		if refused {
			c.replyUnstored(a)
		}
		return refused
	})
	for _, id := range c.order {
		g := c.groups[id]
		if g.specSeq <= c.stored || g.specSeq > seq {
			continue
		}
		if !g.released {
			c.end(g, 0, c.notStored())
		}
		g.until = c.now
		c.touch(g)
	}
}

func (c *Core) notStored() error { return fmt.Errorf("%w: %w", ErrNotStored, c.broken) }

func (c *Core) replyUnstored(a action) {
	c.reply(Reply{Req: a.reply.Req, Err: fmt.Errorf("%s: %w", a.what, c.notStored())})
}

func (c *Core) storedUpTo(seq uint64) {
	c.broken = nil
	c.stored = max(c.stored, min(seq, c.seq))
	n := 0
	for n < len(c.waiting) && c.waiting[n].seq <= c.stored {
		n++
	}
	due := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	for _, a := range due {
		c.perform(a)
	}
}

// perform does what a record was stored for, if it is still wanted.
func (c *Core) perform(a action) {
	if a.do == sendReply {
		c.reply(a.reply)
		return
	}
	g := c.groups[a.group]
	if g == nil {
		return
	}
	t := g.treeOf(a.epoch)
	if t == nil {
		return
	}
	c.touch(g)
	switch {
	case a.do == sendRemoves:
		c.askRemoves(g, t)
		c.released(g, t)
	case t != g.building:
	case a.do == sendPrepares:
		c.prepare(g, t)
	case a.do == sendOffers:
		c.activate(g, t)
	}
}

// Restore returns the core of a manager that goes on from what an earlier one
// has had stored: of each key (Kind, Group) the latest record, in any order.
// It does not disturb running groups: trees that were active stay so, until
// their switches or members say otherwise. A tree that graph does not have, by the
// names of its nodes and links, is removed from its switches when they come; a
// group whose members are not all hosts of graph waits for them.
func Restore(graph *topology.Graph, cfg Config, records []Record) (*Core, error) {
	if graph == nil {
		return nil, fmt.Errorf("%w: no graph", ErrConfig)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Core{
		cfg: cfg.withDefaults(), graph: graph, view: graph.View(),
		groups: make(map[uint32]*group), names: make(map[string]uint32), bundles: make(map[string]*bundle), speeds: make(map[string]topology.Speed),
		places: pathsel.NewIndex(graph), drafts: make(map[uint64]*draftTurn),
	}
	c.book = quota.NewBook(c.cfg.Quotas)
	c.regroupFleet()
	c.attend(cfg.Unattended)
	var errs []error
	for _, kind := range []RecordKind{FleetRecord, SpecRecord, TreesRecord, OperatorRecord, MapRecord, HistoryRecord} {
		for i := range records {
			r := &records[i]
			c.seq = max(c.seq, r.Seq)
			if r.Kind == kind && !r.Delete {
				errs = append(errs, c.restore(r))
			}
		}
	}
	for _, id := range c.order {
		g := c.groups[id]
		if g.released {
			continue
		}
		if err := c.fits(g.spec.Bundle, g.spec.Members); err != nil {
			errs = append(errs, fmt.Errorf("group %d: %w", id, err))
			continue
		}
		c.enrol(g)
	}
	c.stored = c.seq
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return c, nil
}

// restore takes one record in.
func (c *Core) restore(r *Record) error {
	switch {
	case r.Kind == FleetRecord && r.Fleet != nil:
		c.lastGroup, c.term = max(c.lastGroup, r.Fleet.LastGroup), r.Fleet.Term
		for _, name := range r.Fleet.Drained {
			if d := c.named(name); d != nil {
				d.drained = true
			} else {
				c.drainedAway = append(c.drainedAway, name)
			}
		}
	case r.Kind == SpecRecord && r.Spec != nil:
		if err := r.Spec.Bundle.Validate(); err != nil {
			return fmt.Errorf("group %d, %q: %w", r.Group, r.Spec.Name, err)
		}
		c.lastGroup = max(c.lastGroup, r.Group)
		c.addGroup(r.Group, r.Spec)
	case r.Kind == TreesRecord && r.Trees != nil:
		if g := c.groups[r.Group]; g != nil {
			c.restoreTrees(g, r.Trees)
		}
	case len(r.Kept) > 0: // the driver's
	default:
		return fmt.Errorf("record %d of kind %d has no value: %w", r.Seq, r.Kind, ErrRequest)
	}
	return nil
}

func (c *Core) restoreTrees(g *group, r *Trees) {
	g.epoch = r.Epoch
	if r.Ended {
		g.released = true
	}
	for i := range r.Live {
		t := c.restoreTree(g, &r.Live[i])
		if t == nil {
			g.dropped = true
			continue
		}
		g.epoch = max(g.epoch, t.epoch)
		if old := g.active; old != nil {
			old.stage, old.behind = TreeDraining, len(g.members)
			g.draining = append(g.draining, old)
		}
		g.active, g.window = t, t.window
		c.enlist(g, t)
		t.unwanted = slices.ContainsFunc(t.sites, func(s site) bool { return s.on.avoided() })
		for k := range t.sites {
			c.account(t.sites[k].on, g.id)
		}
	}
}

// restoreTree returns a tree as it was recorded, or nil if the fabric has been
// redrawn and has no such tree: its switches are asked to remove it when they
// come, once it is struck from the record.
func (c *Core) restoreTree(g *group, r *Tree) *tree {
	plan, whole := r.planIn(c.graph, g.spec.Members)
	if !whole {
		return nil
	}
	t := &tree{
		epoch: r.Epoch, window: r.Window, plan: plan, upper: upperLinks(&plan.Tree), stage: TreeActive,
		members: r.Members, recorded: true, until: core.Never, makeshift: true, // for all that is known
	}
	vertices := plan.Tree.Vertices
	if plan.Tree.Validate(c.view) != nil || len(r.Switches) != len(vertices) ||
		!spans(&plan.Tree, g.hosts) || len(r.Members) != len(g.hosts) {
		return nil
	}
	for i, s := range r.Switches {
		d := c.device(vertices[i].Switch)
		if d.name != s.Name {
			return nil
		}
		t.sites = append(t.sites, site{on: d, incarnation: s.Incarnation, phase: committed, addr: s.Addr})
	}
	t.index(plan.Tree.AllChildren())
	return t
}
