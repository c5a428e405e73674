package node

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// host is a model of the processes of a host and their memory.
type host struct {
	t        *rapid.T
	counts   [Stages][]uint64
	slots    [][][]int // areas of elements
	segments []Segment
	vectors  [][][]int // by process and segment
	hosts    [][]int   // what the operation between hosts gives for a segment; a sum adds it
	users    map[[3]int]user
	all      []*process
	begun    uint64 // operations between hosts that were begun
	finished uint64 // and are done
}

// user is who touches an element of the memory at the moment.
type user struct {
	writers, readers int
}

type process struct {
	Core
	host    *host
	called  int // segments
	action  Action
	phase   int // of the action: 0: none, 1: chosen, 2: half done, 3: done, and not published
	asleep  bool
	isDead  bool
	results [][]int
}

func (h *host) Count(s Stage, process int) uint64 { return h.counts[s][process] }

func (p *process) segment(i uint64) *Segment {
	if i >= uint64(p.called) {
		return nil
	}
	return &p.host.segments[i]
}

// touch uses elements of an area, or ends that, and fails where others do what does not go together.
func (h *host) touch(i uint64, area, from, to int, writes bool, by int) {
	slot := int(i) % len(h.slots)
	for e := from; e < to; e++ {
		u := h.users[[3]int{slot, area, e}]
		if writes {
			u.writers += by
		} else {
			u.readers += by
		}
		if u.writers > 1 || u.writers == 1 && u.readers > 0 {
			h.t.Fatalf("segment %d, area %d, element %d: %d write and %d read", i, area, e, u.writers, u.readers)
		}
		h.users[[3]int{slot, area, e}] = u
	}
}

// uses begins or ends the use of what an action touches.
func (p *process) uses(by int) {
	a, h := p.action, p.host
	s := p.segment(a.Segment)
	switch a.Kind {
	case Copy:
		if s.Gives(p.Own) {
			from, to := p.gives(s)
			h.touch(a.Segment, p.area(s), from, to, true, by)
		}
	case Reduce:
		for area := 1; area < p.Processes; area++ {
			h.touch(a.Segment, area, a.From, a.To, false, by)
		}
		h.touch(a.Segment, 0, a.From, a.To, true, by)
	case Get:
		if s.Gets(p.Own) {
			h.touch(a.Segment, 0, 0, s.Elements, false, by)
		}
	}
}

// area returns where a process copies its vector to.
func (p *process) area(s *Segment) int {
	if s.Reduces {
		return p.Own
	}
	return 0
}

// joined returns how many elements of a segment that is joined are the host's.
func joined(s *Segment) int { return s.Elements / 2 }

// gives returns the elements that a process copies.
func (p *process) gives(s *Segment) (from, to int) {
	if s.Joins {
		return p.Own * joined(s) / p.Processes, (p.Own + 1) * joined(s) / p.Processes
	}
	return 0, s.Elements
}

// do does the action on a half of the elements.
func (p *process) do(half int) {
	a, h := p.action, p.host
	s := p.segment(a.Segment)
	areas := h.slots[int(a.Segment)%len(h.slots)]
	from, to := s.Elements/2*half, s.Elements
	if half == 0 {
		to = s.Elements / 2
	}
	switch a.Kind {
	case Copy:
		if s.Gives(p.Own) {
			first, end := p.gives(s)
			from, to = min(max(from, first), end), min(to, end)
			if to = max(from, to); from == to {
				break
			}
			copy(areas[p.area(s)][from:to], h.vectors[p.Own][a.Segment][from:to])
		}
	case Reduce:
		if half == 1 {
			for e := a.From; e < a.To; e++ {
				for area := 1; area < p.Processes; area++ {
					areas[0][e] = areas[0][e]*3 + areas[area][e] // the order matters
				}
			}
		}
	case Get:
		if s.Gets(p.Own) {
			copy(p.results[a.Segment][from:to], areas[0][from:to])
		}
	}
}

// step does a part of what a process does next, and reports false where it has to wait.
func (p *process) step() bool {
	h := p.host
	switch p.phase {
	case 0:
		p.action = p.Next(h, h.finished, p.segment)
		if p.action.Kind == Wait {
			p.asleep = true
			return false
		}
		p.uses(1)
	case 1, 2:
		p.do(p.phase - 1)
	case 3:
		p.uses(-1)
		if p.action.Kind == Start {
			if p.action.Segment != h.begun {
				h.t.Fatalf("segment %d is started after %d", p.action.Segment, h.begun)
			}
			h.useBetween(p.action.Segment, 1)
			h.begun++
		}
		if s, is := p.action.Publishes(); is {
			h.counts[s][p.Own] = p.action.Segment + 1
		}
		p.Done(p.action)
		p.wake(p.Wakes(h, p.action, p.segment(p.action.Segment)))
		p.phase = 0
		return true
	}
	p.phase++
	return true
}

