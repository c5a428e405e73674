package hierarchy

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	roles "github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/sim/zone"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// network carries the links of the hierarchy.
type network struct {
	cfg    *zone.Config
	rand   *rand.Rand
	places map[gossip.ID]*place // who can be dialled
	sent   uint64               // messages
	bytes  uint64
}

// place is where a role is.
type place struct {
	at    func(at core.Time, do func()) // a call in its world
	take  func(in roles.Input)
	up    bool
	busy  core.Time // when it has taken all that has arrived
	next  roles.Link
	plugs map[roles.Link]*plug
}

// plug is an end of a link.
type plug struct {
	link  roles.Link
	owner *place
	other *plug
	floor core.Time // nothing sent from here arrives before
	open  bool
}

func newPlace(at func(core.Time, func()), take func(roles.Input)) *place {
	return &place{at: at, take: take, up: true, next: 1, plugs: map[roles.Link]*plug{}}
}

func (n *network) delay() time.Duration {
	return n.cfg.Delay + time.Duration(n.rand.Int64N(int64(n.cfg.Jitter)+1))
}

// arrive gives an input to a place, when it has time for it.
func (n *network) arrive(p *place, at core.Time, cost time.Duration, in roles.Input, ready func() bool) {
	p.at(at, func() {
		if !p.up || !ready() {
			return
		}
		p.busy = max(p.busy, at).Add(cost)
		p.at(p.busy, func() {
			if p.up && ready() {
				p.take(in)
			}
		})
	})
}

// perform does what a role's step wants done.
func (n *network) perform(p *place, now core.Time, out *roles.Output) {
	for _, d := range out.Dials {
		n.dial(p, now, d)
	}
	for _, s := range out.Sends {
		if end := p.plugs[s.Link]; end != nil {
			n.send(end, now, s.Message)
		}
	}
	for _, link := range out.Closes {
		n.close(p.plugs[link], now)
	}
}

func (n *network) dial(p *place, now core.Time, d roles.Dial) {
	end := &plug{link: d.Link, owner: p, open: true}
	p.plugs[d.Link] = end
	to, there := now.Add(n.delay()), n.places[d.To]
	back := to.Add(n.delay())
	if there == nil {
		n.fail(end, back)
		return
	}
	there.at(to, func() {
		if !there.up || !end.open {
			n.fail(end, back)
			return
		}
		other := &plug{link: there.next, owner: there, other: end, open: true, floor: to}
		there.next += 2
		there.plugs[other.link] = other
		end.other, end.floor = other, back
		n.arrive(there, to, n.cfg.Cost.Message, roles.Input{Kind: roles.Accepted, Link: other.link}, other.stands)
		n.arrive(p, back, n.cfg.Cost.Message, roles.Input{Kind: roles.Connected, Link: end.link}, end.stands)
		other.floor = back
	})
}

func (e *plug) stands() bool { return e.open }

// fail notifies an end that its link is no more.
func (n *network) fail(e *plug, at core.Time) {
	n.arrive(e.owner, at, n.cfg.Cost.Message, roles.Input{Kind: roles.Failed, Link: e.link}, e.stands)
}

func (n *network) send(from *plug, now core.Time, m wire.Message) {
	n.sent++
	n.bytes += uint64(m.Size())
	to := from.other
	if to == nil || !from.open {
		return
	}
	from.floor = max(now.Add(n.delay()), from.floor)
	n.arrive(to.owner, from.floor, n.cost(m), roles.Input{Kind: roles.Received, Link: to.link, Message: m}, to.stands)
}

// memberCost is what a member in a message costs: BenchmarkBase of
// internal/core/hierarchy on one core of this project's machine, twice over.
const memberCost = 2200 * time.Nanosecond

// cost returns how long a message takes its receiver.
func (n *network) cost(m wire.Message) time.Duration {
	entries := 0
	if c, ok := m.(*wire.Change); ok {
		entries = len(c.Alives) + len(c.Leaves)
	}
	return n.cfg.Cost.Message + time.Duration(entries)*memberCost
}

// close closes a link from one of its ends; the other hears of it.
func (n *network) close(e *plug, now core.Time) {
	if e == nil || !e.open {
		return
	}
	e.open = false
	delete(e.owner.plugs, e.link)
	if to := e.other; to != nil {
		n.fail(to, max(now.Add(n.delay()), e.floor))
	}
}

// end ends a place: its host closes its links.
func (n *network) end(p *place, now core.Time) {
	p.up = false
	for _, link := range slices.Sorted(maps.Keys(p.plugs)) {
		n.close(p.plugs[link], now)
	}
}
