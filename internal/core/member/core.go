package member

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Core is one node's membership of its zone.
type Core struct {
	cfg Config
	dir *Directory

	self    Index
	key     gossip.Key
	version Version // its own
	started core.Time
	random  core.Chance

	now      core.Time
	out      *Output
	deadline core.Time
	stepped  bool
	stopped  bool

	view      view
	reports   []Suspicion // of whom is in the view, by suspect
	fresh     fresh
	links     []link
	nextLink  Link
	bootstrap []Index
	monitors  []Index
	topology  topology
	beats     beats
	suspected []suspect
	relays    []relay
	inquiries []inquiry
	namesakes namesakes
	search    search
	health    health
	stealth   stealth

	births   map[Index]*birth    // proven, of who is in the view or the history
	source   Link                // that the frame came on which is being taken; 0: none
	claims   map[life]*claim     // that wait for births
	unproven map[Index]core.Time // whose births do not count any more: until when another record may come
	query    []Entry             // whose births the next message asks for
	wants    core.Time           // when others are to be asked for births

	snapshot []Entry // of the view, for the messages of a step
}

// New returns the core of a node that starts now. It knows nobody but itself
// and the bootstrap set. The error wraps ErrConfig.
func New(cfg Config, dir *Directory, now core.Time) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Core{
		cfg: cfg, dir: dir, started: now, now: now, key: cfg.Self.Key(),
		version: Version{Incarnation: cfg.Incarnation, Minor: 1},
		random:  core.Chance(cfg.Seed), nextLink: 2, namesakes: namesakes{answers: Nobody, asked: Nobody},
	}
	c.self = dir.AddKeyed(cfg.Self, c.key)
	dir.Hold(c.self)
	for _, id := range cfg.Bootstrap {
		if i := dir.Add(id); i != c.self {
			dir.Hold(i)
			c.bootstrap = append(c.bootstrap, i)
		}
	}
	c.view.lives.Free = Nobody
	c.view.enter(c, c.self, c.version)
	c.wants = core.Never
	if c.proves() {
		own := &birth{incarnation: cfg.Incarnation, record: cfg.Identity.Birth()}
		var ok bool
		if own.key, ok = cfg.Identity.Verify(cfg.Self, cfg.Incarnation, own.record); !ok {
			return nil, fmt.Errorf("%w: the identity does not prove incarnation %d of %s", ErrConfig, cfg.Incarnation, cfg.Self)
		}
		c.births = map[Index]*birth{c.self: own}
		c.claims, c.unproven = map[life]*claim{}, map[Index]core.Time{}
	}
	c.topology.at = core.Never
	c.beats.next = core.Never
	c.search.lost = now
	c.begin()
	c.schedule()
	return c, nil
}

// begin starts the core's first phase.
func (c *Core) begin() {
	c.search.next = c.now
	if c.cfg.Stealth > 0 {
		c.hide()
		return
	}
	c.topology.open = c.now.Add(c.cfg.Tau)
}

// Step takes a batch of inputs and lets time pass until now.
func (c *Core) Step(now core.Time, batch []Input, out *Output) {
	if c.stopped {
		out.Stopped = true
		return
	}
	c.overslept(now)
	c.now, c.out = now, out
	for i := range batch {
		if c.take(&batch[i]); c.stopped {
			break
		}
	}
	if !c.stopped {
		c.giveWay()
	}
	if !c.stopped {
		c.pass()
	}
	c.schedule()
	c.out, c.snapshot = nil, nil
}

func (c *Core) take(in *Input) {
	switch in.Kind {
	case Connected, ConnectFailed, Received, Failed:
		if c.inquired(in.Link, in.Kind, in.Message) {
			return
		}
	}
	switch in.Kind {
	case Connected:
		c.connected(in.Link)
	case ConnectFailed, Failed:
		c.broke(in.Link)
	case Accepted:
		c.links = append(c.links, link{number: in.Link, peer: Nobody, state: awaiting, since: c.now})
	case Received:
		c.source = in.Link
		c.frame(in.Link, in.Message)
		c.source = 0
		c.askBirths(in.Link)
	case Datagram:
		c.datagram(in.Message)
	case Beat:
		c.heard(&in.Pulse)
	case SetMonitors:
		c.monitors = append(c.monitors[:0], in.Nodes...)
	case Depart:
		c.depart(in.Exit)
	case Recheck:
		c.recheck()
	}
}

