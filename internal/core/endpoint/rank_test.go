package endpoint

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// plan gives all members the same operations on random vectors, and returns the
// inputs by operation and rank.
func (n *network) plan(count int) [][][]byte {
	inputs := make([][][]byte, count)
	for id := range count {
		kind := wire.Collective(1 + n.rng.IntN(4))
		root, elements, inPlace := uint32(n.rng.IntN(n.cfg.Size)), n.rng.IntN(50), n.rng.IntN(2) == 0
		element := []reduce.Type{reduce.Float32, reduce.Block32}[n.rng.IntN(2)]
		inputs[id] = make([][]byte, n.cfg.Size)
		for r, m := range n.members {
			o := session.Operation{ID: uint64(id), Collective: kind, Elements: elements, Element: element, Function: reduce.Sum}
			switch kind {
			case wire.Reduce:
				o.Root = root
			case wire.Broadcast:
				o.Root, o.Function, o.Element = root, reduce.NoFunction, reduce.Float32
			case wire.Barrier:
				o.Function, o.Element, o.Elements = reduce.NoFunction, 0, 0
			}
			if o.Source(uint32(r)) || !kind.Copies() {
				for range o.Elements {
					v := float32(n.rng.NormFloat64() * math.Exp(8*n.rng.NormFloat64()))
					o.In = binary.LittleEndian.AppendUint32(o.In, math.Float32bits(v))
				}
			}
			inputs[id][r] = bytes.Clone(o.In)
			if o.Sink(uint32(r)) {
				o.Out = make([]byte, 4*o.Elements)
				if inPlace && len(o.In) > 0 {
					o.Out = o.In
				}
			}
			m.plan = append(m.plan, o)
		}
	}
	return inputs
}

// leave ends every member's plan with the last barrier.
func (n *network) leave() {
	for _, m := range n.members {
		m.plan = append(m.plan, session.Operation{ID: uint64(len(m.plan)), Collective: wire.Barrier, Last: true})
	}
}

// check compares every output with the slow folds, chunk by chunk: each chunk
// is that of one of the two trees, and the same at all members.
func (n *network) check(inputs [][][]byte) {
	for id, in := range inputs {
		o := n.members[0].plan[id]
		var hosts, switches []byte
		switch o.Collective {
		case wire.Broadcast:
			hosts = in[o.Root]
			switches = hosts
		case wire.Allreduce, wire.Reduce:
			if o.Element == reduce.Block32 {
				hosts = reducetest.InBlocks(in, chunkBytes, func(in [][]byte) []byte { return n.overHosts(reducetest.SumBlocks, in, 0) })
				switches = reducetest.InBlocks(in, chunkBytes, func(in [][]byte) []byte { return n.overSwitches(reducetest.SumBlocks, in) })
				break
			}
			hosts, switches = n.overHosts(add, in, 0), n.overSwitches(add, in)
		}
		var first []byte
		for _, m := range n.members {
			o := m.plan[id]
			if !o.Sink(m.rank) {
				continue
			}
			if first == nil {
				first = o.Out
			}
			if !bytes.Equal(o.Out, first) {
				n.t.Fatalf("operation %d gave %x at rank %d, and %x elsewhere", id, o.Out, m.rank, first)
			}
			for at := 0; at < len(o.Out); at += chunkBytes {
				to := min(at+chunkBytes, len(o.Out))
				if got := o.Out[at:to]; !bytes.Equal(got, hosts[at:to]) && !bytes.Equal(got, switches[at:to]) {
					n.t.Fatalf("operation %d gave %x at rank %d, want %x or %x", id, got, m.rank, hosts[at:to], switches[at:to])
				}
			}
		}
	}
}

// finish runs without faults until nothing is left, within a bounded number of
// steps.
func (n *network) finish() {
	n.faults = false
	for from := n.steps; n.run(); {
		if n.steps-from > 60000 {
			n.t.Fatalf("no end: %s", n)
		}
	}
}

func drawNetwork(t *rapid.T) *network {
	size := rapid.IntRange(1, 9).Draw(t, "members")
	cfg := Config{
		Group: 5, Cookie: 99, Size: size, Radix: rapid.IntRange(2, 4).Draw(t, "radix"), ChunkBytes: chunkBytes,
		Window: 1 << rapid.IntRange(0, 3).Draw(t, "log window"),
		First:  math.MaxUint32 - uint32(rapid.IntRange(0, 40).Draw(t, "numbers to the wrap")),
	}
	return newNetwork(t, rapid.Uint64().Draw(t, "seed"), cfg)
}

// TestMembers: under lost, repeated and reordered datagrams, broken host
// connections, dead and restarted switches, and a manager that offers,
// withdraws and dies, all members get the same bits, those of a left fold in
// the order of one of the trees, chunk by chunk; they enter the same epochs; and
// they leave.
func TestMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		inputs := n.plan(rapid.IntRange(0, 12).Draw(t, "operations"))
		n.leave()
		n.faults = true
		for range rapid.IntRange(0, 4000).Draw(t, "steps with faults") {
			n.run()
		}
		n.finish()
		var longest []Entered
		for _, m := range n.members {
			if m.ended != nil || len(m.done) != len(m.plan) || !m.left || !m.gone {
				t.Fatalf("rank %d: %s", m.rank, n)
			}
			if len(m.entered) > len(longest) {
				longest = m.entered
			}
		}
		for _, m := range n.members {
			for i, e := range m.entered {
				if e.Epoch != longest[i].Epoch || i > 0 && e.Epoch <= m.entered[i-1].Epoch {
					t.Fatalf("rank %d entered %v, another member %v", m.rank, m.entered, longest)
				}
			}
		}
		n.check(inputs)
	})
}
