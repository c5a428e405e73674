package kernel_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// config returns an epoch of a switch with so many children, and perhaps a parent, which
// is the neighbour after them.
func config(epoch uint32, children int, isRoot bool) *switchreduce.Config {
	c := &switchreduce.Config{Group: 9, Epoch: epoch, Window: 64, ChunkBytes: 1432}
	for i := range children {
		c.Children = append(c.Children, switchreduce.Child{Addr: neighbourAddr(i), Lowest: uint32(10 * i), Cookie: wire.Cookie(0x1234_5678_0000 + i)})
	}
	if !isRoot {
		c.Parent, c.Index, c.Cookie = neighbourAddr(children), 3, 0x9999_0000_0001
	}
	return c
}

// sums returns the header of child i's contribution of n numbers to chunk number.
func sums(c *switchreduce.Config, i int, number uint32, n int) wire.Header {
	return wire.Header{
		Type: wire.Contribution, Flags: wire.Sink, Child: uint16(i), Group: c.Group, Epoch: c.Epoch, Cookie: c.Children[i].Cookie,
		Chunk: number, Lowest: c.Children[i].Lowest,
		Signature: wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: uint32(n), ChunkElements: uint16(n)},
	}
}

func values(n int, first uint32) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(b[4*i:], first+uint32(i))
	}
	return b
}

// TestTakesBatches: after the first packet, which begins the epoch, none comes to the agent.
func TestTakesBatches(t *testing.T) {
	r := newRig(t, 4)
	c := config(2, 4, true)
	r.install(c)
	const n, batch = 358, 44
	for i := range 4 {
		r.send(i, packet(sums(c, i, 0, n), values(n, 0)), 1<<16)
	}
	r.pump()
	for i := range 4 {
		var all []byte
		for k := range uint32(batch) {
			all = append(all, packet(sums(c, i, 1+k, n), values(n, uint32(i)+k))...)
		}
		r.send(i, all, wire.HeaderSize+4*n)
	}
	r.settle()
	if b, _ := r.receive(r.tree); b != nil {
		t.Fatalf("the agent gets %x", b[:wire.HeaderSize])
	}
	for i := range 4 {
		for k := range uint32(1 + batch) {
			b, from := r.receive(r.neighbours[i])
			if from != r.switchAddr(i) {
				t.Fatalf("child %d, chunk %d: from %v", i, k, from)
			}
			var h wire.Header
			payload, fault := h.Decode(b)
			if fault != wire.NoFault || h.Type != wire.Result || h.Chunk != k || h.Cookie != c.Children[i].Cookie || h.Child != uint16(i) {
				t.Fatalf("child %d, chunk %d: %v, %+v", i, k, fault, h)
			}
			if k == 0 {
				continue
			}
			for e := range uint32(n) {
				if got, want := binary.LittleEndian.Uint32(payload[4*e:]), 4*(k-1+e)+6; got != want {
					t.Fatalf("child %d, chunk %d, element %d: %d, want %d", i, k, e, got, want)
				}
			}
		}
	}
	var counted rpc.TreeCounters
	r.offload.Count(r.port, &counted, nil)
	if counted.Events["kernel-results"] != batch || counted.Events["kernel-taken"] != 4*batch {
		t.Error(counted)
	}
}

// probe returns child i's probe of a chunk.
func probe(c *switchreduce.Config, i int, n uint32) []byte {
	return packet(wire.Header{
		Type: wire.Probe, Child: uint16(i), Group: c.Group, Epoch: c.Epoch, Cookie: c.Children[i].Cookie, Chunk: n, Lowest: c.Children[i].Lowest,
	}, nil)
}

// types returns the types of the packets that a neighbour has got.
func (r *rig) types(i int) (all []wire.Type) {
	for {
		b, _ := r.receive(r.neighbours[i])
		if b == nil {
			return all
		}
		all = append(all, wire.Type(b[0]&15))
	}
}

// start installs an epoch, and has all children contribute to number 0: the epoch has begun then.
func (r *rig) start(c *switchreduce.Config) {
	r.t.Helper()
	r.install(c)
	for i := range c.Children {
		r.send(i, packet(sums(c, i, 0, 1), values(1, 0)), 1<<16)
	}
	r.pump()
	for i := range r.neighbours {
		r.types(i)
	}
}

