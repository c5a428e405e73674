package switchreduce

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// A forest is a tree of cores with members below, in a network that loses,
// duplicates and reorders packets. Its members keep the rules of the window and
// no more; everything they get is compared with an oracle.
type forest struct {
	rng      *rand.Rand
	switches []*node // parents before children
	members  []*member
	flights  []flight
	epoch    uint32
	window   uint32
	first    uint32 // number of the first chunk
	total    int    // chunks
	odd      *oddity
	lossy    bool
	fast     bool // switches have programs beside their cores
	wrong    []string
	reported []wire.ErrorBody
}

type node struct {
	addr   netip.AddrPort
	parent int // index of the parent among the switches, -1: root
	index  int // own place among its children
	kids   []kid
	core   *Core
	out    Output
	batch  []Input
	lowest uint32

	programs map[uint32]*program // by epoch
	begun    *program            // that takes packets
	later    []Input             // for the next batch
	running  []*process          // on several processors, by whatever program
}

// kid is a child: a switch, or a member if sw is negative.
type kid struct {
	sw, rank int
	lowest   uint32
}

type member struct {
	rank       int
	addr       netip.AddrPort
	up         netip.AddrPort
	index      uint16
	base, next uint32
	got        map[uint32][]byte // this epoch's results
}

type flight struct {
	from, to netip.AddrPort
	bytes    []byte
}

// oddity makes one member's contribution to one chunk disagree.
type oddity struct {
	rank  int
	chunk uint32
}

func switchAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, 0}), uint16(1+i))
}

func memberAddr(rank int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, 0, 0}), uint16(1+rank))
}

// newForest makes a random tree of so many switches, with one to three members
// at each leaf and sometimes one above, their ranks being in any order.
func newForest(seed uint64, switches, total int, first uint32) *forest {
	f := &forest{rng: rand.New(rand.NewPCG(seed, 1)), first: first, total: total, lossy: true}
	count := 0
	for i := range switches {
		n := &node{addr: switchAddr(i), parent: -1, core: New()}
		if i > 0 {
			n.parent = f.rng.IntN(i)
			f.switches[n.parent].kids = append(f.switches[n.parent].kids, kid{sw: i})
		}
		f.switches = append(f.switches, n)
	}
	for _, n := range f.switches {
		hosts := f.rng.IntN(3)
		if len(n.kids) == 0 {
			hosts++
		}
		for range hosts {
			n.kids = append(n.kids, kid{sw: -1, rank: count})
			count++
		}
	}
	ranks := f.rng.Perm(count)
	f.members = make([]*member, count)
	for i := len(f.switches) - 1; i >= 0; i-- {
		f.order(i, ranks)
	}
	return f
}

// order gives switch i's members their ranks and sorts its children.
func (f *forest) order(i int, ranks []int) {
	n := f.switches[i]
	for j := range n.kids {
		k := &n.kids[j]
		if k.sw >= 0 {
			k.lowest = f.switches[k.sw].lowest
			continue
		}
		k.rank = ranks[k.rank]
		k.lowest = uint32(k.rank)
		f.members[k.rank] = &member{rank: k.rank, addr: memberAddr(k.rank), up: n.addr, base: f.first}
	}
	slices.SortFunc(n.kids, func(a, b kid) int { return int(a.lowest) - int(b.lowest) })
	n.lowest = n.kids[0].lowest
	for j, k := range n.kids {
		if k.sw >= 0 {
			f.switches[k.sw].index = j
		} else {
			f.members[k.rank].index = uint16(j)
		}
	}
}

// enter begins an epoch: all members go back to the oldest number that any of
// them lacks.
func (f *forest) enter(window uint32, probes int) {
	f.epoch += 2
	f.window = window
	for _, n := range f.switches {
		cfg := Config{Group: 1, Epoch: f.epoch, Window: window, ChunkBytes: 16, Probes: probes, Index: uint16(n.index)}
		if n.parent >= 0 {
			cfg.Parent, cfg.Cookie = f.switches[n.parent].addr, f.cookie(n.addr)
		}
		for _, k := range n.kids {
			child := Child{Addr: memberAddr(k.rank), Lowest: k.lowest}
			if k.sw >= 0 {
				child.Addr = f.switches[k.sw].addr
			}
			child.Cookie = f.cookie(child.Addr)
			cfg.Children = append(cfg.Children, child)
		}
		if f.fast {
			n.load(f, &cfg)
		}
		n.core.Step(0, []Input{{Kind: Install, Config: &cfg}}, &n.out)
	}
	base := f.members[0].base
	for _, m := range f.members {
		if wire.Newer(base, m.base) {
			base = m.base
		}
	}
	for _, m := range f.members {
		m.base, m.next, m.got = base, base, map[uint32][]byte{}
		f.pump(m)
	}
}

