package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// packets returns what o sends, packet by packet.
func (o *Output) packets() (all [][]byte) {
	for i := range o.Sends {
		s := &o.Sends[i]
		if s.Size == 0 {
			all = append(all, slices.Concat(s.Head[:], s.Body))
			continue
		}
		for body := range slices.Chunk(s.Body, s.Size) {
			all = append(all, slices.Concat(s.Heads[:wire.HeaderSize], body))
			s.Heads = s.Heads[wire.HeaderSize:]
		}
		if len(s.Heads) != 0 {
			panic(fmt.Sprintf("%d bytes of heads are left over", len(s.Heads)))
		}
	}
	return all
}

// bundled returns packets as inputs, those as one that could have come as one.
func bundled(packets [][]byte) (in []Input) {
	for _, p := range packets {
		if n := len(in); n > 0 {
			last := &in[n-1]
			size := last.Size
			if size == 0 {
				size = len(last.Packet)
			}
			if len(last.Packet)%size == 0 && len(p) <= size {
				last.Packet, last.Size = slices.Concat(last.Packet, p), size
				continue
			}
		}
		in = append(in, Input{From: parentAddr, Packet: p})
	}
	return in
}

// TestBatchesAreThePackets: a session that sends and takes batches does what one does
// that sends and takes packets, over a network that loses, repeats, reorders
// and asks again.
func TestBatchesAreThePackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]uint32{16, 256}).Draw(t, "window") // with 256, batches are held back
		link := Link{Epoch: 2, Window: window, Parent: parentAddr, Cookie: 5, Idle: 3 * time.Millisecond}
		coding := rapid.SampledFrom([]string{"plain", "blocks", "halves", "fixed float32", "fixed float64", "fixed, of both"}).Draw(t, "coding")
		elements := rapid.SliceOfN(rapid.IntRange(0, int(12*window)), 1, 5).Draw(t, "elements of operations")
		size, count := chunkBytes, rapid.SampledFrom([]int{3, 65}).Draw(t, "members")
		if rapid.Bool().Draw(t, "long chunks") { // which kernels turn
			size = 1112
			for i := range elements {
				elements[i] *= size / chunkBytes / 3
			}
		}
		inPlace := rapid.Bool().Draw(t, "in place")
		var members [2]*Session
		var results [2][][]byte
		want := map[int][]byte{}
		var outs [2]Output
		outs[1].TakesBatches = true
		for i := range members {
			s, err := New(Config{Rank: 1, Members: count, ChunkBytes: size, Window: window}, 7)
			if err != nil {
				t.Fatal(err)
			}
			for id, n := range elements {
				o := Operation{ID: uint64(id), Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Int32, Elements: n}
				switch coding {
				case "blocks":
					o.Element = reduce.Block32
				case "halves":
					o.Element, o.Compressed = reduce.BFloat16, true
				case "fixed float32":
					fixed(&o, reduce.Float32, count)
				case "fixed, of both":
					fixed(&o, []reduce.Type{reduce.Float32, reduce.Float64}[id%2], count)
				case "fixed float64":
					fixed(&o, reduce.Float64, count)
				}
				o.In = make([]byte, n*o.Width())
				for k := range o.In {
					o.In[k] = byte(k * (id + 3))
				}
				if o.Out = o.In; !inPlace {
					o.Out = make([]byte, len(o.In))
				}
				if o.Fixed.IsSet() {
					o.Marks = make([]byte, 4*o.Fixed.Marks(n))
					o.Fixed.Mark(o.Marks, o.In)
					want[id] = turnedAndBack(&o)
				}
				results[i] = append(results[i], o.Out)
				if err := s.Start(o); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Enter(0, link, Decision{Base: 7}, &outs[i]); err != nil {
				t.Fatal(err)
			}
			members[i] = s
		}
		ended := 0
		var answers [][]byte
		for step := 0; ended < len(elements); step++ {
			if step == 2000 {
				t.Fatalf("%d of %d operations after %d steps", ended, len(elements), step)
			}
			now := core.Time(step) * core.Time(1e6)
			single := make([]Input, len(answers))
			for i, p := range answers {
				single[i] = Input{From: parentAddr, Packet: p}
			}
			for i, in := range [][]Input{single, bundled(answers)} {
				outs[i].Reset()
				members[i].Step(now, in, &outs[i])
			}
			if rapid.IntRange(0, 9).Draw(t, "event") == 0 {
				next := link
				next.Epoch += 2
				next.Window = rapid.SampledFrom([]uint32{4, 8, window}).Draw(t, "window")
				for i, s := range members {
					r := s.Freeze()
					outs[i].Sends = outs[i].Sends[:0] // of an epoch that has ended
					if err := s.Enter(now, next, Decision{Base: r.Base, Held: r.Held}, &outs[i]); err != nil {
						t.Fatal(err)
					}
				}
				link = next
			}
			a, b := outs[0].packets(), outs[1].packets()
			if !slices.EqualFunc(a, b, slices.Equal) {
				t.Fatalf("step %d: %d packets and %d in runs differ", step, len(a), len(b))
			}
			if members[0].Counters() != members[1].Counters() || !slices.Equal(outs[0].Completions, outs[1].Completions) {
				t.Fatalf("step %d: %+v and %+v", step, members[0].Counters(), members[1].Counters())
			}
			if x, y := members[0], members[1]; x.Deadline() != y.Deadline() || x.flow != y.flow || x.timer != y.timer || x.base != y.base {
				t.Fatalf("step %d: timers %+v and %+v, windows %+v and %+v", step, x.timer, y.timer, x.flow, y.flow)
			}
			ended += len(outs[0].Completions)
			for i := range outs {
				for _, done := range outs[i].Completions { // the vector is the caller's again
					v := results[i][done.ID]
					results[i][done.ID] = slices.Clone(v)
					clear(v)
				}
			}
			for n := members[0].created - uint32(len(members[0].ring)); n != members[0].created; n++ {
				x, _, isKept := members[0].Kept(n)
				if y, _, is := members[1].Kept(n); is != isKept || !slices.Equal(x, y) {
					t.Fatalf("step %d: of %d, %x is kept and %x", step, n, x, y)
				}
			}
			answers = answer(t, a)
		}
		for id, v := range results[0] {
			if !slices.Equal(v, results[1][id]) {
				t.Fatalf("operation %d: %x and %x", id, v, results[1][id])
			}
			if sum, is := want[id]; is && !slices.Equal(v, sum) {
				t.Fatalf("operation %d: %x, want %x", id, v, sum)
			}
		}
	})
}

