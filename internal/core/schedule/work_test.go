package schedule

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/pathsel"
)

// count returns what the schedules of all members have: the messages and bytes of all, and of the
// busiest one, in its busier direction, and its bytes that are reduced or copied.
func count(t *rapid.T, c Call, a Algorithm) (all, most pathsel.Work) {
	for rank := range c.Size {
		c := c
		c.Rank = rank
		s, err := Make(&c, a)
		if err != nil {
			t.Fatal(err)
		}
		var sent, received, sentBytes, receivedBytes, local float64
		for r := range s.Rounds {
			var out, in float64
			for _, x := range r.Sends {
				out += float64(x.Size) / mebibyte
			}
			for _, x := range r.Recvs {
				in += float64(x.Size) / mebibyte
			}
			most[pathsel.Burst] = max(most[pathsel.Burst], out, in)
			for _, x := range r.Sends {
				sent++
				sentBytes += float64(x.Size)
				if x.Size > EagerBytes {
					all[pathsel.EachRendezvous]++
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
		all[pathsel.EachMessage] += sent
		all[pathsel.Traffic] += sentBytes / mebibyte
		most[pathsel.Message] = max(most[pathsel.Message], sent, received)
		most[pathsel.Link] = max(most[pathsel.Link], sentBytes/mebibyte, receivedBytes/mebibyte)
		most[pathsel.Local] = max(most[pathsel.Local], local/mebibyte)
	}
	return all, most
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
		if c.Collective != Barrier {
			c.Count = rapid.SampledFrom([]int{0, 1, 100, 9000}).Draw(t, "elements") * c.Size
		}
		for _, a := range Possible(&c) {
			w := WorkOf(&c, a)
			all, most := count(t, c, a)
			// The blocks that a member has on its way down are none of the ring's: about so many.
			within := 0.0
			if a == ScatterAllgather {
				within = 0.5
			}
			near := func(term pathsel.Term, want float64) {
				if got := w[term]; math.Abs(got-want) > within*want+1e-9 {
					t.Errorf("%s of %d elements by %s in a group of %d: %v of %s, and the schedules have %v", c.Collective, c.Count, a, c.Size, got, term, want)
				}
			}
			near(pathsel.EachMessage, all[pathsel.EachMessage])
			near(pathsel.Traffic, all[pathsel.Traffic])
			near(pathsel.EachRendezvous, all[pathsel.EachRendezvous])
			// Of the busiest member steps are added up that may be those of different members; and what it
			// sends when it has received all is another step.
			limit := 1.6
			if a == Linear || a == Binomial {
				limit = 2
			}
			for _, term := range []pathsel.Term{pathsel.Message, pathsel.Link} {
				if want := most[term]; w[term] < (1-within)*want-1e-9 || w[term] > limit*want+1e-9 {
					t.Errorf("%s of %d elements by %s in a group of %d: %v of %s, and the schedules have %v", c.Collective, c.Count, a, c.Size, w[term], term, want)
				}
			}
		}
	})
}
