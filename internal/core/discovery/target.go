package discovery

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/topology"
)

// state is a target's.
type state uint8

const (
	idle      state = iota // not dialled: it waits for its turn, or is another address of one that is connected
	dialled                // it has not answered yet
	connected              //
	away                   // it has answered once, or failed to, and is being dialled again
)

// target is a gNMI server, by its address.
type target struct {
	address string
	isSeed  bool
	by      *port // that announced the address first; nil: it is a seed's, or another one of a known switch
	state   state
	cert    string // the name of its certificate
	name    string // that it claims
	second  string // the switch of which it was another address when it was dropped
	facts   *Facts // nil: it has reported nothing
	node    *node  // whose name it has; nil: none

	isFailed  bool           // the last attempt to reach it
	isOverdue bool           // it has been away for Config.Confirm
	isNew     bool           // it has reported nothing on this connection
	wanted    map[*node]bool // neighbours that announce the address
	absence   core.Timer[*target]
}

// String names the target as alarms and causes do.
func (t *target) String() string {
	if t.name == "" {
		return "target " + t.address
	}
	return fmt.Sprintf("target %s (%s)", t.name, t.address)
}

func (c *Core) connected(t *target, cert string) {
	if t.cert != cert && t.name != "" {
		c.cause = fmt.Sprintf("%v has another certificate", t)
		c.renounce(t)
	}
	c.calls.answered(t)
	t.state, t.cert, t.isFailed, t.isOverdue, t.isNew = connected, cert, false, false, true
	c.gone.Set(&t.absence, core.Never)
	c.alarms.set(c, t, nil)
	if n := t.node; n != nil {
		c.cause = fmt.Sprintf("%v is connected", t)
		for _, p := range n.ports {
			c.touch(p)
			c.rematch[p] = true
		}
		c.pending.nodes[n.name] = c.cause
		c.retarget[n] = true
	}
}

// reported takes what a target says of itself.
func (c *Core) reported(t *target, f *Facts) {
	var found []Alarm
	says := f.Hostname
	if f.Agent != nil {
		says = f.Agent.Switch
	}
	c.cause = fmt.Sprintf("%v reports", t)
	if t.isNew && t.cert == "" && t.name != "" && t.name != says {
		c.renounce(t)
	}
	if !t.isNew && t.node != nil && t.facts.equal(f) {
		return // it repeats itself
	}
	t.isNew = false
	if t.name == "" {
		if t.name = says; t.cert != "" {
			t.name = t.cert
		}
		c.cause = fmt.Sprintf("%v is connected", t)
		if topology.CheckName(t.name) != nil {
			found = append(found, c.alarm(BadName, t.place(), Place{}, "its name %q cannot be a node's", t.name))
			c.alarms.set(c, t, found)
			t.name = ""
			return
		}
		if h := c.hostNamed(t, f); h != nil {
			found = append(found, c.alarm(SameName, t.place(), h.lead().from.place(),
				"the target at %s has the name of a host that was heard before, and nothing that proves it; it is left out", t.address))
			c.alarms.set(c, t, found)
			t.name = ""
			return
		}
		c.claims[t.name] = append(c.claims[t.name], t)
		t.facts = f
		c.contest(t.name)
		if t.state != connected {
			return // it is another address of a switch that is known
		}
	}
	if f.Agent != nil && says != t.name {
		found = append(found, c.alarm(FalseName, t.place(), Place{Node: says}, "it says that it is switch %q, and is %s by %s", says, t.name, t.authority()))
	}
	t.facts = f
	if t.node == nil {
		c.alarms.set(c, t, append(found, c.sameName(t)))
		return
	}
	if len(f.Ports) > c.cfg.MaxPorts {
		c.counts.Dropped += uint64(len(f.Ports) - c.cfg.MaxPorts)
		found = append(found, c.alarm(TooMany, t.place(), Place{}, "it has more than %d interfaces, and the others are not read", c.cfg.MaxPorts))
	}
	c.alarms.set(c, t, found)
	c.update(t.node, f)
}

// hostNamed returns the host that keeps the name which a target claims: it is heard, it is
// another system, and neither an operator, nor a certificate, nor the host vouches for
// the target.
func (c *Core) hostNamed(t *target, f *Facts) *node {
	if t.cert != "" || t.isSeed {
		return nil
	}
	for _, h := range c.named[t.name] {
		if h.name == t.name && !h.forwards() && !t.wanted[h] && h.lead().isLive() && f.Chassis != (ID{}) && f.Chassis != h.chassis {
			return h
		}
	}
	return nil
}

// authority says why a target has its name.
func (t *target) authority() string {
	if t.cert != "" {
		return "its certificate"
	}
	return "what it said first"
}

func (t *target) place() Place { return Place{Node: t.name, Port: t.address} }

