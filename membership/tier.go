package membership

import (
	"fmt"
	"net"
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
	ring       *gossip.Keyring

	links   map[hierarchy.Link]*stream
	dialing map[hierarchy.Link]bool // true: the role wants it no more
	next    hierarchy.Link          // of who calls next: an odd number
	inputs  []hierarchy.Input
	out     hierarchy.Output

	waiting  map[uint32][]chan<- hierarchy.View // for views, by zone
	followed map[uint32]*followed               // zones, by number
}

// newTier returns what a node has to do with the hierarchy, nil if nothing.
func newTier(s *stepper, now core.Time, supervisors []netip.AddrPort, ring *gossip.Keyring) (*tier, error) {
	c := &s.n.cfg
	if !c.Management && len(supervisors) == 0 {
		return nil, nil
	}
	t := &tier{
		s: s, ring: ring, next: 1, links: map[hierarchy.Link]*stream{}, dialing: map[hierarchy.Link]bool{},
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

// dialled takes a connection that the role wanted, or that there is none.
func (t *tier) dialled(link hierarchy.Link, conn net.Conn) {
	unwanted := t.dialing[link]
	delete(t.dialing, link)
	switch {
	case conn == nil && !unwanted:
		t.input(hierarchy.Input{Kind: hierarchy.Failed, Link: link})
	case conn != nil && unwanted:
		t.s.n.taken(conn)
		conn.Close()
	case conn != nil:
		c := t.s.newStream(conn)
		c.tier, c.up, c.dialled = true, link, true
		t.links[link] = c
		t.s.begin(c)
	}
}

// owns reports whether the first frame of a stream that somebody has made is one
// of the hierarchy.
func (t *tier) owns(c *stream, b []byte) bool {
	if _, err := t.ring.Stream(c.ours, c.theirs).Open(append([]byte(nil), b...)); err != nil {
		return false
	}
	kind, err := gossip.TypeOf(b)
	return err == nil && kind == gossip.Hierarchy
}

// adopt takes a stream of the hierarchy from the zone's, and reports whether
// there was room.
func (t *tier) adopt(c *stream) bool {
	delete(t.s.streams, c.link)
	t.s.known(c)
	if len(t.links) >= maxLinks {
		t.s.n.counts.turnedAway.Add(1)
		c.cut()
		return false
	}
	t.next += 2
	c.tier, c.up, c.greeted = true, t.next, true
	c.seals = t.ring.Stream(c.ours, c.theirs)
	t.links[c.up] = c
	t.input(hierarchy.Input{Kind: hierarchy.Accepted, Link: c.up})
	return true
}

// frame takes a frame of the hierarchy.
func (t *tier) frame(c *stream, b []byte) error {
	b, err := c.seals.Open(b)
	if err != nil {
		return err
	}
	kind, err := gossip.TypeOf(b)
	if err != nil {
		return err
	}
	if kind != gossip.Hierarchy {
		return fmt.Errorf("%w: type %d on a connection of the hierarchy", gossip.ErrMalformed, kind)
	}
	m, err := wirehierarchy.Decode(b[2:])
	if err != nil {
		return err
	}
	c.valid()
	t.input(hierarchy.Input{Kind: hierarchy.Received, Link: c.up, Message: m})
	return nil
}

// apply does what the role wants.
func (t *tier) apply(now core.Time) {
	for _, d := range t.out.Dials {
		t.dialing[d.Link] = false
		t.s.n.tasks.Go(func() { t.s.n.dial(item{tier: true, up: d.Link}, d.To) })
	}
	for _, m := range t.out.Sends {
		if c := t.links[m.Link]; c != nil && c.greeted {
			t.s.scratch = m.Message.Append(t.s.scratch[:0])
			t.s.n.counts.framesOut.Add(1)
			c.send(t.s.wire.body(c.seals, gossip.Hierarchy, t.s.scratch))
		}
	}
	for _, link := range t.out.Closes {
		if _, ok := t.dialing[link]; ok {
			t.dialing[link] = true
		}
		if c := t.links[link]; c != nil {
			delete(t.links, link)
			c.shut()
		}
	}
	t.inform(now)
	t.out.Reset()
}

// below returns a notice of a base zone as a management node's readers get it.
func below(x *hierarchy.Notice) Notice {
	n := Notice{Zone: uint32(x.Zone), Kind: Joined, Member: memberOf(x.ID, x.Version)}
	if x.Kind == member.Leave {
		n.Kind, n.Cause = Left, causes[x.Cause]
		if x.Exit.Given {
			code := x.Exit.Code
			n.Exit = &code
		}
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
