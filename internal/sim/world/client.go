package world

import (
	"errors"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/rank"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// client is a member's side of the control plane, which does what hostlib does:
// rank 0 has the group made and, at its end, released; all watch it and report.
type client struct {
	manager sim.NodeID
	terms   *manager.Create // that rank 0 asks for; nil at the others
	rank    uint32
	pause   time.Duration // before the manager is called again

	connected bool
	dial      core.Time // when to call; Never: not now
	linger    core.Time // when it goes after the last barrier, though a neighbour has said nothing
	streams   uint32    // that were begun
	group     uint32    // the manager's number; 0: not known yet
	entered   uint32
	way       manager.Way
	demand    uint32 // at rank 0: window that the operations can use
	lost      uint32 // a loss that the manager does not know yet
	silent    bool
	reason    string
	over      bool
}

func newClient(m sim.NodeID, r uint32, pause time.Duration) *client {
	return &client{manager: m, rank: r, pause: pause, dial: core.Never, linger: core.Never, entered: rank.FirstEpoch, way: manager.HostTree, demand: 1}
}

// begin lets rank 0 call the manager.
func (c *client) begin(terms *manager.Create) { c.terms, c.dial = terms, 0 }

func (c *client) deadline() core.Time { return c.dial.Earlier(c.linger) }

func (c *client) step(now core.Time, h sim.Handle) {
	if c.linger <= now {
		c.end(h)
	}
	if c.dial <= now {
		c.dial = core.Never
		h.Dial(c.manager)
	}
}

// take takes what comes from the manager, and returns what it means for the
// member, if anything.
func (c *client) take(now core.Time, d *sim.Delivery, h sim.Handle) (rank.Input, bool) {
	switch d.Kind {
	case sim.Up:
		c.connected = true
		c.resume(h)
	case sim.Dead, sim.Refused, sim.Closed:
		c.connected = false
		if !c.over {
			c.dial = now.Add(c.pause)
		}
	case sim.Control:
		return c.heard(d.Value, h)
	default: // the manager says all that it says as control values
	}
	return rank.Input{}, false
}

// resume says on a new connection what the manager has to know.
func (c *client) resume(h sim.Handle) {
	switch {
	case c.over:
		c.bye(h)
	case c.group == 0:
		c.create(h)
	default:
		c.watch(h)
		c.report(h)
	}
}

func (c *client) create(h sim.Handle) {
	if c.terms != nil {
		ask := *c.terms
		ask.Req = uint64(h.ID())
		h.Tell(c.manager, ask)
	}
}

func (c *client) watch(h sim.Handle) {
	c.streams++
	h.Tell(c.manager, manager.Watch{
		Group: c.group, Rank: c.rank, Stream: stream(h.ID(), c.streams), Entered: c.entered,
		DataAddr: AddrPort(sim.Addr{Node: h.ID(), Port: DataPort}),
	})
}

func (c *client) report(h sim.Handle) {
	h.Tell(c.manager, manager.Report{
		Group: c.group, Rank: c.rank, Entered: c.entered, Way: c.way, Lost: c.lost, Silent: c.silent, Reason: c.reason,
		Demand: c.demand,
	})
	c.lost, c.silent, c.reason = 0, false, ""
}

func (c *client) heard(value any, h sim.Handle) (rank.Input, bool) {
	switch v := value.(type) {
	case manager.Reply:
		if c.group != 0 || c.over {
			return rank.Input{}, false
		}
		n := wire.Notice{Group: v.Group}
		if v.Err != nil {
			n.Reason = v.Err.Error()
		}
		return rank.Input{Kind: rank.Notice, News: &rank.News{Notice: n}}, true
	case manager.Offer:
		return rank.Input{Kind: rank.Offer, News: &rank.News{Link: session.Link{
			Group: v.Group, Epoch: v.Epoch, Tree: v.Tree, Cookie: v.Cookie, Window: v.Window,
			Parent: v.Parent, Index: v.Index, Probes: v.Probes, Idle: v.Idle,
		}}}, true
	case manager.Withdrawal:
		return rank.Input{Kind: rank.Withdraw, News: &rank.News{Epoch: v.Epoch, Reason: v.Why}}, true
	case manager.Notice:
		if v.End && c.terms != nil && errors.Is(v.Err, manager.ErrUnknownGroup) {
			c.group = 0
			c.create(h)
		}
	}
	return rank.Input{}, false
}

// noticed takes the group's number, which rank 0 has told all.
func (c *client) noticed(now core.Time, n *wire.Notice, h sim.Handle) {
	if n.Group == 0 || n.Group == c.group || c.over {
		return
	}
	c.group = n.Group
	if c.connected {
		c.watch(h)
	} else {
		c.dial = now
		c.step(now, h)
	}
}

// tell tells the manager what a step has brought.
func (c *client) tell(now core.Time, o *rank.Output, h sim.Handle) {
	for _, e := range o.Entered {
		c.entered, c.way = e.Epoch, manager.HostTree
		if e.Offload {
			c.way = manager.Offload
		}
	}
	if o.Loss != nil {
		c.lost, c.silent, c.reason = o.Loss.Epoch, !o.Loss.Said, o.Loss.String()
	}
	if o.Demand != 0 {
		c.demand = o.Demand
	}
	if (len(o.Entered) > 0 || o.Loss != nil || o.Demand != 0) && c.connected && c.group != 0 {
		c.report(h)
	}
	if o.Left {
		c.linger = now.Add(lingering)
	}
	if o.Gone || o.Ended != nil {
		c.end(h)
	}
}

// wants has the member tell the manager another demand than its operations have.
func (c *client) wants(window uint32, h sim.Handle) {
	c.demand = window
	if c.connected && c.group != 0 && !c.over {
		c.report(h)
	}
}

// lingering is how long a member that has left waits for its neighbours'
// goodbyes.
const lingering = 20 * time.Millisecond

func (c *client) end(h sim.Handle) {
	c.linger = core.Never
	if !c.over {
		c.over = true
		if c.connected {
			c.bye(h)
		}
	}
}

// bye releases the group and goes.
func (c *client) bye(h sim.Handle) {
	if c.terms != nil && c.group != 0 {
		h.Tell(c.manager, manager.Release{Req: uint64(h.ID()), Group: c.group})
	}
	h.Close(c.manager)
	c.connected, c.dial = false, core.Never
}
