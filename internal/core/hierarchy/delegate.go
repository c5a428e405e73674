package hierarchy

import (
	"cmp"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// uplink is a delegate's link to a node of the management zone.
type uplink struct {
	end
	to       gossip.ID
	assigned bool        // it has said that it supervises the zone, and was sent the view
	word     []gossip.ID // who it says supervises
	said     uint64      // when, among the words of all
}

// supervises reports whether l's end says so of itself.
func (l *uplink) supervises() bool { return slices.Contains(l.word, l.to) }

// Delegate is the part of a node of a base zone: it stands for election, and
// reports the zone's supervisors of the view while it is elected. Its methods are
// not safe for concurrent use.
type Delegate struct {
	cfg  DelegateConfig
	zone Zone

	quiet    core.Time // since when the view has not changed
	settled  bool
	active   bool
	election election
	elect    core.Time // when the node's turn comes; Never where it does not

	supervisors []gossip.ID // whom to be linked with
	words       uint64
	contacts    contacts
	asked       int       // contacts
	reached     core.Time // active: when a supervisor was, or since when none is looked for
	rests       core.Time // until when it stands only where nobody else does, having reached none
	retry       core.Time // no supervisor is dialled before
	ask         core.Time // no contact is
	links       []uplink
	nextLink    Link

	changes wire.Change // of this step
}

// NewDelegate returns the role of a node of a base zone that starts at now.
func NewDelegate(cfg DelegateConfig, zone Zone, now core.Time) (*Delegate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Delegate{cfg: cfg, zone: zone, quiet: now, elect: core.Never, contacts: contacts{own: cfg.Contacts}, nextLink: 2}
	// The delegates of many zones ask different contacts.
	d.asked = int(weight(cfg.Zone, zone.Self()) % uint64(len(cfg.Contacts)))
	if cfg.Never {
		return d, zone.Declare(DelegateKey, no)
	}
	return d, nil
}

// Active reports whether the node is one of its zone's delegates.
func (d *Delegate) Active() bool { return d.active }

// Delegates returns the other nodes in the view that have declared themselves.
func (d *Delegate) Delegates() []member.Index {
	var nodes []member.Index
	for _, life := range d.election.declared {
		if i, ok := d.zone.Find(life); ok {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// Deadline returns when the role wants to be stepped even without input.
func (d *Delegate) Deadline() core.Time {
	if d.cfg.Never {
		return core.Never
	}
	if !d.settled {
		return d.quiet.Add(d.cfg.Settle)
	}
	if !d.active {
		return d.elect
	}
	at := d.reached.Add(d.strays())
	for i := range d.links {
		at = at.Earlier(d.links[i].due(&d.cfg.Settings))
	}
	if d.missed() {
		at = at.Earlier(d.retry)
	}
	if d.stray() {
		at = at.Earlier(d.ask)
	}
	return at
}

// Step takes what the zone's step has brought, nil if there was none, and what
// has come on links.
func (d *Delegate) Step(now core.Time, zone *member.Output, in []Input, out *Output) {
	d.changes = wire.Change{Zone: d.cfg.Zone}
	if zone != nil {
		d.changed(now, zone)
	}
	if !d.settled && now >= d.quiet.Add(d.cfg.Settle) {
		d.settled = true
		d.election.vacant = now
	}
	if d.settled && !d.cfg.Never {
		d.stand(now, out)
	}
	for i := range in {
		d.take(now, &in[i], out)
	}
	d.notify(now, out)
	d.beat(now, out)
	d.dial(now, out)
}

// changed takes the changes of the view, and of what others declare.
func (d *Delegate) changed(now core.Time, zone *member.Output) {
	left := false
	for i := range zone.Notices {
		n := &zone.Notices[i]
		id := d.zone.ID(n.Node)
		switch n.Kind {
		case member.Join:
			d.changes.Alives = append(d.changes.Alives, wire.Member{ID: id, Version: n.Version})
		case member.Leave:
			left = true
			d.changes.Alives = slices.DeleteFunc(d.changes.Alives, func(m wire.Member) bool { return m.ID == id }) // leaves are read first
			d.changes.Leaves = append(d.changes.Leaves, wire.Leave{ID: id, Version: n.Version, Cause: uint8(n.Cause), Exit: n.Exit})
		}
	}
	if len(zone.Notices) > 0 {
		d.quiet = now
	}
	missing := d.missing()
	if left {
		d.election.forget(d.zone)
	}
	for _, n := range d.zone.Changed() {
		if slices.Contains(n.Keys, DelegateKey) {
			d.election.learn(d.zone, n.Life)
		}
		if slices.Contains(n.Keys, ContactsKey) {
			d.contacts.learn(d.zone, n.Life)
		}
	}
	if d.missing() > missing {
		d.election.vacant = now
	}
}

// missing returns how many places others leave free.
func (d *Delegate) missing() int { return d.cfg.Delegates - len(d.election.declared) }

// stand has the node declare itself when it is its turn, and step back where it
// is one too many.
func (d *Delegate) stand(now core.Time, out *Output) {
	d.elect = core.Never
	if d.active {
		if d.election.surplus(d.zone, d.cfg.Zone, d.cfg.Delegates) {
			d.resign(out)
		} else {
			d.despair(now, out)
		}
		return
	}
	if d.rests > now {
		if d.elect = d.rests; d.election.others(d.zone) {
			return
		}
	}
	if d.rests > 0 && now >= d.rests && d.zone.Retract(DelegateKey) == nil {
		d.rests = 0
	}
	before, free := d.election.turn(d.zone, d.cfg.Zone, d.cfg.Delegates)
	if !free {
		return
	}
	if d.elect = d.election.vacant.Add(time.Duration(before) * d.cfg.Patience); now < d.elect {
		return
	}
	// What cannot be declared, for want of room, is nobody's turn.
	if d.zone.Declare(DelegateKey, yes) != nil || d.zone.SetMonitor(true) != nil {
		d.elect = now.Add(d.cfg.Patience)
		return
	}
	d.active, d.retry, d.ask, d.reached, d.rests = true, now, now, now, 0
}

// Patiences without a supervisor after which a delegate steps back, times one more
// than those who have done so before.
const strayPatiences = 10

// strays returns how long a delegate may be without a supervisor.
func (d *Delegate) strays() time.Duration {
	return time.Duration(strayPatiences*(1+len(d.election.strayed))) * d.cfg.Patience
}

// despair has a delegate that reaches no supervisor step back, for another whose
// way there, or whose contacts, may be better. Where there is none it remains.
func (d *Delegate) despair(now core.Time, out *Output) {
	if slices.ContainsFunc(d.links, func(l uplink) bool { return l.assigned }) {
		d.reached = now
	}
	if now < d.reached.Add(d.strays()) {
		return
	}
	d.reached = now
	if d.election.others(d.zone) && d.zone.Declare(DelegateKey, later) == nil {
		d.leave(out)
		d.rests = now.Add(d.cfg.Linger)
		d.elect = d.rests
	}
}

// resign withdraws what the node has declared, and its links.
func (d *Delegate) resign(out *Output) {
	_ = d.zone.Retract(DelegateKey) // a tombstone fits, or will: the next Step resigns again
	d.leave(out)
}

// leave ends a delegate's work.
func (d *Delegate) leave(out *Output) {
	d.active = false
	d.contacts.retract(d.zone)
	_ = d.zone.SetMonitor(false)
	for i := range d.links {
		out.Closes = append(out.Closes, d.links[i].link)
	}
	d.links, d.supervisors = nil, nil
}

func (d *Delegate) take(now core.Time, in *Input, out *Output) {
	i := slices.IndexFunc(d.links, func(l uplink) bool { return l.link == in.Link })
	if i < 0 {
		if in.Kind == Accepted {
			out.Closes = append(out.Closes, in.Link) // nobody calls a delegate
		}
		return
	}
	l := &d.links[i]
	l.heard = now
	switch in.Kind {
	case Connected:
		l.open = true
		self, _ := d.zone.Find(d.zone.Self())
		l.send(now, &wire.Hello{Zone: d.cfg.Zone, From: d.zone.ID(self), Incarnation: d.zone.Version(self).Incarnation}, out)
	case Failed:
		d.lose(now, i)
	case Received:
		if m, ok := in.Message.(*wire.Assign); ok && m.Zone == d.cfg.Zone {
			d.assign(now, i, m, out)
		}
	}
}

// lose forgets a link. What has broken is dialled again at once, what could not
// be dialled after a while.
func (d *Delegate) lose(now core.Time, i int) {
	d.retry = now
	if !d.links[i].open {
		d.retry = now.Add(d.cfg.Retry)
	}
	d.links = slices.Delete(d.links, i, i+1)
	d.follow(now, nil)
}

// assign takes the word of a node of the management zone: who supervises. One
// that supervises is sent the view; one that never did is let go. One that does
// no longer closes its link itself, when others have taken its place.
func (d *Delegate) assign(now core.Time, i int, m *wire.Assign, out *Output) {
	l := &d.links[i]
	d.words++
	l.word, l.said = m.Supervisors, d.words
	d.contacts.reported(m.Contacts)
	d.contacts.publish(d.zone)
	d.follow(now, l)
	switch {
	case l.supervises() && !l.assigned:
		l.assigned = true
		for _, piece := range parts(wire.Change{Zone: d.cfg.Zone, Base: true, Alives: d.members()}, d.cfg.PieceBytes) {
			l.send(now, piece, out)
		}
	case !l.supervises() && !l.assigned:
		if slices.Contains(d.supervisors, l.to) {
			d.retry = now.Add(d.cfg.Retry) // others say that it does: it will hear of it
		}
		out.Closes = append(out.Closes, l.link)
		d.links = slices.Delete(d.links, i, i+1)
	}
}

// follow decides whose word counts: the last one of those who supervise; if none
// does, of those who did; if there is none, of whoever has spoken.
func (d *Delegate) follow(now core.Time, spoke *uplink) {
	best := spoke
	rank := func(l *uplink) int {
		switch {
		case l.supervises():
			return 2
		case l.assigned:
			return 1
		}
		return 0
	}
	for i := range d.links {
		l := &d.links[i]
		if l.word != nil && (best == nil || cmp.Or(cmp.Compare(rank(l), rank(best)), cmp.Compare(l.said, best.said)) > 0) {
			best = l
		}
	}
	if best != nil && !slices.Equal(d.supervisors, best.word) {
		d.supervisors, d.retry = best.word, now
	}
}

func (d *Delegate) members() []wire.Member {
	view := d.zone.View()
	members := make([]wire.Member, len(view))
	for k, i := range view {
		members[k] = wire.Member{ID: d.zone.ID(i), Version: d.zone.Version(i)}
	}
	return members
}

// notify sends what has changed in this step to all supervisors.
func (d *Delegate) notify(now core.Time, out *Output) {
	if len(d.links) == 0 || len(d.changes.Leaves)+len(d.changes.Alives) == 0 {
		return
	}
	for _, part := range parts(d.changes, d.cfg.PieceBytes) {
		for i := range d.links {
			if d.links[i].assigned {
				d.links[i].send(now, part, out)
			}
		}
	}
}

func (d *Delegate) beat(now core.Time, out *Output) {
	for i := len(d.links) - 1; i >= 0; i-- {
		if d.links[i].beat(now, &d.cfg.Settings, out) {
			out.Closes = append(out.Closes, d.links[i].link)
			d.lose(now, i)
		}
	}
}

func (d *Delegate) linkTo(id gossip.ID) *uplink {
	return core.Find(d.links, func(l *uplink) bool { return l.to == id })
}

// stray reports whether no supervisor is connected, and nobody is being asked
// who it would be.
func (d *Delegate) stray() bool {
	return !slices.ContainsFunc(d.links, func(l uplink) bool {
		return l.open || !slices.Contains(d.supervisors, l.to)
	})
}

// missed reports whether there is a supervisor to connect to.
func (d *Delegate) missed() bool {
	return slices.ContainsFunc(d.supervisors, func(id gossip.ID) bool { return d.linkTo(id) == nil })
}

// dial connects to the supervisors, and where none is to be reached to a
// contact, to learn who they are now.
func (d *Delegate) dial(now core.Time, out *Output) {
	if !d.active {
		return
	}
	if now >= d.retry {
		for _, id := range d.supervisors {
			if d.linkTo(id) == nil {
				d.connect(now, id, out)
			}
		}
	}
	if now < d.ask || !d.stray() {
		return
	}
	d.ask = now.Add(d.cfg.Retry)
	all := d.contacts.all()
	for range all {
		id := all[d.asked%len(all)]
		d.asked++
		if d.linkTo(id) == nil {
			d.connect(now, id, out)
			return
		}
	}
}

func (d *Delegate) connect(now core.Time, id gossip.ID, out *Output) {
	d.links = append(d.links, uplink{end: end{link: d.nextLink, heard: now, sent: now}, to: id})
	out.Dials = append(out.Dials, Dial{Link: d.nextLink, To: id})
	d.nextLink += 2
}
