package wire

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/reduce"
)

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want bool
	}{
		{1, 0, true}, {0, 1, false}, {7, 7, false},
		{0, math.MaxUint32, true}, {math.MaxUint32, 0, false},
		{math.MaxInt32, 0, true}, {1 << 31, 0, false}, {0, 1 << 31, false},
	} {
		if got := Newer(c.a, c.b); got != c.want {
			t.Errorf("Newer(%d, %d) = %v", c.a, c.b, got)
		}
	}
}

// spoiled is a packet with one thing wrong.
type spoiled struct {
	name  string
	spoil func(b []byte) []byte
	fault Fault
}

func set(at int, v byte) func(b []byte) []byte {
	return func(b []byte) []byte { b[at] = v; return b }
}

// wrongContributions spoil the golden packet "contribution", field by field.
func wrongContributions() []spoiled {
	all := []spoiled{
		{"exponent", set(19, 1), BadExponent},
		{"negative exponent", set(19, 0xff), BadExponent},
		{"source in a function that reduces", set(1, 3), BadFlags},
		{"idle contribution", set(1, 6), BadFlags},
		{"undefined flag", set(1, 10), BadFlags},
		{"reserved byte", set(reservedAt, 1), BadFlags},
		{"one byte too many", func(b []byte) []byte { return append(b, 0) }, BadLength},
		{"one element too many", func(b []byte) []byte { return append(b, 0, 0, 0, 0) }, BadLength},
		{"one byte too few", func(b []byte) []byte { return b[:len(b)-1] }, BadLength},
		{"no payload", func(b []byte) []byte { return b[:HeaderSize] }, BadLength},
		{"chunk of other length", set(31, 3), BadLength},
		{"element of other size", set(36, byte(reduce.Int64)), BadLength},
		{"function of other element size", set(32, byte(Allreduce)<<4|byte(reduce.MinLoc)), BadLength},
		{"chunk of no elements", set(31, 0), BadSignature},
		{"chunk larger than its operation", func(b []byte) []byte { copy(b[24:], []byte{0, 0, 0, 1}); return b }, BadSignature},
		{"root in an allreduce", set(35, 1), BadSignature},
		{"function in a broadcast", set(32, byte(Broadcast)<<4|byte(reduce.Sum)), BadSignature},
		{"barrier with elements", set(32, byte(Barrier)<<4), BadSignature},
		{"block in a broadcast", func(b []byte) []byte {
			b[32], b[36] = byte(Broadcast)<<4, byte(reduce.Block32)
			return b
		}, BadSignature},
		{"least of blocks", func(b []byte) []byte {
			b[32], b[36] = byte(Allreduce)<<4|byte(reduce.Min), byte(reduce.Block32)
			return b
		}, BadSignature},
		{"bits of floats", func(b []byte) []byte {
			b[32], b[36] = byte(Allreduce)<<4|byte(reduce.BAnd), byte(reduce.Float32)
			return b
		}, BadSignature},
	}
	for n := range HeaderSize {
		all = append(all, spoiled{fmt.Sprintf("%d bytes", n), func(b []byte) []byte { return b[:n] }, Truncated})
	}
	for v := range 16 {
		if v != Version {
			all = append(all, spoiled{fmt.Sprintf("version %d", v), set(0, byte(v<<4|int(Contribution))), BadVersion})
		}
		if v < int(Contribution) || v > int(Error) {
			all = append(all, spoiled{fmt.Sprintf("type %d", v), set(0, byte(Version<<4|v)), BadType})
		}
		if c := Collective(v); !c.Valid() {
			all = append(all, spoiled{fmt.Sprintf("collective %d", v), set(32, byte(v<<4)|byte(reduce.Sum)), BadSignature})
		}
		if f := reduce.Function(v); !f.Valid() {
			all = append(all, spoiled{fmt.Sprintf("function %d", v), set(32, byte(Allreduce)<<4|byte(v)), BadSignature})
		}
	}
	for v := range 256 {
		if !reduce.Type(v).Valid() {
			all = append(all, spoiled{fmt.Sprintf("element type %d", v), set(36, byte(v)), BadSignature})
		}
	}
	for bit := 2; bit < 8; bit++ {
		all = append(all, spoiled{fmt.Sprintf("flag %d", bit), set(1, 1<<bit|byte(Sink)), BadFlags})
	}
	return all
}

func goldenPacket(t testing.TB, name string) []byte {
	for _, g := range goldens() {
		if g.name == name {
			return g.packet()
		}
	}
	t.Fatalf("no golden packet %s", name)
	return nil
}

