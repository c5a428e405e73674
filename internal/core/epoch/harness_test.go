package epoch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// A trial is one member's part in the agreement, driven by lines of text, as
// the transcripts in testdata and the table of transitions use it. The rest of
// the member is reported by the line "member", and reports what is asked of it.
//
//	new rank=2 parent=0 children=3,4
//	member base=5 held=4,6 lack=5 last     what Freeze reports; last: the last barrier can be ended;
//	                                       aside=6: it keeps no result of 6
//	connected 0
//	dead 3
//	offer 4                                also withdraw, lost
//	notice 7
//	failed cancel rank=2                   the member found the end: disagree, dead, cancel, internal or revoked
//	last-done
//	from 0 collect round=1                 a frame, with its fields
//	from 3 report round=1 base=5 offers=2,4 held=5 lack=4
//	from 0 decide round=1 epoch=3 base=4 held=4 give=4 rank=9 why
//	from 3 fill round=1 chunk=4            also alarm, holding, goodbye, fail, notice
type trial struct {
	c     *Core
	out   Output
	log   strings.Builder
	fake  session.Report
	aside []uint32 // numbers whose result the member does not want
	last  bool
}

const window = 4

func newTrial() *trial {
	t := &trial{}
	t.begin(map[string]string{"rank": "2", "parent": "0", "children": "3"})
	return t
}

func (t *trial) begin(f fields) {
	cfg := Config{Rank: f.number("rank"), Parent: NoParent, Children: f.list("children"), Window: window}
	if _, ok := f["parent"]; ok {
		cfg.Parent = int(f.number("parent"))
	}
	c, err := New(cfg, 1, t)
	if err != nil {
		panic(err)
	}
	t.c, t.last = c, false
	t.setMember(fields{})
}

type fields map[string]string

