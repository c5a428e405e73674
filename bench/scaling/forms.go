package scaling

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// HostAlgorithms are those of which the best stands beside a tree.
var HostAlgorithms = []schedule.Algorithm{schedule.RecursiveDoubling, schedule.Rabenseifner, schedule.Ring}

// Form returns the time of an allreduce of bytes by one of HostAlgorithms in closed form: where all
// members do the same in a round, one exchange stands for all. Numbers of hosts and children are powers of two.
// The same as By, which simulates all members, but for pieces that differ by an element.
func (m Model) Form(a schedule.Algorithm, s Shape, bytes int) (sum time.Duration) {
	n := s.Hosts()
	reduces := func(bytes int) time.Duration { return time.Duration(float64(bytes) * m.Costs.Reduce) }
	switch a {
	case schedule.RecursiveDoubling:
		for far := 1; far < n; far *= 2 {
			sum += m.exchange(bytes, s.between(0, far)) + reduces(bytes)
		}
	case schedule.Rabenseifner:
		for far, piece := 1, bytes/2; far < n; far, piece = 2*far, piece/2 {
			sum += 2*m.exchange(piece, s.between(0, far)) + reduces(piece)
		}
	case schedule.Ring:
		// What a piece takes once around, and once more but for a step each time: those that no member
		// can do without are the slowest ones.
		piece := bytes / n
		crossing := 1
		for level := len(s) - 1; level >= 0; level-- {
			crossings := crossing * (s[level] - 1) // between neighbours below a switch of this level
			if level == len(s)-1 {
				crossings++ // and from the last to the first
			}
			crossing *= s[level]
			one := m.exchange(piece, 2*level+1)
			steps := 2 * crossings
			if level == 0 {
				steps -= 2
			}
			sum += time.Duration(steps) * one
		}
		sum += time.Duration(n-1) * reduces(piece)
	}
	return sum
}

// Best returns the fastest of HostAlgorithms and its time.
func (m Model) Best(s Shape, bytes int) (best schedule.Algorithm, least time.Duration) {
	for _, a := range HostAlgorithms {
		if t := m.Form(a, s, bytes); best == schedule.Auto || t < least {
			best, least = a, t
		}
	}
	return best, least
}

// exchange returns how long two hosts take that begin at once to send so many bytes to each other.
func (m *Model) exchange(bytes, hops int) time.Duration {
	var up, down port
	batches := m.batchesOf(bytes)
	sent := int64(0)
	var arrivals []int64
	for _, n := range batches {
		sent += int64(m.Costs.Send.of(m.packets(n), n))
		at := m.crosses(&up, &down, 1000*sent, n, hops)
		arrivals = append(arrivals, (at+999)/1000)
	}
	done := sent
	for i, n := range batches {
		done = max(done, arrivals[i]) + int64(m.Costs.Receive.of(m.packets(n), n))
	}
	return time.Duration(done)
}

// AloneForm returns the time of a sum that is one packet, where hosts have a processor each and switches a
// pipeline, in closed form: what a packet takes up to the root and down again.
func (m Model) AloneForm(s Shape, bytes int) time.Duration {
	const header = 40
	n := &m.Network
	whole := n.serial(m.frame(header + bytes))
	hop := whole
	if n.CutThrough {
		hop = n.serial(n.Least)
	}
	links, switches := int64(2*len(s)), int64(2*len(s)-1)
	wire := links*1000*int64(n.Cable) + switches*hop + whole + 2*1000*int64(n.Card) + switches*1000*int64(m.Pipeline.Latency)
	packet := header + bytes
	// The member that sends its only contribution, and then takes its only result.
	host := m.Costs.Session.of(1, packet) + m.Costs.Send.of(1, packet) + m.Costs.Receive.of(1, packet) + m.Costs.Session.of(1, packet)
	return time.Duration(wire/1000) + host
}

// StreamForm returns the least time of a long vector: in full packets over a host's link, one after the other.
func (m Model) StreamForm(bytes int) time.Duration {
	const header = 40
	n := &m.Network
	whole, rest := bytes/m.Chunk, bytes%m.Chunk
	sum := float64(whole) * float64(n.serial(m.frame(header+m.Chunk)))
	if rest > 0 {
		sum += float64(n.serial(m.frame(header + rest)))
	}
	return time.Duration(sum / 1000)
}