// signature reports what operation chunk n is: all kinds take turns.
func (f *forest) signature(n uint32) wire.Signature {
	s := wire.Signature{Operation: uint16(n), Elements: 2, ChunkElements: 2, Element: reduce.Float32, Function: reduce.Sum}
	kind := n % kinds
	if f.fast && kind < 3 {
		kind = 6 // more of what programs take
	}
	switch kind {
	case 0, 1:
		s.Collective = wire.Allreduce
	case 2:
		s.Collective, s.Root = wire.Reduce, n/kinds%uint32(len(f.members))
	case 3:
		s.Collective, s.Root, s.Function = wire.Broadcast, n/kinds%uint32(len(f.members)), reduce.NoFunction
	case 4:
		s = wire.Signature{Collective: wire.Barrier, Operation: uint16(n)}
	case 5:
		s.Collective, s.Elements, s.ChunkElements = wire.Allreduce, 0, 0
	case 6, 7:
		s.Collective, s.Element = wire.Allreduce, reduce.Block32
	case 8:
		s.Collective, s.Element, s.Root = wire.Reduce, reduce.Block32, n/kinds%uint32(len(f.members))
	case 9:
		s.Collective, s.Element, s.Elements, s.ChunkElements = wire.Allreduce, reduce.Block32, 0, 0
	}
	return s
}

// kinds is how many kinds of operations take turns.
const kinds = 10

func isSink(s wire.Signature, rank int) bool {
	switch s.Collective {
	case wire.Reduce:
		return int(s.Root) == rank
	case wire.Broadcast:
		return int(s.Root) != rank
	default:
		return true
	}
}

// value is element i of what a member contributes to chunk n: another one in
// each epoch, so that data of two epochs cannot mix unseen, and of such sizes
// that the order of summation shows.
func value(rank int, n, epoch uint32, i int) float32 {
	rng := rand.New(rand.NewPCG(uint64(n)<<32|uint64(epoch), uint64(rank)<<8|uint64(i)))
	return float32(math.Ldexp(rng.Float64()-0.5, rng.IntN(30)))
}

// mantissa and exponent are those of a member in block floating point: any, also
// those that no member may say.
func mantissa(rank int, n, epoch uint32, i int) int32 {
	return int32(math.Float32bits(value(rank, n, epoch, i)) * 0x9e3779b1)
}

func exponent(rank int, n, epoch uint32) int8 {
	rng := rand.New(rand.NewPCG(uint64(n)<<32|uint64(epoch), uint64(rank)<<8|255))
	return []int8{reduce.BlockZero, reduce.BlockNaN, int8(rng.Uint32()), int8(rng.IntN(5)), int8(rng.IntN(5)), int8(rng.IntN(40))}[rng.IntN(6)]
}

func vector(rank int, n, epoch uint32) []byte {
	return reduce.Bytes([]float32{value(rank, n, epoch, 0), value(rank, n, epoch, 1)})
}

// sum is the oracle: the plain left fold over the children, in their order.
func (f *forest) sum(sw int, n uint32, i int) float32 {
	var acc float32
	for j, k := range f.switches[sw].kids {
		v := value(k.rank, n, f.epoch, i)
		if k.sw >= 0 {
			v = f.sum(k.sw, n, i)
		}
		if j == 0 {
			acc = v
		} else {
			acc += v
		}
	}
	return acc
}

// blocks is the oracle of block floating point: what a switch must make of its
// children, by a division that rounds down.
func (f *forest) blocks(sw int, n uint32, i int) (sum int32, greatest int8) {
	kids := f.switches[sw].kids
	mantissas, exponents := make([]int32, len(kids)), make([]int8, len(kids))
	for j, k := range kids {
		mantissas[j], exponents[j] = mantissa(k.rank, n, f.epoch, i), exponent(k.rank, n, f.epoch)
		if k.sw >= 0 {
			mantissas[j], exponents[j] = f.blocks(k.sw, n, i)
		}
	}
	greatest = slices.Max(exponents)
	for j, m := range mantissas {
		step := int64(1) << min(int(greatest)-int(exponents[j]), 31)
		q := int64(m) / step
		if int64(m)%step < 0 {
			q--
		}
		sum = int32(uint32(int64(sum) + q))
	}
	return sum, greatest
}

// wantExponent is the exponent of the result of chunk n.
func (f *forest) wantExponent(n uint32) int8 {
	if f.signature(n).Element != reduce.Block32 {
		return 0
	}
	_, e := f.blocks(0, n, 0)
	return e
}

