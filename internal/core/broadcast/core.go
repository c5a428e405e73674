package broadcast

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Service is what a service is registered with.
type Service struct {
	ID        broadcastmsg.Service
	OutOfBand bool // it can map out-of-band groups to their members
	NoReplies bool // it has no incoming-reply callback

	// Allow returns why what another node asks for is not allowed; "": it is. nil: all is.
	// It calls nothing of the Core.
	Allow func(Caller) (why string)
}

// Caller is a root that asks something of a service.
type Caller struct {
	Root    broadcastmsg.Node
	Creates bool // it makes or frees a group
	Calls   bool // the service is to run a request
}

// Core is a node's part in all collectives.
type Core struct {
	cfg      Config
	shapes   map[broadcastmsg.Kind]Shape
	services map[broadcastmsg.Service]Service

	groups  map[groupKey]*group
	handles map[uint64]*handle
	made    uint64 // groups created in this incarnation

	requests map[uint64]*request           // by handle
	active   map[broadcastmsg.Key]*request // the same, but for those that a root has not sent
	sequence uint64
	last     uint64 // handle, number or key given out

	sends    map[uint64]*outbound // not answered by Sent
	timers   core.Timers[any]     // of requests, and of messages that could not be sent
	pool     *pool
	spares   spares
	request  broadcastmsg.Request // as read last
	reply    broadcastmsg.Reply   // as read last
	finished memory
	proofs   proofs
	quotas   quotas

	dead         map[broadcastmsg.Node]uint64 // the first incarnation that is not dead
	incarnations map[broadcastmsg.Node]uint64 // in which nodes are, or were, alive

	counters Counters
	now      core.Time // of the step in progress
	out      *Output   // the same
}

// Counters count what nobody else is reported.
type Counters struct {
	Unreadable  uint64 // messages that are none
	Copies      uint64 // requests that were here already
	Unmatched   uint64 // replies for which no buffer was posted
	Refusals    uint64 // requests that were refused before any callback
	Denied      uint64 // of them, by a rule of the service's
	Unproven    uint64 // and those of which it is not proven that their root has sent them
	Retries     uint64 // messages sent again after a local failure
	Refills     uint64 // times that receive buffers were made anew
	LentBuffers int    // the library's buffers that are in use
	Posted      int    // reply buffers posted and not yet given back
	Exposed     int    // memory that other nodes can read
	Requests    int    // whose handles are valid
	Groups      int
	Routes      int // places in trees that are kept
}

// New returns a node without services, or what is wrong with cfg.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Core{
		cfg: cfg, shapes: cfg.shapes(),
		services: map[broadcastmsg.Service]Service{},
		groups:   map[groupKey]*group{}, handles: map[uint64]*handle{},
		requests: map[uint64]*request{}, active: map[broadcastmsg.Key]*request{},
		sends: map[uint64]*outbound{}, pool: newPool(cfg.Receive),
		finished: newMemory(cfg.Remember), proofs: newProofs(),
		quotas: newQuotas(),
		dead:   map[broadcastmsg.Node]uint64{}, incarnations: map[broadcastmsg.Node]uint64{},
	}, nil
}

// Register adds a service. It fails with ErrService where there is one of its
// number already, or the number is 0.
func (c *Core) Register(s Service) error {
	if _, twice := c.services[s.ID]; twice || s.ID == 0 {
		return ErrService
	}
	c.services[s.ID] = s
	return nil
}

// Unregister removes a service and frees its groups here. It fails with ErrBusy
// while requests of it have not ended: they are to be aborted, and their
// callbacks to return.
func (c *Core) Unregister(id broadcastmsg.Service) error {
	if _, ok := c.services[id]; !ok {
		return ErrService
	}
	for _, r := range c.requests {
		if r.service == id {
			return ErrBusy
		}
	}
	delete(c.services, id)
	for _, g := range c.groups {
		if g.key.service == id {
			c.freeGroup(g)
		}
	}
	return nil
}

// SetRoundTrip sets R for the timeouts of what is sent from now on. Values that
// are not positive are ignored.
func (c *Core) SetRoundTrip(r time.Duration) {
	if r > 0 {
		c.cfg.RoundTrip = r
	}
}

// Step takes inputs, and lets pass what is due at now.
func (c *Core) Step(now core.Time, batch []Input, out *Output) {
	for i := range batch {
		c.enter(now, out)
		c.take(&batch[i])
	}
	c.enter(now, out)
	for t := c.timers.Due(now); t != nil; t = c.timers.Due(now) {
		switch of := t.Of.(type) {
		case *request:
			c.due(of)
		case *outbound:
			c.again(of)
		case *asking:
			c.impatient(of)
		}
	}
	c.finished.forget(now)
	c.out = nil
}

// enter begins an input, or a call.
func (c *Core) enter(now core.Time, out *Output) {
	c.now, c.out = now, out
	c.spares.recycle()
}

// Deadline returns when a reply is overdue, or something is to be sent again.
func (c *Core) Deadline() core.Time { return c.timers.Next() }

func (c *Core) take(in *Input) {
	switch in.Kind {
	case Message:
		c.message(in.Node, in.Incarnation, in.Bytes)
	case Sent:
		c.sent(in.Number, in.Err)
	case Returned:
		c.returned(in)
	case Pulled:
		c.pulled(in.Request, in.Err)
	case Up:
		c.up(in.Node, in.Incarnation)
	case Down:
		c.down(in.Node, in.Incarnation)
	case Cut:
		c.cut(in.Node)
	case Absent:
		c.absent(in.Node)
	}
}

// next returns a number that was not given out before.
func (c *Core) next() uint64 {
	c.last++
	return c.last
}

// Counters returns what was counted, and what is held.
func (c *Core) Counters() Counters {
	n := c.counters
	n.Refills, n.LentBuffers = uint64(c.pool.refills), c.pool.lent
	n.Requests, n.Groups = len(c.requests), len(c.groups)
	for _, g := range c.groups {
		for _, p := range g.roots {
			n.Routes += p.count()
		}
	}
	return n
}
