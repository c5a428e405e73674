package hierarchy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// ErrUnknownZone is the error of a View that nobody could give.
var ErrUnknownZone = errors.New("hierarchy: no supervisor that can be reached has this zone")

// downlink is a link to a delegate, or to one who fetches.
type downlink struct {
	end
	zone     wire.Zone
	hello    *wire.Hello // of a delegate; nil before it, and of who fetches
	slot     int         // of a delegate that is served; none otherwise
	complete bool        // its whole view is here
	follows  bool        // it fetches, and gets what changes
	waiting  *wire.Fetch // it fetches a view that is not whole yet
}

const none = -1

// base is a base zone that is supervised here.
type base struct {
	view
	slots     uint32            // of delegates that are connected
	reported  []attributes.Life // whom the delegates are to connect to
	published publication
	shown     bool            // published is an attribute
	heir      attributes.Life // to whom it is handed over, for balance; or nobody
	whole     bool            // a delegate's whole view has been here
	leaving   bool            // others are to supervise it
	empty     core.Time       // since when there is no delegate
}

// Supervisor is the part of a node of the management zone. Its methods are not
// safe for concurrent use.
type Supervisor struct {
	cfg  Settings
	zone Zone

	quiet   core.Time // since when the view has not changed
	settled bool

	held     []*base // by zone, rising
	holdings holdings
	links    []downlink // accepted, in that order
	fetches  []fetch
	nextLink Link
	review   bool      // who is to supervise what may have changed
	balance  core.Time // when it is seen to that all have as many zones; Never while nothing has changed
}

// NewSupervisor returns the role of a node of the management zone that starts at
// now.
func NewSupervisor(cfg Settings, zone Zone, now core.Time) (*Supervisor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Supervisor{cfg: cfg, zone: zone, quiet: now, holdings: newHoldings(), nextLink: 2, balance: core.Never}, nil
}

// Deadline returns when the role wants to be stepped even without input.
func (s *Supervisor) Deadline() core.Time {
	at := s.balance
	if !s.settled {
		at = s.quiet.Add(s.cfg.Settle)
	}
	for i := range s.links {
		at = at.Earlier(s.links[i].due(&s.cfg))
	}
	for i := range s.fetches {
		at = at.Earlier(s.fetches[i].due(&s.cfg))
	}
	for _, b := range s.held {
		if b.slots == 0 {
			at = at.Earlier(b.empty.Add(s.cfg.Linger))
		}
	}
	return at
}

// Step takes what the zone's step has brought, nil if there was none, and what
// has come on links.
func (s *Supervisor) Step(now core.Time, zone *member.Output, in []Input, out *Output) {
	if zone != nil {
		s.changed(now, zone)
	}
	if !s.settled && now >= s.quiet.Add(s.cfg.Settle) {
		s.settled = true
		for i := range s.links {
			if s.links[i].hello != nil {
				s.welcome(now, &s.links[i], out)
			}
		}
	}
	for i := range in {
		s.take(now, &in[i], out)
	}
	if s.settled && now >= s.balance {
		s.even(now)
	}
	if s.review {
		s.review = false
		s.assign(now, out)
	}
	s.fetch(now, out)
	s.beat(now, out)
	s.publish(now, out)
}

// changed takes the changes of the management zone.
func (s *Supervisor) changed(now core.Time, zone *member.Output) {
	if len(zone.Notices) > 0 {
		s.quiet, s.review = now, true
		s.holdings.forget(s.zone)
		s.moved(now)
	}
	for _, n := range s.zone.Changed() {
		for _, key := range n.Keys {
			if number, is := zoneOf(key); is {
				s.learn(now, number, n.Life)
			}
		}
	}
}

// learn takes what another supervisor publishes of a zone.
func (s *Supervisor) learn(now core.Time, number wire.Zone, life attributes.Life) {
	value, has := s.zone.Attribute(life, keyOf(number))
	p, ok := readPublication(value)
	if has && ok && s.holdings.put(number, life, p) || !(has && ok) && s.holdings.drop(number, life) {
		s.moved(now)
	}
	s.review = true
}

// moved notes that others supervise some zone, or others could.
func (s *Supervisor) moved(now core.Time) {
	if s.balance = core.Never; s.cfg.Balance > 0 {
		s.balance = now.Add(s.cfg.Balance)
	}
}

