package member

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// cluster is a few cores and the plainest of networks: everything under way lies
// in one list, and the test says what arrives. What is sent goes through packets,
// as in production.
type cluster struct {
	t       tester
	cfg     Settings
	now     core.Time
	members []*participant
	flying  []flight
	blocked map[[2]*participant]bool // nothing passes from the one to the other
	leaves  func(observer *participant, n Notice)
}

// impairment is what a participant does not hear or say.
type impairment uint8

const (
	deafToDatagrams impairment = 1 << iota
	muteInDatagrams
	deafToStreams
	muteInStreams
	impairments // above all sets of them
)

// participant is one node over its lives.
type participant struct {
	name        string
	id          gossip.ID
	incarnation uint64
	*Core       // nil: down
	dir         *Directory
	codec       *Codec
	side        int
	impaired    impairment
	former      []gossip.ID // IDs of earlier lives, at other addresses
	accepted    Link
	conns       map[Link]*cable
	minor       uint32
	lives       map[Index]gossip.Life // of the others in the view, by the notices
}

// cable is a connection; ends are by participant.
type cable struct {
	ends [2]*participant
	link [2]Link
	live [2]uint64 // incarnations
	up   bool
}

// flight is something under way.
type flight struct {
	to     *participant
	life   uint64
	cable  *cable // nil: a datagram
	from   *participant
	input  Input
	packet []byte
}

func newCluster(t tester, n int, s Settings) *cluster {
	w := &cluster{t: t, cfg: s, blocked: map[[2]*participant]bool{}}
	for i := range n {
		name := string(rune('a' + i))
		w.members = append(w.members, &participant{name: name, id: idOf(name)})
		w.start(w.members[i])
	}
	return w
}

func (w *cluster) start(p *participant) {
	p.incarnation++
	p.dir, p.conns, p.minor, p.lives = NewDirectory(), map[Link]*cable{}, 0, map[Index]gossip.Life{}
	p.codec = NewCodec(p.dir)
	c, err := New(Config{
		Settings: w.cfg, Self: p.id, Incarnation: p.incarnation, Seed: p.incarnation,
		Bootstrap: []gossip.ID{idOf("a"), idOf("b")},
	}, p.dir, w.now)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	p.Core = c
}

// move starts a participant at another address, under its name.
func (w *cluster) move(p *participant) {
	p.former = append(p.former, p.id)
	p.id = gossip.ID(fmt.Sprintf("%s@10.0.%d.%d:7946", p.name, len(p.former), p.name[0]))
	w.start(p)
}

// kill ends a process; its connections are ended for it.
func (w *cluster) kill(p *participant) {
	for _, c := range p.conns {
		w.hangUp(p, c)
	}
	p.Core, p.conns = nil, nil
}

func (w *cluster) hangUp(p *participant, c *cable) {
	c.up = false
	side := 0
	if c.ends[1] == p {
		side = 1
	}
	other := c.ends[1-side]
	w.flying = append(w.flying, flight{to: other, life: c.live[1-side], cable: c, from: p, input: Input{Kind: Failed, Link: c.link[1-side]}})
}

// step steps a participant, checks what must always hold, and sends what it
// wants.
func (w *cluster) step(p *participant, in ...Input) {
	var out Output
	p.Step(w.now, in, &out)
	w.check(p, &out)
	for _, d := range out.Dials {
		w.dial(p, d)
	}
	for _, s := range out.Sends {
		if c := p.conns[s.Link]; c != nil && c.up {
			w.send(p, c, s.Message)
		}
	}
	for _, d := range out.Packets {
		if p.dir.ID(d.To) == "" {
			w.t.Fatalf("%s sends a %v to somebody forgotten", p.name, d.Message.Type)
		}
		if to := w.find(p.dir.ID(d.To)); to != nil && !w.lost(p, to) {
			for _, piece := range p.codec.Pieces(d.Message, gossip.MaxDatagram) {
				w.flying = append(w.flying, flight{to: to, from: p, packet: piece.Append(nil)})
			}
		}
	}
	for _, d := range out.Pulses {
		if to := w.find(p.dir.ID(d.To)); to != nil && !w.lost(p, to) {
			w.flying = append(w.flying, flight{to: to, from: p, input: Input{Kind: Beat, Pulse: d.Pulse}})
		}
	}
	for _, l := range out.Closes {
		if c := p.conns[l]; c != nil {
			delete(p.conns, l)
			w.hangUp(p, c)
		}
	}
	if p.dir.Sweep(); out.Stopped {
		w.kill(p)
	}
}