// contest decides which of the targets that claim a name has it: one with a
// certificate, and of equal ones the first. One that has left is replaced at once if
// the other is the same switch at another address.
func (c *Core) contest(name string) {
	var best *target
	for _, t := range c.claims[name] {
		if t.facts != nil && (best == nil || t.beats(best)) {
			best = t
		}
	}
	n := c.devices[name]
	if best == nil {
		if n != nil {
			c.removeDevice(n)
			c.reseed(name)
		}
		return
	}
	if n != nil && n.target != nil && n.target != best && !n.target.same(best) {
		n.target.node = nil
		c.removeDevice(n)
		c.reseed(name)
		n = nil
	}
	if n == nil {
		n = c.addDevice(name)
	}
	if n.target != best {
		if n.target != nil {
			n.target.node = nil
		}
		n.target, best.node = best, n
		c.update(n, best.facts)
	}
	for _, t := range slices.Clone(c.claims[name]) {
		switch {
		case t == best:
		case t.facts != nil && t.same(best):
			c.silence(t)
			t.second = name
		case t.state == connected:
			c.alarms.set(c, t, []Alarm{c.sameName(t)})
		}
	}
}

func (c *Core) sameName(t *target) Alarm {
	return c.alarm(SameName, t.place(), c.devices[t.name].target.place(),
		"two switches have the name %s; the one at %s has it by %s, the other is left out",
		t.name, c.devices[t.name].target.address, c.devices[t.name].target.authority())
}

// beats reports whether t has the name that u, which claimed it earlier, has.
func (t *target) beats(u *target) bool {
	if (t.cert != "") != (u.cert != "") {
		return t.cert != ""
	}
	return t.state == connected && u.state != connected && (u.isOverdue || t.same(u))
}

// same reports whether t and u are one switch at two addresses.
func (t *target) same(u *target) bool {
	a, b := t.facts, u.facts
	if a.Agent != nil && b.Agent != nil && a.Agent.Incarnation != 0 && a.Agent.Incarnation == b.Agent.Incarnation {
		return true
	}
	return a.Chassis != ID{} && a.Chassis == b.Chassis
}

// reseed dials the seeds again that were dropped because a switch was reached elsewhere,
// where it is not any more.
func (c *Core) reseed(name string) {
	if n := c.devices[name]; n != nil && n.target.state == connected {
		return
	}
	for _, s := range c.cfg.Seeds {
		if t := c.targets[s]; t.state == idle && t.second == name && name != "" {
			t.second = ""
			c.calls.add(t)
		}
	}
}

// renounce takes a target's name from it.
func (c *Core) renounce(t *target) {
	name := t.name
	c.claims[name] = slices.DeleteFunc(c.claims[name], func(u *target) bool { return u == t })
	if len(c.claims[name]) == 0 {
		delete(c.claims, name)
	}
	t.name, t.facts = "", nil
	if n := t.node; n != nil {
		n.target, t.node = nil, nil
		c.contest(name)
	}
}

// silence ends the connection to a target that is not needed.
func (c *Core) silence(t *target) {
	c.alarms.set(c, t, nil)
	if t.name != "" {
		c.renounce(t)
	}
	c.calls.answered(t)
	if t.state != idle {
		c.out.Drop = append(c.out.Drop, t.address)
	}
	t.state, t.isFailed = idle, false
	c.gone.Set(&t.absence, core.Never)
	c.calls.remove(t)
}

// lost takes the end of a connection.
func (c *Core) lost(t *target, why string) {
	if t.state != connected {
		c.failed(t, why)
		return
	}
	t.state = away
	c.cause = fmt.Sprintf("%v is lost: %s", t, why)
	c.absent(t, why)
	if n := t.node; n != nil {
		for _, p := range n.ports {
			c.hush(p)
			c.touch(p)
		}
		c.retarget[n] = true
		c.pending.nodes[n.name] = c.cause
		c.contest(t.name)
		c.reseed(n.name)
	}
}

func (c *Core) failed(t *target, why string) {
	if t.state == dialled {
		c.calls.answered(t)
		t.state = away
		c.absent(t, why)
	} else {
		c.alarms.reword(t, Unreachable, why)
	}
	if t.isFailed {
		return
	}
	t.isFailed = true
	for n := range t.wanted {
		c.retarget[n] = true
	}
}

// reword makes text that of an owner's alarms of a kind.
func (a *alarms) reword(owner any, kind AlarmKind, text string) {
	for _, k := range a.of[owner] {
		if k.kind == kind {
			a.all[k].Text = printable.Text(text)
		}
	}
}

// absent has the absence of a target raise an alarm after a while, and be forgotten later.
func (c *Core) absent(t *target, why string) {
	c.alarms.set(c, t, []Alarm{c.alarm(Unreachable, t.place(), Place{}, "%s", why)})
	t.absence.Of = t
	c.gone.Set(&t.absence, c.now.Add(c.cfg.Confirm))
}

// forgetTarget does what is due of a target that is away: another of its name takes
// it over, and later it is forgotten.
func (c *Core) forgetTarget(t *target) {
	if !t.isOverdue {
		t.isOverdue = true
		c.gone.Set(&t.absence, c.now.Add(c.cfg.Forget))
		if t.name != "" {
			c.contest(t.name)
		}
		return
	}
	if t.name != "" {
		c.renounce(t)
	}
	if !t.isSeed && len(t.wanted) == 0 {
		c.release(t)
	}
}

// release ends everything of a target that nobody announces any more.
func (c *Core) release(t *target) {
	c.silence(t)
	delete(c.targets, t.address)
}
