package schedule

import (
	"math"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
)

// headers is what links carry for each byte of a message.
const headers = 1.05

// flow is a message on its way.
type flow struct {
	from, to int
	over     []int   // links: see wires.path
	number   int     // of those between the two
	left     float64 // bytes
	rate     float64
}

// wires are members whose links join them to leaves, and these to each other, in the fluid model: messages
// share each link, in each direction, by max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2).
type wires struct {
	fabric
	call   Call
	leaf   int     // members at each
	uplink float64 // bytes a second of all links of a leaf to others
	flows  []*flow
	held   []*flow // that wait for their receivers
	posted []int   // of each member and peer, messages that its rounds have awaited so far
	sent   []int   // that the peer has sent
	landed []int   // that have come
	now    float64
}

// station is a member on the way through its schedule.
type station struct {
	next    func() (*Round, bool)
	begins  float64 // of the round that it is to begin; infinite: it is in one, or has done all
	sending int
	recvs   []int // peers
	local   float64
	isDone  bool
}

// path returns the links between two members: 4 times a member or leaf, and 1 for that from the fabric, 2 for
// those of leaves.
func (w *wires) path(from, to int) []int {
	over := []int{4 * from, 4*to + 1}
	if a, b := from/w.leaf, to/w.leaf; a != b {
		over = append(over, 4*a+2, 4*b+3)
	}
	return over
}

// share gives each flow its rate.
func (w *wires) share() {
	left, open := make([]float64, 4*w.call.Size), make([]int, 4*w.call.Size)
	for i := range left {
		if left[i] = 1 / w.link; i%4 >= 2 {
			left[i] = w.uplink
		}
	}
	for _, f := range w.flows {
		f.rate = -1
		for _, i := range f.over {
			open[i]++
		}
	}
	for range left {
		at, least := -1, math.Inf(1)
		for i := range left {
			if open[i] > 0 && left[i]/float64(open[i]) < least {
				at, least = i, left[i]/float64(open[i])
			}
		}
		if at < 0 {
			return
		}
		for _, f := range w.flows {
			if f.rate < 0 && slices.Contains(f.over, at) {
				f.rate = least
				for _, i := range f.over {
					open[i]--
					left[i] = max(0, left[i]-least)
				}
			}
		}
	}
}

// begin has a member begin its next round.
func (w *wires) begin(rank int, s *station) {
	s.begins = math.Inf(1)
	r, more := s.next()
	if !more {
		s.isDone = true
		return
	}
	s.recvs, s.local = s.recvs[:0], w.latency+w.overhead*float64(max(len(r.Sends), len(r.Recvs)))
	n := w.call.Size
	for _, t := range r.Sends {
		at := t.Peer*n + rank
		f := &flow{from: rank, to: t.Peer, over: w.path(rank, t.Peer), number: w.sent[at], left: float64(max(t.Size, 1))}
		if w.sent[at]++; t.Size > EagerBytes {
			w.held = append(w.held, f)
		} else {
			w.flows = append(w.flows, f)
		}
		s.sending++
	}
	for _, t := range r.Recvs {
		s.recvs = append(s.recvs, t.Peer)
		w.posted[rank*n+t.Peer]++
	}
	w.held = slices.DeleteFunc(w.held, func(f *flow) bool {
		if f.number >= w.posted[f.to*n+f.from] {
			return false
		}
		w.flows = append(w.flows, f)
		return true
	})
	for _, l := range r.Locals {
		s.local += w.local * float64(l.To.Size)
	}
}

// ends reports whether the transfers of a member's round are done.
func (w *wires) ends(rank int, s *station) bool {
	if s.isDone || !math.IsInf(s.begins, 1) || s.sending > 0 {
		return false
	}
	return !slices.ContainsFunc(s.recvs, func(p int) bool { at := rank*w.call.Size + p; return w.landed[at] < w.posted[at] })
}

