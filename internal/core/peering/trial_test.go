package peering

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// trial is a core that is driven by commands, and what comes of them as text.
type trial struct {
	c   *Core
	now core.Time
	out Output
}

func newTrial(change func(*Config)) *trial {
	cfg := Config{Name: "a", Incarnation: 10, Classes: 3}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return &trial{c: c}
}

// do runs commands: a verb, a connection or a host, and fields.
//
//	arrive ID SOURCE      spoke ID      verified ID      end ID      finished ID
//	greet ID from=b inc=5 class=0 call=1 accepted=0 to=a known=0 cert=b path=0 joins=0 first
//	malformed ID
//	answer ID CODE inc=5
//	paired ID pairs=3 first=0
//	sample ID heard=1s used=1s reads=1 deaf
//	want HOST CLASS   call HOST CLASS   hold HOST CLASS   release HOST CLASS   learn HOST inc=5
//	closing   pinned
//	pass DURATION
//
// The IDs of this host's own calls are d1, d2, ...
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
	number := func(name string, otherwise int) uint64 {
		n, err := strconv.ParseUint(field(name, strconv.Itoa(otherwise)), 10, 64)
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
	in := Input{}
	switch words[0] {
	case "pass":
		return t.pass(span(words[1]))
	case "arrive":
		in = Input{Kind: Arrived, ID: idOf(words[1]), Source: netip.PrefixFrom(netip.MustParseAddr(words[2]), 32)}
	case "spoke":
		in = Input{Kind: Spoke, ID: idOf(words[1])}
	case "verified":
		in = Input{Kind: Verified, ID: idOf(words[1])}
	case "end":
		in = Input{Kind: Ended, ID: idOf(words[1]), Err: errors.New("it broke")}
	case "finished":
		in = Input{Kind: Finished, ID: idOf(words[1])}
	case "malformed":
		in = Input{Kind: Greeted, ID: idOf(words[1]), Err: ErrMalformed}
	case "greet":
		known := 0
		if number("accepted", 0) > 0 {
			known = 10
		}
		in = Input{Kind: Greeted, ID: idOf(words[1]), Address: "10.0.0." + words[1], Peer: field("cert", field("from", "b")), Greeting: greeting.Greeting{
			From: field("from", "b"), Incarnation: number("inc", 5), To: field("to", "a"), Known: number("known", known),
			Class: uint8(number("class", 0)), Call: number("call", 1), Accepted: number("accepted", 0),
			Path: uint8(number("path", 0)), Joins: number("joins", 0), First: words[len(words)-1] == "first",
		}}
	case "paired":
		in = Input{Kind: Paired, ID: idOf(words[1]), Pairs: uint8(number("pairs", 3)), First: uint8(number("first", 0))}
	case "answer":
		codes := map[string]greeting.Code{"accept": greeting.Accept, "refuse": greeting.Refuse, "outdated": greeting.Outdated,
			"duplicate": greeting.Duplicate, "former": greeting.Former, "busy": greeting.Busy, "taken": greeting.Taken, "ended": greeting.Ended}
		in = Input{Kind: Answered, ID: idOf(words[1]), Address: "10.0.1." + words[1][1:], Answer: greeting.Answer{Code: codes[words[2]], Incarnation: number("inc", 5), Reason: "so it says"}}
	case "sample":
		in = Input{Kind: Sampled, ID: idOf(words[1]), Sample: Sample{Heard: span(field("heard", "0s")), Used: span(field("used", "0s")), Reads: number("reads", 0), Deaf: words[len(words)-1] == "deaf"}}
	case "want", "hold", "release":
		kind := map[string]Kind{"want": Wanted, "hold": Held, "release": Released}[words[0]]
		class, _ := strconv.Atoi(words[2])
		in = Input{Kind: kind, Peer: words[1], Class: uint8(class)}
	case "renew":
		in = Input{Kind: Renew, ID: idOf(words[1]), Err: errors.New("used up")}
	case "pinned":
		in = Input{Kind: Pinned}
	case "closing":
		in = Input{Kind: Closing}
	case "learn":
		in = Input{Kind: Learned, Peer: words[1], Incarnation: number("inc", 5)}
	default:
		panic(words[0])
	}
	return t.step(in)
}

func idOf(text string) ID {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "d"), 10, 63)
	if err != nil {
		panic(err)
	}
	if text[0] == 'd' {
		return ID(n) | Dialled
	}
	return ID(n)
}

