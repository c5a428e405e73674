package kernel_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

var packets = flag.Int("packets", 30_000, "packets of the differential test")

// trial is a switch with the program, the aggregate core alone beside it, and neighbours
// that send both the same.
type trial struct {
	*rig
	rng      *rand.Rand
	oracle   *switchreduce.Core
	cfg      *switchreduce.Config
	base     uint32            // all children have the results before it
	given    map[uint32][]byte // the parent's results
	chunks   map[uint32]chunk  // what the operation of a number is
	has      []map[uint32]bool // results that each child has
	earlier  map[string]bool   // all that the oracle has sent in this epoch
	sent     int               // packets
	next     []uint32          //  uint32            // number
	complete map[uint32]bool   // numbers whose partial the parent has
}

// chunk is an operation's, as all members see it.
type chunk struct {
	collective wire.Collective
	function   reduce.Function
	element    reduce.Type
	count      int
	root       uint32
	sources    uint32 // children, of a broadcast
	sinks      uint32 // children
}

// flags returns those of a child's contribution.
func (c *chunk) flags(child int) (f wire.Flags) {
	if c.sources>>child&1 == 1 {
		f |= wire.Source
	}
	if c.sinks>>child&1 == 1 {
		f |= wire.Sink
	}
	return f
}

// size returns the bytes of a payload, where there is one.
func (c *chunk) size(isThere bool) int {
	if !isThere {
		return 0
	}
	return c.count * c.element.Size()
}

// TestLikeTheCore: what neighbours get from the program and the core together is what the
// core alone sends them, in packets by the thousand: batches and single ones, whole and in
// part, repeated, late, malformed, from strangers, probes and answers, epochs that follow
// each other. The pair may send a packet again that the core had sent before.
func TestLikeTheCore(t *testing.T) {
	for _, children := range []int{1, 2, 3, 4, 7, 16} {
		for _, isRoot := range []bool{true, false} {
			t.Run(fmt.Sprintf("children=%d/root=%t", children, isRoot), func(t *testing.T) {
				r := &trial{rig: newRig(t, children+1), rng: rand.New(rand.NewPCG(uint64(children), 7)), oracle: switchreduce.New()}
				r.begin(children, isRoot)
				count := *packets
				if testing.Short() {
					count = min(count, 4000)
				}
				// Few packets may all be of what the agent does: then some more are sent.
				for r.sent < count || r.sent < 10*count && r.counters().Events["kernel-results"] == 0 {
					if r.rng.IntN(4000) == 0 {
						r.begin(children, isRoot)
					}
					r.once()
				}
				r.finish(t)
			})
		}
	}
}

// begin installs another epoch, with another window and perhaps smaller chunks.
func (r *trial) begin(children int, isRoot bool) {
	epoch := uint32(2)
	if r.cfg != nil {
		epoch = r.cfg.Epoch + 2
	}
	r.cfg = config(epoch, children, isRoot)
	r.cfg.Window = 1 << r.rng.IntN(8)
	if r.rng.IntN(3) == 0 {
		r.cfg.ChunkBytes = switchreduce.MinChunk + r.rng.IntN(r.cfg.ChunkBytes-switchreduce.MinChunk)
	}
	r.base = r.rng.Uint32()
	r.given, r.chunks, r.earlier, r.complete = map[uint32][]byte{}, map[uint32]chunk{}, map[string]bool{}, map[uint32]bool{}
	r.has, r.next = nil, nil
	for range children {
		r.next = append(r.next, r.base)
		r.has = append(r.has, map[uint32]bool{})
	}
	r.install(r.cfg)
	var out switchreduce.Output
	r.oracle.Step(r.now, []switchreduce.Input{{Kind: switchreduce.Install, Config: r.cfg}}, &out)
}

// kind returns what is reduced at a number.
func (r *trial) kind(n uint32) chunk {
	c, ok := r.chunks[n]
	if !ok {
		// Operations go on for some chunks, so that batches are of one.
		if before, ok := r.chunks[n-1]; ok && r.rng.IntN(80) != 0 {
			c = before
		} else {
			c = r.draw()
		}
		r.chunks[n] = c
	}
	return c
}

