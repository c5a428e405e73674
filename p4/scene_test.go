package p4_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// A scene is one tree on one switch, driven by lines of text: by a pipeline or
// by the core that it must do as. Neighbours are named by a letter: p is the
// parent, a, b, c ... are the children by index, x is a stranger.
//
//	install epoch=2 window=2 children=0,3 [parent=yes] [index=1] [probes=2] [chunk=64] [cookie=7|cookies=1] [group=9]
//	retire epoch=2
//	a contribution 5 [allreduce|reduce:R|broadcast:R|barrier] [sum ...] [int32 ...] [values ...] [source] [sink|nosink]
//	p result 5 ...                    likewise
//	a probe 5 [idle]                  likewise heard, want, lost
//	a error 5 mismatch                or two-sources, no-source
//
// Values are integers, or those of count=N seed=S. Words of the form field=value
// change a field of the packet: epoch, cookie, tree, group, child, op, of (the
// elements of the operation), count (of the chunk), exponent, version, type,
// flags, kind (of an error). cut=N shortens the packet to N bytes, pad=N
// lengthens it by N. secret=b is the cookie of another neighbour; port=N is the port by
// which the packet comes in, if that is not the sender's. damage=udp, ip, frame, none
// spoils a checksum, loses the end of the frame, or leaves the checksum of UDP out.
//
// The parent has the cookie of the install line, and the children the numbers after it;
// or all have random ones of a seed, cookies.
type scene struct {
	target target
	cfgs   []switchreduce.Config // installed, in rising order
	cfg    switchreduce.Config   // the newest valid one
}

// A target is what a scene drives.
type target interface {
	// begin makes a tree that has no epoch.
	begin()
	install(*switchreduce.Config)
	retire(epoch uint32)
	// packet takes a packet in and returns all that leave, and the outcome.
	packet(from netip.AddrPort, port uint16, b []byte, damage string) ([]sent, []string)
}

// sent is a packet that has left.
type sent struct {
	to netip.AddrPort
	b  []byte
}

const strangers = 99

// port returns the port of the switch that a neighbour is at.
func portOf(name byte) uint16 {
	switch {
	case name == 'p':
		return 1
	case name == 'x':
		return 2
	}
	return 2 + uint16(name-'a')%2
}

// addr returns the address of a neighbour. Some share one, and differ by their
// UDP ports.
func addr(name byte) netip.AddrPort {
	host, port := byte(10), uint16(4791)
	switch name {
	case 'p':
	case 'x':
		host = strangers
	default:
		host, port = 10+(name-'a')/4, 5000+uint16(name)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(portOf(name)), host}), port)
}

func nameOf(a netip.AddrPort) string {
	for name := byte('a'); name <= 'z'; name++ {
		if name != 'x' && addr(name) == a || name == 'x' && a.Addr() == addr('x').Addr() {
			return string(name)
		}
	}
	return a.String()
}

