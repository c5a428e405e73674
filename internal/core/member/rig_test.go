package member

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// rig is a core alone: the node a, and a test that plays all others.
type rig struct {
	*Core
	t     tester
	dir   *Directory
	at    core.Time
	out   Output
	log   []string // all that came out since the last take
	last  []Message
	link  Link
	depth int
	mute  map[Index]bool // who does not answer probes; all others do
	hung  bool           // hosts of the mute do not refuse connections

	unasked bool              // others do not answer what they are asked about the mute
	own     map[Index]Version // of those who have asked for discovery
}

// idOf returns the ID of a node of the tests, which have names of one letter.
func idOf(name string) gossip.ID {
	return gossip.ID(fmt.Sprintf("%s@10.0.0.%d:7946", name, name[0]))
}

// quiet are settings under which nothing happens by itself for a while.
func quiet() Settings {
	s := DefaultSettings()
	s.Discovery = Discovery{First: time.Hour, Share: 1, Last: time.Hour}
	return s
}

// tester is what a rig needs of a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func newRig(t tester, change func(*Config)) *rig {
	t.Helper()
	cfg := Config{Settings: quiet(), Self: idOf("a"), Incarnation: 5, Seed: 1}
	if change != nil {
		change(&cfg)
	}
	r := &rig{t: t, dir: NewDirectory(), link: 1, mute: map[Index]bool{}, own: map[Index]Version{}}
	for c := 'a'; c <= 'z'; c++ {
		r.dir.Hold(r.dir.Add(idOf(string(c))))
	}
	c, err := New(cfg, r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.Core = c
	return r
}

func (r *rig) index(name string) Index { return r.dir.Add(idOf(name)) }

func (r *rig) name(i Index) string {
	if i == Nobody {
		return "?"
	}
	return r.dir.ID(i).Name()
}

func (r *rig) entry(name string, incarnation uint64, minor uint32) Entry {
	return Entry{r.index(name), ver(incarnation, minor), nil}
}

// step steps the core and logs what it wants.
func (r *rig) step(in ...Input) {
	if r.depth++; r.depth > 1000 {
		panic(fmt.Sprintf("the core and its answers go on for ever: %q", r.log[len(r.log)-20:]))
	}
	defer func() { r.depth-- }()
	r.out.Reset()
	r.do(in)
}

// do steps the core, whose output may begin with something already.
func (r *rig) do(in []Input) {
	for i := range in {
		if m := in[i].Message; m != nil && m.Type == gossip.DiscoveryRequest {
			r.own[m.From.Node] = m.From.Version
		}
	}
	r.Step(r.at, in, &r.out)
	for _, n := range r.out.Notices {
		r.note("%s", r.notice(n))
	}
	for _, n := range r.out.Neighbours {
		r.note("neighbour %s %s", r.name(n.Node), map[bool]string{true: "up", false: "down"}[n.Up])
	}
	for _, d := range r.out.Dials {
		r.note("dial %s", r.name(d.Peer))
	}
	for _, s := range r.out.Sends {
		r.note("link %d: %s", s.Link, r.message(s.Message))
		r.last = append(r.last, *s.Message)
	}
	for _, p := range r.out.Packets {
		r.note("to %s: %s", r.name(p.To), r.message(p.Message))
		r.last = append(r.last, *p.Message)
	}
	for _, p := range r.out.Pulses {
		r.note("heartbeat to %s", r.name(p.To))
	}
	for _, l := range r.out.Closes {
		r.note("close %d", l)
	}
	if r.out.Stopped {
		r.note("stopped")
	}
	if answers := r.answers(); len(answers) > 0 {
		r.step(answers...)
	}
}

// answers are those of the others to what the core has asked: of who is mute
// they say so, and its host refuses connections.
func (r *rig) answers() (in []Input) {
	for _, p := range r.out.Packets {
		switch m := p.Message; {
		case r.mute[p.To] || p.To == r.self:
		case m.Type == gossip.Probe:
			in = append(in, Input{Kind: Datagram, Message: &Message{Type: gossip.Echo, From: Entry{p.To, r.answer(p), nil}, Nonce: m.Nonce}})
		case m.Type == gossip.Relay && r.mute[m.About.Node] && !r.unasked:
			in = append(in, Input{Kind: Datagram, Message: &Message{Type: gossip.Nack, From: Entry{p.To, r.Version(p.To), nil}, Nonce: m.Nonce}})
		}
	}
	for _, d := range r.out.Dials {
		asked := slices.ContainsFunc(r.inquiries, func(q inquiry) bool { return q.link == d.Link })
		if asked && r.mute[d.Peer] && !r.hung {
			in = append(in, Input{Kind: ConnectFailed, Link: d.Link})
		}
	}
	return in
}

// answer returns the version that a node has when it has taken a probe.
func (r *rig) answer(p Packet) Version {
	v := r.Version(p.To)
	if own := r.own[p.To]; v.Before(own) {
		v = own
	}
	if dead := p.Message.About.Version; dead != (Version{}) && !dead.Before(v) {
		v.Minor = dead.Minor + 1
	}
	return v
}

// silence has nodes answer no probes.
func (r *rig) silence(names ...string) {
	for _, n := range names {
		r.mute[r.index(n)] = true
	}
}