// datagram takes what came outside links.
func (c *Core) datagram(m *Message) {
	if c.hiding() && m.Type != gossip.DiscoveryReply {
		return
	}
	switch m.Type {
	case gossip.Update: // to a monitor: who has failed or left, and nothing else
		c.apply(&Message{Leaves: m.Leaves, Suspicions: m.Suspicions})
	case gossip.Probe:
		c.probed(m, 0)
	case gossip.Echo:
		c.echoed(m)
	case gossip.Relay:
		c.relay(m, 0)
	case gossip.Nack:
		c.nacked(m)
	case gossip.DiscoveryRequest:
		c.asked(m)
	case gossip.DiscoveryReply:
		c.found(m)
	}
}

// pass does what is due.
func (c *Core) pass() {
	if c.hiding() {
		c.quarantine()
		return
	}
	c.watch()
	c.expireLinks()
	c.ask()
	c.askOn()
	c.closeInquiries()
	c.askElsewhere()
	c.pulse()
	c.discover()
	c.flush()
	c.arrange()
	c.health.decay(c.now)
}

// Deadline returns when the core wants to be stepped even without input.
func (c *Core) Deadline() core.Time { return c.deadline }

// schedule computes the deadline.
func (c *Core) schedule() {
	switch {
	case c.stopped:
		c.deadline = core.Never
		return
	case c.hiding():
		c.deadline = c.stealth.next
		return
	}
	at := min(c.search.next, c.topology.at, c.beats.next, c.health.at(), c.wants)
	if !c.fresh.empty() {
		at = min(at, c.fresh.due)
	}
	for i := range c.links {
		at = min(at, c.links[i].next(c))
	}
	for i := range c.suspected {
		at = min(at, c.suspected[i].next, c.suspected[i].end)
	}
	for i := range c.relays {
		at = min(at, c.relays[i].due())
	}
	for i := range c.inquiries {
		at = min(at, c.inquiries[i].end)
	}
	c.deadline = at
}

// departSpare is how many nodes hear of a leave beside the predecessors, which may be
// dead: then those before them dial.
const departSpare = 4

// depart leaves in order: all neighbours are notified, and the monitors at once. Who
// is about to be a neighbour, or may be, is notified by a packet: where it dials or waits
// for a greeting it will find nobody, and would take that for a failure.
func (c *Core) depart(exit gossip.Exit) {
	d := Departure{Node: c.self, Version: c.version, Exit: exit}
	d.Proof = c.sign(d.statement())
	m := &Message{Type: gossip.Update, Leaves: []Departure{d}}
	for i := range c.links {
		l := &c.links[i]
		if l.state == standing || l.state == greeting { // behind the Hello
			c.send(l, m)
		}
		if l.state != standing && l.peer != Nobody {
			c.packet(l.peer, m)
		}
	}
	for _, i := range c.before(c.cfg.Ks + departSpare) {
		if c.linkTo(i) == nil {
			c.packet(i, m)
		}
	}
	// Who was asked and has not answered yet may know this node from the question.
	for i := range c.search.sent {
		r := &c.search.sent[i]
		if c.now < r.until && slices.Contains(c.bootstrap, r.target) && !c.view.has(r.target) && !slices.ContainsFunc(c.search.sent[:i], func(o request) bool { return o.target == r.target }) {
			c.packet(r.target, m)
		}
	}
	c.informMonitors(m, c.self)
	c.stop()
}

// stop ends the core.
func (c *Core) stop() {
	for i := range c.links {
		c.out.Closes = append(c.out.Closes, c.links[i].number)
	}
	for i := range c.inquiries {
		c.out.Closes = append(c.out.Closes, c.inquiries[i].link)
	}
	c.links, c.suspected, c.relays, c.inquiries = nil, nil, nil, nil
	c.stopped, c.out.Stopped = true, true
}

// informMonitors sends m to the high priority monitors, but not about themselves.
func (c *Core) informMonitors(m *Message, about Index) {
	for _, i := range c.monitors {
		if i != c.self && i != about && c.view.has(i) {
			c.packet(i, m)
		}
	}
}

func (c *Core) me() Entry { return c.entry(c.self) }

func (c *Core) packet(to Index, m *Message) { c.out.Packets = append(c.out.Packets, Packet{to, m}) }
