package membership

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wirehierarchy "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// role is a node's part in the hierarchy.
type role interface {
	Step(now core.Time, zone *member.Output, in []hierarchy.Input, out *hierarchy.Output)
	Deadline() core.Time
}

// tier is what a node has to do with the hierarchy: the role of a delegate or of
// a supervisor, and its connections. It is the stepper's.
type tier struct {
	s          *stepper
	role       role
	delegate   *hierarchy.Delegate   // of a base node
	supervisor *hierarchy.Supervisor // of a management node

	links  map[hierarchy.Link]*link
	next   hierarchy.Link // of who opens next: an odd number
	inputs []hierarchy.Input
	out    hierarchy.Output

	waiting  map[uint32][]chan<- hierarchy.View // for views, by zone
	followed map[uint32]*followed               // zones, by number
}

// newTier returns what a node has to do with the hierarchy, nil if nothing.
func newTier(s *stepper, now core.Time, supervisors []netip.AddrPort) (*tier, error) {
	c := s.n.cfg
	if !c.Management && len(supervisors) == 0 {
		return nil, nil
	}
	t := &tier{
		s: s, next: 1, links: map[hierarchy.Link]*link{},
		waiting: map[uint32][]chan<- hierarchy.View{}, followed: map[uint32]*followed{},
	}
	var err error
	if c.Management {
		t.supervisor, err = hierarchy.NewSupervisor(c.Hierarchy.settings(), s.core, now)
		t.role = t.supervisor
		return t, err
	}
	d := hierarchy.DelegateConfig{Settings: c.Hierarchy.settings(), Zone: wirehierarchy.Zone(c.Zone)}
	for _, at := range supervisors {
		id, err := gossip.MakeID(contact, at)
		if err != nil {
			return nil, err
		}
		d.Contacts = append(d.Contacts, id)
	}
	t.delegate, err = hierarchy.NewDelegate(d, s.core, now)
	t.role = t.delegate
	return t, err
}

// contact stands for the name of a management node of which the address is
// known.
const contact = "contact"

// step steps the role after the zone's core.
func (t *tier) step(now core.Time, zone *member.Output) {
	t.retry(now)
	t.role.Step(now, zone, t.inputs, &t.out)
	clear(t.inputs)
	t.inputs = t.inputs[:0]
}

func (t *tier) input(in hierarchy.Input) { t.inputs = append(t.inputs, in) }

// open opens a link to a node of the management zone. Of one of which the address alone
// is known it finds out the name first.
func (t *tier) open(up hierarchy.Link, to gossip.ID) {
	l := &link{tier: true, up: up}
	t.links[up] = l
	if to.Name() != contact {
		t.s.open(to, l)
		return
	}
	at := to.Endpoints()[0]
	n := t.s.n
	n.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Timing.Dial)
		defer cancel()
		name, err := n.host.Ask(ctx, at.String())
		n.post(item{kind: named, link: l, name: name, from: at, err: err})
	})
}

// named takes the name of a contact, or that it is not to be had.
func (t *tier) named(it *item) {
	l := it.link
	switch {
	case t.links[l.up] != l || t.s.left: // the role wants it no more
	case it.err != nil:
		t.s.n.log.Debug("a contact has no name", slog.Any("error", it.err))
		delete(t.links, l.up)
		t.input(hierarchy.Input{Kind: hierarchy.Failed, Link: l.up})
	default:
		t.s.openAt(it.name, []netip.AddrPort{it.from}, l)
	}
}

// frame takes a message of the hierarchy.
func (t *tier) frame(l *link, b []byte) error {
	b, err := t.s.wire.open.Open(b)
	if err != nil {
		return err
	}
	kind, err := gossip.TypeOf(b)
	if err != nil {
		return err
	}
	if kind != gossip.Hierarchy {
		return fmt.Errorf("%w: type %d on a link of the hierarchy", gossip.ErrMalformed, kind)
	}
	m, err := wirehierarchy.Decode(b[2:])
	if err != nil {
		return err
	}
	if hello, ok := m.(*wirehierarchy.Hello); ok {
		if err := l.speaksFor(hello.From, hello.Incarnation); err != nil {
			return err
		}
	}
	if !l.isHeard {
		l.isHeard = true
		if !l.ours {
			t.input(hierarchy.Input{Kind: hierarchy.Accepted, Link: l.up})
		}
	}
	t.input(hierarchy.Input{Kind: hierarchy.Received, Link: l.up, Message: m})
	return nil
}

// apply does what the role wants.
func (t *tier) apply(now core.Time) {
	for _, d := range t.out.Dials {
		t.open(d.Link, d.To)
	}
	for _, m := range t.out.Sends {
		if l := t.links[m.Link]; l != nil && l.isOpen {
			t.s.scratch = m.Message.Append(t.s.scratch[:0])
			t.s.links.send(l, t.s.wire.body(gossip.Hierarchy, t.s.scratch))
		}
	}
	for _, up := range t.out.Closes {
		if l := t.links[up]; l != nil {
			delete(t.links, up)
			t.s.links.close(l)
		}
	}
	t.inform(now)
	t.out.Reset()
}

// below returns a notice of a base zone as a management node's readers get it.
func below(x *hierarchy.Notice) Notice {
	n := Notice{Zone: uint32(x.Zone), Kind: Joined, Member: memberOf(x.ID, x.Version)}
	if x.Kind == member.Leave {
		n.leaves(x.Cause, x.Exit)
	}
	return n
}

func memberOf(id gossip.ID, v gossip.Version) Member {
	m := Member{Name: id.Name(), Version: Version{v.Incarnation, v.Minor}}
	if all := id.Endpoints(); len(all) > 0 {
		m.Addr = all[0]
	}
	return m
}