// run carries out the lines of a block and returns what comes of them.
func (s *scene) run(t *testing.T, lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(s.do(t, line))
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func (s *scene) do(t *testing.T, line string) string {
	t.Helper()
	var plain []string
	fields := map[string]string{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			fields[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	switch plain[0] {
	case "install":
		cfg := config(t, fields)
		s.cfgs = append(s.cfgs, cfg)
		s.cfg = cfg
		s.target.install(&cfg)
		return ""
	case "retire":
		s.target.retire(number(t, fields["epoch"]))
		return ""
	}
	from, b := s.build(t, plain, fields)
	port := portOf(plain[0][0])
	if v, ok := fields["port"]; ok {
		port = uint16(number(t, v))
	}
	out, outcomes := s.target.packet(from, port, b, fields["damage"])
	return describe(out, outcomes)
}

func number(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func config(t *testing.T, fields map[string]string) switchreduce.Config {
	t.Helper()
	cfg := switchreduce.Config{Group: 9, ChunkBytes: 1432, Window: 4}
	for k, v := range fields {
		switch k {
		case "children":
			for i, rank := range strings.Split(v, ",") {
				cfg.Children = append(cfg.Children, switchreduce.Child{Addr: addr('a' + byte(i)), Lowest: number(t, rank)})
			}
		case "parent":
			cfg.Parent = addr('p')
		case "epoch":
			cfg.Epoch = number(t, v)
		case "window":
			cfg.Window = number(t, v)
		case "group":
			cfg.Group = number(t, v)
		case "cookie", "cookies": // below
		case "chunk":
			cfg.ChunkBytes = int(number(t, v))
		case "index":
			cfg.Index = uint16(number(t, v))
		case "probes":
			cfg.Probes = int(number(t, v))
		default:
			t.Fatalf("unknown field %q", k)
		}
	}
	secrets(t, &cfg, fields)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// secrets gives each neighbour its cookie.
func secrets(t *testing.T, cfg *switchreduce.Config, fields map[string]string) {
	t.Helper()
	cookie := wire.Cookie(number(t, cmp.Or(fields["cookie"], "7")))
	next := func() wire.Cookie { cookie++; return cookie - 1 }
	if seed, ok := fields["cookies"]; ok {
		r := rand.New(rand.NewPCG(uint64(number(t, seed)), 4))
		next = func() wire.Cookie { return wire.Cookie(r.Uint64() & wire.CookieMask) }
	}
	if parent := next(); cfg.Parent.IsValid() {
		cfg.Cookie = parent
	}
	for i := range cfg.Children {
		cfg.Children[i].Cookie = next()
	}
}

// cookieOf returns the cookie of a neighbour, by name; a stranger has the parent's.
func cookieOf(cfg *switchreduce.Config, name byte) wire.Cookie {
	if i := int(name) - 'a'; i >= 0 && i < len(cfg.Children) {
		return cfg.Children[i].Cookie
	}
	return cfg.Cookie
}

var typeNames = [...]string{"", "contribution", "result", "probe", "heard", "want", "lost", "error"}

// build makes the packet "sender type number ...".
func (s *scene) build(t *testing.T, plain []string, fields map[string]string) (netip.AddrPort, []byte) {
	t.Helper()
	cfg := &s.cfg
	if e, ok := fields["epoch"]; ok { // a packet of an epoch before has all of that
		n := number(t, e)
		if i := slices.IndexFunc(s.cfgs, func(c switchreduce.Config) bool { return c.Epoch == n }); i >= 0 {
			cfg = &s.cfgs[i]
		}
	}
	h := wire.Header{
		Type: wire.Type(slices.Index(typeNames[:], plain[1])), Chunk: number(t, plain[2]),
		Group: cfg.Group, Epoch: cfg.Epoch, Cookie: cookieOf(cfg, plain[0][0]), Child: cfg.Index,
	}
	if i := int(plain[0][0] - 'a'); i < len(cfg.Children) {
		h.Child, h.Lowest = uint16(i), cfg.Children[i].Lowest
	}
	var payload []byte
	switch h.Type {
	case wire.Contribution, wire.Result:
		payload = fill(t, &h, plain[3:], fields)
	case wire.Error:
		payload = errorBody(t, plain[3], fields)
	case wire.Probe:
		if slices.Contains(plain, "idle") {
			h.Flags = wire.Idle
		}
	default:
	}
	if of, ok := fields["secret"]; ok {
		h.Cookie = cookieOf(cfg, of[0])
	}
	b := make([]byte, wire.HeaderSize)
	for k, v := range fields {
		setField(t, &h, k, v)
	}
	h.Put(b)
	b = append(b, payload...)
	if v, ok := fields["version"]; ok {
		b[0] = b[0]&15 | byte(number(t, v))<<4
	}
	if v, ok := fields["reserved"]; ok {
		b[18] = byte(number(t, v))
	}
	if v, ok := fields["cut"]; ok {
		b = b[:min(int(number(t, v)), len(b))]
	}
	if v, ok := fields["pad"]; ok {
		b = append(b, make([]byte, number(t, v))...)
	}
	return addr(plain[0][0]), b
}

func setField(t *testing.T, h *wire.Header, k, v string) {
	t.Helper()
	switch k {
	case "epoch":
		h.Epoch = number(t, v)
	case "cookie":
		h.Cookie = wire.Cookie(number(t, v))
	case "group":
		h.Group = number(t, v)
	case "child":
		h.Child = uint16(number(t, v))
	case "exponent":
		h.Exponent = int8(number(t, v))
	case "type":
		h.Type = wire.Type(number(t, v))
	case "flags":
		h.Flags = wire.Flags(number(t, v))
	case "function":
		h.Function = reduce.Function(number(t, v))
	case "element":
		h.Element = reduce.Type(number(t, v))
	case "collective":
		h.Collective = wire.Collective(number(t, v))
	case "op", "of", "count", "seed", "version", "reserved", "cut", "pad", "damage", "kind", "root", "port", "secret": // elsewhere
	default:
		t.Fatalf("unknown field %q", k)
	}
}

// fill sets h's signature and flags and returns the payload.
func fill(t *testing.T, h *wire.Header, args []string, fields map[string]string) []byte {
	t.Helper()
	h.Signature = wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 1000, ChunkElements: 2}
	sink, source := true, false
	var values []int64
	for _, a := range args {
		kind, root, _ := strings.Cut(a, ":")
		switch kind {
		case "allreduce":
		case "reduce":
			h.Collective, h.Root = wire.Reduce, number(t, root)
			sink = h.Root == h.Lowest || h.Type == wire.Result
		case "broadcast":
			h.Collective, h.Root, h.Function = wire.Broadcast, number(t, root), reduce.NoFunction
			source = h.Root == h.Lowest && h.Type == wire.Contribution
			sink = !source
		case "barrier":
			h.Signature = wire.Signature{Collective: wire.Barrier}
		case "empty":
			h.Elements, h.ChunkElements = 0, 0
		case "sink", "nosink":
			sink = kind == "sink"
		case "source":
			source = true
		default:
			if f, err := reduce.ParseFunction(kind); err == nil {
				h.Function = f
			} else if e, err := reduce.ParseType(kind); err == nil {
				h.Element = e
			} else if v, err := strconv.ParseInt(kind, 0, 64); err == nil {
				values = append(values, v)
			} else {
				t.Fatalf("unknown word %q", a)
			}
		}
	}
	if len(values) > 0 {
		h.ChunkElements = uint16(len(values))
	}
	if v, ok := fields["count"]; ok {
		h.ChunkElements = uint16(number(t, v))
	}
	if v, ok := fields["of"]; ok {
		h.Elements = number(t, v)
	}
	if v, ok := fields["op"]; ok {
		h.Operation = uint16(number(t, v))
	}
	if h.Element == reduce.Block32 {
		h.Exponent = drawnExponent(uint64(number(t, cmp.Or(fields["seed"], "0"))))
	}
	if sink {
		h.Flags |= wire.Sink
	}
	if source {
		h.Flags |= wire.Source
	}
	if h.Type == wire.Contribution && h.Collective.Copies() && !source || h.Type == wire.Result && !sink {
		return nil
	}
	if v, ok := fields["seed"]; ok {
		return drawn(h.Signature, uint64(number(t, v)))
	}
	var b []byte
	for i := range int(h.ChunkElements) {
		v := int64(0)
		if i < len(values) {
			v = values[i]
		}
		e := binary.LittleEndian.AppendUint64(nil, uint64(v))
		b = append(append(b, e...), make([]byte, 8)...)[:len(b)+h.ElementSize()]
	}
	return b
}

// special are values at the edges of the types, as their lowest bits.
var special = map[reduce.Type][]uint64{
	reduce.Float32:  {0x7fc00000, 0xffc00001, 0x7f800001, 0x7f800000, 0xff800000, 0, 0x80000000, 1, 0x80000001, 0x7f7fffff},
	reduce.Float16:  {0x7e00, 0xfe01, 0x7c01, 0x7c00, 0xfc00, 0, 0x8000, 1, 0x8001, 0x7bff},
	reduce.BFloat16: {0x7fc0, 0xffc1, 0x7f81, 0x7f80, 0xff80, 0, 0x8000, 1, 0x8001, 0x7f7f},
	reduce.Float64: {
		0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0x7ff0000000000000, 0xfff0000000000000,
		0, 1 << 63, 1, 1<<63 | 1, 0x7fefffffffffffff,
	},
}

// drawnExponent returns one of those of block32: of zeros, of NaN, far from most
// others, or near.
func drawnExponent(seed uint64) int8 {
	switch r := rand.New(rand.NewPCG(seed, 3)); r.IntN(12) {
	case 0:
		return -128
	case 1:
		return 127
	case 2, 3:
		return int8(r.IntN(256))
	case 4, 5, 6:
		return int8(r.IntN(40))
	default:
		return int8(r.IntN(4) - 2)
	}
}

// drawn returns a payload of elements drawn from a seed, many of them special.
func drawn(s wire.Signature, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b []byte
	size := s.Element.Size()
	edges := special[s.Element]
	if edges == nil {
		edges = []uint64{0, 1, math.MaxUint64, 1 << 31, 1<<31 - 1, 1 << 63, 1<<63 - 1, 1 << 32, 0xffffffff, 0x100}
	}
	for range s.ChunkElements {
		v := r.Uint64()
		if r.IntN(2) == 0 {
			v = edges[r.IntN(len(edges))]
		}
		e := binary.LittleEndian.AppendUint64(nil, v)
		if s.Function.Located() {
			clear(e[size:])
			b = binary.LittleEndian.AppendUint64(append(b, e...), r.Uint64N(4))
			continue
		}
		b = append(b, e[:size]...)
	}
	return b
}

var errorNames = map[string]wire.ErrorKind{"mismatch": wire.Mismatch, "two-sources": wire.TwoSources, "no-source": wire.NoSource}

func errorBody(t *testing.T, kind string, fields map[string]string) []byte {
	t.Helper()
	says := wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: 5, ChunkElements: 5}
	other := wire.Signature{Collective: wire.Barrier}
	body := wire.ErrorBody{Kind: errorNames[kind], Rank: [2]uint32{1, 2}, Says: [2]wire.Signature{says, other}}
	if v, ok := fields["kind"]; ok {
		body.Kind = wire.ErrorKind(number(t, v))
	}
	if v, ok := fields["root"]; ok { // no allreduce has one
		body.Says[1] = says
		body.Says[1].Root = number(t, v)
	}
	b := make([]byte, wire.ErrorBodySize)
	body.Put(b)
	return b
}

// describe reports the outcome and then each packet in words, in the order of
// names.
func describe(out []sent, outcomes []string) string {
	lines := make([]string, len(out))
	for i, p := range out {
		lines[i] = nameOf(p.to) + " " + packetText(p.b)
	}
	slices.Sort(lines)
	var b strings.Builder
	for _, line := range append(outcomes, lines...) {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

func packetText(raw []byte) string {
	var h wire.Header
	payload, fault := h.Decode(raw)
	if fault != wire.NoFault {
		return fmt.Sprintf("UNSOUND %v %x", fault, raw)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", typeNames[h.Type], h.Chunk)
	s := &h.Signature
	switch h.Type {
	case wire.Contribution, wire.Result:
		fmt.Fprintf(&b, " %v:%d %v %v op=%d %d/%d", s.Collective, s.Root, s.Function, s.Element, s.Operation, s.ChunkElements, s.Elements)
	case wire.Error:
		var e wire.ErrorBody
		e.Decode(payload)
		fmt.Fprintf(&b, " kind=%d ranks=%d,%d", e.Kind, e.Rank[0], e.Rank[1])
	default:
		if h.Signature != (wire.Signature{}) {
			b.WriteString(" SIGNED")
		}
	}
	for i, name := range []string{"source", "sink", "idle"} {
		if h.Flags>>i&1 != 0 {
			b.WriteString(" " + name)
		}
	}
	if h.Exponent != 0 {
		fmt.Fprintf(&b, " exponent=%d", h.Exponent)
	}
	switch {
	case len(payload) > 16:
		fmt.Fprintf(&b, " %d bytes %08x", len(payload), crc32.ChecksumIEEE(payload))
	case len(payload) > 0:
		fmt.Fprintf(&b, " %x", payload)
	}
	fmt.Fprintf(&b, " (child=%d lowest=%d epoch=%d cookie=%d group=%d)", h.Child, h.Lowest, h.Epoch, uint64(h.Cookie), h.Group)
	return b.String()
}
