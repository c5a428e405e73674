package session

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// A trial is a session driven by lines of text, as the transcripts in testdata
// and the table of transitions use it. A chunk holds four int32.
//
//	new rank=1 window=4 first=0         begin anew, in a group of members=4
//	enter epoch=2 window=2 base=0 held=1,2 probes=2 idle=1s
//	start allreduce 1 2 3 4 5           a sum of int32; its chunks take two numbers
//	start allreduce block 1.5 2 0.1     a sum of float32 in block floating point
//	start reduce:0 1 2                  other collectives, with their root
//	start broadcast:0 1 2               the values count, where this rank is not the root
//	start broadcast of=8 holds=2-4 wants=0-8 each=2 skip=6-8 1 2
//	                                    in parts: the values are those that this rank holds
//	start barrier
//	start last                          the last barrier
//	result 0 7 8 9 10                   from the parent; no values: empty
//	heard 0                             likewise want, lost, error
//	fill 1 5 6 7 8                      from another member
//	finish-last                         another member has ended the last barrier
//	freeze                              reports the report
//	wait 20ms                           lets time pass
//	tick                                steps without input
//	state                               lists what the session holds
//
// In a packet from the parent the words epoch=, cookie=, group=, child=,
// op=, exp= (the exponent), from= change a field; exp= is also for a fill.
type trial struct {
	s    *Session
	cfg  Config
	now  core.Time
	out  Output
	ids  uint64
	ops  map[uint64]Operation
	log  strings.Builder
	link Link
}

const chunkBytes = 16 // four int32

var (
	parentAddr = netip.MustParseAddrPort("10.0.0.1:4791")
	otherAddr  = netip.MustParseAddrPort("10.0.0.2:4791")
)

func newTrial() *trial {
	t := &trial{}
	t.begin(map[string]string{})
	return t
}

func (t *trial) begin(fields map[string]string) {
	t.cfg = Config{Rank: 1, Members: 4, ChunkBytes: chunkBytes, Window: 4}
	first := uint32(0)
	for k, v := range fields {
		switch k {
		case "rank":
			t.cfg.Rank = number(v)
		case "window":
			t.cfg.Window = number(v)
		case "members":
			t.cfg.Members = int(number(v))
		case "first":
			first = number(v)
		}
	}
	s, err := New(t.cfg, first)
	if err != nil {
		panic(err)
	}
	*t = trial{s: s, cfg: t.cfg, ops: map[uint64]Operation{}}
}

func number(s string) uint32 {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

// exponent reads the field exp, 0 if there is none.
func exponent(fields map[string]string) int8 {
	if _, given := fields["exp"]; !given {
		return 0
	}
	return int8(number(fields["exp"]))
}

// rangeOf reads a range, "2-4"; nothing is an empty one.
func rangeOf(s string) (r Range) {
	if from, to, ok := strings.Cut(s, "-"); ok {
		r = Range{int(number(from)), int(number(to))}
	}
	return r
}

func floats(words []string) []byte {
	var b []byte
	for _, w := range words {
		x, err := strconv.ParseFloat(w, 32)
		if err != nil {
			panic(err)
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return b
}

func values(words []string) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, number(w))
	}
	return b
}

// do runs lines and returns what came of them.
func (t *trial) do(lines ...string) string {
	t.log.Reset()
	for _, line := range lines {
		t.run(line)
	}
	return t.log.String()
}