// even begins to hand over a zone, or gives up where its heir has not taken it.
func (s *Supervisor) even(now core.Time) {
	s.balance = core.Never
	for _, b := range s.held {
		if b.heir != nobody {
			s.bequeath(now, b, nobody)
			return
		}
	}
	heir, gives := s.holdings.heirOf(s.zone.Self(), s.zone)
	if !gives {
		return
	}
	for _, b := range s.held {
		if !b.leaving && s.complete(b.zone) > 0 && !holds(s.holdings.zones[b.zone], heir) {
			s.bequeath(now, b, heir)
			return
		}
	}
	s.moved(now) // a zone may have delegates by then
}

// bequeath says to whom a zone is handed over. It is supervised here until its
// heir does (assign).
func (s *Supervisor) bequeath(now core.Time, b *base, heir attributes.Life) {
	b.heir, s.review = heir, true
	s.holdings.put(b.zone, s.zone.Self(), publication{b.published.Summary, heir})
	s.moved(now)
}

// take takes what has come on a link.
func (s *Supervisor) take(now core.Time, in *Input, out *Output) {
	if in.Kind == Accepted {
		s.links = append(s.links, downlink{end: end{link: in.Link, open: true, heard: now, sent: now}, slot: none})
		return
	}
	i := slices.IndexFunc(s.links, func(l downlink) bool { return l.link == in.Link })
	if i < 0 {
		s.fetched(now, in, out)
		return
	}
	l := &s.links[i]
	l.heard = now
	if in.Kind == Failed {
		s.drop(now, i, out)
		return
	}
	switch m := in.Message.(type) {
	case *wire.Hello:
		if l.hello == nil && !l.follows {
			l.hello, l.zone = m, m.Zone
			s.welcome(now, l, out)
		}
	case *wire.Change:
		if b := s.base(l.zone); l.slot != none && m.Zone == l.zone && !m.None {
			s.change(now, b, l, m, out)
		}
	case *wire.Fetch:
		if l.hello == nil {
			s.give(now, l, m, out)
		}
	}
}

// base returns a zone that is supervised here, nil if it is not.
func (s *Supervisor) base(zone wire.Zone) *base {
	if i, held := s.place(zone); held {
		return s.held[i]
	}
	return nil
}

func (s *Supervisor) place(zone wire.Zone) (int, bool) {
	return slices.BinarySearchFunc(s.held, zone, func(b *base, z wire.Zone) int { return cmp.Compare(b.zone, z) })
}

// welcome answers a delegate, and serves it if its zone is to be supervised
// here.
func (s *Supervisor) welcome(now core.Time, l *downlink, out *Output) {
	if !s.settled {
		return // it is answered when the view has settled
	}
	to := s.holdings.assigned(l.zone, s.zone, s.cfg.Supervisors)
	b := s.base(l.zone)
	if b == nil && slices.Contains(to, s.zone.Self()) {
		b = s.hold(now, l.zone)
	}
	if b != nil && !b.leaving {
		s.serve(b, l, out)
		to = s.holdings.assigned(l.zone, s.zone, s.cfg.Supervisors)
		if b.reported == nil {
			b.reported = to
		}
		s.review = s.review || !slices.Equal(to, b.reported)
	}
	l.send(now, s.assignment(l.zone, to), out)
}

// hold begins to supervise a zone.
func (s *Supervisor) hold(now core.Time, zone wire.Zone) *base {
	b := &base{view: newView(zone), empty: now}
	i, _ := s.place(zone)
	s.held = slices.Insert(s.held, i, b)
	s.holdings.put(zone, s.zone.Self(), publication{})
	s.moved(now)
	return b
}

// serve gives a delegate a slot, and takes that of an earlier link of its from
// it.
func (s *Supervisor) serve(b *base, l *downlink, out *Output) {
	for i := len(s.links) - 1; i >= 0; i-- {
		if k := &s.links[i]; k != l && k.slot != none && k.zone == l.zone && k.hello.From == l.hello.From {
			b.slots &^= 1 << k.slot
			b.unvouch(k.slot)
			k.slot, k.complete = none, false
			out.Closes = append(out.Closes, k.link)
			k.open = false
		}
	}
	for slot := range MaxDelegates {
		if b.slots&(1<<slot) == 0 {
			b.slots |= 1 << slot
			l.slot = slot
			return
		}
	}
}

