package switchreduce

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// delivered returns the packets that o sends, by whom they go to.
func delivered(o *Output) map[netip.AddrPort][]string {
	all := map[netip.AddrPort][]string{}
	for i := range o.Sends {
		s := &o.Sends[i]
		all[s.To] = append(all[s.To], string(slices.Concat(s.Head[:], s.Body)))
	}
	for i := range o.Batches {
		r := &o.Batches[i]
		r.Address()
		for packet := range slices.Chunk(r.Packets, r.Size) {
			all[r.To] = append(all[r.To], string(packet))
		}
	}
	for _, packets := range all {
		slices.Sort(packets)
	}
	return all
}

// bundle returns the batch with packets as one that could have come as one: of
// one size, from one neighbour; the last may be shorter.
func bundle(batch []Input) (all []Input) {
	for _, in := range batch {
		if n := len(all); n > 0 && in.Kind == Packet && all[n-1].Kind == Packet && all[n-1].From == in.From {
			last := &all[n-1]
			size := last.Size
			if size == 0 {
				size = len(last.Packet)
			}
			if len(last.Packet)%size == 0 && len(in.Packet) <= size {
				last.Packet, last.Size = slices.Concat(last.Packet, in.Packet), size
				continue
			}
		}
		all = append(all, in)
	}
	return all
}

// TestBatchesAreTheSends: what goes as Runs is what would go as Sends, also where
// packets come in runs.
func TestBatchesAreTheSends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kids, root := rapid.IntRange(1, 3).Draw(t, "children"), rapid.Bool().Draw(t, "root")
		plain, runs, bundles := newCrowd(kids, root), newCrowd(kids, root), newCrowd(kids, root)
		runs.out.TakesBatches, bundles.out.TakesBatches = true, true
		anything := rapid.Custom(func(t *rapid.T) Input {
			n, child := rapid.Uint32Range(0, 7).Draw(t, "number"), rapid.IntRange(0, kids-1).Draw(t, "child")
			switch rapid.IntRange(0, 7).Draw(t, "kind") {
			case 0:
				return plain.packet(wire.Probe, child, n, 1)
			case 1:
				return plain.packet(wire.Result, -1, n, 1)
			default:
				return plain.packet(wire.Contribution, child, n, 1)
			}
		})
		batches := rapid.SliceOfN(rapid.SliceOfN(anything, 0, 30), 1, 6).Draw(t, "batches")
		batches = slices.Insert(batches, 0, []Input{{Kind: Install, Config: plain.config(1, 4)}})
		for _, batch := range batches {
			plain.out.Reset()
			runs.out.Reset()
			plain.core.Step(0, batch, &plain.out)
			runs.core.Step(0, batch, &runs.out)
			if diff := cmp.Diff(delivered(&plain.out), delivered(&runs.out)); diff != "" {
				t.Fatalf("Sends (-) and Runs (+) differ:\n%s", diff)
			}
			bundles.out.Reset()
			bundles.core.Step(0, bundle(batch), &bundles.out)
			if diff := cmp.Diff(delivered(&plain.out), delivered(&bundles.out)); diff != "" {
				t.Fatalf("what follows from packets (-) and from bundles of them (+) differs:\n%s", diff)
			}
		}
		if a, b := plain.core.Counters(), bundles.core.Counters(); a != b {
			t.Fatalf("counted %+v of packets, %+v of bundles of them", a, b)
		}
	})
}

// TestOnePacketGoesToAllAtOnce: a result alone is no Run, of which there would be
// one a child, to be sent one after the other.
func TestOnePacketGoesToAllAtOnce(t *testing.T) {
	const kids = 3
	s := newStream(reduce.Float32, kids, 64, 4)
	s.out.TakesBatches = true
	s.fill()
	for i, batch := range [][]Input{s.in[:kids], s.in[kids:]} {
		s.out.Reset()
		s.core.Step(0, batch, &s.out)
		if want := 1 + i*(kids-1); len(s.out.Sends) != want || len(s.out.Batches) != 0 {
			t.Errorf("batch %d: %d packets alone and %d runs, want %d and none", i, len(s.out.Sends), len(s.out.Batches), want)
		}
	}
}

// TestOneRun: the results of numbers that follow each other are one run to each
// child, and the partials one to the parent, until the slots begin anew.
func TestOneRun(t *testing.T) {
	const window, chunkBytes, kids = 16, 1432, 3
	s := newStream(reduce.Float32, kids, chunkBytes, window)
	s.out.TakesBatches = true
	for round := range 5 {
		var up, down []Input
		for range window {
			s.fill()
			for i := range s.in {
				in := Input{From: s.in[i].From, Packet: slices.Clone(s.in[i].Packet)}
				if i < kids {
					up = append(up, in)
				} else {
					down = append(down, in)
				}
			}
			s.next++
		}
		for i, batch := range [][]Input{up, down} {
			s.out.Reset()
			s.core.Step(0, batch, &s.out)
			runs := 1 + i*(kids-1)
			if len(s.out.Sends) != 0 || len(s.out.Batches) != runs {
				t.Fatalf("round %d: %d packets alone, %d runs; want none, and %d", round, len(s.out.Sends), len(s.out.Batches), runs)
			}
			for _, r := range s.out.Batches {
				if r.Size != wire.HeaderSize+chunkBytes || len(r.Packets) != window*r.Size {
					t.Fatalf("round %d: a run of %d bytes, of packets of %d", round, len(r.Packets), r.Size)
				}
			}
		}
	}
}
