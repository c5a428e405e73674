package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

// AlarmKind is what an alarm is about.
type AlarmKind uint8

// The alarms. docs/discovery.md has what to do about each.
const (
	OwnFrame    AlarmKind = iota + 1 // a port hears itself
	Loop                             // two ports of one switch are linked
	Disagree                         // the other end hears somebody else
	OneSided                         // the other end hears nobody
	UnknownPort                      // the other end's port cannot be found
	TwoPlaces                        // one port of a host is heard by two switches' ports
	Hub                              // a port hears several neighbours
	Speeds                           // of the two ends differ
	MTUs                             // of the two ends differ
	Unconfirmed                      // the link is up, and nobody hears the other end any more
	Flapping                         // the link changes too often to be followed at once
	SameName                         // two nodes have one name
	SameChassis                      // two switches report one chassis
	FalseName                        // a target says that it is another
	BadName                          // a name that no node can have
	Unreachable                      // a target cannot be reached
	Outside                          // a switch announces no address that may be dialled
	TooMany                          // of something, and the rest is not read
	FileLink                         // the operator's file has another link at a port
	FileAbsent                       // the operator's file has what the wire has not
	FileKind                         // a host in the operator's file is a switch on the wire, or the other way round
	FileSpec                         // speed or addresses are others in the operator's file
)

var alarmNames = []string{
	"", "own-frame", "loop", "disagree", "one-sided", "unknown-port", "two-places", "hub", "speeds", "mtus", "unconfirmed",
	"flapping", "same-name", "same-chassis", "false-name", "bad-name", "unreachable", "outside", "too-many", "file-link", "file-absent",
	"file-kind", "file-spec",
}

// String returns the kind's name, such as "two-places".
func (k AlarmKind) String() string { return core.Name(alarmNames, k, "unknown") }

// delay returns how long what an alarm is about has to last: a change that passes is no alarm.
func (k AlarmKind) delay(c *Config) time.Duration {
	switch k {
	case OneSided, UnknownPort, Unconfirmed, Unreachable, FileAbsent:
		return c.Confirm
	case Flapping:
		return 0
	}
	return c.Settle
}

// Place is where something is: a port of a node, or a target's address in place of the
// port. Either may be empty, or both.
type Place struct{ Node, Port string }

// String returns such as "leaf-0 Ethernet8".
func (p Place) String() string { return strings.TrimSpace(p.Node + " " + p.Port) }

func (p *port) place() Place { return Place{p.node.label(), p.name} }

// label returns the node's name, or what it is known by without one.
func (n *node) label() string { return cmp.Or(n.name, n.claimed, n.chassis.Value) }

// Alarm is something that an operator should look at.
type Alarm struct {
	Kind   AlarmKind
	Places [2]Place // both ends; the second may be empty
	Text   string   // what is wrong
	Since  core.Time
}

// String returns the alarm as a line.
func (a Alarm) String() string {
	if a.Places[1] == (Place{}) {
		return fmt.Sprintf("%v: %s: %s", a.Kind, a.Places[0], a.Text)
	}
	return fmt.Sprintf("%v: %s and %s: %s", a.Kind, a.Places[0], a.Places[1], a.Text)
}

// AlarmChange is an alarm that is raised, or one that holds no more.
type AlarmChange struct {
	Alarm
	Raised bool
}

// alarm returns an alarm about two places, in their order.
func (c *Core) alarm(kind AlarmKind, a, b Place, format string, values ...any) Alarm {
	for _, p := range []*Place{&a, &b} {
		p.Node, p.Port = printable.Text(p.Node), printable.Text(p.Port)
	}
	if b != (Place{}) && comparePlaces(a, b) > 0 {
		a, b = b, a
	}
	return Alarm{Kind: kind, Places: [2]Place{a, b}, Text: printable.Text(fmt.Sprintf(format, values...))}
}

type alarmKey struct {
	kind   AlarmKind
	places [2]Place
}

