package switchreduce

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestBlockArrivalOrder: whatever the order in which contributions of unequal
// exponents come, and in however many batches, the partial has the same bits,
// and so has the one that the parent wants again.
func TestBlockArrivalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(rapid.IntRange(1, 7).Draw(t, "children"), false)
		sig := wire.Signature{
			Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Block32,
			Elements: 5, ChunkElements: 5,
		}
		exponents := rapid.SliceOfN(rapid.Int8(), c.kids, c.kids).Draw(t, "exponents")
		payloads := make([][]byte, c.kids)
		for i := range payloads {
			payloads[i] = reduce.Bytes(rapid.SliceOfN(rapid.Int32(), 5, 5).Draw(t, "mantissas"))
		}
		want := make([]byte, 20)
		exponent := reduce.SumBlocks(want, payloads, exponents)

		c.core.Step(0, []Input{{Kind: Install, Config: c.config(1, 2)}}, &c.out)
		order := make([]int, c.kids)
		for i := range order {
			order[i] = i
		}
		var batch []Input
		c.out.Reset()
		for _, i := range rapid.Permutation(order).Draw(t, "order") {
			h := wire.Header{Type: wire.Contribution, Flags: wire.Sink, Epoch: 1, Cookie: cookieOf(i, 1), Child: uint16(i), Lowest: uint32(i), Exponent: exponents[i], Signature: sig}
			b := make([]byte, wire.HeaderSize)
			h.Put(b)
			batch = append(batch, Input{From: kidAddr(i), Packet: append(b, payloads[i]...)})
			if rapid.Bool().Draw(t, "step") {
				c.core.Step(0, batch, &c.out)
				batch = nil
			}
		}
		c.core.Step(0, append(batch, c.packet(wire.Want, -1, 0, 1)), &c.out)
		if len(c.out.Sends) != 2 {
			t.Fatalf("%d packets, want the partial twice", len(c.out.Sends))
		}
		for i := range c.out.Sends {
			var h wire.Header
			s := &c.out.Sends[i]
			body, fault := h.Decode(slices.Concat(s.Head[:], s.Body))
			if fault != wire.NoFault || h.Signature != sig || h.Exponent != exponent || !slices.Equal(body, want) {
				t.Fatalf("fault %v, exponent %d, %x; want %d, %x", fault, h.Exponent, body, exponent, want)
			}
		}
	})
}
