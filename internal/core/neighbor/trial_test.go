package neighbor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// trial is a core that is driven by commands, and what comes of them as text.
type trial struct {
	c      *Core
	now    core.Time
	out    Output
	nonces []uint64 // of the requests that were sent
}

func newTrial(cfg Config) *trial {
	c, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return &trial{c: c}
}

// do runs commands: a verb, a port and fields.
//
//	set 1 up chassis=me port=p1 mac=1 text=TEXT      down 1      remove 1
//	hear 1 NAME port=q ttl=120 mac=9 text=TEXT role=switch
//	raw 1 TEXT
//	request 1 NAME mac=9 to=1 nonce=7      respond 1 NAME mac=9 to=1 request=0 hold=1us
//	sent 1 request=0
//	close      pass DURATION      skip DURATION      show 1
func (t *trial) do(commands ...string) string {
	var b strings.Builder
	for _, line := range commands {
		for command := range strings.SplitSeq(line, ";") {
			if words := strings.Fields(command); len(words) > 0 {
				b.WriteString(t.one(words))
			}
		}
	}
	return b.String()
}

func (t *trial) one(words []string) string {
	field := func(name, otherwise string) string {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, name+"="); ok {
				return v
			}
		}
		return otherwise
	}
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(field(name, strconv.Itoa(otherwise)))
		if err != nil {
			panic(err)
		}
		return n
	}
	span := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		return d
	}
	mac := func(name string, otherwise int) [6]byte { return [6]byte{2, 5: byte(number(name, otherwise))} }
	nonce := func() uint64 {
		if i := number("request", len(t.nonces)-1); i < len(t.nonces) && i >= 0 {
			return t.nonces[i]
		}
		return 1
	}
	in := Input{At: t.now}
	if len(words) > 1 && words[0] != "pass" && words[0] != "skip" {
		n, err := strconv.Atoi(words[1])
		if err != nil {
			panic(err)
		}
		in.Port = PortID(n)
	}
	switch words[0] {
	case "pass":
		return t.pass(span(words[1]))
	case "skip":
		out := t.pass(span(words[1]))
		return fmt.Sprintf("%d announcements, %d requests, %d changes\n", strings.Count(out, "announce"), strings.Count(out, "request"), strings.Count(out, "changed"))
	case "show":
		return t.show(in.Port)
	case "set", "down":
		in.Kind, in.Up, in.MAC = Set, words[0] == "set", mac("mac", int(in.Port))
		in.Own = announcement(field("chassis", "me"), field("port", fmt.Sprintf("p%d", in.Port)))
		in.Own.SystemDescription = field("text", "")
	case "remove":
		in.Kind = Removed
	case "close":
		in.Kind = Close
	case "raw":
		in.Kind, in.Data = Heard, []byte(words[2])
	case "hear", "request", "respond":
		a := announcement(words[2], field("port", "q"))
		a.TTL, a.SystemDescription = uint16(number("ttl", 120)), field("text", "")
		if field("role", "") == "switch" || words[0] != "hear" && field("role", "") == "" {
			a.Tributary = lldpdu.Tributary{Role: lldpdu.Switch, Name: words[2]}
		}
		pdu, err := a.Append(nil)
		if err != nil {
			panic(err)
		}
		d := lldpdu.Delay{Kind: lldpdu.DelayRequest, Target: mac("to", int(in.Port)), Nonce: uint64(number("nonce", 7))}
		switch words[0] {
		case "respond":
			d.Kind, d.Nonce, d.Hold = lldpdu.DelayResponse, nonce(), span(field("hold", "0s"))
			fallthrough
		case "request":
			pdu = withDelay(pdu, d)
		}
		in.Kind, in.Data, in.MAC = Heard, pdu, mac("mac", 9)
	case "sent":
		in.Kind, in.Nonce = Sent, nonce()
	default:
		panic(words[0])
	}
	return t.step(in)
}

func announcement(chassis, port string) lldpdu.Announcement {
	return lldpdu.Announcement{
		Chassis: lldpdu.ChassisID{Subtype: lldpdu.ChassisLocal, Value: chassis}, Port: lldpdu.PortID{Subtype: lldpdu.PortInterface, Value: port},
		TTL: 120, SystemName: chassis,
	}
}

func withDelay(pdu []byte, d lldpdu.Delay) []byte {
	pdu, err := lldpdu.AppendDelay(nil, pdu, d)
	if err != nil {
		panic(err)
	}
	return pdu
}

