package manager

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/fairqueue"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// group is the state of one group.
type group struct {
	id      uint32
	spec    *Spec             // never changes
	specSeq uint64            // of its record
	hosts   []topology.NodeID // spec.Members, by rank; topology.NoNode: the fabric does not have it
	absent  []string          // the names of these

	links pathsel.Links // as in Links

	members    []member
	watching   int    // members with a stream
	transports [3]int // members by Transport
	entered    uint32 // the highest epoch that a member has reported
	epoch      uint32 // the last that was given

	building *tree   // planned or prepared
	active   *tree   // active
	draining []*tree // draining, by age
	lost     *tree   // the last active one that was lost, until another is active
	review   bool    // active is to be compared with a new one

	dropped bool // its record had trees that the fabric has not

	bundle *bundle // nil: it is in none, or released

	// What slots are shared out by: see share.go.
	demand   uint32    // window that its operations can use; 0: nobody has reported
	demanded core.Time // when that was reported
	window   uint32    // of its last active tree; 0: there was none
	shrinks  core.Time // from when that may be made smaller, and
	grows    core.Time // larger
	uneven   bool      // it is in Core.uneven
	starved  []*device // switches that lack slots for a first tree; nil: it does not wait for any
	share    uint32    // window that it is to have, in the round of sharing
	sharedIn uint64    // Core.shared, when share holds

	builds    bool                       // it counts in Core.building
	request   *fairqueue.Request[waiter] // that waits in Core.turns; nil: none does
	turn      bool                       // it has been given one
	paid      bool                       // its next plan has been counted already
	plans     bool                       // it counts in Core.planning
	slots     int                        // that it has on all switches
	plan      uint64                     // of the PlanRequest without an answer; 0: none
	round     round
	suspects  []suspect
	trusts    int       // times in a row that suspects were used again
	trusted   core.Time // when they were last
	failures  int       // since the group was last well
	notBefore core.Time // when the next attempt may begin
	blocked   bool      // no attempt before something changes
	refusal   *Refusal  // why there is no tree, or no replacement
	reported  string    // the refusal that members know

	released bool
	until    core.Time // released: when the trees go. Otherwise, while nobody watches: when it is

	history []Change
	dirty   bool // it is in Core.dirty
	timer   core.Timer[any]
}

// member is one rank.
type member struct {
	addr      netip.AddrPort
	proven    netip.Addr // as in Watch
	rails     []Rail     // of its host
	onlyRails bool       // it has no other data address
	stream    uint64
	entered   uint32
	transport Transport
	watching  bool
}

// trees returns all trees of g, by age.
func (g *group) trees() []*tree {
	all := slices.Clone(g.draining)
	if g.active != nil {
		all = append(all, g.active)
	}
	if g.building != nil {
		all = append(all, g.building)
	}
	return all
}

// treeOf returns the tree of an epoch, or nil.
func (g *group) treeOf(epoch uint32) *tree {
	for _, t := range g.trees() {
		if t.epoch == epoch {
			return t
		}
	}
	return nil
}

// note adds to the group's history.
func (c *Core) note(g *group, format string, args ...any) {
	if len(g.history) >= c.cfg.MaxHistory {
		g.history = slices.Delete(g.history, 0, len(g.history)-c.cfg.MaxHistory+1)
	}
	g.history = append(g.history, Change{At: c.now, What: fmt.Sprintf(format, args...)})
}