func (p *process) wake(who int) {
	for _, q := range p.host.all {
		if who == All || who == q.Own {
			q.asleep = false
		}
	}
}

// useBetween begins or ends the use of what an operation between hosts touches.
func (h *host) useBetween(i uint64, by int) {
	s := &h.segments[i]
	reads := 0
	switch {
	case s.Joins:
		reads = joined(s)
	case !s.Reduces && s.Source >= 0:
		reads = s.Elements
	}
	h.touch(i, 0, 0, reads, false, by)
	h.touch(i, 0, reads, s.Elements, true, by)
}

// between ends the oldest operation between hosts.
func (h *host) between() {
	i := h.finished
	s := &h.segments[i]
	area := h.slots[int(i)%len(h.slots)][0]
	copies := !s.Reduces && s.Source >= 0
	h.useBetween(i, -1)
	for e := range s.Elements {
		switch {
		case s.Joins && e < joined(s):
		case s.Reduces:
			area[e] += h.hosts[i][e]
		case !copies:
			area[e] = h.hosts[i][e]
		}
	}
	h.finished++
	h.all[0].asleep = false
}

// want is the oracle.
func (h *host) want(i uint64) []int {
	s := &h.segments[i]
	if s.Source >= 0 {
		return h.vectors[s.Source][i]
	}
	want := slices.Clone(h.hosts[i])
	if s.Joins {
		for _, p := range h.all {
			from, to := p.gives(s)
			copy(want[from:to], h.vectors[p.Own][i][from:to])
		}
	}
	if s.Reduces {
		for e := range want {
			sum := h.vectors[0][i][e]
			for p := 1; p < len(h.vectors); p++ {
				sum = sum*3 + h.vectors[p][i][e]
			}
			want[e] += sum
		}
	}
	return want
}

func draw(t *rapid.T) *host {
	h := &host{t: t, users: map[[3]int]user{}}
	k, slots, n := rapid.IntRange(1, 6).Draw(t, "processes"), rapid.IntRange(1, 4).Draw(t, "slots"), rapid.IntRange(1, 8).Draw(t, "segments")
	for range n {
		s := Segment{Elements: rapid.SampledFrom([]int{0, 1, 5, 40}).Draw(t, "elements"), Source: Nobody, Reader: All}
		s.Width = 1024 // so that a few elements are divided
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			s.Reduces = true
		case 1:
			s.Reduces, s.Reader = true, rapid.IntRange(Nobody, k-1).Draw(t, "root")
		case 2:
			s.Source = rapid.IntRange(Nobody, k-1).Draw(t, "source")
		case 3:
			s.Elements = 0
		case 4:
			s.Joins, s.Reader = true, rapid.SampledFrom([]int{Nobody, All, 0, k - 1}).Draw(t, "receiver")
		}
		h.segments = append(h.segments, s)
		h.hosts = append(h.hosts, rapid.SliceOfN(rapid.IntRange(0, 9), s.Elements, s.Elements).Draw(t, "others"))
	}
	for i := range h.counts {
		h.counts[i] = make([]uint64, k)
	}
	for range slots {
		areas := make([][]int, k)
		for a := range areas {
			areas[a] = make([]int, 40)
		}
		h.slots = append(h.slots, areas)
	}
	for own := range k {
		p := &process{Core: Core{Processes: k, Own: own, Slots: slots}, host: h}
		var vectors [][]int
		for i, s := range h.segments {
			v := make([]int, s.Elements)
			for e := range v {
				v[e] = 100*own + 10*i + e
			}
			vectors, p.results = append(vectors, v), append(p.results, make([]int, s.Elements))
		}
		h.vectors, h.all = append(h.vectors, vectors), append(h.all, p)
	}
	return h
}

// checkResults compares what a process has read.
func (h *host) checkResults() {
	for _, p := range h.all {
		for i := range h.counts[Read][p.Own] {
			if s := &h.segments[i]; s.Gets(p.Own) && !slices.Equal(p.results[i], h.want(i)) {
				h.t.Fatalf("process %d, segment %d %+v: %v, want %v", p.Own, i, *s, p.results[i], h.want(i))
			}
		}
	}
}