// run returns the seconds that a call takes by an algorithm.
func (w *wires) run(t *testing.T, a Algorithm) float64 {
	n := w.call.Size
	w.now, w.flows, w.held, w.posted, w.sent, w.landed = 0, nil, nil, make([]int, n*n), make([]int, n*n), make([]int, n*n)
	all := make([]station, n)
	for rank := range all {
		c := w.call
		c.Rank = rank
		s, err := Make(&c, a)
		if err != nil {
			t.Fatal(err)
		}
		r := &Run{Call: c}
		r.Follow(s)
		defer r.Stop()
		all[rank].next = r.next
	}
	for {
		isIdle := true
		for rank := range all {
			s := &all[rank]
			if s.begins <= w.now {
				w.begin(rank, s)
				isIdle = false
			}
			if w.ends(rank, s) {
				s.begins = w.now + s.local
				isIdle = false
			}
		}
		if !isIdle {
			continue
		}
		w.share()
		next := math.Inf(1)
		for _, f := range w.flows {
			next = min(next, w.now+f.left/f.rate)
		}
		for i := range all {
			next = min(next, all[i].begins)
		}
		if math.IsInf(next, 1) {
			break
		}
		for _, f := range w.flows {
			f.left -= f.rate * (next - w.now)
		}
		w.now = next
		w.flows = slices.DeleteFunc(w.flows, func(f *flow) bool {
			if f.left > 1e-3 {
				return false
			}
			w.landed[f.to*n+f.from]++
			all[f.from].sending--
			return true
		})
	}
	for rank := range all {
		if !all[rank].isDone {
			t.Fatalf("%s by %s in a group of %d: rank %d waits for ever", w.call.Collective, a, n, rank)
		}
	}
	return w.now
}

// TestChoicesOnWires: where links are slow, the choice by the built-in costs takes hardly longer than the
// best algorithm, as schedules run in the fluid model, and the predicted times are near to theirs: with links
// between leaves that all members can use at once, and with half and a quarter of these.
func TestChoicesOnWires(t *testing.T) {
	own := builtIn()
	for _, links := range []pathsel.Links{
		{Rate: 200e6}, {Rate: 1e9}, {Rate: 200e6, Uplink: 100e6, Leaf: 4}, {Rate: 1e9, Uplink: 500e6, Leaf: 4}, {Rate: 200e6, Uplink: 50e6, Leaf: 8},
	} {
		costs := &pathsel.Costs{Rates: pathsel.DefaultCosts().Rates, Links: links}
		worst, off, rows := 0.0, 0.0, 0
		for _, of := range []Collective{Allreduce, Reduce, Broadcast, Gather, Scatter, Allgather, Alltoall, ReduceScatter, Scan} {
			for _, n := range []int{2, 5, 8, 16} {
				if links.Leaf > 0 && n <= links.Leaf {
					continue // they are at one leaf
				}
				for _, bytes := range []int{16 << 10, 64 << 10, 1 << 20, 4 << 20} {
					most := 1.25
					if bytes <= EagerBytes { // what goes down a tree at once shares the link: see maker.hand
						most = 1.5
					}
					c := Call{Collective: of, Size: n, Width: 4, Count: bytes / 4, Segment: SegmentBytes}
					if of != Allreduce && of != Reduce && of != Broadcast && of != Scan {
						c.Count /= n
					}
					w := wires{fabric: own, call: c, leaf: n}
					if links.Leaf > 0 {
						w.leaf, w.uplink = links.Leaf, float64(links.Uplink)*float64(links.Leaf)/8/headers
					}
					w.link = max(own.link, headers*8/float64(links.Rate))
					chosen, predicted := Choose(&c, costs)
					var best Algorithm
					least, took := math.Inf(1), 0.0
					for _, a := range Possible(&c) {
						x := w.run(t, a)
						work := WorkOf(&c, a)
						t.Logf("%v: %s of %d bytes in a group of %d: %s takes %.2f ms, predicted %.2f", links, of, bytes, n, a,
							1e3*x, 1e3*costs.Time(of.Family(), pathsel.ByMessages, &work).Seconds())
						if a == chosen {
							took = x
						}
						if x < least {
							best, least = a, x
						}
					}
					rows, off = rows+1, off+math.Abs(predicted.Seconds()/took-1)
					if worst = max(worst, took/least); took > most*least {
						t.Errorf("%v: %s of %d bytes in a group of %d: %s takes %.2f times as long as %s", links, of, bytes, n, chosen, took/least, best)
					}
				}
			}
		}
		t.Logf("%v: at worst %.2f, predictions off by %.2f", links, worst, off/float64(rows))
	}
}
