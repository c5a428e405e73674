package soft_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/soft"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// stream is two members that reduce chunk after chunk, a batch at a time.
type stream struct {
	t        *testing.T
	members  [2]*member
	heads    [][]byte
	body     []byte
	messages []transport.Message
	packets  []transport.Packet
	next     uint32
	header   wire.Header
}

const batchSize = 32

func newStream(t *testing.T, b *bench) *stream {
	t.Helper()
	s := &stream{t: t, body: make([]byte, 1432), packets: make([]transport.Packet, batchSize)}
	s.members[0], s.members[1] = newMember(t, 4), newMember(t, 4)
	c := s.members[0].config
	c.Window = 2 * batchSize
	c.Children = append(c.Children, s.members[1].config.Children...)
	c.Children[1].Lowest = 1
	b.Open(1, 4)
	tree := next[dataplane.Opened](b).Addr
	b.Install(1, &c)
	next[dataplane.Installed](b)
	s.header = wire.Header{
		Type: wire.Contribution, Flags: wire.Sink, Group: c.Group, Epoch: c.Epoch,
		Signature: wire.Signature{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Float32, Elements: 358, ChunkElements: 358},
	}
	for range batchSize {
		head := make([]byte, wire.HeaderSize)
		s.heads = append(s.heads, head)
		s.messages = append(s.messages, transport.Message{To: tree, Head: head, Body: s.body})
	}
	return s
}

// reduce sends a batch from both members, and waits for the results.
func (s *stream) reduce() {
	for i, m := range s.members {
		for k, head := range s.heads {
			s.header.Chunk, s.header.Child, s.header.Lowest = s.next+uint32(k), uint16(i), uint32(i)
			s.header.Cookie = m.config.Children[0].Cookie
			s.header.Put(head)
		}
		if err := m.conn.WriteBatch(s.messages); err != nil {
			s.t.Fatal(err)
		}
	}
	until := time.Now().Add(patience)
	for i, m := range s.members {
		for got := 0; got < batchSize; {
			n, err := m.conn.ReadBatch(s.packets, until)
			if err != nil {
				s.t.Fatalf("member %d after %d results: %v", i, got, err)
			}
			got += n
		}
	}
	s.next += batchSize
}

// TestNoAllocation: in steady state a tree allocates nothing, whatever its
// socket does without. The members are part of the measurement.
func TestNoAllocation(t *testing.T) {
	for _, f := range []transport.Features{0, transport.Segmentation | transport.Coalescing, transport.Polling} {
		t.Run(fmt.Sprint("without=", f), func(t *testing.T) {
			s := newStream(t, newBench(t, func(c *soft.Config) { c.Without = f }))
			for range 8 {
				s.reduce()
			}
			if n := testing.AllocsPerRun(200, s.reduce); n != 0 {
				t.Errorf("%v allocations for %d chunks, want 0", n, batchSize)
			}
		})
	}
}

// TestWithoutFeatures reduces by sockets of every kind.
func TestWithoutFeatures(t *testing.T) {
	for f := transport.Features(1); f <= transport.AllFeatures; f <<= 1 {
		s := newStream(t, newBench(t, func(c *soft.Config) { c.Without = f }))
		for range 4 {
			s.reduce()
		}
	}
}
