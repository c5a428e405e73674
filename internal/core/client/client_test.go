package client

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

var (
	errGone = errors.New("connection refused")
	data    = netip.MustParseAddrPort("10.0.0.1:5")
)

// desk is a client with a transcript of what it is given and what comes out.
type desk struct {
	testing.TB
	core *Core
	now  core.Time
	out  Output
	log  strings.Builder
}

func newDesk(t testing.TB, c Config) *desk {
	t.Helper()
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{TB: t, core: k}
}

// at steps the core at a time, in milliseconds.
func (d *desk) at(ms int, batch ...Input) *Output {
	d.now = core.Time(ms) * core.Time(time.Millisecond)
	for i := range batch {
		fmt.Fprintf(&d.log, "%4d > %s\n", ms, inputText(&batch[i]))
	}
	if len(batch) == 0 {
		fmt.Fprintf(&d.log, "%4d > time\n", ms)
	}
	d.out.Reset()
	d.core.Step(d.now, batch, &d.out)
	for _, line := range outputText(&d.out) {
		fmt.Fprintf(&d.log, "     < %s\n", line)
	}
	return &d.out
}

var kindNames = map[Kind]string{Join: "join", Number: "number", News: "news", Leave: "leave", Up: "up", Down: "down", Said: "said"}

func inputText(in *Input) string {
	text := kindNames[in.Kind]
	switch in.Kind {
	case Up:
	case Down:
		text += fmt.Sprintf(" %v", in.Err)
		if in.Final {
			text += ", for good"
		}
	case Said:
		text += " " + eventText(&in.Event)
	case Join:
		text += fmt.Sprintf(" %d as rank %d", in.Member, in.Joined.Rank)
	case Number:
		text += fmt.Sprintf(" %d: group %d", in.Member, in.Group)
	case News:
		text += fmt.Sprintf(" %d: entered %d, lost %d, demand %d", in.Member, in.Report.Entered, in.Report.Lost, in.Report.Demand)
	default:
		text += fmt.Sprintf(" %d%s", in.Member, overText(in.Over))
	}
	return text
}

func overText(over bool) string {
	if over {
		return ", over"
	}
	return ""
}

// TestWatchesHaveTheSpeed: that of the connection, for members of before and after it.
func TestWatchesHaveTheSpeed(t *testing.T) {
	d := newDesk(t, Config{RetryMin: 1, RetryMax: 1, Release: 1})
	d.at(0, join(1, 1), number(1, 7))
	for i, s := range []topology.Speed{{Bytes: 5}, {}, {Bytes: 7, Packets: topology.NoSpeed}} {
		up := isUp()
		up.Speed = s
		out := d.at(9*i+1, up, join(uint64(10+i), 1), number(uint64(10+i), uint32(10+i)))
		watches := 0
		for _, m := range out.Messages {
			if w, ok := m.(manager.Watch); ok {
				watches++
				if w.Speed != s {
					t.Errorf("connection %d: %+v, want %v", i, w, s)
				}
			}
		}
		if watches != i+2 {
			t.Errorf("connection %d: %d watches", i, watches)
		}
		d.at(9*i+2, isDown(errGone))
		d.at(9*i + 3)
	}
}

// TestRailsAreWatched: what becomes of a host's rails is in the Watch of each member, and
// a repetition of that.
func TestRailsAreWatched(t *testing.T) {
	d := newDesk(t, Config{RetryMin: 1, RetryMax: 1, Release: 1})
	rails := func(fault string) Input {
		return Input{Kind: Rails, OnlyRails: true, Rails: []manager.Rail{{Name: "a", Address: netip.MustParseAddr("10.0.0.1"), Fault: fault}}}
	}
	watches := func(out *Output) (faults []string) {
		for _, m := range out.Messages {
			if w, ok := m.(manager.Watch); ok && w.OnlyRails {
				faults = append(faults, w.Rails[0].Fault)
			}
		}
		return faults
	}
	d.at(0, rails("none"), join(1, 1), number(1, 7), join(2, 1), number(2, 8), join(3, 1)) // 3 has no group
	for i, test := range []struct {
		in   Input
		want []string
	}{
		{isUp(), []string{"none", "none"}},
		{rails("none"), nil}, // that is known
		{rails("no carrier"), []string{"no carrier", "no carrier"}},
		{isDown(errGone), nil},
		{rails(""), nil}, // with the next connection
	} {
		if got := watches(d.at(i+1, test.in)); !slices.Equal(got, test.want) {
			t.Errorf("input %d: %q, want %q", i, got, test.want)
		}
	}
	d.at(10)
	if got := watches(d.at(11, isUp())); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("on the next connection: %q", got)
	}
}

