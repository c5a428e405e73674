package hosttree

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
	"github.com/tributary-fabric/tributary/reduce"
)

func TestAddr(t *testing.T) {
	for _, rank := range []uint32{0, 1, 255, 256, 70000, wire.MaxRank} {
		a := Addr(rank)
		if !a.IsValid() || rankOf(a) != rank || a.Addr().As4()[0] != 0 {
			t.Errorf("rank %d has address %v, of rank %d", rank, a, rankOf(a))
		}
	}
}

// contribution is what rank's session sends to its own node: its rank, to be
// summed.
func contribution(l session.Link, rank, number uint32) []byte {
	h := wire.Header{
		Type: wire.Contribution, Flags: wire.Sink, Group: l.Group, Epoch: l.Epoch, Cookie: l.Cookie, Child: l.Index,
		Chunk: number, Lowest: rank,
		Signature: wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Uint32, Elements: 1, ChunkElements: 1},
	}
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	return binary.LittleEndian.AppendUint32(b, rank)
}

// TestEpochs: nodes of all ranks reduce in epoch after epoch, some of which see
// no packet.
func TestEpochs(t *testing.T) {
	const size = 7
	shape := ranktree.KNomial(size, 3)
	var nodes []*Core
	for r := range uint32(size) {
		nodes = append(nodes, New(Config{Group: 4, Cookie: 5, Rank: r, Tree: shape, ChunkBytes: 64, Window: 2}))
	}
	links := make([]session.Link, size)
	for epoch := uint32(1); epoch < 40; epoch += 2 {
		for r, n := range nodes {
			links[r] = n.Enter(0, epoch)
		}
		if epoch%5 != 1 {
			continue // nothing happens in this one
		}
		results := map[uint32]uint32{}
		type packet struct {
			to uint32
			in Input
		}
		var queue []packet
		for r := range uint32(size) {
			queue = append(queue, packet{r, Input{From: r, Packet: contribution(links[r], r, epoch)}})
		}
		for ; len(queue) > 0; queue = queue[1:] {
			p := queue[0]
			var out Output
			nodes[p.to].Step(0, []Input{p.in}, &out)
			for _, s := range out.Sends {
				b := slices.Concat(s.Head[:], s.Body)
				if s.To != p.to {
					queue = append(queue, packet{s.To, Input{From: p.to, Packet: b}})
					continue
				}
				var h wire.Header
				payload, fault := h.Decode(b)
				if fault != wire.NoFault || h.Type != wire.Result || h.Child != links[p.to].Index {
					t.Fatalf("rank %d's session gets %+v, fault %v", p.to, h, fault)
				}
				results[p.to] = binary.LittleEndian.Uint32(payload)
			}
		}
		for r := range uint32(size) {
			if results[r] != size*(size-1)/2 {
				t.Fatalf("epoch %d: rank %d gets %d", epoch, r, results[r])
			}
		}
	}
	if n := nodes[0].agg.Counters().Dropped(); n != 0 {
		t.Errorf("%d inputs were dropped", n)
	}
}
