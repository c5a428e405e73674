package hierarchy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/attribute"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// A world is base zones and a management zone whose membership and attributes
// are reported by the test: everyone hears of what happens at a time of its own.
// The roles are real, and the links between them come and go.
type world struct {
	t        fataler
	rng      *rand.Rand
	now      core.Time
	settings Settings
	mesh     *group
	bases    []*group
	all      []*actor
	wires    []*link
	odd      Link
	log      func(format string, args ...any) // nil: none
	started  int
	solo     bool // links are the test's, which gives one actor what comes on them
}

type fataler interface {
	Fatalf(format string, args ...any)
	Helper()
}

// group is the truth about a zone.
type group struct {
	number wire.Zone
	nodes  []*actor // by Index, dead ones included
}

// actor is a node with its role.
type actor struct {
	w       *world
	group   *group
	index   member.Index
	id      gossip.ID
	version gossip.Version
	life    attributes.Life
	dead    bool
	deaf    bool // it answers no dial
	cut     bool // nobody answers it

	view    []member.Index // ring order is that of IDs' keys
	attrs   map[attributes.Life]map[string]string
	changed []attribute.Notice
	news    []news

	delegate   *Delegate
	supervisor *Supervisor
	out        Output
	notices    []Notice
	views      []View
}

// news is what an actor has yet to hear.
type news struct {
	about *actor
	kind  int // join, leave or a key
	key   string
	value *string
}

const (
	joinNews = iota
	leaveNews
	keyNews
)

// link is a connection, or the attempt to make one.
type link struct {
	ends   [2]*actor // the dialler first
	number [2]Link
	up     [2]bool     // whether the end knows of it
	queue  [2][]flying // to that end
	broken bool
	muted  bool // nothing arrives any more, and nobody is reported
}

// flying is a message under way; the news that the link stands where there is
// none.
type flying struct {
	message wire.Message
	bytes   []byte // as it was when it was sent
}

func newWorld(t fataler, seed uint64, zones, size, supervisors int, settings Settings) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 9)), settings: settings, odd: 1, mesh: &group{}}
	for range supervisors {
		w.start(w.mesh)
	}
	for z := range zones {
		w.bases = append(w.bases, &group{number: wire.Zone(z)})
		for range size {
			w.start(w.bases[z])
		}
	}
	return w
}

// start starts a node of a new name. See begin.
func (w *world) start(g *group) *actor {
	w.started++
	letter := "h"
	if g == w.mesh {
		letter = "s"
	}
	id, err := gossip.MakeID(fmt.Sprintf("%s%d", letter, w.started), netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(w.started >> 8), byte(w.started)}), 7946))
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return w.begin(g, id, 1)
}

// begin begins a life of a node, and lets the others of its zone hear of it.
func (w *world) begin(g *group, id gossip.ID, incarnation uint64) *actor {
	w.say("%s.%d starts", id.Name(), incarnation)
	a := &actor{
		w: w, group: g, index: member.Index(len(g.nodes)), id: id, attrs: map[attributes.Life]map[string]string{},
		version: gossip.Version{Incarnation: incarnation, Minor: 1}, life: id.Key().Life(incarnation),
	}
	a.attrs[a.life] = map[string]string{}
	a.view = []member.Index{a.index}
	for _, other := range g.nodes {
		if other.dead {
			continue
		}
		other.news = append(other.news, news{about: a, kind: joinNews})
		a.news = append(a.news, news{about: other, kind: joinNews})
		for _, key := range slices.Sorted(maps.Keys(other.attrs[other.life])) {
			value := other.attrs[other.life][key]
			a.news = append(a.news, news{about: other, kind: keyNews, key: key, value: &value})
		}
	}
	g.nodes = append(g.nodes, a)
	w.all = append(w.all, a)
	var err error
	if g == w.mesh {
		a.supervisor, err = NewSupervisor(w.settings, a, w.now)
	} else {
		cfg := DelegateConfig{Settings: w.settings, Zone: g.number}
		for _, s := range w.mesh.nodes[:min(3, len(w.mesh.nodes))] {
			cfg.Contacts = append(cfg.Contacts, s.id)
		}
		a.delegate, err = NewDelegate(cfg, a, w.now)
	}
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return a
}

