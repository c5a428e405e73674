package discovery

import (
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
)

// Core makes a map of what targets report. Its methods are not safe for concurrent use.
type Core struct {
	cfg Config

	targets map[string]*target
	claims  map[string][]*target // by the name that they claim, who has it first
	calls   calls

	devices map[string]*node   // targets with names, by it
	heard   map[system]*node   // others
	named   map[string][]*node // those of heard, by name; the first has it
	known   map[key][]*node    // devices, by what neighbours may call them
	mention map[key]map[*port]int

	file *part // the operator's; nil: there is none

	// What the step has to look at again.
	relook    map[*port]bool   // whose neighbours may be others
	rematch   map[*port]bool   // whose links may be others
	renamed   map[*node]string // heard ones whose names may be others, with the cause
	retarget  map[*node]bool   // who may have to be dialled
	announced map[*claim]bool  // that are heard anew: who is away may be back

	nodes   map[string]Node // the map, as published
	links   map[Ends]Link
	degree  map[string]int // links by node
	pending pending

	alarms  alarms
	forgets core.Timers[*port]
	gone    core.Timers[*target]
	steady  core.Timers[*port]

	now    core.Time
	cause  string
	turn   uint64 // of the last touch of a port
	out    *Output
	counts Counts
}

// Counts are what there is, and what was counted since the core was made.
type Counts struct {
	Targets, Connected int
	Nodes, Links       int
	Alarms             int
	Refused            uint64 // dials that nobody may make: outside the allowed prefixes, or too many
	Dropped            uint64 // neighbours and ports beyond the bounds
}

// New returns a core that knows the seeds alone. The error wraps ErrConfig.
func New(c Config) (*Core, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	k := &Core{
		cfg: c.filled(), targets: map[string]*target{}, claims: map[string][]*target{},
		devices: map[string]*node{}, heard: map[system]*node{}, named: map[string][]*node{},
		known: map[key][]*node{}, mention: map[key]map[*port]int{},
		relook: map[*port]bool{}, rematch: map[*port]bool{}, renamed: map[*node]string{}, retarget: map[*node]bool{}, announced: map[*claim]bool{},
		nodes: map[string]Node{}, links: map[Ends]Link{}, degree: map[string]int{},
	}
	k.alarms.init()
	k.pending.init()
	k.calls.held = map[*port]int{}
	for _, s := range c.Seeds {
		k.targets[s] = &target{address: s, isSeed: true}
		k.calls.add(k.targets[s])
	}
	return k, nil
}

// Deadline returns the next moment at which the core wants to be stepped.
func (c *Core) Deadline() core.Time {
	return min(c.calls.next(), c.pending.due, c.alarms.next(), c.forgets.Next(), c.gone.Next(), c.steady.Next())
}

// Step takes inputs in order.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.now, c.out = now, out
	for i := range in {
		c.take(&in[i])
	}
	c.expire()
	c.settle()
	c.publish()
	c.dial()
	c.alarms.raise(c)
	c.out = nil
}

func (c *Core) take(in *Input) {
	if in.Kind == Operator {
		c.cause = "the operator's file"
		c.operate(in.Graph)
		return
	}
	t := c.targets[in.Target]
	if t == nil || t.state == idle {
		return // it was dropped meanwhile
	}
	switch in.Kind {
	case Connected:
		c.connected(t, in.Name)
	case Reported:
		if t.state == connected && in.Facts != nil {
			c.reported(t, in.Facts)
		}
	case Lost:
		c.lost(t, in.Why)
	case Failed:
		c.failed(t, in.Why)
	}
	c.settle()
}

// expire does all that is due.
func (c *Core) expire() {
	for t := c.forgets.Due(c.now); t != nil; t = c.forgets.Due(c.now) {
		c.cause = "nobody has reported it for " + c.cfg.Forget.String()
		c.forgetClaims(t.Of)
	}
	for t := c.gone.Due(c.now); t != nil; t = c.gone.Due(c.now) {
		c.cause = "target " + t.Of.address + " has been away for " + c.cfg.Forget.String()
		c.forgetTarget(t.Of)
	}
	for t := c.steady.Due(c.now); t != nil; t = c.steady.Due(c.now) {
		c.again(t.Of)
	}
}

// settle brings everything that follows from the facts up to date. It looks at things in
// an order of their names, so that equal inputs have equal outputs.
func (c *Core) settle() {
	for len(c.relook)+len(c.renamed)+len(c.rematch) > 0 {
		for _, p := range slices.SortedFunc(maps.Keys(c.relook), comparePorts) {
			delete(c.relook, p)
			c.blame(p)
			c.resolveAll(p)
		}
		for _, n := range slices.SortedFunc(maps.Keys(c.renamed), compareNodes) {
			c.cause = c.renamed[n]
			delete(c.renamed, n)
			c.rename(n)
		}
		if len(c.relook)+len(c.renamed) == 0 {
			c.match()
		}
	}
}

// blame makes what has happened to a port in this step the cause of what follows.
func (c *Core) blame(p *port) {
	if c.pending.fresh[p] {
		c.cause = p.cause
	}
}

// Settled reports whether nothing more is to be expected of what is known now: every
// target that is to be dialled has answered or failed, and all is in the map. Waiting are
// the addresses that have not answered.
func (c *Core) Settled() (settled bool, waiting []string) {
	settled = len(c.calls.queue) == 0 && c.pending.isEmpty() && len(c.pending.fresh) == 0
	for _, t := range c.targets {
		switch {
		case t.state == dialled || t.state == connected && t.isNew:
			settled = false
			waiting = append(waiting, t.address)
		case t.state == away && (t.node == nil || t.node.target == t):
			waiting = append(waiting, t.address)
		}
	}
	slices.Sort(waiting)
	return settled, waiting
}

// Counts returns what was counted.
func (c *Core) Counts() Counts {
	n := c.counts
	n.Targets, n.Nodes, n.Links, n.Alarms = len(c.targets), len(c.nodes), len(c.links), c.alarms.standing
	for _, t := range c.targets {
		if t.state == connected {
			n.Connected++
		}
	}
	return n
}