func eventText(e *manager.Event) string {
	switch {
	case e.Reply != nil:
		return fmt.Sprintf("reply to %d: group %d, %v", e.Reply.Req, e.Reply.Group, e.Reply.Err)
	case e.Offer != nil:
		return fmt.Sprintf("offer of epoch %d to rank %d of group %d", e.Offer.Epoch, e.Offer.Rank, e.Offer.Group)
	case e.Withdrawal != nil:
		return fmt.Sprintf("withdrawal of epoch %d to rank %d of group %d", e.Withdrawal.Epoch, e.Withdrawal.Rank, e.Withdrawal.Group)
	case e.Links != nil:
		return fmt.Sprintf("links of group %d: %d bit/s", e.Links.Group, e.Links.Rate)
	case e.Notice != nil:
		return fmt.Sprintf("notice to rank %d of group %d: %v, end %v", e.Notice.Rank, e.Notice.Group, e.Notice.Err, e.Notice.End)
	}
	return "nothing"
}

func outputText(o *Output) (lines []string) {
	if o.Dial {
		lines = append(lines, "dial")
	}
	for _, m := range o.Messages {
		switch v := m.(type) {
		case manager.Create:
			lines = append(lines, fmt.Sprintf("create %q as %d", v.Name, v.Req))
		case manager.Release:
			lines = append(lines, fmt.Sprintf("release group %d as %d", v.Group, v.Req))
		case manager.Watch:
			lines = append(lines, fmt.Sprintf("watch group %d as rank %d in epoch %d", v.Group, v.Rank, v.Entered))
		case manager.Unwatch:
			lines = append(lines, fmt.Sprintf("unwatch group %d as rank %d%s", v.Group, v.Rank, overText(v.Over)))
		case manager.Report:
			lines = append(lines, fmt.Sprintf("report of rank %d of group %d: entered %d, lost %d %s, demand %d", v.Rank, v.Group, v.Entered, v.Lost, v.Reason, v.Demand))
		}
	}
	for i := range o.Notify {
		t := &o.Notify[i]
		e := manager.Event{Offer: t.Offer, Withdrawal: t.Withdrawal, Links: t.Links}
		switch {
		case t.Group != 0:
			lines = append(lines, fmt.Sprintf("notify %d: group %d", t.Member, t.Group))
		case t.Err != nil:
			lines = append(lines, fmt.Sprintf("notify %d: %v, all %v", t.Member, t.Err, t.All))
		default:
			lines = append(lines, fmt.Sprintf("notify %d: %s", t.Member, eventText(&e)))
		}
	}
	for _, g := range o.Gone {
		lines = append(lines, fmt.Sprintf("gone %d: %v", g.Member, g.Err))
	}
	return lines
}

// Inputs, in short.

func join(id uint64, rank uint32) Input {
	j := &Joined{Rank: rank, Data: data, Report: manager.Report{Entered: 1, Transport: manager.HostTree, Demand: 1}}
	if rank == 0 {
		j.Create = &manager.Create{Name: fmt.Sprintf("job-%d", id)}
	}
	return Input{Kind: Join, Member: id, Joined: j}
}

func number(id uint64, group uint32) Input { return Input{Kind: Number, Member: id, Group: group} }

func news(id uint64, r manager.Report) Input { return Input{Kind: News, Member: id, Report: r} }

func leave(id uint64) Input { return Input{Kind: Leave, Member: id} }

func over(id uint64) Input { return Input{Kind: Leave, Member: id, Over: true} }

func isUp() Input { return Input{Kind: Up} }

