package switchreduce

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// mark is what child (or, as -1, the parent in a result) says in epoch e about
// number n: all sums of it over the children differ.
func mark(child int, n, e uint32) uint64 {
	return uint64(n%1000)<<40 | uint64(e)<<20 | uint64(1)<<(child+2)
}

// A crowd is a core with neighbours that keep no rule at all but to be honest
// about each chunk: it may get any number in any epoch at any time.
type crowd struct {
	core  *Core
	kids  int
	root  bool
	out   Output
	wrong string
	sent  [][]byte // of the last step
}

func kidAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 4791)
}

func newCrowd(kids int, root bool) *crowd { return &crowd{core: New(), kids: kids, root: root} }

func (c *crowd) config(epoch, window uint32) *Config {
	cfg := &Config{Epoch: epoch, Window: window, ChunkBytes: 64, Probes: 1}
	for i := range c.kids {
		cfg.Children = append(cfg.Children, Child{Addr: kidAddr(i), Lowest: uint32(i), Cookie: cookieOf(i, epoch)})
	}
	if !c.root {
		cfg.Parent, cfg.Cookie = addr("p"), cookieOf(-1, epoch)
	}
	return cfg
}

// cookieOf returns the secret of a child, or of the parent if child is -1.
func cookieOf(child int, epoch uint32) wire.Cookie {
	return wire.Cookie(epoch)<<20 + wire.Cookie(child+1)*0x101
}

// words is how many words the vector of number n has: chunks differ in size.
func (c *crowd) words(n uint32) int { return int(n%3) + 1 }

func (c *crowd) payload(child int, n, e uint32) []byte {
	var b []byte
	for range c.words(n) {
		b = binary.LittleEndian.AppendUint64(b, mark(child, n, e))
	}
	return b
}