// want is the payload that a member must get of chunk n.
func (f *forest) want(rank int, n uint32) []byte {
	s := f.signature(n)
	switch {
	case s.Element == reduce.Block32 && s.ChunkElements > 0 && isSink(s, rank):
		a, _ := f.blocks(0, n, 0)
		b, _ := f.blocks(0, n, 1)
		return reduce.Bytes([]int32{a, b})
	case s.ChunkElements == 0 || !isSink(s, rank):
		return nil
	case s.Collective.Copies():
		return vector(int(s.Root), n, f.epoch)
	}
	return reduce.Bytes([]float32{f.sum(0, n, 0), f.sum(0, n, 1)})
}

// pump sends what the window of m allows.
func (f *forest) pump(m *member) {
	for m.next != f.first+uint32(f.total) && m.next-m.base < f.window {
		m.next++
		f.contribute(m, m.next-1)
	}
}

func (f *forest) contribute(m *member, n uint32) {
	h := f.header(m, wire.Contribution, n)
	h.Signature = f.signature(n)
	if f.odd != nil && *f.odd == (oddity{m.rank, n}) {
		h.Operation++
	}
	var body []byte
	switch {
	case h.Element == reduce.Block32:
		h.Exponent = exponent(m.rank, n, f.epoch)
		body = reduce.Bytes([]int32{mantissa(m.rank, n, f.epoch, 0), mantissa(m.rank, n, f.epoch, 1)})[:h.PayloadSize()]
	case !h.Collective.Copies():
		body = vector(m.rank, n, f.epoch)[:h.PayloadSize()]
	case int(h.Root) == m.rank:
		h.Flags |= wire.Source
		body = vector(m.rank, n, f.epoch)
	}
	if isSink(h.Signature, m.rank) {
		h.Flags |= wire.Sink
	}
	f.post(m, &h, body)
}

// cookie returns the secret of a child and its parent in the present epoch.
func (f *forest) cookie(child netip.AddrPort) wire.Cookie {
	a := child.Addr().As16()
	return wire.Cookie(uint64(f.epoch)<<32|uint64(a[14])<<24|uint64(a[15])<<16|uint64(child.Port())) & wire.CookieMask
}

func (f *forest) header(m *member, t wire.Type, n uint32) wire.Header {
	return wire.Header{Type: t, Group: 1, Epoch: f.epoch, Cookie: f.cookie(m.addr), Child: m.index, Chunk: n, Lowest: uint32(m.rank)}
}

func (f *forest) post(m *member, h *wire.Header, body []byte) {
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	f.fly(flight{m.addr, m.up, append(b, body...)})
}

// fly puts a packet on its way, or loses or duplicates it.
func (f *forest) fly(p flight) {
	if f.lossy {
		switch f.rng.IntN(8) {
		case 0:
			return
		case 1:
			f.flights = append(f.flights, flight{p.from, p.to, slices.Clone(p.bytes)})
		}
	}
	f.flights = append(f.flights, p)
}

// probe is a member's timer: it asks for its oldest chunk.
func (f *forest) probe(m *member) {
	if m.base != m.next {
		h := f.header(m, wire.Probe, m.base)
		f.post(m, &h, nil)
	}
}

// deliver takes up to n flights in any order; those to one switch are a batch.
func (f *forest) deliver(n int) {
	for range min(n, len(f.flights)) {
		i := f.rng.IntN(len(f.flights))
		p := f.flights[i]
		f.flights[i] = f.flights[len(f.flights)-1]
		f.flights = f.flights[:len(f.flights)-1]
		if p.to.Addr() == memberAddr(0).Addr() {
			f.receive(f.members[p.to.Port()-1], p.bytes)
			continue
		}
		sw := f.switches[p.to.Port()-1]
		if !sw.start(p) {
			sw.batch = append(sw.batch, Input{From: p.from, Packet: p.bytes})
		}
	}
	for _, sw := range f.switches {
		for len(sw.running) > 0 && (!f.lossy || f.rng.IntN(3) > 0) {
			sw.advance()
		}
		sw.out.Reset()
		sw.core.Step(0, sw.batch, &sw.out)
		for _, e := range sw.out.Begun {
			sw.begun = sw.programs[e]
		}
		for _, in := range sw.batch {
			clear(in.Packet) // it was lent for the Step alone
		}
		sw.batch, sw.later = append(sw.batch[:0], sw.later...), nil
		for i := range sw.out.Sends {
			s := &sw.out.Sends[i]
			f.fly(flight{sw.addr, s.To, slices.Concat(s.Head[:], s.Body)})
		}
	}
}

