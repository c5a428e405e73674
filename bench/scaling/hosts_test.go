package scaling

import (
	"iter"
	"math"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// multiplied returns a member's rounds of recursive multiplying.
func multiplied(rank int, radices []int, bytes int) iter.Seq[*schedule.Round] {
	return func(yield func(*schedule.Round) bool) {
		far := 1
		for _, radix := range radices {
			digit := rank / far % radix
			var r schedule.Round
			for i := 1; i < radix; i++ {
				part := schedule.Part{Size: bytes}
				to, from := (digit+i)%radix, (digit-i+radix)%radix
				r.Sends = append(r.Sends, schedule.Transfer{Peer: rank + (to-digit)*far, Part: part})
				r.Recvs = append(r.Recvs, schedule.Transfer{Peer: rank + (from-digit)*far, Part: part})
				r.Locals = append(r.Locals, schedule.Local{To: part, A: part, B: part})
			}
			if !yield(&r) {
				return
			}
			far *= radix
		}
	}
}

// The closed forms of hosts' algorithms are what the simulation of all members finds. Recursive multiplying counts
// all peers of a round as far away as the farthest: it may be slower by what the nearer ones save.
func TestFormsOfHostAlgorithms(t *testing.T) {
	for _, s := range []Shape{{8}, {4, 2}, {8, 4}, {4, 4, 4}, {32, 4}} {
		for _, c := range []Costs{Measured(), Bypass()} {
			for _, cut := range []bool{false, true} {
				m := Hardware(c, 100e9, cut, 1432)
				for _, bytes := range []int{8, 4096, 64 << 10, 1 << 20} {
					check := func(name string, got, want time.Duration, err error, more float64) {
						t.Helper()
						if off := float64(got)/float64(want) - 1; err != nil || off > more || off < -0.02 {
							t.Errorf("%s of %d bytes in %v, %s, cut-through %v: %v in closed form, %v simulated, %v", name, bytes, s, c.Taken, cut, got, want, err)
						}
					}
					want, err := m.By(schedule.RecursiveDoubling, s, bytes)
					check("doubling", m.doubling(s, bytes), want, err, 0.02)
					if bytes/4 >= s.Hosts() { // otherwise there are pieces of one element and of none
						want, err = m.By(schedule.Rabenseifner, s, bytes)
						check("Rabenseifner's", m.rabenseifner(s, bytes), want, err, 0.02)
					}
					sum, radices := m.multiplying(s, bytes)
					want, err = m.play(s, func(rank int) (iter.Seq[*schedule.Round], error) { return multiplied(rank, radices, bytes), nil })
					check("multiplying", sum, want, err, 0.05)
				}
			}
		}
	}
}

// No algorithm of package schedule is faster than the best that stands beside a tree.
func TestBestOfHosts(t *testing.T) {
	m := Hardware(Bypass(), 100e9, false, 4096)
	s := Shape{32, 2}
	for _, bytes := range []int{8, 4096, 64 << 10, 1 << 20} {
		best, least := m.Best(s, bytes)
		for _, a := range schedule.AllOf(schedule.Allreduce) {
			got, err := m.By(a, s, bytes)
			if err != nil {
				t.Fatal(err)
			}
			if float64(got) < 0.99*float64(least) {
				t.Errorf("%d bytes: %v takes %v, %v %v", bytes, best, least, a, got)
			}
		}
	}
}

// By hand: 1 MiB over two hosts of one switch at 100 Gbit/s, cards of 150 ns a message. Each half is 512 KiB, which
// are 128 frames of 4,096+66 bytes: 42.6 us on a link. In store-and-forward another frame's 0.3 us at the switch, 0.75 us
// for switch, cables and cards. The second exchange takes as long; adding 524,288 bytes at 0.1 ns takes 52.4 us,
// longer than they come: it ends that of a batch after them.
func TestRabenseifnerByHand(t *testing.T) {
	m := Hardware(Bypass(), 100e9, false, 4096)
	m.Costs.Reduce = 0.05 // twice as fast as the link: only the last batch's is left
	got := m.rabenseifner(Shape{2}, 1<<20)
	if want := 2*(42600+330+750) + 3000; math.Abs(float64(got)-float64(want)) > 2000 {
		t.Errorf("%v, not about %v", got, time.Duration(want))
	}
	m.Costs.Reduce = 0.1
	slow := m.rabenseifner(Shape{2}, 1<<20)
	if want := got + 52400 - 42600; slow < want || slow > want+8000 {
		t.Errorf("%v where adding takes longer than the link, not about %v", slow, want)
	}
}
