package p4rt

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"
)

// FuzzRead takes arbitrary bytes for what a target answers to a Read. What is
// accepted can be written again, and is in normal form.
func FuzzRead(f *testing.F) {
	s := toySchema(f)
	answer := new(p4v1.ReadResponse)
	for _, e := range someState().Entries {
		m, err := s.entry(&e)
		if err != nil {
			f.Fatal(err)
		}
		answer.Entities = append(answer.Entities, tableEntity(m))
	}
	for i, g := range someState().Groups {
		m, err := encodeGroup(g, i == 0)
		if err != nil {
			f.Fatal(err)
		}
		answer.Entities = append(answer.Entities, groupEntity(m))
	}
	f.Add(marshal(f, answer))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(p4v1.ReadResponse)
		if proto.Unmarshal(b, m) != nil {
			t.Skip()
		}
		r := reader{s, newNormal(ErrMalformed)}
		for _, e := range m.GetEntities() {
			if err := r.take(e); err != nil {
				if !errors.Is(err, ErrMalformed) {
					t.Fatal(err)
				}
				return
			}
		}
		again, err := s.Normal(r.program.Program)
		if d := cmp.Diff(r.program.Program, again); err != nil || d != "" {
			t.Fatalf("what was accepted: %v (-read +normal):\n%s", err, d)
		}
		for _, e := range r.program.Entries {
			if s.words(Update{Op: Insert, Entry: &e}) == "" {
				t.Fatal("no words")
			}
		}
	})
}

// FuzzCounters takes arbitrary bytes for what a target reports counters.
func FuzzCounters(f *testing.F) {
	f.Add(marshal(f, &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
		CounterId: seen, Index: &p4v1.Index{Index: 3}, Data: &p4v1.CounterData{PacketCount: 1},
	}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(p4v1.Entity)
		if proto.Unmarshal(b, m) != nil {
			t.Skip()
		}
		cells := cells{id: seen, counts: make([]Count, 4)}
		if err := cells.take(m); err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
	})
}

// FuzzStream takes arbitrary bytes for a message of the stream: a client takes
// each, and goes on.
func FuzzStream(f *testing.F) {
	f.Add(marshal(f, streamError("no")))
	f.Add(marshal(f, &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: &p4v1.PacketIn{
		Payload: []byte("x"), Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: []byte{1}}, {MetadataId: 2, Value: []byte{0}}, {MetadataId: 3, Value: []byte{9}}},
	}}}))
	s := toySchema(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(p4v1.StreamMessageResponse)
		if proto.Unmarshal(b, m) != nil {
			t.Skip()
		}
		c := &Client{cfg: Config{}.filled(), schema: s, events: newBox()}
		c.session.phase = primary
		link := &link{soon: make(chan struct{}, 1)}
		if a := m.GetArbitration(); a != nil {
			c.elected(link, a)
		} else {
			c.receive(m)
		}
		if n := c.counts.in.Load() + c.counts.faults.Load(); (n == 0) != (m.GetArbitration() != nil) {
			t.Fatalf("%d packets and faults of %v", n, m)
		}
	})
}

// FuzzWriteStatus takes arbitrary bytes for the status of a refused Write.
func FuzzWriteStatus(f *testing.F) {
	f.Add([]byte{8, 2}, 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		m := new(spb.Status)
		if proto.Unmarshal(b, m) != nil || m.GetCode() == 0 {
			t.Skip()
		}
		err := status.ErrorProto(m)
		if each, ok := perUpdate(err, n); ok && len(each) != n {
			t.Fatalf("%d errors of %d updates", len(each), n)
		}
		if callError(t.Context(), t.Context(), err) == nil {
			t.Fatal("an error was lost")
		}
	})
}

func marshal(f *testing.F, m proto.Message) []byte {
	f.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	return b
}
