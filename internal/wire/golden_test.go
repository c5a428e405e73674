package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/reduce"
)

// protocol is the document that shows the golden packets.
const protocol = "../../docs/protocol.md"

// A golden packet.
type golden struct {
	name    string
	says    string
	header  Header
	payload []byte
}

func allreduceOf(t reduce.Type, f reduce.Function, elements uint32, chunk uint16) Signature {
	return Signature{Collective: Allreduce, Function: f, Element: t, Operation: 7, Elements: elements, ChunkElements: chunk}
}

// common has what the golden packets have in common.
func common(t Type, flags Flags, s Signature) Header {
	return Header{
		Type: t, Flags: flags, Child: 3, Group: 9, Epoch: 4, Cookie: 0xc0ffee123456,
		Chunk: 42, Lowest: 5, Signature: s,
	}
}

func errorBody(e ErrorBody) []byte {
	b := make([]byte, ErrorBodySize)
	e.Put(b)
	return b
}

// goldens are one packet of each type, and of each special case.
func goldens() []golden {
	sum := allreduceOf(reduce.Int32, reduce.Sum, 1000, 2)
	other := sum
	other.Operation, other.Function = 8, reduce.Max
	toRoot := Signature{Collective: Reduce, Function: reduce.Max, Element: reduce.Float64, Root: 5, Operation: 7, Elements: 1, ChunkElements: 1}
	copies := Signature{Collective: Broadcast, Element: reduce.Uint32, Root: 5, Operation: 7, Elements: 2, ChunkElements: 2}
	elsewhere := copies
	elsewhere.Root = 8
	most := common(Contribution, Sink, allreduceOf(reduce.BFloat16, reduce.Min, math.MaxUint32, 1))
	most.Child, most.Group, most.Epoch, most.Cookie = math.MaxUint16, math.MaxUint32, math.MaxUint32, CookieMask
	most.Chunk, most.Lowest, most.Operation = math.MaxUint32, MaxRank, math.MaxUint16
	return []golden{
		{"contribution", "a member contributes two int32, 1 and -1, to the sum of 1000", common(Contribution, Sink, sum), reduce.Bytes([]int32{1, -1})},
		{"contribution-reduce", "a member that is not the root contributes 1.5 to a maximum", common(Contribution, 0, elsewhereRoot(toRoot)), reduce.Bytes([]float64{1.5})},
		{"contribution-reduce-root", "the root itself contributes, and wants the vector", common(Contribution, Sink, toRoot), reduce.Bytes([]float64{1.5})},
		{"contribution-minloc", "an element of a location function is 16 bytes: value, padding, location", common(Contribution, Sink, allreduceOf(reduce.Int32, reduce.MinLoc, 1, 1)), []byte{0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}},
		{"contribution-float16", "three halves, 1, 2 and -2: a payload need not be a multiple of four bytes", common(Contribution, Sink, allreduceOf(reduce.Float16, reduce.Product, 3, 3)), []byte{0, 0x3c, 0, 0x40, 0, 0xc0}},
		{"contribution-block32", "1 and -0.375 in block floating point, of two members: mantissas for 2^-29", blocked(common(Contribution, Sink, allreduceOf(reduce.Block32, reduce.Sum, 1000, 2)), -29), reduce.Bytes([]int32{1 << 29, -3 << 26})},
		{"contribution-block32-zero", "a chunk of zeros", blocked(common(Contribution, Sink, allreduceOf(reduce.Block32, reduce.Sum, 1000, 2)), reduce.BlockZero), reduce.Bytes([]int32{0, 0})},
		{"contribution-source", "the root of a broadcast contributes the vector and wants none", common(Contribution, Source, copies), reduce.Bytes([]uint32{17, 18})},
		{"contribution-partial-source", "a switch forwards it for children, some of which want it", common(Contribution, Source|Sink, copies), reduce.Bytes([]uint32{17, 18})},
		{"contribution-credit", "another member contributes an empty chunk: it is ready for the vector", common(Contribution, Sink, elsewhere), nil},
		{"contribution-barrier", "a barrier has no elements, and no type", common(Contribution, Sink, Signature{Collective: Barrier, Operation: 7}), nil},
		{"contribution-empty", "an allreduce without elements also takes a number", common(Contribution, Sink, allreduceOf(reduce.Float32, reduce.Sum, 0, 0)), nil},
		{"contribution-limits", "every field at its maximum", most, []byte{0x80, 0x3f}},
		{"result", "the sum, for a child that wants it", common(Result, Sink, sum), reduce.Bytes([]int32{100, math.MinInt32})},
		{"result-empty", "the result of a reduce for a child that is not a sink", common(Result, 0, elsewhereRoot(toRoot)), nil},
		{"result-block32", "the sum with 2^-31 and 2^-28, the latter in mantissas for 2^-57", blocked(common(Result, Sink, allreduceOf(reduce.Block32, reduce.Sum, 1000, 2)), -29), reduce.Bytes([]int32{1 << 29, -3<<26 + 2})},
		{"result-block32-empty", "the same chunk of a reduce, for a child that is not a sink", blocked(common(Result, 0, Signature{Collective: Reduce, Function: reduce.Sum, Element: reduce.Block32, Root: 8, Operation: 7, Elements: 1000, ChunkElements: 2}), -29), nil},
		{"result-block32-nan", "a member's chunk had a NaN or an infinity: the mantissas mean nothing", blocked(common(Result, Sink, allreduceOf(reduce.Block32, reduce.Sum, 1000, 2)), reduce.BlockNaN), reduce.Bytes([]int32{0, -1})},
		{"probe", "a member asks for the state of chunk 42", common(Probe, 0, Signature{}), nil},
		{"probe-idle", "asks for nothing; renews leases", common(Probe, Idle, Signature{}), nil},
		{"heard", "chunk 42 has the contribution, and no result", common(Heard, 0, Signature{}), nil},
		{"want", "chunk 42 lacks the contribution", common(Want, 0, Signature{}), nil},
		{"lost", "the root is unreachable", common(Lost, 0, Signature{}), nil},
		{"error-mismatch", "ranks 5 and 6 disagree about the operation and its function", common(Error, 0, Signature{}), errorBody(ErrorBody{Mismatch, [2]uint32{5, 6}, [2]Signature{sum, other}})},
		{"error-two-sources", "ranks 5 and 6 both hold the vector of a broadcast", common(Error, 0, Signature{}), errorBody(ErrorBody{TwoSources, [2]uint32{5, 6}, [2]Signature{copies, copies}})},
		{"error-no-source", "rank 5 waits for the vector that rank 8 should hold but does not", common(Error, 0, Signature{}), errorBody(ErrorBody{NoSource, [2]uint32{5, 8}, [2]Signature{elsewhere, elsewhere}})},
	}
}