func isDown(err error) Input { return Input{Kind: Down, Err: err} }

func reply(id uint64, group uint32, err error) Input {
	return Input{Kind: Said, Event: manager.Event{Reply: &manager.Reply{Req: id, Group: group, Err: err}}}
}

func offer(group, rank, epoch uint32) Input {
	return Input{Kind: Said, Event: manager.Event{Offer: &manager.Offer{Group: group, Rank: rank, Epoch: epoch}}}
}

func withdrawal(group, rank, epoch uint32) Input {
	return Input{Kind: Said, Event: manager.Event{Withdrawal: &manager.Withdrawal{Group: group, Rank: rank, Epoch: epoch}}}
}

func links(group uint32, rate int64) Input {
	return Input{Kind: Said, Event: manager.Event{Links: &manager.Links{Group: group, Links: pathsel.Links{Rate: rate}}}}
}

func notice(group, rank uint32, err error, end bool) Input {
	return Input{Kind: Said, Event: manager.Event{Notice: &manager.Notice{Group: group, Rank: rank, Err: err, End: end}}}
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no pause":        func(c *Config) { c.RetryMin = 0 },
		"shorter longest": func(c *Config) { c.RetryMax = c.RetryMin - 1 },
		"no release":      func(c *Config) { c.Release = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJitter(t *testing.T) {
	pauses := map[core.Time]bool{}
	for seed := range uint64(20) {
		c := DefaultConfig()
		c.Seed = seed + 1
		d := newDesk(t, c)
		d.at(0, join(1, 1))
		d.at(0, isDown(errGone))
		p := d.core.Deadline()
		if low, high := core.Time(c.RetryMin*3/4), core.Time(c.RetryMin*5/4); p < low || p > high {
			t.Errorf("seed %d: a pause of %v", seed, time.Duration(p))
		}
		pauses[p] = true
	}
	if len(pauses) < 15 {
		t.Errorf("%d different pauses of 20", len(pauses))
	}
}

// TestLastingErrors: the same request is not sent again after an error that
// cannot pass.
func TestLastingErrors(t *testing.T) {
	for _, err := range lasting {
		d := newDesk(t, DefaultConfig())
		d.at(0, join(1, 0), join(2, 1), isUp(), number(2, 7))
		o := d.at(1, reply(1, 0, fmt.Errorf("create: %w", err)), notice(7, 1, err, true))
		if len(o.Notify) != 2 || !o.Notify[0].All || o.Notify[1].All || d.core.Deadline() != core.Never {
			t.Errorf("%v: %v, and again at %v", err, outputText(o), d.core.Deadline())
		}
		if o := d.at(60_000, number(2, 8)); len(o.Messages) != 2 {
			t.Errorf("%v: another number brings %v", err, outputText(o))
		}
	}
}

// TestManyMembers: a thousand communicators share a connection, and one that
// ends leaves the others.
func TestManyMembers(t *testing.T) {
	for _, n := range []int{1, 20, 200, 1000} {
		d := newDesk(t, DefaultConfig())
		var batch []Input
		for id := range uint64(n) {
			batch = append(batch, join(id+1, 0))
		}
		if o := d.at(0, batch...); !o.Dial || len(o.Messages) > 0 {
			t.Fatalf("%d members: %v", n, outputText(o))
		}
		if o := d.at(1, isUp()); len(o.Messages) != n {
			t.Fatalf("%d members create %d groups", n, len(o.Messages))
		}
		batch = batch[:0]
		for id := range uint64(n) {
			batch = append(batch, reply(id+1, uint32(id+100), nil), number(id+1, uint32(id+100)))
		}
		if o := d.at(2, batch...); len(o.Messages) != 2*n {
			t.Fatalf("%d members watch and report: %d messages", n, len(o.Messages))
		}
		if o := d.at(3, leave(1)); len(o.Messages) != 1 || len(d.core.order) != n {
			t.Errorf("the first leaves: %v", outputText(o))
		}
		if o := d.at(4, reply(1, 100, nil)); len(o.Gone) != 1 || len(d.core.order) != n-1 {
			t.Errorf("and is gone: %v", outputText(o))
		}
	}
}