func (c *crowd) sum(n, e uint32) []byte {
	var sum uint64
	for i := range c.kids {
		sum += mark(i, n, e)
	}
	var b []byte
	for range c.words(n) {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	return b
}

// packet makes a packet about number n of epoch e, from a child or (if child
// is -1) from the parent.
func (c *crowd) packet(t wire.Type, child int, n, e uint32) Input {
	h := wire.Header{Type: t, Epoch: e, Chunk: n, Cookie: cookieOf(child, e)}
	var body []byte
	from := addr("p")
	if child >= 0 {
		h.Child, h.Lowest, from = uint16(child), uint32(child), kidAddr(child)
	}
	switch t {
	case wire.Contribution, wire.Result:
		h.Flags = wire.Sink
		h.Signature = c.signature(n)
		body = c.payload(child, n, e)
	case wire.Error:
		s := c.signature(n)
		body = make([]byte, wire.ErrorBodySize)
		(&wire.ErrorBody{Kind: wire.Mismatch, Rank: [2]uint32{n, e}, Says: [2]wire.Signature{s, s}}).Put(body)
	default:
	}
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	return Input{From: from, Packet: append(b, body...)}
}

func (c *crowd) signature(n uint32) wire.Signature {
	return wire.Signature{
		Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint64,
		Elements: uint32(c.words(n)), ChunkElements: uint16(c.words(n)),
	}
}

// step gives the core a batch and looks at every packet when the Step is over:
// none may have anything in it but data of its own number and epoch.
func (c *crowd) step(batch []Input) {
	c.out.Reset()
	c.core.Step(0, batch, &c.out)
	c.sent = c.sent[:0]
	var to []netip.AddrPort
	for i := range c.out.Sends {
		s := &c.out.Sends[i]
		c.sent, to = append(c.sent, slices.Concat(s.Head[:], s.Body)), append(to, s.To)
	}
	for i := range c.out.Batches {
		r := &c.out.Batches[i]
		r.Address()
		for packet := range slices.Chunk(slices.Clone(r.Packets), r.Size) {
			c.sent, to = append(c.sent, packet), append(to, r.To)
		}
	}
	for i, packet := range c.sent {
		var h wire.Header
		body, fault := h.Decode(packet)
		child := -1
		if to[i] != addr("p") {
			child = int(h.Child)
		}
		if child >= 0 && to[i] != kidAddr(child) || h.Cookie != cookieOf(child, h.Epoch) {
			c.wrong = fmt.Sprintf("type %d, chunk %d, epoch %d to %v: child %d, cookie %#x", h.Type, h.Chunk, h.Epoch, to[i], h.Child, uint64(h.Cookie))
		}
		want := []byte(nil)
		switch h.Type {
		case wire.Contribution:
			want = c.sum(h.Chunk, h.Epoch)
		case wire.Result:
			want = c.sum(h.Chunk, h.Epoch)
			if !c.root {
				want = c.payload(-1, h.Chunk, h.Epoch)
			}
		case wire.Error:
			want = c.packet(wire.Error, -1, h.Chunk, h.Epoch).Packet[wire.HeaderSize:]
		default:
		}
		if fault != wire.NoFault || !slices.Equal(body, want) {
			c.wrong = fmt.Sprintf("type %d, chunk %d, epoch %d: fault %v, body %x, want %x", h.Type, h.Chunk, h.Epoch, fault, body, want)
		}
	}
}

// TestNeverMixed lets neighbours send anything at any time, many packets a
// batch: slots are taken over while packets of their old chunks are still to
// be sent, and epochs follow each other. Nothing ever mixes.
func TestNeverMixed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(rapid.IntRange(1, 3).Draw(t, "children"), rapid.Bool().Draw(t, "root"))
		c.out.TakesBatches = rapid.Bool().Draw(t, "takes batches")
		epoch := uint32(1)
		c.step([]Input{{Kind: Install, Config: c.config(1, 2)}})
		anything := rapid.Custom(func(t *rapid.T) Input {
			n := rapid.Uint32Range(0, 12).Draw(t, "number")
			e := epoch - rapid.Uint32Range(0, min(epoch-1, 1)).Draw(t, "epochs ago")
			child := rapid.IntRange(0, c.kids-1).Draw(t, "child")
			// Contributions are frequent, so that slots become complete.
			switch k := rapid.IntRange(0, 9).Draw(t, "kind"); k {
			case 0:
				return c.packet(wire.Result, -1, n, e)
			case 1:
				return c.packet(wire.Want, -1, n, e)
			case 2, 3:
				return c.packet(wire.Probe, child, n, e)
			case 4:
				return c.packet(wire.Error, -1, n, e)
			default:
				return c.packet(wire.Contribution, child, n, e)
			}
		})
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			batch := rapid.SliceOfN(anything, 1, 24).Draw(t, "batch")
			if rapid.IntRange(0, 3).Draw(t, "install") == 0 {
				epoch++
				batch = append(batch, Input{Kind: Install, Config: c.config(epoch, 1<<rapid.IntRange(0, 2).Draw(t, "log window"))})
			}
			c.step(batch)
			if c.wrong != "" {
				t.Fatal(c.wrong)
			}
		}
	})
}

// TestTakeOverWithinBatch is the case of TestNeverMixed that the rule of 2W
// forbids: number 4 is finished in the batch in which number 0 is sent again.
func TestTakeOverWithinBatch(t *testing.T) {
	c := newCrowd(2, true)
	c.step([]Input{
		{Kind: Install, Config: c.config(1, 2)},
		c.packet(wire.Contribution, 0, 0, 1), c.packet(wire.Contribution, 1, 0, 1),
	})
	c.step([]Input{
		c.packet(wire.Probe, 1, 0, 1),
		c.packet(wire.Contribution, 0, 4, 1), c.packet(wire.Contribution, 1, 4, 1),
		c.packet(wire.Contribution, 0, 8, 1), c.packet(wire.Contribution, 1, 8, 1),
	})
	if c.wrong != "" || len(c.sent) != 5 {
		t.Errorf("%d packets; %s", len(c.sent), c.wrong)
	}
}

// A stream is one switch at work without a loss: number after number.
type stream struct {
	core     *Core
	kids     int
	in       []Input
	out      Output
	next     uint32
	contribs []wire.Header
	result   wire.Header
}