func (r *rig) note(format string, args ...any) { r.log = append(r.log, fmt.Sprintf(format, args...)) }

// take returns what was logged since the last take.
func (r *rig) take() []string {
	log := r.log
	r.log, r.last = nil, nil
	return log
}

// pass lets time pass, with a step whenever the core wants one.
func (r *rig) pass(d time.Duration) {
	end := r.at.Add(d)
	for r.Deadline() <= end {
		r.at = max(r.at, r.Deadline())
		r.step()
	}
	r.at = end
}

// inform gives the core an update, as if on a link that is not there.
func (r *rig) inform(m Message) {
	r.out.Reset()
	r.now, r.Core.out = r.at, &r.out
	r.apply(&m)
	r.do(nil)
}

// join has nodes join at version 1.1.
func (r *rig) join(names ...string) {
	m := Message{}
	for _, n := range names {
		m.Alives = append(m.Alives, r.entry(n, 1, 1))
	}
	r.inform(m)
}

// accept has a node connect, and returns the link, which stands. What came of it
// is forgotten.
func (r *rig) accept(name string, need gossip.Need) Link {
	l := r.link
	r.link += 2
	v := ver(1, 1)
	if r.Has(r.index(name)) {
		v = r.Version(r.index(name))
	}
	r.step(Input{Kind: Accepted, Link: l})
	r.frame(l, Message{Type: gossip.Hello, From: Entry{r.index(name), v, nil}, Target: r.key, Need: need, Tag: uint32(l)})
	return l
}

func (r *rig) frame(l Link, m Message) {
	r.step(Input{Kind: Received, Link: l, Message: &m})
}

// want fails unless just this was logged since the last take.
func (r *rig) want(what string, lines ...string) {
	r.t.Helper()
	if got := r.take(); !slices.Equal(got, lines) {
		r.t.Errorf("%s:\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

// logged reports whether a line with this was logged since the last take.
func (r *rig) logged(part string) bool {
	return slices.ContainsFunc(r.log, func(line string) bool { return strings.Contains(line, part) })
}

// count counts the lines that were logged since the last take.
func (r *rig) count(line string) (n int) {
	for _, l := range r.log {
		if l == line {
			n++
		}
	}
	return n
}

func (r *rig) notice(n Notice) string {
	switch {
	case n.Kind == Join:
		return fmt.Sprintf("join %s %v", r.name(n.Node), n.Version)
	case n.Kind == Superseded:
		return fmt.Sprintf("superseded by %v", n.Version)
	case n.Kind == Namesake:
		return fmt.Sprintf("namesake %s %v", r.name(n.Node), n.Version)
	}
	why := [...]string{"departed", "suspected", "restarted"}[n.Cause]
	if n.Exit.Given {
		why += fmt.Sprintf(" with %d", n.Exit.Code)
	}
	return fmt.Sprintf("leave %s %v %s", r.name(n.Node), n.Version, why)
}

// message returns a message in words.
func (r *rig) message(m *Message) string {
	var b strings.Builder
	b.WriteString(m.Type.String())
	switch m.Type {
	case gossip.Hello, gossip.Welcome, gossip.Echo, gossip.DiscoveryRequest, gossip.DiscoveryReply:
		fmt.Fprintf(&b, " from %s %v", r.name(m.From.Node), m.From.Version)
	}
	if m.Need != 0 {
		fmt.Fprintf(&b, " need=%d", m.Need)
	}
	if m.Reason != 0 {
		fmt.Fprintf(&b, " %v %v", m.Reason, m.About.Version)
	}
	if m.Type == gossip.DiscoveryReply && m.About.Version != (Version{}) {
		fmt.Fprintf(&b, " %v", m.About.Version)
	}
	if m.Type == gossip.Relay {
		fmt.Fprintf(&b, " about %s", r.name(m.About.Node))
	}
	for _, flag := range []struct {
		on   bool
		name string
	}{{m.Boot, "boot"}, {m.Stealth, "stealth"}, {m.Answer, "answer"}} {
		if flag.on {
			b.WriteString(" " + flag.name)
		}
	}
	if m.Size > 0 {
		fmt.Fprintf(&b, " size=%d", m.Size)
	}
	for _, d := range m.Leaves {
		fmt.Fprintf(&b, " left:%s,%v,%v", r.name(d.Node), d.Version, d.Exit)
	}
	alive := slices.Clone(m.Alives)
	slices.SortFunc(alive, func(x, y Entry) int { return int(x.Node - y.Node) })
	for _, e := range alive {
		fmt.Fprintf(&b, " %s:%s,%v", map[bool]string{true: "dead", false: "alive"}[m.Type == gossip.Dispute], r.name(e.Node), e.Version)
	}
	for _, s := range m.Suspicions {
		reporter := "?"
		if i, ok := r.dir.Find(s.Reporter); ok {
			reporter = r.name(i)
		}
		fmt.Fprintf(&b, " suspects:%s,%s,%v", reporter, r.name(s.Suspect), s.Version)
	}
	for _, i := range m.Watchers {
		b.WriteString(" " + r.name(i))
	}
	return b.String()
}

func ver(incarnation uint64, minor uint32) Version {
	return Version{Incarnation: incarnation, Minor: minor}
}