func (t *trial) step(in ...Input) string {
	t.out.Reset()
	t.c.Step(t.now, in, &t.out)
	var b strings.Builder
	for i := range t.out.Sends {
		b.WriteString(t.wrote(&t.out.Sends[i]) + "\n")
	}
	if t.out.Changed {
		b.WriteString("changed\n")
	}
	return b.String()
}

func (t *trial) wrote(s *Send) string {
	var with string
	switch s.Delay.Kind {
	case lldpdu.DelayRequest:
		t.nonces = append(t.nonces, s.Delay.Nonce)
		with = fmt.Sprintf(" with request %d to %d", len(t.nonces)-1, s.Delay.Target[5])
	case lldpdu.DelayResponse:
		with = fmt.Sprintf(" with response nonce=%d to %d", s.Delay.Nonce, s.Delay.Target[5])
	}
	a, _, err := lldpdu.Decode(s.PDU)
	if err != nil {
		panic(err)
	}
	if a.TTL == 0 {
		return fmt.Sprintf("%d: shutdown %s/%s", s.Port, a.Chassis, a.Port)
	}
	return fmt.Sprintf("%d: announce %s/%s %q ttl=%d", s.Port, a.Chassis, a.Port, a.SystemDescription, a.TTL) + with
}

// pass lets time pass, with a step whenever the core wants one.
func (t *trial) pass(d time.Duration) string {
	var b strings.Builder
	for end := t.now.Add(d); ; {
		next := t.c.Deadline()
		if next > end {
			t.now = end
			return b.String()
		}
		t.now = max(t.now, next)
		if s := t.step(); s != "" {
			fmt.Fprintf(&b, "at %v:\n%s", time.Duration(t.now), s)
		}
		if t.c.Deadline() <= t.now {
			panic("the core wants to be stepped again at the same moment")
		}
	}
}

// show reports what is known of a port.
func (t *trial) show(id PortID) string {
	var b strings.Builder
	for _, n := range t.c.Neighbors(id) {
		fmt.Fprintf(&b, "neighbor %d: %s/%s %q", n.ID, n.Chassis, n.Port, n.SystemDescription)
		if n.Loop {
			b.WriteString(" loop")
		}
		b.WriteString("\n")
	}
	if d := t.c.Delay(id); d > 0 {
		fmt.Fprintf(&b, "delay %v\n", d)
	}
	counters, notUp := t.c.Counters(id)
	fmt.Fprintf(&b, "%+v, not up %d\n", counters, notUp)
	return b.String()
}

// state names that of port 1.
func (t *trial) state() string {
	p := t.c.ports[1]
	var s string
	switch {
	case p == nil:
		s = "absent"
	case p.up:
		s = "up"
	default:
		s = "down"
	}
	if t.c.closed {
		s = "closed"
	}
	if n := len(t.c.Neighbors(1)); n > 0 {
		s += fmt.Sprintf(", %d heard", n)
	}
	return s
}

// check reports what cannot be.
func (c *Core) check() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	ages, ticks, requests := 0, 0, 0
	for id, p := range c.ports {
		if len(p.neighbors) > MostNeighbors || !p.up && len(p.neighbors) > 0 || p.id != id {
			say("port %d, up %v, has %d neighbours", id, p.up, len(p.neighbors))
		}
		ages += len(p.neighbors)
		if p.tick.Running() {
			ticks++
		}
		if p.delay.timer.Running() {
			requests++
		}
		if p.tick.Running() != p.up || p.credit < 0 || p.credit > maxCredit {
			say("port %d, up %v: announces %v, credit %d", id, p.up, p.tick.Running(), p.credit)
		}
		if has := slices.ContainsFunc(p.neighbors, (*neighbor).isPeer); has != (p.delay.peer != 0) || !has && p.delay.timer.Running() {
			say("port %d measures with %d, its timer runs %v, there is somebody %v", id, p.delay.peer, p.delay.timer.Running(), has)
		}
		if p.delay.peer == 0 && p.delay.published != 0 {
			say("port %d has a delay of %v to nobody", id, p.delay.published)
		}
		for i, n := range p.neighbors {
			if !n.age.Running() || n.port != p || n.TTL == 0 || i > 0 && n.ID <= p.neighbors[i-1].ID {
				say("port %d: neighbour %+v", id, n.Neighbor)
			}
			for _, o := range p.neighbors[:i] {
				if o.Chassis == n.Chassis && o.Port == n.Port {
					say("port %d has %s/%s twice", id, n.Chassis, n.Port)
				}
			}
		}
	}
	if ages != len(c.ages) || ticks != len(c.ticks) || requests != len(c.requests) {
		say("%d, %d and %d timers run, want %d, %d and %d", len(c.ages), len(c.ticks), len(c.requests), ages, ticks, requests)
	}
	return wrong
}