func newStream(element reduce.Type, kids, chunkBytes int, window uint32) *stream {
	c := crowd{kids: kids}
	s := &stream{core: New(), kids: kids}
	cfg := c.config(2, window)
	cfg.ChunkBytes = chunkBytes
	s.core.Step(0, []Input{{Kind: Install, Config: cfg}}, &s.out)
	sig := wire.Signature{
		Collective: wire.Allreduce, Function: reduce.Sum, Element: element,
		Elements: uint32(chunkBytes / 4), ChunkElements: uint16(chunkBytes / 4),
	}
	head := wire.Header{Type: wire.Contribution, Flags: wire.Sink, Epoch: 2, Signature: sig}
	for i := range kids {
		head.Child, head.Lowest, head.Cookie = uint16(i), uint32(i), cookieOf(i, 2)
		s.contribs = append(s.contribs, head)
		s.in = append(s.in, Input{From: cfg.Children[i].Addr, Packet: make([]byte, wire.HeaderSize+chunkBytes)})
	}
	s.result = wire.Header{Type: wire.Result, Flags: wire.Sink, Epoch: 2, Cookie: cookieOf(-1, 2), Signature: sig}
	s.in = append(s.in, Input{From: cfg.Parent, Packet: make([]byte, wire.HeaderSize+chunkBytes)})
	return s
}

// fill makes s.in the packets of the next number.
func (s *stream) fill() {
	for i := range s.contribs {
		s.contribs[i].Chunk = s.next
		s.contribs[i].Put(s.in[i].Packet)
	}
	s.result.Chunk = s.next
	s.result.Put(s.in[s.kids].Packet)
}

// chunk takes one number through the switch: contributions up, a result down.
func (s *stream) chunk() {
	s.fill()
	s.out.Reset()
	s.core.Step(core.Time(s.next), s.in, &s.out)
	s.next++
}

func TestNoAllocationInSteadyState(t *testing.T) {
	const window = 8
	for _, element := range []reduce.Type{reduce.Float32, reduce.Block32} {
		s := newStream(element, 5, 1432, window)
		for range 2 * window {
			s.chunk()
		}
		if n := testing.AllocsPerRun(1000, s.chunk); n != 0 {
			t.Errorf("%v: %v allocations a chunk, want 0", element, n)
		}
		if c := s.core.Counters(); c.Results != uint64(s.next) || c.Dropped() != 0 {
			t.Errorf("%v: %d results of %d chunks, %d packets dropped", element, c.Results, s.next, c.Dropped())
		}
	}
}

// TestMemory: what the slots hold is at most (children + 1) x 2W x chunk, and nothing
// before chunks come.
func TestMemory(t *testing.T) {
	const kids, window, bytes = 5, 8, 1432
	s := newStream(reduce.Float32, kids, bytes, window)
	held := s.core.held
	if n := held(); n != 0 {
		t.Errorf("%d bytes before the first chunk", n)
	}
	for range 100 {
		s.chunk()
		// The partial is still to be sent when the result comes in the same
		// batch, so one spare is in use.
		if n, most := held(), (kids+1)*(2*window+1)*(bytes+wire.HeaderSize); n > most {
			t.Fatalf("%d bytes after %d chunks, at most %d", n, s.next, most)
		}
	}
	s.core.Step(0, []Input{{Kind: Retire, Epoch: 2}}, &s.out)
	if n := held(); n != 0 {
		t.Errorf("%d bytes after the last epoch", n)
	}
}

// held returns the bytes of packets and payloads that the core has memory for.
func (c *Core) held() (n int) {
	c.each(func(slot *slot) {
		n += cap(slot.held)
		if !slot.home {
			n += len(slot.packet)
		}
	})
	for _, b := range slices.Concat(c.blocks, c.spares, c.lent, c.holds) {
		n += cap(b)
	}
	return n
}

