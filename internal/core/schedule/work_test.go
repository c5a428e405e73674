package schedule

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/pathsel"
)

// count returns what the schedules of all members have.
func count(t *rapid.T, c Call, a Algorithm) (w pathsel.Work) {
	for rank := range c.Size {
		c := c
		c.Rank = rank
		s, err := Make(&c, a)
		if err != nil {
			t.Fatal(err)
		}
		var sent, received, sentBytes, receivedBytes, local float64
		for r := range s.Rounds {
			for _, x := range r.Sends {
				sent++
				sentBytes += float64(x.Size)
				if x.Size > EagerBytes {
					w.All[pathsel.Rendezvous]++
				}
			}
			for _, x := range r.Recvs {
				received++
				receivedBytes += float64(x.Size)
			}
			for _, l := range r.Locals {
				local += float64(l.To.Size)
			}
		}
		w.All[pathsel.Message] += sent
		w.All[pathsel.Link] += sentBytes / mebibyte
		w.All[pathsel.Local] += local / mebibyte
		for term, own := range map[pathsel.Term]float64{
			pathsel.Message: max(sent, received), pathsel.Link: max(sentBytes, receivedBytes) / mebibyte, pathsel.Local: local / mebibyte,
		} {
			w.Busiest[term] = max(w.Busiest[term], own)
		}
	}
	return w
}

// TestWork: what a call is said to need is what the schedules of its members have.
func TestWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Call{
			Collective: Collective(rapid.IntRange(1, int(Collectives)-1).Draw(t, "collective")),
			Size:       rapid.IntRange(1, 20).Draw(t, "size"), Width: 4, Segment: 4096,
		}
		if c.Collective.HasCounts() {
			return // they are the same but for their lengths
		}
		if c.Collective.IsRooted() {
			c.Root = rapid.IntRange(0, c.Size-1).Draw(t, "root")
		}
		if c.Collective != Barrier {
			c.Count = rapid.SampledFrom([]int{0, 1, 100, 9000}).Draw(t, "elements") * c.Size
		}
		for _, a := range Possible(&c) {
			w, is := WorkOf(&c, a), count(t, c, a)
			// The blocks that a member has on its way down are none of the ring's: about so many.
			within := 0.0
			if a == ScatterAllgather {
				within = 0.5
			}
			for _, term := range []pathsel.Term{pathsel.Message, pathsel.Link, pathsel.Rendezvous} {
				if got, want := w.All[term], is.All[term]; math.Abs(got-want) > within*want+1e-9 {
					t.Errorf("%s of %d elements by %s in a group of %d: all have %v of %s, and the schedules %v", c.Collective, c.Count, a, c.Size, got, term, want)
				}
			}
			// Of the busiest member steps are added up that may be those of different members; and what it
			// sends when it has received all is another step.
			limit := 1.6
			if a == Linear || a == Binomial {
				limit = 2
			}
			for _, term := range []pathsel.Term{pathsel.Message, pathsel.Link} {
				got, want := w.Busiest[term], is.Busiest[term]
				if got < (1-within)*want-1e-9 || got > limit*want+1e-9 && a != Chain { // of which the longest way has more
					t.Errorf("%s of %d elements by %s in a group of %d: the busiest has %v of %s, and in the schedules %v", c.Collective, c.Count, a, c.Size, got, term, want)
				}
			}
			far := 0.0
			for _, mib := range w.Far {
				far += mib
			}
			if far > w.Busiest[pathsel.Link]+1e-9 {
				t.Errorf("%s of %d elements by %s in a group of %d: %v of %v MiB go to others", c.Collective, c.Count, a, c.Size, far, w.Busiest[pathsel.Link])
			}
			// What is reduced and copied is nearly that; the ring does not do without its own block.
			v := tallyOf(&c).vector / mebibyte
			for _, x := range []struct{ got, want, block float64 }{
				{w.Busiest[pathsel.Local], is.Busiest[pathsel.Local], v / float64(c.Size)}, {w.All[pathsel.Local], is.All[pathsel.Local], v},
			} {
				if c.Size > 1 && a != Chain && (x.got < 0.6*x.want-1e-9 || x.got > 1.4*x.want+x.block+1e-9) {
					t.Errorf("%s of %d elements by %s in a group of %d: %v of local, and in the schedules %v", c.Collective, c.Count, a, c.Size, x.got, x.want)
				}
			}
		}
	})
}