func (id ID) String() string {
	if id&Dialled != 0 {
		return fmt.Sprintf("d%d", uint64(id&^Dialled))
	}
	return strconv.FormatUint(uint64(id), 10)
}

func (t *trial) step(in ...Input) string {
	t.out.Reset()
	t.c.Step(t.now, in, &t.out)
	var b strings.Builder
	for i := range t.out.Actions {
		b.WriteString(t.out.Actions[i].String() + "\n")
	}
	return b.String()
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
		if again := t.c.Deadline(); again <= t.now {
			panic("the core wants to be stepped again at the same moment")
		}
	}
}

var codeNames = map[greeting.Code]string{greeting.Refuse: "for good", greeting.Outdated: "outdated", greeting.Duplicate: "duplicate", greeting.Former: "former", greeting.Busy: "busy", greeting.Taken: "taken", greeting.Ended: "ended"}

func (a *Action) String() string {
	channel := fmt.Sprintf("%s/%d", a.Peer, a.Class)
	if a.Path != 0 {
		channel = fmt.Sprintf("path %d of %v", a.Path, a.Conn)
	}
	switch a.Do {
	case Dial:
		g := &a.Greeting
		if a.Path != 0 {
			is := map[bool]string{true: " first"}[g.First]
			return fmt.Sprintf("dial %v %s known=%d joins=%d%s", a.ID, channel, g.Known, g.Joins, is)
		}
		return fmt.Sprintf("dial %v %s known=%d accepted=%d", a.ID, channel, g.Known, g.Accepted)
	case Accept:
		return fmt.Sprintf("accept %v %s inc=%d", a.ID, channel, a.Incarnation)
	case Use:
		return fmt.Sprintf("use %v %s inc=%d", a.ID, channel, a.Incarnation)
	case Refuse:
		return fmt.Sprintf("refuse %v %s: %v", a.ID, codeNames[a.Code], a.Err)
	case Close:
		return fmt.Sprintf("close %v: %v", a.ID, a.Err)
	case ClosePath:
		return fmt.Sprintf("close path %v of %v: %v", a.ID, a.Conn, a.Err)
	case Drain:
		return fmt.Sprintf("drain %v: %v", a.ID, a.Err)
	case Ping:
		return fmt.Sprintf("ping %v", a.ID)
	case Check:
		return fmt.Sprintf("check %v", a.ID)
	case Fail:
		return fmt.Sprintf("fail %s: %v", channel, a.Err)
	case Forgot:
		return "forgot " + a.Peer
	case Raise:
		return fmt.Sprintf("raise %d", a.Incarnation)
	case Restarted:
		return fmt.Sprintf("restarted %s: %d after %d", a.Peer, a.Incarnation, a.Before)
	}
	return "?"
}

// state reports how the channel to b in class 0 is.
func (t *trial) state() string {
	p := t.c.peers["b"]
	if p == nil {
		return "unknown"
	}
	l := &p.channels[0]
	var all []string
	for _, k := range p.conns {
		s := map[state]string{dialling: "dials", waiting: "waits", claiming: "claims", up: "up", draining: "drains"}[k.state]
		text := fmt.Sprintf("%s %v", s, k.id)
		if k.paths != nil {
			text += k.paths.String()
		}
		all = append(all, text)
	}
	if l.failures > 0 {
		all = append(all, fmt.Sprintf("failed %d", l.failures))
	}
	if len(all) == 0 {
		return "idle"
	}
	return strings.Join(all, ", ")
}

// String reports the paths of a connection by their pairs: p is up, c is called, t waits for its
// time, 1 is the first one.
func (s *paths) String() string {
	var b strings.Builder
	b.WriteString(" [")
	if k := s.of[0].conn; !k.dialled() && !k.lacksFirst {
		b.WriteString("1 ")
	}
	for i := range s.of {
		p := &s.of[i]
		switch {
		case p.path != nil && p.path.state == up:
			b.WriteString("p")
		case p.path != nil:
			b.WriteString("c")
		case p.redial.Running():
			b.WriteString("t")
		case p.conn.dialled() && p.isFirst() && !p.conn.lacksFirst:
			b.WriteString("1")
		default:
			b.WriteString(".")
		}
	}
	return strings.TrimRight(b.String(), ".") + "]"
}