func (c *Core) create(in Create) {
	if id, ok := c.names[in.Name]; ok {
		g := c.groups[id]
		if !g.spec.sameOptions(&in) {
			c.reply(Reply{Req: in.Req, Err: fmt.Errorf("%s: %w", in.what(), ErrExists)})
			return
		}
		c.after(g.specSeq, action{do: sendReply, reply: Reply{Req: in.Req, Group: id, Found: true}, what: in.what()})
		return
	}
	err := c.checkCreate(&in)
	if err == nil && c.broken != nil {
		err = c.notStored()
	}
	if err != nil {
		c.reply(Reply{Req: in.Req, Err: fmt.Errorf("%s: %w", in.what(), err)})
		return
	}
	if err := c.book.Spend(c.now, in.Owner); err != nil {
		c.reply(Reply{Req: in.Req, Err: fmt.Errorf("%s: %w", in.what(), err)})
		return
	}
	c.lastGroup++
	g := c.addGroup(c.lastGroup, &Spec{
		Name: in.Name, Members: in.Members, ChunkBytes: in.ChunkBytes, Window: in.Window,
		Functions: in.Functions, Types: in.Types, Purpose: in.Purpose, Bundle: in.Bundle, Secret: in.Secret, Protection: in.Protection, Owner: in.Owner,
	})
	g.paid = true
	c.enrol(g)
	g.until = c.now.Add(c.cfg.Abandon)
	c.saveFleet()
	g.specSeq = c.save(Record{Kind: SpecRecord, Group: g.id, Spec: g.spec})
	c.after(g.specSeq, action{do: sendReply, reply: Reply{Req: in.Req, Group: g.id}, what: in.what()})
	c.note(g, "created with %d members", len(g.members))
	c.miss(g)
	c.touch(g)
}

// what names the request in errors.
func (in *Create) what() string { return fmt.Sprintf("create group %q", in.Name) }

// addGroup makes a group known.
func (c *Core) addGroup(id uint32, spec *Spec) *group {
	g := &group{id: id, spec: spec, members: make([]member, len(spec.Members))}
	c.place(g)
	g.transports[NoTransport] = len(g.members)
	g.timer.Of = g
	c.groups[id] = g
	at, _ := slices.BinarySearch(c.order, id)
	c.order = slices.Insert(c.order, at, id)
	c.book.Add(spec.Owner, quota.Groups, 1)
	for _, d := range c.fleet {
		if i, ok := d.holding(id); ok { // of a group that had its number, before a loss of memory
			g.slots += d.holdings[i].Slots
		}
	}
	c.book.Add(spec.Owner, quota.Slots, g.slots)
	return g
}

func (s *Spec) sameOptions(in *Create) bool {
	return s.ChunkBytes == in.ChunkBytes && s.Window == in.Window && s.Functions == in.Functions &&
		s.Types == in.Types && s.Purpose == in.Purpose && s.Bundle == in.Bundle && s.Protection == in.Protection &&
		slices.Equal(s.Members, in.Members)
}

// maxName is the most bytes of a group's name.
const maxName = 255

// checkCreate returns what is wrong with in.
func (c *Core) checkCreate(in *Create) error {
	switch {
	case in.Name == "" || len(in.Name) > maxName:
		return fmt.Errorf("a name of %d bytes, want 1 to %d: %w", len(in.Name), maxName, ErrRequest)
	case in.Secret == wire.Secret{}:
		return fmt.Errorf("the driver gave no secret: %w", ErrRequest)
	}
	if err := c.book.Check(in.Owner, quota.Groups, 1); err != nil {
		return fmt.Errorf("%w: %w", ErrTooManyGroups, err)
	}
	if err := in.Bundle.Validate(); err != nil {
		return err
	}
	if err := c.checkOptions(in); err != nil {
		return err
	}
	return c.fits(in.Bundle, in.Members)
}