// assignment says to a delegate whom to connect to.
func (s *Supervisor) assignment(zone wire.Zone, to []attributes.Life) *wire.Assign {
	m := &wire.Assign{Zone: zone}
	for _, life := range to {
		if i, in := s.zone.Find(life); in {
			m.Supervisors = append(m.Supervisors, s.zone.ID(i))
		}
	}
	ring := s.zone.View()
	for k := range min(maxContacts, len(ring)) {
		m.Contacts = append(m.Contacts, s.zone.ID(ring[(home(zone, len(ring))+k)%len(ring)]))
	}
	return m
}

// change takes what a delegate says of its view.
func (s *Supervisor) change(now core.Time, b *base, l *downlink, m *wire.Change, out *Output) {
	from := len(out.Notices)
	for i := range m.Leaves {
		b.leave(&m.Leaves[i], l.slot, out)
	}
	for i := range m.Alives {
		b.alive(&m.Alives[i], l.slot, out)
	}
	if m.Base && m.Last && !l.complete {
		l.complete, b.whole = true, true
		b.reconcile(out)
	}
	s.pass(now, b.zone, out.Notices[from:], out)
	s.giveWaiting(now, b, out)
}

// pass reports those who follow a zone what has changed in it.
func (s *Supervisor) pass(now core.Time, zone wire.Zone, notices []Notice, out *Output) {
	if len(notices) == 0 || !slices.ContainsFunc(s.links, func(l downlink) bool { return l.follows && l.zone == zone }) {
		return
	}
	for _, part := range parts(changeOf(zone, notices), s.cfg.PieceBytes) {
		for i := range s.links {
			if l := &s.links[i]; l.follows && l.zone == zone {
				l.send(now, part, out)
			}
		}
	}
}

// changeOf returns notices as a message has them: leaves before alives, the last
// of a node alone.
func changeOf(zone wire.Zone, notices []Notice) wire.Change {
	c := wire.Change{Zone: zone}
	for i := range notices {
		n := &notices[i]
		if n.Kind == member.Leave {
			c.Alives = slices.DeleteFunc(c.Alives, func(m wire.Member) bool { return m.ID == n.ID })
			c.Leaves = append(c.Leaves, wire.Leave{ID: n.ID, Version: n.Version, Cause: uint8(n.Cause), Exit: n.Exit})
		} else {
			c.Alives = append(c.Alives, wire.Member{ID: n.ID, Version: n.Version})
		}
	}
	return c
}

// drop forgets a link that has failed, or is closed here. What its delegate
// alone vouched for is gone, unless there is no other to say so.
func (s *Supervisor) drop(now core.Time, i int, out *Output) {
	l := s.links[i]
	s.links = slices.Delete(s.links, i, i+1)
	if l.slot == none {
		return
	}
	b := s.base(l.zone)
	b.slots &^= 1 << l.slot
	b.unvouch(l.slot)
	if b.slots == 0 {
		b.empty = now
	}
	if slices.ContainsFunc(s.links, func(k downlink) bool { return k.slot != none && k.zone == l.zone && k.complete }) {
		from := len(out.Notices)
		b.reconcile(out)
		s.pass(now, b.zone, out.Notices[from:], out)
	}
}

func (s *Supervisor) beat(now core.Time, out *Output) {
	for i := len(s.links) - 1; i >= 0; i-- {
		if !s.links[i].open { // closed, for another of the same delegate
			s.links = slices.Delete(s.links, i, i+1)
		} else if s.links[i].beat(now, &s.cfg, out) {
			out.Closes = append(out.Closes, s.links[i].link)
			s.drop(now, i, out)
		}
	}
}

// Held returns the zones that are supervised here.
func (s *Supervisor) Held() []wire.Zone {
	var zones []wire.Zone
	for _, b := range s.held {
		zones = append(zones, b.zone)
	}
	return zones
}

// Members returns the view of a zone that is supervised here.
func (s *Supervisor) Members(zone wire.Zone) ([]wire.Member, error) {
	b := s.base(zone)
	if b == nil {
		return nil, fmt.Errorf("%w: zone %d is not supervised by this node", ErrUnknownZone, zone)
	}
	return b.members(), nil
}