// kill ends a node; the others hear of it, and its links break.
func (w *world) kill(a *actor) {
	if a.dead {
		return
	}
	a.dead = true
	w.say("%s dies", a.id.Name())
	for _, other := range a.group.nodes {
		if !other.dead {
			other.news = append(other.news, news{about: a, kind: leaveNews})
		}
	}
	for _, l := range w.wires {
		if slices.Contains(l.ends[:], a) {
			l.breaks()
		}
	}
}

// restart ends a life of a node and begins the next.
func (w *world) restart(a *actor) *actor {
	w.kill(a)
	return w.begin(a.group, a.id, a.version.Incarnation+1)
}

func (w *world) say(format string, args ...any) {
	if w.log != nil {
		w.log("%8v  %s\n", time.Duration(w.now), fmt.Sprintf(format, args...))
	}
}

// The Zone of an actor.

func (a *actor) Self() attributes.Life                 { return a.life }
func (a *actor) View() []member.Index                  { return a.view }
func (a *actor) ID(i member.Index) gossip.ID           { return a.group.nodes[i].id }
func (a *actor) Version(i member.Index) gossip.Version { return a.group.nodes[i].version }
func (a *actor) Life(i member.Index) attributes.Life   { return a.group.nodes[i].life }
func (a *actor) Changed() []attribute.Notice           { return a.changed }

func (a *actor) Find(life attributes.Life) (member.Index, bool) {
	for _, i := range a.view {
		if a.group.nodes[i].life == life {
			return i, true
		}
	}
	return member.Nobody, false
}

func (a *actor) Attribute(life attributes.Life, key string) ([]byte, bool) {
	value, has := a.attrs[life][key]
	return []byte(value), has
}

func (a *actor) Declare(key string, value []byte) error {
	if old, has := a.attrs[a.life][key]; has && old == string(value) {
		return nil
	}
	text := string(value)
	a.attrs[a.life][key] = text
	a.spread(key, &text)
	return nil
}

func (a *actor) Retract(key string) error {
	if _, has := a.attrs[a.life][key]; has {
		delete(a.attrs[a.life], key)
		a.spread(key, nil)
	}
	return nil
}

func (a *actor) SetMonitor(on bool) error {
	if on {
		return a.Declare("tributary.monitor", nil)
	}
	return a.Retract("tributary.monitor")
}

func (a *actor) spread(key string, value *string) {
	a.w.say("%s sets %s to %q", a.id.Name(), key, valueText(key, value))
	for _, other := range a.group.nodes {
		if other != a && !other.dead {
			other.news = append(other.news, news{about: a, kind: keyNews, key: key, value: value})
		}
	}
}

func valueText(key string, value *string) string {
	if value == nil {
		return "(deleted)"
	}
	if key == ContactsKey {
		text := ""
		for _, id := range readContacts([]byte(*value)) {
			text += " " + id.Name()
		}
		return strings.TrimSpace(text)
	}
	if p, ok := readPublication([]byte(*value)); ok && key != DelegateKey {
		return fmt.Sprintf("delegates=%d size=%d", p.Delegates, p.Size)
	}
	return *value
}

