package switchreduce

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// A trial is a core driven by lines of text, as the transcripts in testdata
// and the transition table use it. Neighbours are named by one letter: p is the
// parent, a, b, c ... are the children by index, x is a stranger.
//
//	install epoch=2 window=2 children=0,3 [parent=yes] [index=1] [probes=2] [lease=3s] [chunk=64] [cookie=7] [group=9]
//	retire epoch=2
//	a contribution 5 7 8              int32 values to be summed by an allreduce
//	a contribution 5 reduce:1 7 8     other collectives, with their root
//	a contribution 5 broadcast:1      ... without the vector
//	a contribution 5 barrier
//	p result 5 7 8                    a result, with its payload or (flag nosink) without
//	a probe 5                         likewise heard, want, lost; flag idle
//	a error 5 mismatch
//
// Words of the form field=value change a field of the packet: epoch, cookie,
// group, child, op, count (of the chunk's elements), exp (the exponent), from. The word sink sets
// the flag where it is not the default of the collective, nosink unsets it; float32 and block32 make
// the values of that type.
type trial struct {
	core *Core
	cfg  Config
	now  core.Time
	out  Output
	in   []Input
}

func newTrial() *trial { return &trial{core: New()} }

func addr(name string) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, name[0]}), 4791)
}

func nameOf(a netip.AddrPort) string {
	b := a.Addr().As4()
	return string(rune(b[3]))
}