// TestPassedAgain: a contribution that the program has left to the agent, and that was lost
// on the way there, passes again when it is sent again.
func TestPassedAgain(t *testing.T) {
	r := newRig(t, 2)
	c := config(2, 2, true)
	r.install(c)
	r.send(0, packet(sums(c, 0, 0, 4), values(4, 0)), 1<<16)
	r.pump() // the epoch has begun
	r.send(0, packet(sums(c, 0, 1, 4), values(4, 0)), 1<<16)
	r.settle()
	r.send(0, probe(c, 0, 1), 1<<16) // the agent takes the chunk over
	r.pump()
	r.send(1, packet(sums(c, 1, 1, 4), values(4, 0)), 1<<16)
	r.settle()
	if b, _ := r.receive(r.tree); b == nil {
		t.Fatal("the agent does not get a contribution to its own chunk")
	}
	r.send(1, packet(sums(c, 1, 1, 4), values(4, 0)), 1<<16)
	r.pump()
	if got := r.types(1); !slices.Equal(got, []wire.Type{wire.Result}) {
		t.Errorf("the child gets %v", got)
	}
}

// TestDisagreementGivesNoResult: a chunk to which one of three members contributes another
// operation has no result, in whatever order they come.
func TestDisagreementGivesNoResult(t *testing.T) {
	r := newRig(t, 3)
	c := config(2, 3, true)
	r.install(c)
	r.send(0, packet(sums(c, 0, 0, 1), values(1, 0)), 1<<16)
	r.pump() // the epoch has begun
	for odd := range 3 {
		for _, other := range []wire.Signature{
			{Collective: wire.Allreduce, Function: reduce.Max, Element: reduce.Int32, Elements: 1, ChunkElements: 1},
			{Collective: wire.Barrier},
		} {
			number := uint32(1 + 2*odd)
			if other.Collective == wire.Barrier {
				number++
			}
			for i := range 3 {
				h, payload := sums(c, i, number, 1), values(1, uint32(i))
				if i == odd {
					h.Signature, payload = other, payload[:other.PayloadSize()]
				}
				r.send(i, packet(h, payload), 1<<16)
			}
			r.settle()
			for i := range 3 {
				if got := r.types(i); len(got) > 0 {
					t.Errorf("child %d differs by %v: child %d gets %v before the agent knows", odd, other.Collective, i, got)
				}
			}
			r.pump()
			for i := range 3 {
				if got := r.types(i); len(got) == 0 || slices.Contains(got, wire.Result) {
					t.Errorf("child %d differs by %v: child %d gets %v", odd, other.Collective, i, got)
				}
			}
		}
	}
}

// TestRepeatedBatchOfOthers: a batch that begins with a packet which the program has, and goes on with others than
// the next, passes: receive offload makes such ones of what is sent again.
func TestRepeatedBatchOfOthers(t *testing.T) {
	r := newRig(t, 2)
	c := config(2, 2, true)
	r.install(c)
	const n = 4
	send := func(numbers ...uint32) {
		var batch []byte
		for _, number := range numbers {
			batch = append(batch, packet(sums(c, 0, number, n), values(n, number))...)
		}
		r.send(0, batch, wire.HeaderSize+4*n)
		r.settle()
	}
	send(0)
	r.pump() // the epoch has begun
	send(1, 2, 3)
	if b, _ := r.receive(r.tree); b != nil {
		t.Fatalf("the agent gets %x", b[:wire.HeaderSize])
	}
	send(1, 3, 5)
	for range 3 {
		if b, _ := r.receive(r.tree); b == nil {
			t.Fatal("the agent does not get a packet that the program has not got")
		}
	}
}

// TestMergedBatchOverwritesNothing: a batch of packets that were sent again, which receive offload has put
// together, spares the areas of packets whose result is still to come, however small the window.
func TestMergedBatchOverwritesNothing(t *testing.T) {
	r := newRig(t, 2)
	const n = 358
	for i, window := range []uint32{1, 2, 4, 8, 16, 32} {
		c := config(uint32(2+2*i), 2, true)
		c.Window = window
		r.start(c)
		one := func(child int, number uint32) []byte {
			return packet(sums(c, child, number, n), values(n, 1000*number))
		}
		r.send(0, one(0, 1), 1<<16)
		var batch []byte
		for number := uint32(2); number < window; number++ {
			batch = append(batch, one(0, number)...)
		}
		if len(batch) > 0 {
			r.send(0, batch, wire.HeaderSize+4*n)
		}
		// W, then 2 to W again and again: the place of number 1 is W+1 packets behind the first.
		batch = one(0, window)
		for k := range uint32(43) {
			number := uint32(1)
			if window > 1 {
				number = 2 + k%(window-1)
			}
			batch = append(batch, one(0, number)...)
		}
		r.send(0, batch, wire.HeaderSize+4*n)
		r.send(1, one(1, 1), 1<<16)
		r.pump()
		want := make([]byte, 4*n)
		for k := range uint32(n) {
			binary.LittleEndian.PutUint32(want[4*k:], 2*(1000+k))
		}
		b, _ := r.receive(r.neighbours[1])
		var h wire.Header
		payload, fault := h.Decode(b)
		if fault != wire.NoFault || h.Type != wire.Result || h.Chunk != 1 || !slices.Equal(payload, want) {
			t.Errorf("window %d: %v %+v, %x", window, fault, h, payload[:min(4, len(payload))])
		}
		r.types(0)
		r.types(1)
	}
}

