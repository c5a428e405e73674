package scaling

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// Multiplying is recursive doubling with more than one peer in some rounds: in a round of radix k, each member
// sends to k-1 others, whose vectors it adds. Rounds take longer, and are fewer.
const Multiplying = "recursive-multiplying"

// Best returns the fastest of recursive doubling, recursive multiplying and Rabenseifner's algorithm, and its
// time. Numbers of hosts and children are powers of two.
func (m Model) Best(s Shape, bytes int) (name string, least time.Duration) {
	name, least = schedule.RecursiveDoubling.String(), m.doubling(s, bytes)
	if t, _ := m.multiplying(s, bytes); t < least {
		name, least = Multiplying, t
	}
	if t := m.rabenseifner(s, bytes); t < least {
		name, least = schedule.Rabenseifner.String(), t
	}
	return name, least
}

// The closed forms of hosts' algorithms: since all members do the same in a round, one exchange stands for all.
// The time is that of By, which simulates all members, but for pieces that differ by an element.

func (m *Model) doubling(s Shape, bytes int) (sum time.Duration) {
	for far := 1; far < s.Hosts(); far *= 2 {
		sum += m.exchange(bytes, 1, s.between(0, far), true)
	}
	return sum
}

func (m *Model) rabenseifner(s Shape, bytes int) (sum time.Duration) {
	for far, piece := 1, bytes/2; far < s.Hosts(); far, piece = 2*far, piece/2 {
		sum += m.exchange(piece, 1, s.between(0, far), true) + m.exchange(piece, 1, s.between(0, far), false)
	}
	return sum
}

// multiplying also returns the radix of each round, which it chooses.
func (m *Model) multiplying(s Shape, bytes int) (sum time.Duration, radices []int) {
	type best struct {
		sum   time.Duration
		radix int
	}
	from := map[int]best{s.Hosts(): {}} // of the rounds from a distance on
	for far := s.Hosts() / 2; far >= 1; far /= 2 {
		for radix := 2; far*radix <= s.Hosts() && radix <= 32; radix *= 2 {
			t := from[far*radix].sum + m.exchange(bytes, radix-1, s.between(0, far*radix-1), true)
			if b, ok := from[far]; !ok || t < b.sum {
				from[far] = best{t, radix}
			}
		}
	}
	for far := 1; far < s.Hosts(); far *= from[far].radix {
		radices = append(radices, from[far].radix)
	}
	return from[1].sum, radices
}

// exchange returns how long hosts take that begin at once to send so many bytes to each of their peers, and to take, and
// perhaps to add, as many from each. What comes is added batch by batch.
func (m *Model) exchange(bytes, peers, hops int, adds bool) time.Duration {
	var up, down port
	batches := m.batchesOf(bytes)
	sent := int64(0)
	var arrivals []int64
	for range peers {
		for _, n := range batches {
			sent += int64(m.Costs.Send.of(m.packets(n), n))
			at := m.lands(&down, m.rises(&up, 1000*sent, n, hops), n)
			arrivals = append(arrivals, (at+999)/1000)
		}
	}
	done := sent
	for i, at := range arrivals {
		n := batches[i%len(batches)]
		if at > done {
			done = at + int64(m.Costs.half())
		}
		done += int64(m.Costs.Receive.of(m.packets(n), n))
		if adds {
			done += int64(m.Costs.adding(n))
		}
	}
	return time.Duration(done)
}