func blocked(h Header, exponent int8) Header {
	h.Exponent = exponent
	return h
}

func elsewhereRoot(s Signature) Signature {
	s.Root = 8
	return s
}

func (g *golden) packet() []byte {
	b := make([]byte, HeaderSize, HeaderSize+len(g.payload))
	g.header.Put(b)
	return append(b, g.payload...)
}

// field is a field of the format: its size in bytes, its name, and how its
// value is reported.
type field struct {
	size   int
	name   string
	notify func(v uint64) string
}

var decimal = func(v uint64) string { return fmt.Sprint(v) }

func packetTypeName(t Type) string {
	return [...]string{"", "contribution", "result", "probe", "heard", "want", "lost", "error"}[t]
}

func flagNames(v uint64) string {
	var names []string
	for i, name := range []string{"source", "sink", "idle"} {
		if v>>i&1 != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

func operation(v uint64) string {
	if v>>24 == 0 {
		return fmt.Sprintf("none, root %d", v)
	}
	return fmt.Sprintf("%v, function %v, root %d", Collective(v>>28), reduce.Function(v>>24&15), v&MaxRank)
}

func typeAndRank(v uint64) string {
	return fmt.Sprintf("%v, rank %d", reduce.Type(v>>24), v&MaxRank)
}

var headerFields = []field{
	{1, "version, type", func(v uint64) string { return fmt.Sprintf("%d, %s", v>>4, packetTypeName(Type(v&15))) }},
	{1, "flags", flagNames},
	{2, "child", decimal},
	{4, "group", decimal},
	{4, "epoch", decimal},
	{6, "cookie", func(v uint64) string { return fmt.Sprintf("%#012x", v) }},
	{1, "reserved", decimal},
	{1, "exponent", func(v uint64) string { return fmt.Sprint(int8(v)) }},
	{4, "chunk", decimal},
	{4, "elements", decimal},
	{2, "operation", decimal},
	{2, "chunk elements", decimal},
	{4, "collective, function, root", operation},
	{4, "element type, lowest rank", typeAndRank},
}

var errorFields = []field{
	{1, "kind", func(v uint64) string {
		return [...]string{"", "mismatch", "two sources", "no source"}[v]
	}},
	{7, "zero", decimal},
	{4, "first: elements", decimal},
	{2, "first: operation", decimal},
	{2, "first: chunk elements", decimal},
	{4, "first: collective, function, root", operation},
	{4, "first: element type, rank", typeAndRank},
	{4, "second: elements", decimal},
	{2, "second: operation", decimal},
	{2, "second: chunk elements", decimal},
	{4, "second: collective, function, root", operation},
	{4, "second: element type, rank", typeAndRank},
}

// listing writes a golden packet for people and for transcript.Listings: offset, bytes, what
// they are.
func (g *golden) listing() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", g.says)
	packet, at := g.packet(), 0
	fields := headerFields
	if g.header.Type == Error {
		fields = slices.Concat(headerFields, errorFields)
	}
	for _, f := range fields {
		var v [8]byte
		copy(v[8-f.size:], packet[at:at+f.size])
		fmt.Fprintf(&b, "%3d  %-16x  %s: %s\n", at, packet[at:at+f.size], f.name, f.notify(binary.BigEndian.Uint64(v[:])))
		at += f.size
	}
	for ; at < len(packet); at += min(8, len(packet)-at) {
		fmt.Fprintf(&b, "%3d  %-16x  payload\n", at, packet[at:min(at+8, len(packet))])
	}
	return b.String()
}

// TestGolden: each golden packet is written and read as its file says.
func TestGolden(t *testing.T) {
	var listings []transcript.Listing
	for _, g := range goldens() {
		listings = append(listings, transcript.Listing{Name: g.name, Text: g.listing(), Read: func(t *testing.T, packet []byte) {
			var h Header
			payload, fault := h.Decode(packet)
			if fault != NoFault || h != g.header || !bytes.Equal(payload, g.payload) {
				t.Errorf("decoded with fault %v to\n%+v %x\nwant\n%+v %x", fault, h, payload, g.header, g.payload)
			}
		}})
	}
	transcript.Listings(t, filepath.Join("testdata", "golden"), listings)
}

var shown = regexp.MustCompile("(?s)(<!-- golden packets -->\n).*(<!-- end of golden packets -->\n)")

// TestGoldenInDocument: the document's appendix has the bytes of every file.
func TestGoldenInDocument(t *testing.T) {
	doc, err := os.ReadFile(protocol)
	if err != nil {
		t.Fatal(err)
	}
	rows := "| packet | meaning | bytes |\n|---|---|---|\n"
	for _, g := range goldens() {
		rows += fmt.Sprintf("| [%s](../internal/wire/testdata/golden/%s.hex) | %s | `%x` |\n", g.name, g.name, g.says, g.packet())
	}
	if !shown.Match(doc) {
		t.Fatalf("%s has no place for golden packets", protocol)
	}
	transcript.File(t, protocol, shown.ReplaceAllString(string(doc), "${1}"+rows+"${2}"))
}

// TestConstantsInDocument: the document's tables have every constant, by the
// names and values that it has here.
func TestConstantsInDocument(t *testing.T) {
	doc, err := os.ReadFile(protocol)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	row := func(value int, name string) { rows = append(rows, fmt.Sprintf("| %d | `%s` |", value, name)) }
	for v := Contribution; v <= Error; v++ {
		row(int(v), packetTypeName(v))
	}
	for v := Allreduce; v.Valid(); v++ {
		row(int(v), v.String())
	}
	for v := reduce.Sum; v.Valid(); v++ {
		row(int(v), v.String())
	}
	for v := reduce.Int32; v.Valid(); v++ {
		row(int(v), v.String())
		rows = append(rows, fmt.Sprintf("| %d | `%v` | %d |", v, v, v.Size()))
	}
	for v := Truncated; int(v) < Faults; v++ {
		rows = append(rows, fmt.Sprintf("| `%v` |", v))
	}
	for i, name := range []string{"source", "sink", "idle"} {
		rows = append(rows, fmt.Sprintf("| %#x | %s |", 1<<i, name))
	}
	for _, r := range rows {
		if !strings.Contains(strings.ReplaceAll(string(doc), "| 0x0", "| 0x"), r) {
			t.Errorf("the document has no row %s", r)
		}
	}
}
