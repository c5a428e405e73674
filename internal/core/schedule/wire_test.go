package schedule

import (
	"math"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
)

// flow is a message on its way.
type flow struct {
	from, to int
	number   int     // of those between the two
	left     float64 // bytes
	rate     float64
}

// wires are members whose links join them to a switch that is never busy, in the fluid model: messages
// share each link, in each direction, by max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2).
type wires struct {
	fabric
	call   Call
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

// share gives each flow its rate.
func (w *wires) share() {
	n := w.call.Size
	left, open := make([]float64, 2*n), make([]int, 2*n)
	for i := range left {
		left[i] = 1 / w.link
	}
	for _, f := range w.flows {
		f.rate = -1
		open[f.from]++
		open[n+f.to]++
	}
	for range 2 * n {
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
			if f.rate < 0 && (f.from == at || n+f.to == at) {
				f.rate = least
				for _, i := range []int{f.from, n + f.to} {
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
		f := &flow{from: rank, to: t.Peer, number: w.sent[at], left: float64(max(t.Size, 1))}
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
// best algorithm, as schedules run in the fluid model, and the predicted times are near to theirs.
func TestChoicesOnWires(t *testing.T) {
	own := builtIn()
	for _, rate := range []int64{200e6, 1e9} {
		costs := &pathsel.Costs{Rates: pathsel.DefaultCosts().Rates, LinkRate: rate}
		worst, off, rows := 0.0, 0.0, 0
		for _, of := range []Collective{Allreduce, Reduce, Broadcast, Gather, Scatter, Allgather, Alltoall, ReduceScatter, Scan} {
			for _, n := range []int{2, 5, 8, 16} {
				for _, bytes := range []int{16 << 10, 64 << 10, 1 << 20, 4 << 20} {
					most := 1.25
					if bytes <= EagerBytes { // what goes down a tree at once shares the link: see maker.hand
						most = 1.5
					}
					c := Call{Collective: of, Size: n, Width: 4, Count: bytes / 4, Segment: SegmentBytes}
					if of != Allreduce && of != Reduce && of != Broadcast && of != Scan {
						c.Count /= n
					}
					w := wires{fabric: own, call: c}
					w.link = max(own.link, 8/float64(rate))
					chosen, predicted := Choose(&c, costs)
					var best Algorithm
					least, took := math.Inf(1), 0.0
					for _, a := range Possible(&c) {
						x := w.run(t, a)
						work := WorkOf(&c, a)
						if testing.Verbose() {
							t.Logf("%-16s %2d %8d %-20s %8.2f ms, predicted %8.2f", of, n, bytes, a, 1e3*x, 1e3*costs.Time(of.Family(), pathsel.ByMessages, &work).Seconds())
						}
						if a == chosen {
							took = x
						}
						if x < least {
							best, least = a, x
						}
					}
					rows, off = rows+1, off+math.Abs(predicted.Seconds()/took-1)
					if worst = max(worst, took/least); took > most*least {
						t.Errorf("%s of %d bytes in a group of %d at %d bit/s: %s takes %.2f times as long as %s", of, bytes, n, rate, chosen, took/least, best)
					}
				}
			}
		}
		t.Logf("at %d bit/s: at worst %.2f, predictions off by %.2f", rate, worst, off/float64(rows))
	}
}
