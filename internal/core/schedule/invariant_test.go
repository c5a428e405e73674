package schedule

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/pathsel"
)

var update = flag.Bool("update", false, "write testdata")

// text describes a member's schedule, a line a round.
func text(c *Call, s Schedule) string {
	part := func(p Part) string {
		return fmt.Sprintf("%s%d[%d:%d]", [...]string{"in", "out", "temp"}[p.Buffer], p.Piece, p.Offset, p.Offset+p.Size)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  rank %d, temp %d\n", c.Rank, s.Temp)
	for r := range s.Rounds {
		b.WriteString("   ")
		for _, t := range r.Recvs {
			fmt.Fprintf(&b, " %s<-%d", part(t.Part), t.Peer)
		}
		for _, t := range r.Sends {
			fmt.Fprintf(&b, " %s->%d", part(t.Part), t.Peer)
		}
		for _, l := range r.Locals {
			if l.IsCopy() {
				fmt.Fprintf(&b, " %s=%s", part(l.To), part(l.A))
			} else {
				fmt.Fprintf(&b, " %s=%s+%s", part(l.To), part(l.A), part(l.B))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestTranscript: the schedules of five members, and of four, are those of the transcript.
func TestTranscript(t *testing.T) {
	var b strings.Builder
	for of := Allreduce; of < Collectives; of++ {
		for _, n := range []int{5, 4} {
			c := Call{Collective: of, Size: n, Width: 1, Count: 10, Segment: 4}
			if of.IsRooted() {
				c.Root = 1
			}
			if of.HasCounts() || of == Barrier {
				c.Count = 0
			}
			for _, a := range Possible(&c) {
				if n == 4 && a != Halving && a != RecursiveDoubling {
					continue
				}
				fmt.Fprintf(&b, "%s by %s, %d members\n", of, a, n)
				for rank := range n {
					d := c
					if d.Rank = rank; of.HasCounts() {
						d.Counts, d.RecvCounts, d.Own = slices.Repeat([]int{rank + 1}, n), []int{1, 2, 3, 4, 5}[:n], rank+1
						if of != Alltoallv {
							d.Counts = []int{1, 2, 3, 4, 5}[:n]
						}
					}
					s, err := Make(&d, a)
					if err != nil {
						t.Fatal(err)
					}
					b.WriteString(text(&d, s))
				}
			}
		}
	}
	const file = "testdata/transcript.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the schedules are not those of %s: if that is meant, run with -update and review the difference", file)
	}
}

// bounds checks that a schedule touches no memory that the call does not have.
func bounds(c *Call, s Schedule) error {
	have := func(p Part) int {
		switch {
		case p.Buffer == Temp:
			return s.Temp
		case c.Collective.HasCounts() && (p.Buffer == Out && c.Collective == Alltoallv):
			return c.bytes(c.RecvCounts[p.Piece])
		case c.Collective == ReduceScatterv:
			whole := 0
			for _, n := range c.Counts {
				whole += n
			}
			return c.bytes(whole)
		case c.Collective.HasCounts() && p.Piece > 0:
			return c.bytes(c.Counts[p.Piece])
		case c.Collective.HasCounts():
			return c.bytes(max(c.Own, append([]int{0}, c.Counts...)[min(1, len(c.Counts))]+c.Own+slices.Max(append([]int{0}, c.Counts...))))
		}
		return c.bytes(c.Count * c.Size)
	}
	check := func(p Part) error {
		if p.Offset < 0 || p.Size < 0 || p.Offset+p.Size > have(p) {
			return fmt.Errorf("%+v of %d bytes", p, have(p))
		}
		return nil
	}
	for r := range s.Rounds {
		for _, t := range slices.Concat(r.Sends, r.Recvs) {
			if err := check(t.Part); err != nil || t.Peer == c.Rank || t.Peer < 0 || t.Peer >= c.Size {
				return fmt.Errorf("a transfer with %d: %w", t.Peer, err)
			}
		}
		for _, l := range r.Locals {
			all := []Part{l.To, l.A, l.B}
			if l.IsCopy() {
				all = all[:2]
			}
			for _, p := range all {
				if err := check(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// TestChoose: what is chosen can do the call, and does not depend on what members need not give
// alike.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		if !c.Collective.HasCounts() && c.Collective != Barrier {
			c.Count = rapid.SampledFrom([]int{0, 1, 3, 200, 1 << 12, 1 << 14, 1 << 20}).Draw(t, "elements")
		}
		var costs pathsel.Costs
		of := c.Collective.Family()
		for i := range pathsel.Terms {
			costs.Rates[of][pathsel.ByMessages][i] = time.Duration(rapid.IntRange(0, 1000).Draw(t, "rate")) * time.Microsecond
		}
		a, took := Choose(&c, &costs)
		for _, other := range Possible(&c) {
			if w := WorkOf(&c, other); costs.Time(of, pathsel.ByMessages, &w) < took {
				t.Fatalf("%v: %s is chosen, and %s takes less time", &c, a, other)
			}
		}
		if !slices.Contains(Possible(&c), a) {
			t.Fatalf("%v: %s is chosen, possible are %v", &c, a, Possible(&c))
		}
		d := c
		d.Rank, d.InPlace, d.Own, d.RecvCounts = rapid.IntRange(0, c.Size-1).Draw(t, "rank"), !c.InPlace, 7, []int{1}
		if c.Collective == Gatherv || c.Collective == Scatterv || c.Collective == Alltoallv {
			d.Counts = nil
		}
		if b, _ := Choose(&d, &costs); b != a {
			t.Fatalf("%v: one member chooses %s, another %s", &c, a, b)
		}
	})
}

// FuzzCall: whatever a call says, it is refused, or its schedule keeps to its memory.
func FuzzCall(f *testing.F) {
	f.Add(uint8(1), uint8(3), uint8(5), uint8(1), uint16(10), uint8(0), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, of, rank, size, root uint8, count uint16, flags uint8, counts []byte) {
		c := Call{
			Collective: Collective(of % uint8(Collectives+1)), Rank: int(rank) - 1, Size: int(size % 40), Root: int(root) - 1, Width: int(flags >> 4), Count: int(int16(count)),
			InPlace: flags&1 != 0, Ordered: flags&2 != 0, Segment: int(flags & 12),
		}
		for i, n := range counts {
			if i%2 == 0 {
				c.Counts = append(c.Counts, int(int8(n)))
			} else {
				c.RecvCounts = append(c.RecvCounts, int(int8(n)))
			}
		}
		if c.Validate() != nil {
			return
		}
		for _, a := range Possible(&c) {
			s, err := Make(&c, a)
			if err != nil {
				t.Fatal(err)
			}
			if err := bounds(&c, s); err != nil {
				t.Fatalf("%v by %s: %v", &c, a, err)
			}
		}
	})
}

// TestHalvingMemory: where blocks differ, temporary memory is twice the whole vector, not twice the
// largest block for each member.
func TestHalvingMemory(t *testing.T) {
	c := Call{Collective: ReduceScatterv, Size: 64, Width: 8, Counts: make([]int, 64), Ordered: true}
	c.Counts[5], c.Counts[9] = 1<<20, 1
	s, err := Make(&c, Halving)
	if want := 2 * 8 * (1<<20 + 1); err != nil || s.Temp != want {
		t.Errorf("%d bytes, want %d: %v", s.Temp, want, err)
	}
}
