package attribute

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// full returns a reply with a map of two keys for each of n members.
func full(n int) *attributes.Reply {
	m := &attributes.Reply{}
	for i := range n {
		m.Sections = append(m.Sections, attributes.Section{Life: attributes.Life(1000 + i), Version: 2, Entries: []attributes.Entry{
			{Version: 1, Key: "tributary.delegate", Value: []byte("yes")},
			{Version: 2, Key: fmt.Sprintf("tributary.zone/%d", i), Value: make([]byte, 12)},
		}})
	}
	return m
}

// joined returns a core that has n members in its view and asked a neighbour for
// the maps of all.
func joined(n int) *Core {
	c, err := New(DefaultConfig(1))
	if err != nil {
		panic(err)
	}
	in := []Input{{Kind: NeighbourUp, Life: 2}}
	offer := &attributes.Digest{}
	for i := range n {
		in = append(in, Input{Kind: Joined, Life: attributes.Life(1000 + i)})
		offer.Maps = append(offer.Maps, attributes.Map{Life: attributes.Life(1000 + i), Version: 2})
	}
	var out Output
	c.Step(0, append(in, Input{Kind: Message, Life: 2, Message: offer}), &out)
	return c
}

// BenchmarkReply decodes and takes a reply of 512 maps; what the simulations say
// that a byte of an attachment costs is twice this.
//
//	go test -run xxx -bench Reply ./internal/core/attribute
func BenchmarkReply(b *testing.B) {
	raw := full(512).Append(nil)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	var out Output
	for b.Loop() {
		b.StopTimer()
		c := joined(512)
		b.StartTimer()
		m, err := attributes.Decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		out.Reset()
		c.Step(1, []Input{{Kind: Message, Life: 2, Message: m}}, &out)
	}
}

// BenchmarkIdle is a step of a core that has nothing to do.
func BenchmarkIdle(b *testing.B) {
	c := joined(2048)
	var out Output
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		c.Step(1, nil, &out)
	}
}

// TestMemory: a view of 2,048 members of which 64 have attributes costs a member
// at most 48 KiB, most of it the table of who is in the view, and an idle step nothing.
func TestMemory(t *testing.T) {
	const members, cores, writers = 2048, 8, 64
	held := make([]*Core, cores)
	before := heap()
	for k := range held {
		c, err := New(DefaultConfig(1))
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		in := []Input{{Kind: NeighbourUp, Life: 2}}
		for i := range members {
			in = append(in, Input{Kind: Joined, Life: attributes.Life(1000 + i)})
		}
		c.Step(0, append(in, Input{Kind: Message, Life: 2, Message: full(writers)}), &out)
		held[k] = c
	}
	each := int(heap()-before) / cores
	t.Logf("%d bytes a node in a view of %d", each, members)
	if each > 48<<10 {
		t.Errorf("%d bytes a node", each)
	}
	var out Output
	held[0].Step(0, nil, &out)
	if n := testing.AllocsPerRun(100, func() { held[0].Step(0, nil, &out) }); n != 0 {
		t.Errorf("an idle step allocates %v times", n)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