// receive is a member's side of a packet.
func (f *forest) receive(m *member, b []byte) {
	var h wire.Header
	payload, fault := h.Decode(b)
	if fault != wire.NoFault {
		f.wrong = append(f.wrong, fmt.Sprintf("rank %d got a malformed packet: %v", m.rank, fault))
		return
	}
	if h.Epoch != f.epoch {
		return
	}
	if h.Type == wire.Error {
		var e wire.ErrorBody
		e.Decode(payload)
		f.reported = append(f.reported, e)
		return
	}
	if h.Chunk-m.base >= m.next-m.base || m.got[h.Chunk] != nil {
		return
	}
	if h.Type == wire.Want {
		f.contribute(m, h.Chunk)
	}
	if h.Type == wire.Result {
		if h.Signature != f.signature(h.Chunk) || h.Exponent != f.wantExponent(h.Chunk) || !bytes.Equal(payload, f.want(m.rank, h.Chunk)) {
			f.wrong = append(f.wrong, fmt.Sprintf("rank %d, chunk %d, epoch %d: got %x, %d, want %x, %d", m.rank, h.Chunk, f.epoch,
				payload, h.Exponent, f.want(m.rank, h.Chunk), f.wantExponent(h.Chunk)))
		}
		m.got[h.Chunk] = append([]byte{}, payload...)
		for m.got[m.base] != nil {
			m.base++
		}
		f.pump(m)
	}
}

// run lets so many things happen.
func (f *forest) run(events int) {
	for range events {
		f.deliver(1 + f.rng.IntN(6))
		if f.rng.IntN(4) == 0 {
			f.probe(f.members[f.rng.IntN(len(f.members))])
		}
	}
}

// drain lets everything arrive, until all members are done or, after that many
// rounds, they never will be.
func (f *forest) drain(rounds int) bool {
	f.lossy = false
	for range rounds {
		for len(f.flights) > 0 || f.isRunning() {
			f.deliver(len(f.flights))
		}
		done := true
		for _, m := range f.members {
			done = done && m.base == f.first+uint32(f.total)
			f.probe(m)
		}
		if done {
			return true
		}
	}
	return false
}

// TestTree runs random operations through random trees over a bad network and
// several epochs. No member gets a wrong bit, and once the network is healthy all
// of them get everything.
func TestTree(t *testing.T) { testTree(t, false) }

// TestTreeWithPrograms: likewise where programs reduce beside the cores.
func TestTreeWithPrograms(t *testing.T) { testTree(t, true) }

func testTree(t *testing.T, fast bool) {
	rapid.Check(t, func(t *rapid.T) {
		f := newForest(
			rapid.Uint64().Draw(t, "seed"),
			rapid.IntRange(1, 6).Draw(t, "switches"),
			rapid.IntRange(1, 60).Draw(t, "chunks"),
			rapid.SampledFrom([]uint32{0, 5, math.MaxUint32 - 20}).Draw(t, "first"),
		)
		f.fast = fast
		for range rapid.IntRange(1, 3).Draw(t, "epochs") {
			f.enter(1<<rapid.IntRange(0, 3).Draw(t, "log window"), rapid.IntRange(0, 2).Draw(t, "probes"))
			f.run(rapid.IntRange(0, 300).Draw(t, "events"))
		}
		finished := f.drain(4 * f.total * (len(f.switches) + 2))
		for _, w := range f.wrong {
			t.Error(w)
		}
		if len(f.reported) > 0 {
			t.Errorf("error packets, but all members agree: %+v", f.reported[0])
		}
		if !finished {
			t.Error("a member waits for ever")
		}
	})
}

// TestTreeDisagreement has one member disagree about one chunk. Nobody gets a
// result of it, and an error names that member or one above it, and one that
// disagrees with it.
func TestTreeDisagreement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newForest(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 6).Draw(t, "switches"), 12, 0)
		if len(f.members) < 2 {
			t.Skip("nobody to disagree with")
		}
		f.odd = &oddity{
			rank:  rapid.IntRange(0, len(f.members)-1).Draw(t, "rank"),
			chunk: uint32(rapid.IntRange(0, 11).Draw(t, "chunk")),
		}
		f.enter(4, 0)
		f.run(rapid.IntRange(0, 200).Draw(t, "events"))
		if f.drain(100) {
			t.Fatal("all members are done")
		}
		for _, m := range f.members {
			if m.base != f.odd.chunk {
				t.Errorf("rank %d stands at chunk %d, not at %d", m.rank, m.base, f.odd.chunk)
			}
		}
		f.checkReported(t)
	})
}

func (f *forest) checkReported(t *rapid.T) {
	if len(f.reported) == 0 {
		t.Fatal("nobody was reported")
	}
	for _, e := range f.reported {
		one := f.signature(f.odd.chunk)
		other := one
		other.Operation++
		odd, even := 0, 1
		if e.Says[0] == one {
			odd, even = 1, 0
		}
		if e.Kind != wire.Mismatch || e.Says[even] != one || e.Says[odd] != other {
			t.Fatalf("error says %+v", e)
		}
		if int(e.Rank[odd]) != f.odd.rank {
			t.Errorf("error names rank %d for the odd one, not %d", e.Rank[odd], f.odd.rank)
		}
	}
}