func (t *trial) run(line string) {
	var plain []string
	fields := map[string]string{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			fields[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	t.out.Reset()
	var in []Input
	switch plain[0] {
	case "new":
		t.begin(fields)
		return
	case "state":
		t.state()
		return
	case "freeze":
		t.report(t.s.Freeze())
		return
	case "enter":
		t.enter(fields)
	case "start":
		if err := t.s.Start(t.operation(plain[1:], fields)); err != nil {
			fmt.Fprintln(&t.log, err)
			return
		}
	case "fill":
		if !t.s.Fill(t.now, number(plain[1]), values(plain[2:]), exponent(fields), &t.out) {
			fmt.Fprintln(&t.log, "not awaited")
		}
	case "finish-last":
		if !t.s.FinishLast(t.now, &t.out) {
			fmt.Fprintln(&t.log, "not to be ended")
		}
	case "wait":
		d, err := time.ParseDuration(plain[1])
		if err != nil {
			panic(err)
		}
		t.now = t.now.Add(d)
	case "tick":
	default:
		in = append(in, t.packet(plain, fields))
	}
	before := t.s.Counters().Discarded
	t.s.Step(t.now, in, &t.out)
	t.notify()
	if t.s.Counters().Discarded > before {
		fmt.Fprintln(&t.log, "discarded")
	}
}

func (t *trial) enter(fields map[string]string) {
	t.link = Link{Group: 9, Cookie: 7, Parent: parentAddr, Index: 3, Epoch: number(fields["epoch"]), Window: t.cfg.Window}
	d := Decision{Base: t.s.base}
	if v, ok := fields["base"]; ok {
		d.Base = number(v)
	}
	if v, ok := fields["window"]; ok {
		t.link.Window = number(v)
	}
	if v, ok := fields["index"]; ok {
		t.link.Index = uint16(number(v))
	}
	if v, ok := fields["probes"]; ok {
		t.link.Probes = int(number(v))
	}
	if v, ok := fields["idle"]; ok {
		t.link.Idle, _ = time.ParseDuration(v)
	}
	d.Held.Init(d.Base, 64)
	if v, ok := fields["held"]; ok {
		for _, n := range strings.Split(v, ",") {
			d.Held.Set(number(n))
		}
	}
	if err := t.s.Enter(t.now, t.link, d, &t.out); err != nil {
		fmt.Fprintln(&t.log, err)
	}
}

func (t *trial) operation(words []string, fields map[string]string) Operation {
	t.ids++
	kind, root, _ := strings.Cut(words[0], ":")
	words = words[1:]
	o := Operation{ID: t.ids, Element: reduce.Int32, Function: reduce.Sum}
	if len(words) > 0 && words[0] == "block" {
		words, o.Element = words[1:], reduce.Block32
	}
	o.Elements = len(words)
	if root != "" {
		o.Root = number(root)
	}
	switch kind {
	case "allreduce":
		o.Collective = wire.Allreduce
	case "reduce":
		o.Collective = wire.Reduce
	case "broadcast":
		o.Collective, o.Function = wire.Broadcast, reduce.NoFunction
	case "barrier", "last":
		o.Collective, o.Function, o.Element, o.Last = wire.Barrier, reduce.NoFunction, 0, kind == "last"
	}
	if of, ok := fields["of"]; ok {
		o.Elements = int(number(of))
		p := &Parts{Holds: rangeOf(fields["holds"]), Wants: rangeOf(fields["wants"]), Skip: rangeOf(fields["skip"]), Mark: 99, Said: o.Elements}
		if each, ok := fields["each"]; ok {
			p.Each = int(number(each))
		}
		o.Parts, o.In, o.Out = p, values(words), make([]byte, 4*p.Wants.size())
		t.ops[o.ID] = o
		return o
	}
	if o.Source(t.cfg.Rank) || !o.Collective.Copies() {
		if o.Element == reduce.Block32 {
			o.In = floats(words)
		} else {
			o.In = values(words)
		}
	}
	if o.Sink(t.cfg.Rank) {
		o.Out = make([]byte, 4*o.Elements)
	}
	t.ops[o.ID] = o
	return o
}

// packet makes a packet of the parent's; of a result, the signature is that of
// the number's chunk.
func (t *trial) packet(plain []string, fields map[string]string) Input {
	n := number(plain[1])
	h := wire.Header{Chunk: n, Group: t.link.Group, Epoch: t.link.Epoch, Cookie: t.link.Cookie, Child: t.link.Index}
	var payload []byte
	switch plain[0] {
	case "result":
		h.Type, h.Signature = wire.Result, wire.Signature{Collective: wire.Barrier}
		if c := t.s.at(n); c.is(n) {
			h.Signature = c.signature()
		}
		if c := t.s.at(n); c.credit || c.op != nil && c.sink {
			h.Flags = wire.Sink
		}
		payload = values(plain[2:])
	case "heard":
		h.Type = wire.Heard
	case "want":
		h.Type = wire.Want
	case "lost":
		h.Type = wire.Lost
	case "error":
		h.Type = wire.Error
		barrier := wire.Signature{Collective: wire.Barrier}
		body := wire.ErrorBody{Kind: wire.Mismatch, Rank: [2]uint32{1, 2}, Says: [2]wire.Signature{barrier, barrier}}
		payload = make([]byte, wire.ErrorBodySize)
		body.Put(payload)
	default:
		panic("unknown command " + plain[0])
	}
	from := parentAddr
	h.Exponent = exponent(fields)
	for k, v := range fields {
		switch k {
		case "epoch":
			h.Epoch = number(v)
		case "cookie":
			h.Cookie = wire.Cookie(number(v))
		case "group":
			h.Group = number(v)
		case "child":
			h.Child = uint16(number(v))
		case "op":
			h.Operation = uint16(number(v))
		case "from":
			from = otherAddr
		}
	}
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(payload))
	h.Put(b)
	return Input{From: from, Packet: append(b, payload...)}
}

// notify writes the output down.
func (t *trial) notify() {
	for i := range t.out.Sends {
		fmt.Fprintln(&t.log, describe(&t.out.Sends[i]))
	}
	for _, c := range t.out.Completions {
		fmt.Fprintf(&t.log, "done %d chunks=%d offload=%d epochs=%d-%d", c.ID, c.Chunks, c.OffloadDone, c.FirstEpoch, c.LastEpoch)
		writeOut(&t.log, t.ops[c.ID])
		t.log.WriteByte('\n')
	}
	if l := t.out.Loss; l != nil {
		fmt.Fprintf(&t.log, "loss epoch=%d chunk=%d said=%v probes=%d over=%v quiet=%v\n", l.Epoch, l.Chunk, l.Said, l.Probes, l.Over, l.Quiet)
	}
	if d := t.out.Disagreement; d != nil {
		fmt.Fprintf(&t.log, "disagreement chunk=%d ranks=%d,%d\n", d.Chunk, d.Body.Rank[0], d.Body.Rank[1])
	}
}

// writeOut writes an operation's result.
func writeOut(b *strings.Builder, o Operation) {
	if o.Element != reduce.Block32 {
		writeValues(b, o.Out)
		return
	}
	for i := 0; i+4 <= len(o.Out); i += 4 {
		fmt.Fprintf(b, " %g", math.Float32frombits(binary.LittleEndian.Uint32(o.Out[i:])))
	}
}

func writeValues(b *strings.Builder, v []byte) {
	for i := 0; i+4 <= len(v); i += 4 {
		fmt.Fprintf(b, " %d", int32(binary.LittleEndian.Uint32(v[i:])))
	}
}

func describe(s *Send) string {
	var h wire.Header
	payload, fault := h.Decode(append(s.Head[:], s.Body...))
	if fault != wire.NoFault {
		return fmt.Sprintf("MALFORMED %v", fault)
	}
	var b strings.Builder
	switch h.Type {
	case wire.Contribution:
		fmt.Fprintf(&b, "contribution %d %v", h.Chunk, h.Collective)
		writeValues(&b, payload)
		if h.Element == reduce.Block32 {
			fmt.Fprintf(&b, " exp=%d", h.Exponent)
		}
		if h.Flags&wire.Source != 0 {
			b.WriteString(" source")
		}
		if h.Flags&wire.Sink != 0 {
			b.WriteString(" sink")
		}
	case wire.Probe:
		fmt.Fprintf(&b, "probe %d", h.Chunk)
		if h.Flags&wire.Idle != 0 {
			b.WriteString(" idle")
		}
	}
	fmt.Fprintf(&b, " epoch=%d", h.Epoch)
	return b.String()
}

var stateNames = [...]string{"vacant", "flying", "awaited", "done"}

// of reports the state of number n.
func (t *trial) of(n uint32) string {
	c := t.s.at(n)
	if !c.is(n) {
		return "vacant"
	}
	text := stateNames[c.state]
	if c.credit {
		text += ", to be confirmed"
	}
	if c.pending() && !c.sent {
		text += " unsent"
	}
	return text
}

func (t *trial) state() {
	s := t.s
	fmt.Fprintf(&t.log, "base=%d next=%d created=%d fresh=%d", s.base, s.next, s.created, s.fresh)
	if s.frozen {
		t.log.WriteString(" frozen")
	}
	t.log.WriteByte('\n')
	for n := s.base - s.cfg.Window; n != s.created; n++ {
		if t.of(n) != "vacant" {
			fmt.Fprintf(&t.log, "%d: %s\n", n, t.of(n))
		}
	}
}

func (t *trial) report(r Report) {
	fmt.Fprintf(&t.log, "report base=%d held=%v lack=%v\n", r.Base, list(&r.Held), list(&r.Lack))
}

func list(s *wire.Numbers) []uint32 {
	all := []uint32{}
	s.Each(func(n uint32) { all = append(all, n) })
	return all
}