// find returns who is at an ID now, nil if nobody is.
func (w *cluster) find(id gossip.ID) *participant {
	for _, p := range w.members {
		if p.id == id {
			return p
		}
	}
	return nil
}

// owner returns whose an ID is, or was.
func (w *cluster) owner(id gossip.ID) *participant {
	for _, p := range w.members {
		if p.id == id || slices.Contains(p.former, id) {
			return p
		}
	}
	return nil
}

// lost reports whether datagrams from one to another are.
func (w *cluster) lost(from, to *participant) bool {
	return from.side != to.side || w.blocked[[2]*participant{from, to}] || from.impaired&muteInDatagrams != 0 || to.impaired&deafToDatagrams != 0
}

// held reports whether streams from one to another are held up.
func (w *cluster) held(from, to *participant) bool {
	return from != to && (from.side != to.side || w.blocked[[2]*participant{from, to}] ||
		from.impaired&muteInStreams != 0 || to.impaired&deafToStreams != 0)
}

func (w *cluster) dial(p *participant, d Dial) {
	to := w.find(p.dir.ID(d.Peer))
	if to != nil && (w.held(p, to) || w.held(to, p)) {
		return // its own patience ends it
	}
	if to == nil || to.Core == nil {
		w.flying = append(w.flying, flight{to: p, life: p.incarnation, from: p, input: Input{Kind: ConnectFailed, Link: d.Link}})
		return
	}
	to.accepted += 2
	c := &cable{ends: [2]*participant{p, to}, link: [2]Link{d.Link, to.accepted | 1}, live: [2]uint64{p.incarnation, to.incarnation}, up: true}
	p.conns[d.Link], to.conns[c.link[1]] = c, c
	w.flying = append(w.flying,
		flight{to: to, life: to.incarnation, cable: c, from: p, input: Input{Kind: Accepted, Link: c.link[1]}},
		flight{to: p, life: p.incarnation, cable: c, from: to, input: Input{Kind: Connected, Link: d.Link}})
}

func (w *cluster) send(p *participant, c *cable, m *Message) {
	side := 0
	if c.ends[1] == p {
		side = 1
	}
	to := c.ends[1-side]
	for _, piece := range p.codec.Pieces(m, gossip.MaxFrame) {
		w.flying = append(w.flying, flight{to: to, life: c.live[1-side], cable: c, from: p, input: Input{Kind: Received, Link: c.link[1-side]}, packet: piece.Append(nil)})
	}
}

// deliver has the i-th thing under way arrive, or be lost. What travels on a
// connection arrives in order.
func (w *cluster) deliver(i int, lose bool) {
	f := w.flying[i]
	if f.cable != nil {
		for k := range i {
			if w.flying[k].cable == f.cable && w.flying[k].to == f.to {
				i, f = k, w.flying[k]
				break
			}
		}
	}
	if f.cable != nil && w.held(f.from, f.to) {
		return // held up
	}
	w.flying = append(w.flying[:i:i], w.flying[i+1:]...)
	switch {
	case f.to == nil || f.to.Core == nil, f.life != 0 && f.life != f.to.incarnation:
		return
	case f.cable == nil && f.life == 0 && (lose || w.lost(f.from, f.to)):
		return
	case f.packet == nil:
		w.step(f.to, f.input)
		return
	}
	m, err := f.to.codec.Message(f.packet)
	if err != nil && f.cable != nil {
		w.t.Fatalf("%s: %v", f.to.name, err)
	} else if err != nil {
		return // an answer about who was forgotten
	}
	f.input.Message = m
	if f.cable == nil {
		f.input.Kind = Datagram
	}
	w.step(f.to, f.input)
}