// TestProcesses: processes that call and step in any order all get what the oracle says, do
// not touch the same memory at once, and sleep only where somebody will wake them. With a death at
// any step, nobody gets anything wrong.
func TestProcesses(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies=", dies), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := draw(t)
				victim, at := -1, 0
				if dies {
					victim, at = rapid.IntRange(0, len(h.all)-1).Draw(t, "victim"), rapid.IntRange(0, 60).Draw(t, "at")
				}
				for {
					var moves []func()
					for _, p := range h.all {
						if p.isDead {
							continue
						}
						if p.called < len(h.segments) {
							moves = append(moves, func() { p.called++; p.asleep = false })
						}
						if !p.asleep || p.phase > 0 {
							moves = append(moves, func() {
								if p.Own == victim {
									if at--; at < 0 {
										p.isDead = true
										return
									}
								}
								p.step()
							})
						}
					}
					if h.finished < h.begun {
						moves = append(moves, h.between)
					}
					if len(moves) == 0 {
						break
					}
					moves[rapid.IntRange(0, len(moves)-1).Draw(t, "move")]()
				}
				h.checkResults()
				for _, p := range h.all {
					if n := h.counts[Read][p.Own]; victim < 0 && n < uint64(len(h.segments)) {
						t.Fatalf("process %d waits for ever after %d segments of %d", p.Own, n, len(h.segments))
					}
				}
			})
		})
	}
}

// TestShares: the shares of all processes are the vector, once.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Segment{Elements: rapid.IntRange(0, 300_000).Draw(t, "elements"), Width: rapid.SampledFrom([]int{2, 4, 8, 16}).Draw(t, "width"), Reduces: true}
		k := rapid.IntRange(1, 64).Draw(t, "processes")
		next := 0
		for p := range k {
			from, to := s.Share(p, k)
			if from != next || to < from || from < to && from*s.Width%64 != 0 {
				t.Fatalf("process %d of %d: %d to %d after %d", p, k, from, to, next)
			}
			next = to
		}
		if next != s.Elements {
			t.Fatalf("%d of %d", next, s.Elements)
		}
	})
}

// garbage are counters that anybody may have written.
type garbage []byte

func (g garbage) Count(s Stage, process int) uint64 {
	if len(g) == 0 {
		return 0
	}
	return uint64(g[(int(s)*7+process)%len(g)])
}

// FuzzCounters: whatever others write, a process does each thing once for each segment that it has
// called, in the order of the stages.
func FuzzCounters(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(2), uint8(1))
	f.Add([]byte{255}, uint8(3), uint8(0))
	f.Fuzz(func(t *testing.T, counts []byte, processes, own uint8) {
		c := Core{Processes: 1 + int(processes)%64, Slots: 2}
		c.Own = int(own) % c.Processes
		s := Segment{Elements: 9, Width: 4, Reduces: true, Reader: All}
		var done [Get + 1]uint64
		for n := range uint64(40) {
			a := c.Next(garbage(counts), n, func(i uint64) *Segment {
				if i > n/4 {
					return nil
				}
				return &s
			})
			if a.Kind == Wait {
				continue
			}
			if a.Segment != done[a.Kind] || a.Segment > n/4 {
				t.Fatalf("%+v after %v", a, done)
			}
			done[a.Kind]++
			c.Wakes(garbage(counts), a, &s)
			c.Done(a)
			if done[Check] > done[Copy] || done[Reduce] > done[Check] || done[Get] > done[Reduce] || done[Finish] > done[Start] || done[Start] > done[Check] {
				t.Fatalf("%+v: %v", a, done)
			}
		}
	})
}

// TestTranscript is one allreduce of two segments by two processes, who step in turn.
func TestTranscript(t *testing.T) {
	h := &host{users: map[[3]int]user{}, finished: 0}
	for i := range h.counts {
		h.counts[i] = make([]uint64, 2)
	}
	h.segments = []Segment{{Elements: 4, Width: 4096, Reduces: true, Source: Nobody, Reader: All}, {Elements: 1, Width: 4096, Reduces: true, Source: Nobody, Reader: 1}}
	h.hosts = [][]int{make([]int, 4), make([]int, 1)}
	var got []string
	for own := range 2 {
		h.slots = append(h.slots, [][]int{make([]int, 4), make([]int, 4)})
		h.vectors = append(h.vectors, [][]int{make([]int, 4), make([]int, 1)})
		h.all = append(h.all, &process{Core: Core{Processes: 2, Own: own, Slots: 2}, host: h, called: 2, results: [][]int{make([]int, 4), make([]int, 1)}})
	}
	for range 11 {
		for _, p := range h.all {
			for p.step() && p.phase > 0 {
			}
			if a := p.action; !p.asleep {
				got = append(got, fmt.Sprintf("%d: %s %d", p.Own, a.Kind, a.Segment))
			}
		}
		if h.finished < h.begun {
			h.between()
		}
	}
	want := []string{
		"0: copy 0", "1: copy 0", "0: check 0", "1: check 0", "0: reduce 0", "1: reduce 0", "0: start 0", "1: copy 1",
		"0: finish 0", "1: get 0", "0: copy 1", "1: check 1", "0: check 1", "1: reduce 1", "0: reduce 1", "0: start 1",
		"0: finish 1", "1: get 1", "0: get 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