// fixed makes o a sum as integers.
func fixed(o *Operation, from reduce.Type, members int) {
	f, err := reduce.FixedOf(from, members)
	if err != nil {
		panic(err)
	}
	o.Fixed, o.Element = f, f.Word()
}

// answer returns what a parent says to packets, more or less.
func answer(t *rapid.T, packets [][]byte) (all [][]byte) {
	for _, p := range packets {
		kind := wire.Result
		switch rapid.IntRange(0, 9).Draw(t, "fate") {
		case 0:
			continue
		case 1:
			kind = wire.Want
		case 2:
			all = append(all, mirrored(p, wire.Result))
		}
		if p[0]&0xf == byte(wire.Probe) {
			kind = wire.Want // it was lost, or its result
		}
		all = append(all, mirrored(p, kind))
	}
	if len(all) > 1 && rapid.Bool().Draw(t, "reordered") {
		all[0], all[len(all)-1] = all[len(all)-1], all[0]
	}
	return all
}

// mirrored returns the answer of a kind to a packet: a result has its payload.
func mirrored(p []byte, kind wire.Type) []byte {
	var h wire.Header
	payload, _ := h.Decode(p)
	h.Type = kind
	if kind != wire.Result {
		h = wire.Header{Type: kind, Group: h.Group, Epoch: h.Epoch, Cookie: h.Cookie, Chunk: h.Chunk, Child: h.Child}
		payload = nil
	}
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	b = append(b, payload...)
	if h.Function == reduce.Max { // marks, and another member's exponents are greater
		raise(b[wire.HeaderSize:])
	}
	return b
}

// raise makes the exponents of marks greater where they are small. What it has raised it leaves.
func raise(marks []byte) {
	for ; len(marks) >= 8; marks = marks[8:] {
		marks[0] = max(marks[0], 100)
	}
}

// turnedAndBack returns what the sum of a vector is by raised marks, if it is that of one member.
func turnedAndBack(o *Operation) []byte {
	marks, words, v := slices.Clone(o.Marks), make([]byte, o.Elements*o.Fixed.Word().Size()), make([]byte, len(o.In))
	raise(marks)
	o.Fixed.Encode(words, o.In, marks, 0)
	o.Fixed.Decode(v, words, marks, 0)
	return v
}