// TestSettled: an idle probe that says that all members have every result before a
// number gives back what is older, and nothing else; and it is passed on to the
// parent. One that says nothing of the kind changes nothing.
func TestSettled(t *testing.T) {
	const kids, window, chunks = 3, 8, 5
	idle := func(child int, settle func(*wire.Header)) Input {
		c := crowd{kids: kids}
		h := wire.Header{Type: wire.Probe, Flags: wire.Idle, Epoch: 2, Cookie: cookieOf(child, 2), Child: uint16(child), Lowest: uint32(child)}
		settle(&h)
		in := Input{From: c.config(2, window).Children[child].Addr, Packet: make([]byte, wire.HeaderSize)}
		h.Put(in.Packet)
		return in
	}
	for name, test := range map[string]struct {
		settle func(*wire.Header)
		left   []uint32 // numbers
		said   bool     // to the parent
	}{
		"nothing":                   {func(h *wire.Header) { h.Chunk = chunks }, []uint32{0, 1, 2, 3, 4}, false},
		"number changed on the way": {func(h *wire.Header) { h.SetSettled(chunks); h.Chunk = 0 }, []uint32{0, 1, 2, 3, 4}, false},
		"some":                      {func(h *wire.Header) { h.SetSettled(3) }, []uint32{3, 4}, true},
		"all":                       {func(h *wire.Header) { h.SetSettled(chunks) }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(reduce.Float32, kids, 1432, window)
			for range chunks {
				s.chunk()
			}
			s.out.Reset()
			s.core.Step(10, []Input{idle(2, test.settle), idle(0, test.settle)}, &s.out)
			if len(s.out.Sends) != 1 {
				t.Fatalf("%d packets are sent, want one idle probe", len(s.out.Sends))
			}
			var up wire.Header
			if _, fault := up.Decode(s.out.Sends[0].Head[:]); fault != wire.NoFault {
				t.Fatal(fault)
			}
			if _, ok := up.Settled(); ok != test.said || up.Type != wire.Probe || up.Flags != wire.Idle {
				t.Errorf("the parent gets %+v", up)
			}
			s.out.Reset()
			s.core.Step(11, nil, &s.out)
			var left []uint32
			s.core.each(func(slot *slot) {
				if slot.state != vacant {
					left = append(left, slot.number)
				}
			})
			slices.Sort(left)
			if !slices.Equal(left, test.left) {
				t.Errorf("slots of the numbers %d are left, want %d", left, test.left)
			}
			if n := s.core.held(); (n == 0) != (test.left == nil) {
				t.Errorf("%d bytes are held", n)
			}
			s.chunk() // and on it goes
			if c := s.core.Counters(); c.Results != chunks+1 || c.Dropped() != 0 {
				t.Errorf("%d results, %d packets dropped", c.Results, c.Dropped())
			}
		})
	}
}

// BenchmarkBatches takes chunks through a switch in batches, as the kernel has them.
//
//	go test -run '^$' -bench Batches ./internal/core/switchreduce
func BenchmarkBatches(b *testing.B) {
	const kids, chunkBytes, batch, size = 4, 1432, 32, 1432 + wire.HeaderSize
	for _, bundled := range []bool{false, true} {
		b.Run(fmt.Sprintf("children=%d/bytes=%d/run=%d/bundled=%v", kids, chunkBytes, batch, bundled), func(b *testing.B) {
			s := newStream(reduce.Float32, kids, chunkBytes, 2*batch)
			s.out.TakesBatches = true
			var in []Input
			batches := make([][]byte, kids+1)
			for i := range batches {
				batches[i] = make([]byte, batch*size)
				if bundled {
					in = append(in, Input{From: s.in[i].From, Packet: batches[i], Size: size})
					continue
				}
				for p := range slices.Chunk(batches[i], size) {
					in = append(in, Input{From: s.in[i].From, Packet: p})
				}
			}
			b.SetBytes(kids * chunkBytes)
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				for i := range batch {
					s.fill()
					for k := range batches {
						copy(batches[k][i*size:][:wire.HeaderSize], s.in[k].Packet)
					}
					s.next++
				}
				for _, in := range [][]Input{in[:len(in)/(kids+1)*kids], in[len(in)/(kids+1)*kids:]} { // results come later
					s.out.Reset()
					s.core.Step(core.Time(s.next), in, &s.out)
				}
			}
			if n := s.core.Counters().Results; n != uint64(s.next) {
				b.Fatalf("%d results of %d chunks", n, s.next)
			}
		})
	}
}

func BenchmarkStep(b *testing.B) {
	for _, kids := range []int{2, 8, 32} {
		for _, element := range []reduce.Type{reduce.Float32, reduce.Block32} {
			b.Run(fmt.Sprintf("type=%v/children=%d/bytes=1432", element, kids), func(b *testing.B) {
				s := newStream(element, kids, 1432, 64)
				b.SetBytes(int64(kids * 1432))
				b.ReportAllocs()
				for b.Loop() {
					s.chunk()
				}
				if n := s.core.Counters().Results; n != uint64(s.next) {
					b.Fatalf("%d results of %d chunks", n, s.next)
				}
			})
		}
	}
}