// checkOptions returns what is wrong with the options. Members that the fabric does
// not have may yet come; what it has as a switch is no host.
func (c *Core) checkOptions(in *Create) error {
	switch {
	case in.ChunkBytes < switchreduce.MinChunk || in.ChunkBytes > switchreduce.MaxChunk:
		return fmt.Errorf("chunks of %d bytes, want %d to %d: %w", in.ChunkBytes, switchreduce.MinChunk, switchreduce.MaxChunk, ErrRequest)
	case !in.Protection.Valid():
		return fmt.Errorf("packets that are %v: %w", in.Protection, ErrRequest)
	case !powerOfTwo(in.Window) || in.Window > c.cfg.MaxWindow:
		return fmt.Errorf("a window of %d chunks, want a power of two up to %d: %w", in.Window, c.cfg.MaxWindow, ErrRequest)
	case in.Functions&^topology.AllFunctions() != 0 || in.Types&^topology.AllTypes() != 0:
		return fmt.Errorf("functions %#x or types %#x are not all defined: %w", uint32(in.Functions), uint32(in.Types), ErrRequest)
	case in.Purpose.Validate() != nil:
		return fmt.Errorf("%w: %w", in.Purpose.Validate(), ErrRequest)
	case len(in.Members) < 2:
		return fmt.Errorf("%d members: %w", len(in.Members), ErrTooFew)
	case len(in.Members) > c.cfg.MaxMembers:
		return fmt.Errorf("%d members, at most %d: %w", len(in.Members), c.cfg.MaxMembers, ErrTooMany)
	}
	ranks := make(map[string]int, len(in.Members))
	for rank, name := range in.Members {
		if err := topology.CheckName(name); err != nil {
			return fmt.Errorf("rank %d: %w: %w", rank, err, ErrUnknownHost)
		}
		if first, twice := ranks[name]; twice {
			return fmt.Errorf("ranks %d and %d are both %q: %w", first, rank, name, ErrDuplicate)
		}
		if d := c.named(name); d != nil {
			hint := ""
			if d.unattended || !d.up {
				hint = " on the map; a host is one where its lldpd announces the capability bridge or router (give lldpd \"configure system capabilities enabled station\")"
			}
			return fmt.Errorf("rank %d, %q, is a switch%s: %w", rank, name, hint, ErrUnknownHost)
		}
		ranks[name] = rank
	}
	return nil
}

// release ends g: what is being built goes at once, the rest after a grace. With the
// first stripe of a bundle all stripes end.
func (c *Core) release(g *group, grace time.Duration) {
	sisters := g.sisters()
	c.end(g, grace, ErrReleased)
	if b := g.spec.Bundle; b.Kind == Stripes && b.Index == 0 {
		for _, s := range sisters {
			c.release(s, grace)
		}
	}
}

// end releases g alone; its members' streams end with why.
func (c *Core) end(g *group, grace time.Duration, why error) {
	c.changed = c.changed || g.blocked // so that it leaves Core.blocked
	c.touchSisters(g)
	g.released, g.blocked, g.starved = true, false, nil
	c.cancelPlan(g)
	g.until = c.now.Add(grace)
	c.strike(g)
	c.shareSoon()
	c.note(g, "released")
	if g.building != nil {
		c.remove(g, g.building)
	}
	for rank := range g.members {
		if m := &g.members[rank]; m.watching {
			c.close(g.id, uint32(rank), m.stream, why)
			m.watching = false
		}
	}
	g.watching = 0
	c.saveTrees(g)
	c.touch(g)
}

func (c *Core) releaseAsked(in Release) {
	g := c.groups[in.Group]
	if g == nil {
		c.reply(Reply{Req: in.Req, Group: in.Group, Err: fmt.Errorf("release group %d: %w", in.Group, ErrUnknownGroup)})
		return
	}
	if !g.released {
		c.release(g, c.cfg.ReleaseGrace)
	}
	c.after(c.seq, action{
		do: sendReply, reply: Reply{Req: in.Req, Group: in.Group},
		what: fmt.Sprintf("release group %d (in effect; stored once the store works)", in.Group),
	})
}

// dissolve removes the trees of a released group when its grace is over, and
// then forgets the group.
func (c *Core) dissolve(g *group) {
	if c.now < g.until {
		return
	}
	for _, t := range g.trees() {
		c.remove(g, t)
	}
	if len(g.draining) > 0 {
		return
	}
	c.save(Record{Kind: TreesRecord, Group: g.id, Delete: true})
	c.save(Record{Kind: SpecRecord, Group: g.id, Delete: true})
	c.timers.Set(&g.timer, core.Never)
	c.book.Add(g.spec.Owner, quota.Groups, -1)
	c.book.Add(g.spec.Owner, quota.Slots, -g.slots)
	delete(c.groups, g.id)
	at, _ := slices.BinarySearch(c.order, g.id)
	c.order = slices.Delete(c.order, at, at+1)
}

func (c *Core) reply(r Reply) { c.out.Replies = append(c.out.Replies, r) }

// close ends a member's stream.
func (c *Core) close(group, rank uint32, stream uint64, why error) {
	c.out.Notices = append(c.out.Notices, Notice{Group: group, Rank: rank, Stream: stream, Err: why, End: true})
}