// TestForged: a child that breaks the rule of the window cannot have the agent take a packet as another's.
func TestForged(t *testing.T) {
	r := newRig(t, 2)
	c := config(2, 2, true)
	c.Window = 4
	r.start(c)
	const n = 4
	r.send(0, packet(sums(c, 0, 1, n), values(n, 1)), 1<<16)
	forged := sums(c, 1, 1, n) // as child 1, without its cookie
	forged.Cookie = 0
	batch := append(packet(sums(c, 0, 8, n), values(n, 8)), packet(forged, values(n, 666))...)
	r.send(0, batch, wire.HeaderSize+4*n)
	r.settle()
	for b, _ := r.receive(r.tree); b != nil; b, _ = r.receive(r.tree) { // they are lost on their way to the agent
	}
	r.send(0, probe(c, 0, 1), 1<<16)
	r.pump()
	r.send(1, packet(sums(c, 1, 1, n), values(n, 1)), 1<<16)
	r.send(0, packet(sums(c, 0, 1, n), values(n, 1)), 1<<16)
	r.pump()
	for {
		b, _ := r.receive(r.neighbours[1])
		if b == nil {
			t.Fatal("no result")
		}
		var h wire.Header
		if payload, _ := h.Decode(b); h.Type == wire.Result && h.Chunk == 1 {
			if got := binary.LittleEndian.Uint32(payload); got != 2 {
				t.Errorf("child 1 gets %d, want 2", got)
			}
			return
		}
	}
}

// TestSinksAlone: of a broadcast, and of a reduction to one member, those that want the vector get it,
// the others an empty result, whoever comes last, and none comes to the agent. Batches do so where no
// packet changes its size.
func TestSinksAlone(t *testing.T) {
	r := newRig(t, 4)
	const n = 300
	for _, isRoot := range []bool{true, false} {
		c := config(2, 3, isRoot)
		if !isRoot {
			c.Epoch = 4
		}
		r.start(c)
		number := uint32(0)
		for _, collective := range []wire.Collective{wire.Broadcast, wire.Reduce} {
			for special := range 3 { // the source, or the only sink
				for last := range 3 {
					number++
					contribution := func(i int) (wire.Header, []byte) {
						h, payload := sums(c, i, number, n), values(n, uint32(i))
						h.Collective, h.Root = collective, uint32(special)
						if h.Flags = 0; (i == special) == (collective == wire.Reduce) {
							h.Flags = wire.Sink
						}
						if collective == wire.Broadcast {
							h.Function = reduce.NoFunction
							if i == special {
								h.Flags = wire.Source
							} else {
								payload = nil
							}
						}
						return h, payload
					}
					want := values(n, uint32(special))
					if collective == wire.Reduce {
						for k := range n {
							binary.LittleEndian.PutUint32(want[4*k:], uint32(0+1+2+3*k))
						}
					}
					for k := range 3 {
						r.send((last+1+k)%3, packet(contribution((last+1+k)%3)), 1<<16)
					}
					r.settle()
					if !isRoot {
						b, _ := r.receive(r.neighbours[3])
						var h wire.Header
						payload, fault := h.Decode(b)
						flags := wire.Sink
						if collective == wire.Broadcast {
							flags |= wire.Source
						}
						if fault != wire.NoFault || h.Type != wire.Contribution || h.Flags != flags || !slices.Equal(payload, want) {
							t.Fatalf("%v of %d, %d last: the parent gets %v %+v, %d bytes", collective, special, last, fault, h, len(payload))
						}
						h.Type, h.Flags = wire.Result, wire.Sink
						r.send(3, packet(h, want), 1<<16)
						r.settle()
					}
					if b, _ := r.receive(r.tree); b != nil {
						t.Fatalf("%v of %d, %d last: the agent gets %x", collective, special, last, b[:wire.HeaderSize])
					}
					for i := range 3 {
						b, _ := r.receive(r.neighbours[i])
						var h wire.Header
						payload, fault := h.Decode(b)
						own, _ := contribution(i)
						if fault != wire.NoFault || h.Type != wire.Result || h.Flags != own.Flags&wire.Sink || h.Chunk != number || h.Signature != own.Signature {
							t.Fatalf("%v of %d, %d last: child %d gets %v %+v", collective, special, last, i, fault, h)
						}
						if h.Flags == wire.Sink && !slices.Equal(payload, want) {
							t.Fatalf("%v of %d, %d last: child %d gets other bytes", collective, special, last, i)
						}
					}
				}
			}
		}
	}
	if n := r.counters().Events["kernel-results"]; n != 2*2*9 {
		t.Errorf("%d results in the kernel", n)
	}
}