func (r *trial) draw() chunk {
	everyone := uint32(1)<<len(r.cfg.Children) - 1
	if r.rng.IntN(10) == 0 {
		return chunk{collective: wire.Barrier, sinks: everyone}
	}
	types := []reduce.Type{reduce.Int32, reduce.Int64, reduce.Uint32, reduce.Uint64, reduce.Block32, reduce.Float32}
	c := chunk{collective: wire.Allreduce, element: types[r.rng.IntN(len(types))], sinks: everyone}
	switch r.rng.IntN(4) {
	case 0:
		c.collective, c.root, c.sinks = wire.Reduce, r.rng.Uint32N(9), everyone&r.rng.Uint32()
	case 1:
		return r.drawBroadcast(everyone)
	}
	for c.function = reduce.NoFunction; !reduce.Defined(c.function, c.element) || c.function.Located(); {
		c.function = reduce.Function(1 + r.rng.IntN(10))
	}
	c.count = 1 + r.rng.IntN(r.cfg.ChunkBytes/c.element.Size())
	if r.rng.IntN(2) == 0 {
		c.count = r.cfg.ChunkBytes / c.element.Size()
	}
	return c
}

// drawBroadcast returns a broadcast: mostly from one child to the others, but its source may be
// elsewhere, or there are two, and some children may want nothing.
func (r *trial) drawBroadcast(everyone uint32) chunk {
	types := []reduce.Type{reduce.Int32, reduce.Int64, reduce.Float32, reduce.Float64, reduce.Float16, reduce.BFloat16}
	c := chunk{collective: wire.Broadcast, element: types[r.rng.IntN(len(types))], root: r.rng.Uint32N(9)}
	if c.count = r.cfg.ChunkBytes / c.element.Size(); r.rng.IntN(2) == 0 {
		c.count = 1 + r.rng.IntN(c.count)
	}
	switch r.rng.IntN(8) {
	case 0:
	case 1:
		c.sources = everyone & r.rng.Uint32()
	default:
		c.sources = 1 << r.rng.IntN(len(r.cfg.Children))
	}
	if c.sinks = everyone &^ c.sources; r.rng.IntN(4) == 0 {
		c.sinks = everyone & r.rng.Uint32()
	}
	return c
}

func (r *trial) header(c chunk, n uint32) wire.Header {
	return wire.Header{
		Type: wire.Contribution, Group: r.cfg.Group, Epoch: r.cfg.Epoch, Chunk: n,
		Signature: wire.Signature{Collective: c.collective, Function: c.function, Element: c.element, Root: c.root, Elements: uint32(c.count), ChunkElements: uint16(c.count)},
	}
}

// contribution returns child i's packet about n, the same each time.
func (r *trial) contribution(i int, n uint32) []byte {
	c := r.kind(n)
	h := r.header(c, n)
	h.Child, h.Cookie, h.Lowest, h.Flags = uint16(i), r.cfg.Children[i].Cookie, r.cfg.Children[i].Lowest, c.flags(i)
	own := rand.New(rand.NewPCG(uint64(i), uint64(n)))
	payload := make([]byte, c.size(c.collective != wire.Broadcast || h.Flags&wire.Source != 0))
	for k := range payload {
		payload[k] = byte(own.Uint32())
		if own.IntN(3) == 0 {
			payload[k] = 0
		}
	}
	if c.element == reduce.Block32 {
		h.Exponent = int8(own.Uint32())
	}
	return packet(h, payload)
}

// once has a neighbour send something.
func (r *trial) once() {
	children := len(r.cfg.Children)
	i := r.rng.IntN(children)
	switch k := r.rng.IntN(40); {
	case k < 25:
		r.contribute(i)
	case k < 26:
		n := r.some()
		h := wire.Header{Type: wire.Probe, Child: uint16(i), Group: r.cfg.Group, Epoch: r.cfg.Epoch, Cookie: r.cfg.Children[i].Cookie, Chunk: n}
		r.exchange(i, packet(h, nil), 0)
	case k < 39 && r.cfg.Parent.IsValid():
		r.answer()
	case k == 39:
		r.wrong(i)
	default:
		r.contribute(i)
	}
}

// some returns a number that something may be sent about: up to the window, or late.
func (r *trial) some() uint32 {
	return r.base + uint32(r.rng.IntN(int(r.cfg.Window)+4)) - 4
}