// standing is an alarm that holds, or will if it lasts.
type standing struct {
	Alarm
	owners   int
	isRaised bool
	timer    core.Timer[*standing]
}

// alarms are those that hold, by who has found them.
type alarms struct {
	all      map[alarmKey]*standing
	of       map[any][]alarmKey
	timers   core.Timers[*standing]
	changes  []AlarmChange
	standing int // that are raised
}

func (a *alarms) init() {
	a.all, a.of = map[alarmKey]*standing{}, map[any][]alarmKey{}
}

func (a *alarms) next() core.Time { return a.timers.Next() }

// set makes those that an owner has found the ones that hold.
func (a *alarms) set(c *Core, owner any, found []Alarm) {
	before := a.of[owner]
	if len(before) == 0 && len(found) == 0 {
		return
	}
	keys := make([]alarmKey, 0, len(found))
	for _, f := range found {
		k := alarmKey{f.Kind, f.Places}
		if slices.Contains(keys, k) {
			continue
		}
		keys = append(keys, k)
		s := a.all[k]
		if s == nil {
			s = &standing{Alarm: f}
			s.Since, s.timer.Of = c.now, s
			a.all[k] = s
			a.timers.Set(&s.timer, c.now.Add(f.Kind.delay(&c.cfg)))
		}
		if !slices.Contains(before, k) {
			s.owners++
		}
	}
	for _, k := range before {
		if slices.Contains(keys, k) {
			continue
		}
		if s := a.all[k]; s.owners > 1 {
			s.owners--
		} else {
			delete(a.all, k)
			a.timers.Set(&s.timer, core.Never)
			if s.isRaised {
				a.changes = append(a.changes, AlarmChange{s.Alarm, false})
			}
		}
	}
	if len(keys) == 0 {
		delete(a.of, owner)
	} else {
		a.of[owner] = keys
	}
}

// raise puts out what has changed.
func (a *alarms) raise(c *Core) {
	for t := a.timers.Due(c.now); t != nil; t = a.timers.Due(c.now) {
		t.Of.isRaised = true
		a.changes = append(a.changes, AlarmChange{t.Of.Alarm, true})
	}
	slices.SortStableFunc(a.changes, func(x, y AlarmChange) int { return compareAlarms(&x.Alarm, &y.Alarm) })
	for i, x := range a.changes {
		if x.Raised {
			a.standing++
		} else {
			a.standing--
		}
		if again := i+1 < len(a.changes) && a.changes[i+1].Kind == x.Kind && a.changes[i+1].Places == x.Places; !again {
			c.out.Alarms = append(c.out.Alarms, x)
		}
	}
	a.changes = a.changes[:0]
}

func compareAlarms(x, y *Alarm) int {
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), comparePlaces(x.Places[0], y.Places[0]), comparePlaces(x.Places[1], y.Places[1]))
}

func comparePlaces(p, q Place) int { return compareNames(p.String(), q.String()) }

// Alarms returns those that hold, by kind and place.
func (c *Core) Alarms() (all []Alarm) {
	for s := range maps.Values(c.alarms.all) {
		if s.isRaised {
			all = append(all, s.Alarm)
		}
	}
	slices.SortFunc(all, func(x, y Alarm) int { return compareAlarms(&x, &y) })
	return all
}

// judge finds out what is wrong at a port of a device.
func (c *Core) judge(p *port) {
	if p.node.target == nil {
		return
	}
	var found []Alarm
	var names []string
	for _, k := range p.hears {
		if !k.isLive() || k.node == nil {
			continue
		}
		names = append(names, k.node.label())
		if a, is := c.suspicion(p, k); is {
			found = append(found, a)
		}
	}
	if len(names) > 1 {
		slices.Sort(names)
		found = append(found, c.alarm(Hub, p.place(), Place{}, "it hears %d neighbours: %v", len(names), names))
	}
	if q := p.peer; q != nil {
		found = append(found, c.mismatches(p, q)...)
	}
	c.alarms.set(c, p, found)
}

