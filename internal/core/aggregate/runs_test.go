package aggregate

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
	for i := range o.Runs {
		r := &o.Runs[i]
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

// TestRunsAreTheSends: what goes as Runs is what would go as Sends.
func TestRunsAreTheSends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kids, root := rapid.IntRange(1, 3).Draw(t, "children"), rapid.Bool().Draw(t, "root")
		plain, runs := newCrowd(kids, root), newCrowd(kids, root)
		runs.out.TakesRuns = true
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
		}
	})
}

// TestOneRun: the results of numbers that follow each other are one run to each
// child, and the partials one to the parent, until the slots begin anew.
func TestOneRun(t *testing.T) {
	const window, chunkBytes, kids = 16, 1432, 3
	s := newStream(reduce.Float32, kids, chunkBytes, window)
	s.out.TakesRuns = true
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
			if len(s.out.Sends) != 0 || len(s.out.Runs) != runs {
				t.Fatalf("round %d: %d packets alone, %d runs; want none, and %d", round, len(s.out.Sends), len(s.out.Runs), runs)
			}
			for _, r := range s.out.Runs {
				if r.Size != wire.HeaderSize+chunkBytes || len(r.Packets) != window*r.Size {
					t.Fatalf("round %d: a run of %d bytes, of packets of %d", round, len(r.Packets), r.Size)
				}
			}
		}
	}
}