// contribute has child i send a batch, or packets of one apart.
func (r *trial) contribute(i int) {
	first := r.next[i]
	if int32(first-r.base) < 0 {
		first = r.base
	}
	count := wire.BatchChunks - first%wire.BatchChunks
	switch r.rng.IntN(40) {
	case 0:
		first = r.some()
	case 1:
		count = 1 + uint32(r.rng.IntN(40))
	case 2, 3:
		r.merged(i)
		return
	}
	var batch []byte
	size := 0
	flush := func() {
		if len(batch) > 0 {
			r.exchange(i, batch, size)
		}
		batch, size = nil, 0
	}
	for n := first; n-first < count; n++ {
		if int32(n-r.base) >= int32(r.cfg.Window) || n-first >= r.cfg.Window {
			break
		}
		p := r.contribution(i, n)
		if len(p) > size && size > 0 || len(batch)+len(p) > 65000 {
			flush()
		}
		if size == 0 {
			size = len(p)
		}
		batch = append(batch, p...)
		if int32(n+1-r.next[i]) > 0 {
			r.next[i] = n + 1
		}
		if len(p) < size || r.rng.IntN(512) == 0 {
			flush()
		}
	}
	flush()
}

// merged has child i send packets again that it has sent, in any order, as one batch, as receive offload puts
// such ones together.
func (r *trial) merged(i int) {
	sent := r.next[i] - r.base
	if int32(sent) <= 0 {
		return
	}
	var batch []byte
	size := 0
	for range 1 + r.rng.IntN(44) {
		p := r.contribution(i, r.base+r.rng.Uint32N(sent))
		if size == 0 {
			size = len(p)
		}
		if len(p) > size || len(batch)+len(p) > 65000 {
			continue
		}
		if batch = append(batch, p...); len(p) < size {
			break
		}
	}
	r.exchange(i, batch, size)
}

// answer has the parent send results of what is complete, or something else.
func (r *trial) answer() {
	from := len(r.cfg.Children)
	n := r.base
	if r.rng.IntN(10) == 0 {
		n = r.some()
	}
	h := r.header(r.kind(n), n)
	h.Child, h.Cookie = r.cfg.Index, r.cfg.Cookie
	if r.rng.IntN(20) == 0 {
		h = wire.Header{Type: []wire.Type{wire.Heard, wire.Want, wire.Lost}[r.rng.IntN(3)], Child: h.Child, Group: h.Group, Epoch: h.Epoch, Cookie: h.Cookie, Chunk: n}
		r.exchange(from, packet(h, nil), 0)
		return
	}
	var batch []byte
	size := 0
	for most := n + 64; r.complete[n] && n != most && len(batch) < 60000; n++ { // what one sendmsg takes
		p := r.given[n]
		if p == nil {
			c := r.kind(n)
			h := r.header(c, n)
			h.Type, h.Child, h.Cookie = wire.Result, r.cfg.Index, r.cfg.Cookie
			isWrong := r.rng.IntN(64) == 0
			if c.sinks != 0 != isWrong {
				h.Flags = wire.Sink
			}
			payload := make([]byte, c.size(h.Flags != 0))
			for k := range payload {
				payload[k] = byte(n) + byte(k)
			}
			if c.element == reduce.Block32 {
				h.Exponent = int8(n)
			}
			p = packet(h, payload)
			if isWrong { // it is dropped
				r.exchange(from, p, 0)
				break
			}
			r.given[n] = p
		}
		if size > 0 && len(p) > size {
			break
		}
		if size == 0 {
			size = len(p)
		}
		batch = append(batch, p...)
		if len(p) < size || r.rng.IntN(256) == 0 {
			break
		}
	}
	if size > 0 {
		r.exchange(from, batch, size)
	}
}

// wrong has child i, or somebody in its name, send what is not right.
func (r *trial) wrong(i int) {
	p := r.contribution(i, r.some())
	from := i
	switch r.rng.IntN(6) {
	case 0:
		p[r.rng.IntN(len(p))] ^= 1 << r.rng.IntN(8)
		var h wire.Header
		_, fault := h.Decode(p)
		if ahead := int32(h.Chunk - r.base); fault == wire.NoFault && (ahead >= int32(r.cfg.Window) || ahead < -1<<30) {
			return // beyond the window, or so late that it is newer than other late ones: nobody is right then
		}
	case 1:
		from = (i + 1) % len(r.neighbours)
	case 2:
		p = p[:r.rng.IntN(len(p))+1]
	case 3:
		p = append(p, 0)
	case 4:
		p[12+r.rng.IntN(6)]++ // cookie
	case 5:
		p[11]-- // epoch
	}
	r.exchange(from, p, 0)
}