func TestEveryFieldWrong(t *testing.T) {
	for _, c := range wrongContributions() {
		t.Run(c.name, func(t *testing.T) {
			var h Header
			payload, fault := h.Decode(c.spoil(goldenPacket(t, "contribution")))
			if fault != c.fault || payload != nil {
				t.Errorf("fault %v, want %v; %d bytes of payload, want none", fault, c.fault, len(payload))
			}
		})
	}
}

// TestFlagsOfTypes tries every value of flags with every golden packet.
func TestFlagsOfTypes(t *testing.T) {
	allowed := map[Type]Flags{Contribution: Sink, Result: Sink, Probe: Idle}
	for _, g := range goldens() {
		may := allowed[g.header.Type]
		if g.header.Type == Contribution && g.header.Collective.Copies() {
			may |= Source
		}
		for v := range 256 {
			b := g.packet()
			b[1] = byte(v)
			var h Header
			_, fault := h.Decode(b)
			if fits := Flags(v)&^may == 0; fits == (fault == BadFlags) {
				t.Errorf("%s with flags %#x: fault %v", g.name, v, fault)
			}
		}
	}
}

// TestLengths: a packet has one length only.
func TestLengths(t *testing.T) {
	for _, g := range goldens() {
		whole := append(g.packet(), make([]byte, 100)...)
		for n := range whole {
			var h Header
			_, fault := h.Decode(whole[:n])
			want := NoFault
			switch {
			case n < HeaderSize:
				want = Truncated
			case n != HeaderSize+len(g.payload):
				want = BadLength
			}
			if fault != want {
				t.Errorf("%s of %d bytes: fault %v, want %v", g.name, n, fault, want)
			}
		}
	}
}

// TestExponents: chunks of block32 alone have an exponent, of any value.
func TestExponents(t *testing.T) {
	for _, g := range goldens() {
		want := BadExponent
		if g.header.carriesSignature() && g.header.Element == reduce.Block32 {
			want = NoFault
		}
		for v := range 256 {
			b := g.packet()
			b[19] = byte(v)
			var h Header
			_, fault := h.Decode(b)
			if v == 0 && fault != NoFault || v != 0 && fault != want {
				t.Errorf("%s with the exponent %d: fault %v", g.name, int8(v), fault)
			}
			if fault == NoFault && h.Exponent != int8(v) {
				t.Errorf("%s: exponent %d is read as %d", g.name, int8(v), h.Exponent)
			}
		}
	}
}

func TestErrorBodyWrong(t *testing.T) {
	valid := goldenPacket(t, "error-mismatch")[HeaderSize:]
	for _, c := range []struct {
		name string
		at   int
		v    byte
	}{
		{"kind 0", 0, 0}, {"kind 4", 0, 4}, {"padding", 1, 1}, {"end of padding", 7, 1},
		{"first collective", 16, 0}, {"second collective", 32, 0xf1}, {"first element", 20, 0}, {"second element", 36, 10},
		{"first root", 19, 1}, {"first chunk empty", 15, 0},
	} {
		b := bytes.Clone(valid)
		b[c.at] = c.v
		var e ErrorBody
		if e.Decode(b) {
			t.Errorf("%s is taken: %+v", c.name, e)
		}
	}
	for n := range ErrorBodySize {
		if new(ErrorBody).Decode(valid[:n]) {
			t.Errorf("%d bytes are taken", n)
		}
	}
	if new(ErrorBody).Decode(append(bytes.Clone(valid), 0)) {
		t.Error("one byte too many is taken")
	}
}

func TestNames(t *testing.T) {
	for f := range Fault(Faults) {
		if f.String() == "" || f.String() == Fault(200).String() {
			t.Errorf("fault %d has the name %q", f, f)
		}
	}
	if got := Fault(200).String(); got != "fault(200)" {
		t.Errorf("unknown fault is named %q", got)
	}
	if got := Collective(15).String(); got != "collective(15)" {
		t.Errorf("unknown collective is named %q", got)
	}
}

// drawSignature draws a signature that is valid.
func drawSignature(t *rapid.T) Signature {
	s := Signature{
		Collective: Collective(rapid.IntRange(int(Allreduce), int(Barrier)).Draw(t, "collective")),
		Operation:  rapid.Uint16().Draw(t, "operation"),
	}
	if s.Collective == Barrier {
		return s
	}
	s.Element = reduce.Type(rapid.IntRange(int(reduce.Int32), int(reduce.Block32)).Draw(t, "element"))
	s.Elements = rapid.Uint32().Draw(t, "elements")
	if s.Elements > 0 {
		s.ChunkElements = uint16(rapid.Uint32Range(1, min(s.Elements, 90)).Draw(t, "chunk elements"))
	}
	if s.Element == reduce.Block32 && s.Collective.Copies() {
		s.Element = reduce.Float32
	}
	if s.Collective != Allreduce {
		s.Root = rapid.Uint32Range(0, MaxRank).Draw(t, "root")
	}
	if !s.Collective.Copies() {
		s.Function = reduce.Function(rapid.IntRange(int(reduce.Sum), int(reduce.MaxLoc)).
			Filter(func(f int) bool { return reduce.Defined(reduce.Function(f), s.Element) }).Draw(t, "function"))
	}
	return s
}