// hear has an actor take its first so many news in one step.
func (w *world) hear(a *actor, n int) {
	var zone member.Output
	a.changed = nil
	for range min(n, len(a.news)) {
		one := a.news[0]
		a.news = a.news[1:]
		in := slices.Contains(a.view, one.about.index)
		switch {
		case one.kind == joinNews && !in:
			at, _ := slices.BinarySearchFunc(a.view, one.about.id.Key(), func(i member.Index, k gossip.Key) int {
				if a.ID(i).Key() < k {
					return -1
				}
				return 1
			})
			a.view = slices.Insert(slices.Clone(a.view), at, one.about.index)
			a.attrs[one.about.life] = map[string]string{}
			zone.Notices = append(zone.Notices, member.Notice{Kind: member.Join, Node: one.about.index, Version: one.about.version})
		case one.kind == leaveNews && in:
			a.view = slices.DeleteFunc(slices.Clone(a.view), func(i member.Index) bool { return i == one.about.index })
			delete(a.attrs, one.about.life)
			zone.Notices = append(zone.Notices, member.Notice{Kind: member.Leave, Node: one.about.index, Version: one.about.version, Cause: member.Suspected})
		case one.kind == keyNews && in:
			if one.value == nil {
				delete(a.attrs[one.about.life], one.key)
			} else {
				a.attrs[one.about.life][one.key] = *one.value
			}
			a.changed = append(a.changed, attribute.Notice{Life: one.about.life, Keys: []string{one.key}})
		}
	}
	a.step(&zone)
	a.changed = nil
}

// step steps an actor's role and does what it puts out.
func (a *actor) step(zone *member.Output, in ...Input) {
	w := a.w
	a.out.Reset()
	if a.delegate != nil {
		a.delegate.Step(w.now, zone, in, &a.out)
	} else {
		held := a.supervisor.Held()
		a.supervisor.Step(w.now, zone, in, &a.out)
		a.notices = slices.DeleteFunc(a.notices, func(n Notice) bool { // it was handed over, and may come back
			return !w.solo && slices.Contains(held, n.Zone) && a.supervisor.base(n.Zone) == nil
		})
	}
	a.notices = append(a.notices, a.out.Notices...)
	a.views = append(a.views, a.out.Views...)
	for _, v := range a.out.Views {
		w.say("%s has zone %d: %d members, %v", a.id.Name(), v.Zone, len(v.Members), v.Err)
	}
	for _, d := range a.out.Dials {
		w.say("%s dials %s", a.id.Name(), d.To.Name())
		if !w.solo {
			w.wires = append(w.wires, w.dial(a, d))
		}
	}
	for _, s := range a.out.Sends {
		if _, quiet := s.Message.(*wire.Beat); !quiet {
			w.say("%s says %s", a.id.Name(), messageText(s.Message))
		}
		bytes := s.Message.Append(nil)
		if len(bytes) > w.settings.PieceBytes || len(bytes) > s.Message.Size() {
			w.t.Fatalf("%s sends %d bytes, said to be %d at most", a.id, len(bytes), s.Message.Size())
		}
		if w.solo {
			continue
		}
		if l, end := w.wire(a, s.Link); l == nil {
			w.t.Fatalf("%s sends on link %d, which is none", a.id, s.Link)
		} else if !l.broken {
			l.queue[1-end] = append(l.queue[1-end], flying{s.Message, bytes})
		}
	}
	for _, number := range a.out.Closes {
		if w.solo {
			w.say("%s closes a link", a.id.Name())
			continue
		}
		l, end := w.wire(a, number)
		if l == nil {
			w.t.Fatalf("%s closes link %d, which is none", a.id, number)
		}
		w.say("%s closes its link with %s", a.id.Name(), l.ends[1-end].id.Name())
		l.breaks()
		l.up[end] = false
	}
}

func (w *world) dial(a *actor, d Dial) *link {
	for _, to := range w.all {
		if to.id == d.To && (!to.dead || !slices.ContainsFunc(w.all, func(k *actor) bool { return k.id == d.To && !k.dead })) {
			l := &link{ends: [2]*actor{a, to}, number: [2]Link{d.Link, w.odd}, up: [2]bool{true, false}}
			w.odd += 2
			l.queue = [2][]flying{{{}}, {{}}}
			l.broken, l.muted = to.dead, to.deaf || a.cut
			return l
		}
	}
	w.t.Fatalf("%s dials %s, which is nobody", a.id, d.To)
	return nil
}