// words splits a line into its plain words and its field=value pairs.
func words(line string) (plain []string, fields map[string]string) {
	fields = map[string]string{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			fields[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	return plain, fields
}

func number(s string) uint32 {
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

// queue adds what a line says to the batch.
func (t *trial) queue(line string) {
	plain, fields := words(line)
	switch plain[0] {
	case "install":
		t.in = append(t.in, Input{Kind: Install, Config: t.config(fields)})
	case "retire":
		t.in = append(t.in, Input{Kind: Retire, Epoch: number(fields["epoch"])})
	default:
		t.in = append(t.in, t.packet(plain, fields))
	}
}

func (t *trial) config(fields map[string]string) *Config {
	cfg := Config{Group: 9, Cookie: 7, ChunkBytes: 64}
	for k, v := range fields {
		switch k {
		case "epoch":
			cfg.Epoch = number(v)
		case "window":
			cfg.Window = number(v)
		case "group":
			cfg.Group = number(v)
		case "cookie":
			cfg.Cookie = wire.Cookie(number(v))
		case "chunk":
			cfg.ChunkBytes = int(number(v))
		case "index":
			cfg.Index = uint16(number(v))
		case "probes":
			cfg.Probes = int(number(v))
		case "parent":
			cfg.Parent = addr("p")
		case "lease":
			d, err := time.ParseDuration(v)
			if err != nil {
				panic(err)
			}
			cfg.Lease = d
		case "children":
			for i, rank := range strings.Split(v, ",") {
				cfg.Children = append(cfg.Children, Child{Addr: addr(string(rune('a' + i))), Lowest: number(rank)})
			}
		default:
			panic("unknown field " + k)
		}
	}
	for i := range cfg.Children {
		cfg.Children[i].Cookie = cfg.Cookie + wire.Cookie(i+1)*16
	}
	if cfg.Validate() == nil && cfg.Epoch > t.cfg.Epoch {
		t.cfg = cfg
		t.cfg.Children = slices.Clone(cfg.Children)
	}
	return &cfg
}

// packet makes the packet "sender type number ...".
func (t *trial) packet(plain []string, fields map[string]string) Input {
	sender := plain[0]
	h := wire.Header{
		Type: typeNamed(plain[1]), Chunk: number(plain[2]),
		Group: t.cfg.Group, Epoch: t.cfg.Epoch, Cookie: t.cfg.Cookie,
		Child: t.cfg.Index,
	}
	if i := int(sender[0] - 'a'); i < len(t.cfg.Children) {
		h.Child, h.Lowest, h.Cookie = uint16(i), t.cfg.Children[i].Lowest, t.cfg.Children[i].Cookie
	}
	var payload []byte
	switch h.Type {
	case wire.Contribution, wire.Result:
		payload = fill(&h, plain[3:])
	case wire.Error:
		payload = errorNamed(plain[3])
	case wire.Probe:
		if len(plain) > 3 {
			h.Flags = wire.Idle
		}
	default:
	}
	from := addr(sender)
	for k, v := range fields {
		if k == "from" {
			from = addr(v)
			continue
		}
		setField(&h, k, v)
	}
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(payload))
	h.Put(b)
	return Input{From: from, Packet: append(b, payload...)}
}

func typeNamed(s string) wire.Type {
	for t, name := range packetNames {
		if name == s {
			return wire.Type(t)
		}
	}
	panic("unknown packet type " + s)
}

var packetNames = [...]string{"", "contribution", "result", "probe", "heard", "want", "lost", "error"}

func setField(h *wire.Header, k, v string) {
	if k == "exp" {
		e, err := strconv.ParseInt(v, 0, 8)
		if err != nil {
			panic(err)
		}
		h.Exponent = int8(e)
		return
	}
	n := number(v)
	switch k {
	case "epoch":
		h.Epoch = n
	case "cookie":
		h.Cookie = wire.Cookie(n)
	case "group":
		h.Group = n
	case "child":
		h.Child = uint16(n)
	case "op":
		h.Operation = uint16(n)
	case "count":
		h.ChunkElements = uint16(n)
	default:
		panic("unknown field " + k)
	}
}

// fill sets h's signature and flags from words and returns the payload.
func fill(h *wire.Header, args []string) []byte {
	h.Signature = wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 100, ChunkElements: 2}
	sink := true
	var values []byte
	for _, a := range args {
		kind, root, _ := strings.Cut(a, ":")
		switch kind {
		case "allreduce":
		case "float32":
			h.Element = reduce.Float32
		case "block32":
			h.Element = reduce.Block32
		case "reduce":
			h.Collective, h.Root = wire.Reduce, number(root)
			sink = h.Root == h.Lowest
		case "broadcast":
			h.Collective, h.Root, h.Function = wire.Broadcast, number(root), reduce.NoFunction
			sink = h.Root != h.Lowest
		case "barrier":
			h.Signature = wire.Signature{Collective: wire.Barrier}
		case "empty":
			h.Elements, h.ChunkElements = 0, 0
		case "sink", "nosink":
			sink = kind == "sink"
		default:
			values = appendValue(values, h.Element, a)
		}
	}
	if n := len(values) / max(h.Element.Size(), 1); n > 0 {
		h.ChunkElements = uint16(n)
	}
	if sink {
		h.Flags |= wire.Sink
	}
	if h.Type == wire.Contribution && h.Collective.Copies() && (len(values) > 0 || h.Root == h.Lowest && h.ChunkElements == 0) {
		h.Flags |= wire.Source
	}
	return values
}

func appendValue(b []byte, t reduce.Type, word string) []byte {
	if t == reduce.Float32 {
		f, err := strconv.ParseFloat(word, 32)
		if err != nil {
			panic(err)
		}
		return append(b, reduce.Bytes([]float32{float32(f)})...)
	}
	v, err := strconv.ParseInt(word, 0, 32)
	if err != nil {
		panic(err)
	}
	return binary.LittleEndian.AppendUint32(b, uint32(v))
}

var errorKinds = map[string]wire.ErrorKind{"mismatch": wire.Mismatch, "two-sources": wire.TwoSources, "no-source": wire.NoSource}

func errorNamed(kind string) []byte {
	s := wire.Signature{Collective: wire.Barrier}
	body := wire.ErrorBody{Kind: errorKinds[kind], Rank: [2]uint32{1, 2}, Says: [2]wire.Signature{s, s}}
	b := make([]byte, wire.ErrorBodySize)
	body.Put(b)
	return b
}

// do steps the core with the lines and returns what came of it, a line each:
// packets as "to type number ...", drops by their reasons, and expired epochs.
func (t *trial) do(lines ...string) string {
	for _, line := range lines {
		t.queue(line)
	}
	return t.flush()
}

func (t *trial) flush() string {
	before := t.core.Counters()
	t.out.Reset()
	t.core.Step(t.now, t.in, &t.out)
	t.in = t.in[:0]
	var b strings.Builder
	for i := range t.out.Sends {
		fmt.Fprintln(&b, describe(&t.out.Sends[i]))
	}
	after := t.core.Counters()
	for d := range Drop(Drops) {
		for range after.Drops[d] - before.Drops[d] {
			fmt.Fprintln(&b, "drop", d)
		}
	}
	for _, e := range t.out.Expired {
		fmt.Fprintln(&b, "expired", e)
	}
	return b.String()
}

// describe writes a packet as the words that packet reads, and more.
func describe(s *Send) string {
	var h wire.Header
	raw := append(s.Head[:], s.Body...)
	payload, fault := h.Decode(raw)
	if fault != wire.NoFault {
		return fmt.Sprintf("%s MALFORMED %v", nameOf(s.To), fault)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %d", nameOf(s.To), packetNames[h.Type], h.Chunk)
	switch h.Type {
	case wire.Contribution, wire.Result:
		fmt.Fprintf(&b, " %v", h.Collective)
		if h.Collective == wire.Reduce || h.Collective == wire.Broadcast {
			fmt.Fprintf(&b, ":%d", h.Root)
		}
		describeValues(&b, h.Element, payload)
		if h.Element == reduce.Block32 {
			fmt.Fprintf(&b, " exp=%d", h.Exponent)
		}
		if h.Flags&wire.Source != 0 {
			b.WriteString(" source")
		}
		if h.Flags&wire.Sink != 0 {
			b.WriteString(" sink")
		}
	case wire.Error:
		var e wire.ErrorBody
		e.Decode(payload)
		for name, kind := range errorKinds {
			if kind == e.Kind {
				fmt.Fprintf(&b, " %s ranks=%d,%d", name, e.Rank[0], e.Rank[1])
			}
		}
	case wire.Probe:
		if h.Flags&wire.Idle != 0 {
			b.WriteString(" idle")
		}
	default:
	}
	fmt.Fprintf(&b, " child=%d epoch=%d", h.Child, h.Epoch)
	return b.String()
}

func describeValues(b *strings.Builder, t reduce.Type, payload []byte) {
	for i := 0; i+4 <= len(payload); i += 4 {
		bits := binary.LittleEndian.Uint32(payload[i:])
		if t == reduce.Float32 {
			fmt.Fprintf(b, " %g(%#x)", math.Float32frombits(bits), bits)
			continue
		}
		fmt.Fprintf(b, " %d", int32(bits))
	}
}

// dump lists the slots that are not vacant.
func (t *trial) dump() string {
	var b strings.Builder
	i := 0
	t.core.each(func(s *slot) {
		if s.state != vacant {
			fmt.Fprintf(&b, "slot %d: %s\n", i, s)
		}
		i++
	})
	return b.String()
}

var stateNames = [...]string{"vacant", "open", "complete", "finished", "failed"}

// String returns all of a slot that matters to its rules.
func (s *slot) String() string {
	if s.state == vacant {
		return "vacant"
	}
	text := fmt.Sprintf("%s %d epoch=%d", stateNames[s.state], s.number, s.epoch)
	if s.state == open {
		text += " has="
		for i := range 64 * len(s.contributed()) {
			if has(s.contributed(), i) {
				text += string(rune('a' + i))
			}
		}
	}
	if s.unanswered > 0 {
		text += fmt.Sprintf(" unanswered=%d", s.unanswered)
	}
	if s.lost {
		text += " lost"
	}
	return text
}