func drawHeader(t *rapid.T) Header {
	h := Header{
		Type:   Type(rapid.IntRange(int(Contribution), int(Error)).Draw(t, "type")),
		Child:  rapid.Uint16().Draw(t, "child"),
		Group:  rapid.Uint32().Draw(t, "group"),
		Epoch:  rapid.Uint32().Draw(t, "epoch"),
		Cookie: Cookie(rapid.Uint64Range(0, CookieMask).Draw(t, "cookie")),
		Chunk:  rapid.Uint32().Draw(t, "chunk"),
		Lowest: rapid.Uint32Range(0, MaxRank).Draw(t, "lowest"),
	}
	if h.carriesSignature() {
		h.Signature = drawSignature(t)
	}
	if h.mayHaveExponent() {
		h.Exponent = rapid.Int8().Draw(t, "exponent")
	}
	for flag := Source; flag <= Idle; flag <<= 1 {
		if h.Flags |= flag; !h.flagsFit() || rapid.Bool().Draw(t, "no flag") {
			h.Flags &^= flag
		}
	}
	return h
}

// TestRoundTrip: what a member can say is read as it was written.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		b := make([]byte, HeaderSize+h.payloadSize())
		h.Put(b)
		var got Header
		payload, fault := got.Decode(b)
		if fault != NoFault || got != h || len(payload) != h.payloadSize() {
			t.Fatalf("fault %v, %d bytes\ngot  %+v\nwant %+v", fault, len(payload), got, h)
		}
	})
}

func TestErrorBodyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := ErrorBody{
			Kind: ErrorKind(rapid.IntRange(int(Mismatch), int(NoSource)).Draw(t, "kind")),
			Rank: [2]uint32{rapid.Uint32Range(0, MaxRank).Draw(t, "rank"), rapid.Uint32Range(0, MaxRank).Draw(t, "other rank")},
			Says: [2]Signature{drawSignature(t), drawSignature(t)},
		}
		b := make([]byte, ErrorBodySize)
		e.Put(b)
		var got ErrorBody
		if !got.Decode(b) || got != e {
			t.Fatalf("got  %+v\nwant %+v", got, e)
		}
	})
}

// TestNeighbouringFields: a value too large for its field spoils no other.
func TestNeighbouringFields(t *testing.T) {
	h := goldens()[0].header
	want := make([]byte, HeaderSize)
	h.Put(want)
	h.Type |= 0xf0
	h.Root |= MaxRank + 1
	h.Lowest |= MaxRank + 1
	h.Cookie |= 1 << 48
	got := make([]byte, HeaderSize)
	h.Put(got)
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func FuzzHeaderDecode(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.packet())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		payload, fault := h.Decode(b)
		if fault != NoFault {
			if payload != nil {
				t.Errorf("fault %v, and %d bytes of payload", fault, len(payload))
			}
			return
		}
		// No two packets mean the same: what was read is written as it was.
		again := make([]byte, HeaderSize)
		h.Put(again)
		if !bytes.Equal(append(again, payload...), b) {
			t.Errorf("%x is written again as %x", b, append(again, payload...))
		}
		if h.carriesSignature() && (!h.Valid() || h.ElementSize() == 0 && len(payload) > 0) {
			t.Errorf("malformed signature %+v, %d bytes", h.Signature, len(payload))
		}
	})
}

func FuzzErrorBodyDecode(f *testing.F) {
	for _, g := range goldens() {
		if g.header.Type == Error {
			f.Add(g.payload)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e ErrorBody
		if !e.Decode(b) {
			return
		}
		again := make([]byte, ErrorBodySize)
		e.Put(again)
		if !bytes.Equal(again, b) {
			t.Errorf("%x is written again as %x", b, again)
		}
		if !e.Says[0].Valid() || !e.Says[1].Valid() {
			t.Errorf("malformed signatures: %+v", e)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	packet := goldenPacket(b, "contribution")
	var h Header
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := h.Decode(packet); fault != NoFault {
			b.Fatal(fault)
		}
	}
}