// exchange sends packets to both, and compares what they send.
func (r *trial) exchange(neighbour int, batch []byte, size int) {
	r.t.Helper()
	count := 1
	if size > 0 && size < len(batch) {
		count = (len(batch) + size - 1) / size
	} else {
		size = len(batch)
	}
	r.sent += count
	var out switchreduce.Output
	in := switchreduce.Input{Kind: switchreduce.Packet, From: neighbourAddr(neighbour), Packet: batch}
	if count > 1 {
		in.Size = size
	}
	r.oracle.Step(r.now, []switchreduce.Input{in}, &out)
	want := map[string]bool{}
	for k := range out.Sends {
		s := &out.Sends[k]
		want[keyOf(s.To, append(s.Head[:len(s.Head):len(s.Head)], s.Body...))] = true
	}
	r.send(neighbour, batch, size)
	r.pump()
	got := map[string]bool{}
	isResult := batch[0] == wire.Version<<4|byte(wire.Result)
	for i, fd := range r.neighbours {
		for {
			b, from := r.receive(fd)
			if b == nil {
				break
			}
			if from != r.switchAddr(i) {
				r.t.Fatalf("neighbour %d has a packet from %v", i, from)
			}
			key := keyOf(neighbourAddr(i), b)
			if isResult && wire.Type(b[0]&15) == wire.Contribution {
				r.t.Fatalf("neighbour %d gets %s again, of which it sends the result", i, describe(b))
			}
			if !want[key] && !r.earlier[key] {
				r.t.Fatalf("neighbour %d gets %s, which the core does not send; it sends %s", i, describe(b), list(want))
			}
			got[key] = true
			r.note(i, b)
		}
	}
	for key := range want {
		if !got[key] {
			r.t.Fatalf("the core sends %s after %s from %d, which does not come", list(map[string]bool{key: true}), describe(batch), neighbour)
		}
		r.earlier[key] = true
	}
}

// keyOf is a packet and its receiver as they are compared. An error names two of the ranks
// that differ: which ones depends on the order in which the core has got them.
func keyOf(to netip.AddrPort, b []byte) string {
	if b = slices.Clone(b); len(b) == wire.HeaderSize+wire.ErrorBodySize && wire.Type(b[0]&15) == wire.Error {
		one, other := b[wire.HeaderSize+8:wire.HeaderSize+24], b[wire.HeaderSize+24:]
		clear(one[13:])
		clear(other[13:])
		if bytes.Compare(one, other) > 0 {
			first := slices.Clone(one)
			copy(one, other)
			copy(other, first)
		}
	}
	return to.String() + " " + string(b)
}

// note keeps what a neighbour has learnt.
func (r *trial) note(i int, b []byte) {
	var h wire.Header
	if _, fault := h.Decode(b); fault != wire.NoFault {
		r.t.Fatalf("neighbour %d gets a malformed packet: %v", i, fault)
	}
	switch {
	case h.Type == wire.Contribution:
		r.complete[h.Chunk] = true
	case h.Type == wire.Result || h.Type == wire.Error:
		if i < len(r.has) {
			r.has[i][h.Chunk] = true
		}
	}
	for r.all(r.base) {
		for _, has := range r.has {
			delete(has, r.base)
		}
		r.base++
	}
}

func (r *trial) all(n uint32) bool {
	for _, has := range r.has {
		if !has[n] {
			return false
		}
	}
	return true
}

func describe(b []byte) string {
	var h wire.Header
	payload, fault := h.Decode(b)
	return fmt.Sprintf("{%v %v %+v, %d bytes}", fault, h.Type, h, len(payload))
}

func list(packets map[string]bool) (s string) {
	for p := range packets {
		for k := range p {
			if p[k] == ' ' {
				at, _ := netip.ParseAddrPort(p[:k])
				s += fmt.Sprintf(" %v %s", at, describe([]byte(p[k+1:])))
				break
			}
		}
	}
	return s
}

// finish reports how much was done by whom.
func (r *trial) finish(t *testing.T) {
	t.Logf("%d packets, window base %d", r.sent, r.base)
	c := r.counters()
	t.Log(c.Events, c.Drops)
	if c.Events["kernel-results"] == 0 {
		t.Error("the program has done nothing")
	}
}