// suspicion reports what is wrong with a neighbour that p hears now.
func (c *Core) suspicion(p *port, k *claim) (Alarm, bool) {
	q := k.to
	switch {
	case q == p:
		return c.alarm(OwnFrame, p.place(), Place{}, "it hears what it sends itself"), true
	case k.node == p.node && q != nil:
		return c.alarm(Loop, p.place(), q.place(), "both are ports of %s", p.node.name), true
	case k.node == p.node:
		return c.alarm(Loop, p.place(), Place{}, "it hears another port of %s", p.node.name), true
	case k.node.name == "" || p.peer != nil && p.peer == q:
		return Alarm{}, false // is reported of the node, or nothing is wrong
	case q == nil && p.peer != nil && p.peer.node == k.node:
		return Alarm{}, false
	case q == nil:
		return c.alarm(UnknownPort, p.place(), Place{Node: k.node.name}, "it hears port %q there, which that switch does not have", k.neighbor.Port.Value), true
	case q.node.target == nil:
		other := q.peer
		if other == nil {
			return Alarm{}, false
		}
		return c.alarm(TwoPlaces, p.place(), other.place(), "both hear port %s of %s; the link is that to %v", q.name, q.node.name, other.place()), true
	}
	if i := slices.IndexFunc(q.hears, (*claim).isLive); i >= 0 {
		return c.alarm(Disagree, p.place(), q.place(), "%v hears %v, which hears %s", p.place(), q.place(), q.hears[i].label()), true
	}
	if !q.node.isSilent() {
		return c.alarm(OneSided, p.place(), q.place(), "%v hears %v, which hears nobody", p.place(), q.place()), true
	}
	return Alarm{}, false
}

func (k *claim) label() string {
	switch {
	case k.node == nil:
		return k.neighbor.Chassis.Value
	case k.to == nil:
		return k.node.label() + " " + k.neighbor.Port.Value
	}
	return k.to.place().String()
}

// mismatches reports what is wrong with a link.
func (c *Core) mismatches(p, q *port) (found []Alarm) {
	if q.node.target != nil {
		a, b := &p.facts, &q.facts
		if a.Speed > 0 && b.Speed > 0 && a.Speed != b.Speed && a.Up && b.Up {
			x, y := ordered(p, q)
			found = append(found, c.alarm(Speeds, p.place(), q.place(), "%d and %d bit/s", x.facts.Speed, y.facts.Speed))
		}
		if a.MTU > 0 && b.MTU > 0 && a.MTU != b.MTU {
			x, y := ordered(p, q)
			found = append(found, c.alarm(MTUs, p.place(), q.place(), "%d and %d bytes", x.facts.MTU, y.facts.MTU))
		}
	}
	e := edge{a: p, b: q, ab: claimOf(p, q), ba: claimOf(q, p)}
	switch n, _ := e.live(); {
	case n == 1 && p.isTalking() && q.isTalking():
		hearing, deaf := p, q
		if e.ab == nil || !e.ab.isLive() {
			hearing, deaf = q, p
		}
		found = append(found, c.alarm(OneSided, p.place(), q.place(), "%v hears %v, which hears it no more", hearing.place(), deaf.place()))
	case n == 0 && p.facts.Up && (q.node.target == nil || q.facts.Up) && p.node.target.state == connected:
		found = append(found, c.alarm(Unconfirmed, p.place(), q.place(), "the port is up, and nothing is heard of the other end"))
	}
	return found
}

// isTalking reports whether a port is up, and could say whom it hears.
func (p *port) isTalking() bool {
	return !p.node.isSilent() && p.node.target.state == connected && p.facts.Up
}

func ordered(p, q *port) (*port, *port) {
	if comparePlaces(p.place(), q.place()) > 0 {
		return q, p
	}
	return p, q
}