// mostAtOnce is more than arrive at one time in a cluster of this size.
const mostAtOnce = 10000

// settle lets time pass with everything arriving at once.
func (w *cluster) settle(d time.Duration) {
	end := w.now.Add(d)
	for {
		arrivals := 0
		for k := 0; k < len(w.flying); arrivals++ {
			if arrivals > mostAtOnce {
				w.t.Fatalf("at %d the members go on for ever without any time passing", w.now)
			}
			if f := &w.flying[k]; f.cable != nil && w.held(f.from, f.to) {
				k++ // held up
				continue
			}
			w.deliver(k, false)
		}
		next := end + 1
		for _, p := range w.members {
			if p.Core != nil {
				next = min(next, p.Deadline())
			}
		}
		if next > end {
			w.now = end
			return
		}
		w.now = max(w.now, next)
		w.due()
	}
}

// due steps who is due.
func (w *cluster) due() {
	for _, p := range w.members {
		if p.Core != nil && p.Deadline() <= w.now {
			w.step(p)
		}
	}
}

// check holds what is always true: history and view are disjoint, notices come in
// turn, the own minor never falls, and is never raised by another.
func (w *cluster) check(p *participant, out *Output) {
	for _, h := range p.History(nil) {
		if p.Has(h.Node) {
			w.t.Fatalf("%s has %s in its view and in its history", p.name, p.dir.ID(h.Node))
		}
	}
	if minor := p.Self().Version.Minor; minor < p.minor {
		w.t.Fatalf("%s has lowered its minor from %d to %d", p.name, p.minor, minor)
	} else {
		p.minor = minor
	}
	for _, i := range p.View() {
		owner, v := w.owner(p.dir.ID(i)), p.Version(i)
		if v.Incarnation > owner.incarnation || v.Incarnation == owner.incarnation && owner.Core != nil && v.Minor > owner.Self().Version.Minor {
			w.t.Fatalf("%s holds %s at %v, which it never was", p.name, owner.name, v)
		}
	}
	for _, n := range out.Notices {
		switch life := p.dir.Key(n.Node).Life(n.Version.Incarnation); {
		case n.Kind == Join && (n.Life != life || p.lives[n.Node] != 0), n.Kind == Leave && n.Life != p.lives[n.Node]:
			w.t.Fatalf("%s is notified %+v of the life %x", p.name, n, p.lives[n.Node])
		case n.Kind == Join:
			p.lives[n.Node] = n.Life
		case n.Kind == Leave:
			delete(p.lives, n.Node)
		}
		if n.Kind == Leave && w.leaves != nil {
			w.leaves(p, n)
		}
	}
	watchers := 0
	for _, n := range p.Neighbours(nil) {
		if n.Watches {
			watchers++
		}
	}
	if watchers > w.cfg.Ks+w.cfg.Kr {
		w.t.Fatalf("%s has %d watchers", p.name, watchers)
	}
}

// equal returns who does not see just those who are up, versions included, and
// what it sees instead; nil if all do.
func (w *cluster) equal() error {
	want := map[gossip.ID]Version{}
	for _, p := range w.members {
		if p.Core != nil {
			want[p.id] = p.Self().Version
		}
	}
	for _, p := range w.members {
		if p.Core == nil {
			continue
		}
		got := map[gossip.ID]Version{}
		for _, i := range p.View() {
			got[p.dir.ID(i)] = p.Version(i)
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("%s sees %v, want %v", p.name, got, want)
		}
	}
	return nil
}
