package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("agent: invalid configuration")

// Config is what an agent is. A zero PrepareLease, Epochs or History has the
// default that its comment gives.
type Config struct {
	Name         string // the switch, as refusals name it
	Incarnation  uint64 // differs from those of all earlier agents of this switch
	Capability   topology.Capability
	PrepareLease time.Duration // life of a reservation whose Prepare names none; 15 s
	Epochs       int           // epochs of one tree at once, at most; aggregate.MaxEpochs, which is also the largest
	History      int           // trees that are gone whose epochs are remembered as stale; 4096
}

func (c Config) withDefaults() Config {
	if c.PrepareLease == 0 {
		c.PrepareLease = 15 * time.Second
	}
	if c.Epochs == 0 {
		c.Epochs = switchreduce.MaxEpochs
	}
	if c.History == 0 {
		c.History = 4096
	}
	return c
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("%w: no name", ErrConfig)
	case c.Incarnation == 0:
		return fmt.Errorf("%w: no incarnation", ErrConfig)
	case c.PrepareLease < 0 || c.Epochs < 0 || c.Epochs > switchreduce.MaxEpochs || c.History < 0:
		return fmt.Errorf("%w: a negative lease, epochs or history, or more than %d epochs", ErrConfig, switchreduce.MaxEpochs)
	}
	if err := c.Capability.Validate(); err != nil {
		return fmt.Errorf("%w: switch %s: %w", ErrConfig, c.Name, err)
	}
	return nil
}

// Core is the state of one agent. It is not for concurrent use.
type Core struct {
	cfg      Config
	draining bool
	unusable string // why nothing can be promised; empty: it can
	sockets  uint64 // the last number that was given to one

	trees    map[uint32]*tree
	bySocket map[uint64]*tree
	used     int            // the sum of all trees' slots
	unsure   []*reservation // prepared and not committed
	idle     []idleTree     // oldest first, at most cfg.History; those that came to life again included

	now core.Time // of the current Step
	out *Output   // of the current Step
}

// New returns the core of an agent that has promised nothing yet.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Core{
		cfg:      cfg.withDefaults(),
		trees:    make(map[uint32]*tree),
		bySocket: make(map[uint64]*tree),
	}, nil
}

// Step takes what has happened, in order, and adds to out what is to be done.
func (c *Core) Step(now core.Time, batch []Input, out *Output) {
	c.now, c.out = now, out
	c.expire()
	for _, in := range batch {
		switch in := in.(type) {
		case Prepare:
			c.prepare(in)
		case Commit:
			c.commit(in)
		case Remove:
			c.remove(in)
		case Drain:
			c.draining = in.On
			c.reply(Reply{Req: in.Req, Kind: Drained})
		case Bound:
			c.bound(in)
		case Installed:
			c.installed(in)
		case Expired:
			c.expired(in)
		case Offer:
			c.cfg.Capability, c.unusable = in.Capability, in.Unusable
		}
	}
	c.out = nil
}

// Deadline returns when the next prepared reservation runs out.
func (c *Core) Deadline() core.Time {
	at := core.Never
	for _, r := range c.unsure {
		at = at.Earlier(r.until)
	}
	return at
}

// expire ends what was prepared and not committed in time.
func (c *Core) expire() {
	for i := 0; i < len(c.unsure); {
		r := c.unsure[i]
		if r.until > c.now {
			i++
			continue
		}
		c.end(r, "its lease ran out")
		c.ended(r, PrepareRanOut)
	}
}

// installed keeps what reduces for an epoch.
func (c *Core) installed(in Installed) {
	if t := c.bySocket[in.Socket]; t != nil {
		if r := t.find(in.Epoch); r != nil && r.committed {
			r.reducer = in.Reducer
		}
	}
}

// expired takes the word of whatever reduces that an epoch is over.
func (c *Core) expired(in Expired) {
	t := c.bySocket[in.Socket]
	if t == nil {
		return
	}
	if r := t.find(in.Epoch); r != nil && r.committed {
		r.retired = true
		c.end(r, "")
		why := LeaseRanOut
		if in.Lost {
			why = PlaneFailed
		}
		c.ended(r, why)
	}
}

func (c *Core) ended(r *reservation, why EndReason) {
	c.out.Ended = append(c.out.Ended, Ended{
		Incarnation: c.cfg.Incarnation,
		Group:       r.tree.group, Epoch: r.epoch, Why: why,
	})
}

func (c *Core) reply(r Reply) {
	r.Incarnation = c.cfg.Incarnation
	c.out.Replies = append(c.out.Replies, r)
}

// Incarnation returns the agent's own.
func (c *Core) Incarnation() uint64 { return c.cfg.Incarnation }

// Capability returns what the switch can do at present.
func (c *Core) Capability() topology.Capability { return c.cfg.Capability }

// Unusable returns why the switch can promise nothing at present; empty if it
// can.
func (c *Core) Unusable() string { return c.unusable }

// Draining reports whether new reservations are refused.
func (c *Core) Draining() bool { return c.draining }

// Slots returns how many slots are promised, and how many there are.
func (c *Core) Slots() (used, all int) { return c.used, c.cfg.Capability.Slots }

// Holds returns all that is promised, by group, tree and epoch.
func (c *Core) Holds() []Hold {
	var all []Hold
	for _, t := range c.bySocket {
		for _, r := range t.held {
			all = append(all, Hold{
				Group: t.group, Epoch: r.epoch,
				Window: r.ask.Window, Committed: r.committed, Addr: t.addr, Reducer: r.reducer,
			})
		}
	}
	slices.SortFunc(all, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Epoch, b.Epoch))
	})
	return all
}