func (f fields) number(name string) uint32 {
	if f[name] == "" {
		return 0
	}
	n, err := strconv.ParseUint(f[name], 0, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

func (f fields) list(name string) []uint32 {
	var all []uint32
	if f[name] != "" {
		for _, v := range strings.Split(f[name], ",") {
			all = append(all, fields{"n": v}.number("n"))
		}
	}
	return all
}

func (f fields) numbers(name string, from uint32, span int) wire.Numbers {
	var s wire.Numbers
	s.Init(from, span)
	for _, n := range f.list(name) {
		s.Set(n)
	}
	return s
}

func (t *trial) setMember(f fields) {
	base := f.number("base")
	t.aside = f.list("aside")
	t.fake = session.Report{
		Base: base,
		Held: f.numbers("held", base-window, 2*window),
		Lack: f.numbers("lack", base-window, 2*window),
	}
}

// The side of the member.

func (t *trial) Freeze() session.Report {
	fmt.Fprintln(&t.log, "member: freeze")
	return t.fake
}

func (t *trial) Enter(_ core.Time, epoch uint32, link *session.Link, d session.Decision, reason string) error {
	transport := "hosts"
	if link != nil {
		transport = "switches"
	}
	fmt.Fprintf(&t.log, "member: enter %d over %s base=%d held=%v: %s\n", epoch, transport, d.Base, list(&d.Held), reason)
	if epoch == 99 {
		return errors.New("cannot enter 99")
	}
	return nil
}

func (t *trial) Forget(n uint32) { fmt.Fprintf(&t.log, "member: forget before %d\n", n) }

func (t *trial) Kept(n uint32) ([]byte, int8, bool) {
	return []byte{byte(n)}, -int8(n), t.fake.Held.Has(n)
}

func (t *trial) Fill(_ core.Time, n uint32, data []byte, exponent int8) {
	fmt.Fprintf(&t.log, "member: fill %d %v exp=%d\n", n, data, exponent)
	if !slices.Contains(t.aside, n) {
		t.fake.Held.Set(n)
	}
}

func (t *trial) FinishLast(core.Time) bool {
	if t.last {
		fmt.Fprintln(&t.log, "member: finish last")
	}
	return t.last
}

func (t *trial) End(f wire.Fail) { fmt.Fprintf(&t.log, "member: end %s\n", failText(&f)) }

func (t *trial) do(lines ...string) string {
	t.log.Reset()
	for _, line := range lines {
		t.run(line)
	}
	return t.log.String()
}

func parse(line string) (plain []string, f fields) {
	f = fields{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			f[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	return plain, f
}

func (t *trial) run(line string) {
	plain, f := parse(line)
	var in Input
	switch plain[0] {
	case "new":
		t.begin(f)
		return
	case "member":
		t.setMember(f)
		t.last = slices.Contains(plain, "last")
		return
	case "connected":
		in = Input{Kind: Connected, From: fields{"n": plain[1]}.number("n")}
	case "dead":
		in = Input{Kind: Dead, From: fields{"n": plain[1]}.number("n"), Reason: "no answer"}
	case "offer":
		link := session.Link{Epoch: fields{"n": plain[1]}.number("n"), Window: window, Parent: netip.MustParseAddrPort("10.0.0.1:1")}
		in = Input{Kind: Offered, Link: link}
	case "withdraw":
		in = Input{Kind: Withdrawn, Epoch: fields{"n": plain[1]}.number("n")}
	case "lost":
		in = Input{Kind: Lost, Epoch: fields{"n": plain[1]}.number("n"), Reason: "no answer"}
	case "notice":
		in = Input{Kind: Noticed, Notice: wire.Notice{Group: fields{"n": plain[1]}.number("n")}}
	case "failed":
		in = Input{Kind: Failed, Fail: failOf(plain[1:], f)}
	case "rested":
		in = Input{Kind: Rested, Number: fields{"n": plain[1]}.number("n")}
	case "last-done":
		in = Input{Kind: LastDone}
	case "from":
		in = Input{Kind: Message, From: fields{"n": plain[1]}.number("n"), Frame: frameOf(plain[2:], f)}
	default:
		panic("unknown command " + plain[0])
	}
	t.out.Reset()
	t.c.Step(0, []Input{in}, &t.out)
	for _, s := range t.out.Sends {
		fmt.Fprintf(&t.log, "to %d: %s\n", s.To, frameText(s.Frame))
	}
	if t.out.Notice != nil {
		fmt.Fprintf(&t.log, "notice %d\n", t.out.Notice.Group)
	}
	if t.out.Gone {
		fmt.Fprintln(&t.log, "gone")
	}
}

var failNames = []string{"", "disagree", "dead", "cancel", "internal", "calls", "revoked"}

func failOf(words []string, f fields) wire.Fail {
	fail := wire.Fail{Kind: wire.FailKind(slices.Index(failNames, words[0])), Rank: f.number("rank")}
	if fail.Kind == wire.FailDisagree {
		s := wire.Signature{Collective: wire.Barrier}
		fail.Error = wire.ErrorBody{Kind: wire.Mismatch, Rank: [2]uint32{1, 2}, Says: [2]wire.Signature{s, s}}
	}
	return fail
}

func frameOf(words []string, f fields) any {
	base := f.number("base")
	switch words[0] {
	case "collect":
		return &wire.Collect{Round: f.number("round")}
	case "report":
		return &wire.Report{
			Round: f.number("round"), Base: base, Offers: f.list("offers"),
			Held: f.numbers("held", base-window, 2*window), Lack: f.numbers("lack", base-window, 2*window),
		}
	case "decide":
		return &wire.Decide{
			Round: f.number("round"), Epoch: f.number("epoch"), Base: base, Rank: f.number("rank"),
			Held: f.numbers("held", base, window), Give: f.numbers("give", base, window), Reason: strings.Join(words[1:], " "),
		}
	case "fill":
		return &wire.Fill{Round: f.number("round"), Chunk: f.number("chunk"), Exponent: -7, Data: []byte{77}}
	case "alarm":
		return &wire.Alarm{Epoch: f.number("epoch"), Rank: f.number("rank"), Reason: "no answer"}
	case "holding":
		return &wire.Holding{Epoch: f.number("epoch")}
	case "settled":
		return &wire.Settled{Number: f.number("before")}
	case "goodbye":
		return wire.FrameGoodbye
	case "notice":
		return &wire.Notice{Group: f.number("group")}
	case "fail":
		fail := failOf(words[1:], f)
		return &fail
	}
	panic("unknown frame " + words[0])
}

func list(s *wire.Numbers) []uint32 {
	all := []uint32{}
	s.Each(func(n uint32) { all = append(all, n) })
	return all
}

func failText(f *wire.Fail) string {
	text := fmt.Sprintf("%s rank=%d", failNames[f.Kind], f.Rank)
	if f.Kind == wire.FailDisagree {
		text += fmt.Sprintf(" between=%v", f.Error.Rank)
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

func frameText(b []byte) string {
	m, err := wire.ReadFrame(b)
	if err != nil {
		return err.Error()
	}
	switch m := m.(type) {
	case *wire.Collect:
		return fmt.Sprintf("collect round=%d epoch=%d", m.Round, m.Epoch)
	case *wire.Report:
		return fmt.Sprintf("report round=%d base=%d offers=%v held=%v lack=%v", m.Round, m.Base, m.Offers, list(&m.Held), list(&m.Lack))
	case *wire.Decide:
		return fmt.Sprintf("decide round=%d epoch=%d base=%d held=%v give=%v rank=%d: %s", m.Round, m.Epoch, m.Base, list(&m.Held), list(&m.Give), m.Rank, m.Reason)
	case *wire.Fill:
		return fmt.Sprintf("fill round=%d chunk=%d %v exp=%d", m.Round, m.Chunk, m.Data, m.Exponent)
	case *wire.Alarm:
		return fmt.Sprintf("alarm epoch=%d rank=%d: %s", m.Epoch, m.Rank, m.Reason)
	case *wire.Holding:
		return fmt.Sprintf("holding epoch=%d", m.Epoch)
	case *wire.Settled:
		return fmt.Sprintf("settled before=%d", m.Number)
	case *wire.Notice:
		return fmt.Sprintf("notice group=%d", m.Group)
	case *wire.Fail:
		return "fail " + failText(m)
	}
	return "goodbye"
}

var phaseNames = [...]string{"running", "collecting", "left", "ended"}

// String returns all of a core's state that its rules depend upon.
func (c *Core) String() string {
	text := fmt.Sprintf("%s %d round=%d", phaseNames[c.phase], c.epoch, c.round)
	if c.phase == collecting && c.reported {
		text += " reported"
	}
	if c.alarm != nil {
		text += " alarm"
	}
	if c.fail != nil && c.phase != ended {
		text += " failing"
	}
	return text
}