// breaks ends a link: an end that knows of it will hear so.
func (l *link) breaks() {
	l.broken = true
}

func (w *world) wire(a *actor, number Link) (*link, int) {
	for _, l := range w.wires {
		for end := range 2 {
			if l.ends[end] == a && l.number[end] == number && l.up[end] {
				return l, end
			}
		}
	}
	return nil, 0
}

// carry delivers the next of what is under way on a link to one of its ends, and
// reports whether there was something.
func (w *world) carry(l *link, end int) bool {
	a := l.ends[end]
	number := l.number[end]
	switch {
	case a.dead:
		return false
	case l.muted && !l.broken:
		return false
	case l.broken && l.up[end]:
		l.up[end] = false
		w.say("%s loses %s", a.id.Name(), l.ends[1-end].id.Name())
		a.step(nil, Input{Kind: Failed, Link: number})
	case l.broken || len(l.queue[end]) == 0:
		return false
	default:
		m := l.queue[end][0]
		l.queue[end] = l.queue[end][1:]
		switch {
		case m.message != nil:
			again, err := wire.Decode(m.message.Append(nil))
			if err != nil || !slices.Equal(m.message.Append(nil), m.bytes) {
				w.t.Fatalf("a message changed under way to %+v, or cannot be read: %v", m.message, err)
			}
			a.step(nil, Input{Kind: Received, Link: number, Message: again})
		case end == 0:
			a.step(nil, Input{Kind: Connected, Link: number})
		default:
			l.up[end] = true
			a.step(nil, Input{Kind: Accepted, Link: number})
		}
	}
	return true
}

// deliver delivers something at random, and reports whether there was anything.
func (w *world) deliver() bool {
	w.wires = slices.DeleteFunc(w.wires, func(l *link) bool {
		return l.broken && (!l.up[0] || l.ends[0].dead) && (!l.up[1] || l.ends[1].dead)
	})
	n := len(w.all) + 2*len(w.wires)
	from := w.rng.IntN(n)
	for k := range n {
		switch i := (from + k) % n; {
		case i >= len(w.all):
			i -= len(w.all)
			if w.carry(w.wires[i/2], i%2) {
				return true
			}
		case !w.all[i].dead && len(w.all[i].news) > 0:
			w.hear(w.all[i], 1+w.rng.IntN(len(w.all[i].news)))
			return true
		}
	}
	return false
}

// pass lets time pass, with all that is due and under way.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for steps := 0; ; steps++ {
		if steps > 200000 {
			w.t.Fatalf("it does not come to rest at %v", time.Duration(w.now))
		}
		if w.deliver() {
			continue
		}
		due := core.Never
		var next *actor
		for _, a := range w.all {
			if at := a.deadline(); !a.dead && at < due {
				due, next = at, a
			}
		}
		if due > end {
			w.now = end
			return
		}
		w.now = max(w.now, due)
		next.step(nil)
	}
}

func (a *actor) deadline() core.Time {
	if a.delegate != nil {
		return a.delegate.Deadline()
	}
	return a.supervisor.Deadline()
}

func messageText(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Hello:
		return fmt.Sprintf("hello of zone %d", m.Zone)
	case *wire.Assign:
		text := fmt.Sprintf("zone %d is supervised by", m.Zone)
		for _, id := range m.Supervisors {
			text += " " + id.Name()
		}
		return text
	case *wire.Change:
		if m.None {
			return fmt.Sprintf("zone %d is unknown", m.Zone)
		}
		text := fmt.Sprintf("zone %d", m.Zone)
		if m.Base {
			return text + fmt.Sprintf(": %d members, last %v", len(m.Alives), m.Last)
		}
		for _, l := range m.Leaves {
			text += " -" + l.ID.Name()
		}
		for _, a := range m.Alives {
			text += " +" + a.ID.Name()
		}
		return text
	case *wire.Fetch:
		return fmt.Sprintf("fetch zone %d, follow %v", m.Zone, m.Follow)
	}
	return "beat"
}
