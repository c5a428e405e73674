package schedule

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The function of these tests is that of maps x -> ax+b modulo 2^32, one after the other: it is
// associative, and does not commute. Elements have 8 bytes.
const width = 8

func compose(to, first, second []byte) {
	if second == nil {
		return // it makes nothing else of what stands alone
	}
	for i := 0; i < len(to); i += width {
		a1, b1 := binary.LittleEndian.Uint32(first[i:]), binary.LittleEndian.Uint32(first[i+4:])
		a2, b2 := binary.LittleEndian.Uint32(second[i:]), binary.LittleEndian.Uint32(second[i+4:])
		binary.LittleEndian.PutUint32(to[i:], a1*a2)
		binary.LittleEndian.PutUint32(to[i+4:], b1*a2+b2)
	}
}

// add is a function that commutes.
func add(to, first, second []byte) {
	if second == nil {
		return
	}
	for i := 0; i < len(to); i += width {
		binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(first[i:])+binary.LittleEndian.Uint64(second[i:]))
	}
}

// member carries out one schedule.
type member struct {
	Run
	round *Round // that is under way
	done  bool

	sent, taken       int // transfers of the round that are done
	messages, bytes   int
	recvs, localBytes int
}

// group carries out the schedules of all members, in any order that rounds permit.
type group struct {
	members []*member
	queues  map[[2]int][][]byte // by sender and receiver; of synchronous sends, one message alone
	random  *rand.Rand
	eager   bool // a send is done before it is received
}

// step has a member do one thing, and reports false where it waits.
func (g *group) step(rank int) (bool, error) {
	m := g.members[rank]
	if m.done {
		return false, nil
	}
	if m.round == nil {
		r, ok := m.Next()
		if !ok {
			m.done = true
			return true, nil
		}
		m.round, m.sent, m.taken = r, 0, 0
	}
	r := m.round
	if m.sent < len(r.Sends) {
		t := r.Sends[m.sent]
		if t.Peer == rank || t.Peer < 0 || t.Peer >= len(g.members) {
			return false, fmt.Errorf("rank %d sends to %d", rank, t.Peer)
		}
		k := [2]int{rank, t.Peer}
		if g.eager || len(g.queues[k]) == 0 {
			g.queues[k] = append(g.queues[k], slices.Clone(m.At(t.Part)))
			m.sent++
			m.messages++
			m.bytes += t.Size
			return true, nil
		}
	}
	// Receives are posted all at once: whichever has come is taken.
	for i := m.taken; i < len(r.Recvs); i++ {
		t := r.Recvs[i]
		k := [2]int{t.Peer, rank}
		if len(g.queues[k]) == 0 {
			continue
		}
		b := g.queues[k][0]
		g.queues[k] = g.queues[k][1:]
		if len(b) != t.Size {
			return false, fmt.Errorf("rank %d gets %d bytes from %d, want %d", rank, len(b), t.Peer, t.Size)
		}
		copy(m.At(t.Part), b)
		r.Recvs[i], r.Recvs[m.taken] = r.Recvs[m.taken], r.Recvs[i]
		m.taken++
		m.recvs++
		return true, nil
	}
	isSent := g.eager || !slices.ContainsFunc(r.Sends, func(t Transfer) bool { return len(g.queues[[2]int{rank, t.Peer}]) > 0 })
	if m.sent < len(r.Sends) || m.taken < len(r.Recvs) || !isSent {
		return false, nil
	}
	for i := range r.Locals {
		l := &r.Locals[i]
		if l.To.Size != l.A.Size || !l.IsCopy() && l.To.Size != l.B.Size {
			return false, fmt.Errorf("rank %d makes %d bytes of %d and %d", rank, l.To.Size, l.A.Size, l.B.Size)
		}
		if l.IsCopy() {
			continue
		}
		m.localBytes += l.To.Size
	}
	m.round = nil
	return true, nil
}

// run carries out all, and reports what is wrong: among that, that all wait.
func (g *group) run() error {
	defer func() {
		for _, m := range g.members {
			m.Stop()
		}
	}()
	for {
		moved := false
		for _, rank := range g.random.Perm(len(g.members)) {
			for range 1 + g.random.IntN(4) {
				is, err := g.step(rank)
				if err != nil {
					return err
				}
				moved = moved || is
			}
		}
		if moved {
			continue
		}
		for rank, m := range g.members {
			if !m.done {
				return fmt.Errorf("rank %d waits for ever: sent %d of %v, received %d of %v", rank, m.sent, m.round.Sends, m.taken, m.round.Recvs)
			}
		}
		for k, q := range g.queues {
			if len(q) > 0 {
				return fmt.Errorf("a message of %d to %d is not received", k[0], k[1])
			}
		}
		return nil
	}
}

// trial is an operation of a group, its inputs and what is to come out.
type trial struct {
	calls   []*Call
	in, out [][][]byte // by rank and piece, before
	want    [][][]byte // Out, or In of a reduce-scatter in place; nil pieces are not compared
	reduce  func(to, a, b []byte)
}

func (c *Call) String() string {
	return fmt.Sprintf("%s of %d, root %d, count %d, counts %v, in place %v, ordered %v", c.Collective, c.Size, c.Root, c.Count, c.Counts, c.InPlace, c.Ordered)
}

// fresh returns bytes that no other has.
func fresh(random *rand.Rand, elements int) []byte {
	b := make([]byte, elements*width)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// newTrial draws the vectors of a call, whose Rank does not matter, and computes the oracle's.
func newTrial(c Call, random *rand.Rand) *trial {
	x := &trial{reduce: add}
	if c.Ordered {
		x.reduce = compose
	}
	n := c.Size
	pair := make([][]int, n) // alltoallv: elements from i to j
	for i := range n {
		pair[i] = make([]int, n)
		for j := range n {
			if pair[i][j] = random.IntN(4); c.InPlace && j < i {
				pair[i][j] = pair[j][i] // what goes each way has the same size
			}
		}
	}
	size := func(rank int) int { // of a rank's piece
		if c.Counts != nil {
			return c.Counts[rank]
		}
		return c.Count
	}
	gathered := func(pieces [][]byte) [][]byte { // as one buffer, or as pieces
		if c.Collective.HasCounts() {
			return pieces
		}
		return [][]byte{slices.Concat(pieces...)}
	}
	own := make([][]byte, n)
	for rank := range n {
		d := c
		d.Rank = rank
		if c.Collective == Alltoallv {
			d.Counts = pair[rank]
			for i := range n {
				d.RecvCounts = append(d.RecvCounts, pair[i][rank])
			}
		}
		if c.Collective == Gatherv || c.Collective == Scatterv {
			d.Own = size(rank)
			if rank != c.Root {
				d.Counts = nil
			}
		}
		if c.Collective.IsRooted() && rank != c.Root {
			d.InPlace = false
		}
		x.calls = append(x.calls, &d)
		own[rank] = fresh(random, size(rank))
	}
	scanned := func(upTo int) []byte {
		acc := slices.Clone(own[0])
		for _, v := range own[1:max(1, upTo)] {
			x.reduce(acc, acc, v)
		}
		return acc
	}
	blank := func(elements int) []byte { return fresh(random, elements) }
	for rank, d := range x.calls {
		var in, out, want [][]byte
		switch isRoot := rank == c.Root; c.Collective {
		case Allreduce, Scan, Exscan:
			upTo := n
			if c.Collective != Allreduce {
				upTo = rank + 1
			}
			if c.Collective == Exscan {
				upTo--
			}
			in, out, want = [][]byte{own[rank]}, [][]byte{blank(c.Count)}, [][]byte{nil}
			if upTo > 0 {
				want[0] = scanned(upTo)
			}
		case Reduce:
			in = [][]byte{own[rank]}
			if isRoot {
				out, want = [][]byte{blank(c.Count)}, [][]byte{scanned(n)}
			}
		case Broadcast:
			if in = [][]byte{own[rank]}; !isRoot {
				in, out, want = nil, [][]byte{blank(c.Count)}, [][]byte{own[c.Root]}
			}
		case Gather, Gatherv:
			if in = [][]byte{own[rank]}; isRoot {
				want = gathered(own)
			}
		case Scatter, Scatterv:
			if want = [][]byte{own[rank]}; isRoot {
				in = gathered(own)
			}
		case Allgather, Allgatherv:
			in, want = [][]byte{own[rank]}, gathered(own)
		case Alltoall, Alltoallv:
			// Below: of all pairs at once.
		case ReduceScatter, ReduceScatterv:
			// Likewise.
		}
		if out == nil && want != nil {
			for _, w := range want {
				out = append(out, blank(len(w)/width))
			}
		}
		isScatter := c.Collective == Scatter || c.Collective == Scatterv
		if d.InPlace && !isScatter && len(in) == 1 && len(out) > 0 {
			switch c.Collective {
			case Allreduce, Scan, Exscan, Reduce:
				copy(out[0], in[0])
			case Gather, Allgather:
				copy(out[0][rank*c.Count*width:], in[0])
			case Gatherv, Allgatherv:
				copy(out[rank], in[0])
			}
			in = nil
		}
		if d.InPlace && isScatter {
			out, want = nil, nil
		}
		x.in, x.out, x.want = append(x.in, in), append(x.out, out), append(x.want, want)
	}
	switch c.Collective {
	case Alltoall, Alltoallv:
		piece := map[[2]int][]byte{}
		for i := range n {
			for j := range n {
				size := c.Count
				if c.Collective == Alltoallv {
					size = pair[i][j]
				}
				piece[[2]int{i, j}] = fresh(random, size)
			}
		}
		for rank, d := range x.calls {
			var in, out, want [][]byte
			for i := range n {
				in = append(in, piece[[2]int{rank, i}])
				want = append(want, piece[[2]int{i, rank}])
				out = append(out, blank(len(piece[[2]int{i, rank}])/width))
			}
			x.in[rank], x.out[rank], x.want[rank] = gathered(in), gathered(out), gathered(want)
			if d.InPlace {
				x.in[rank], x.out[rank] = nil, x.in[rank]
			}
		}
	case ReduceScatter, ReduceScatterv:
		var whole int
		starts := []int{0}
		for i := range n {
			whole += size(i)
			starts = append(starts, whole*width)
		}
		all := make([][]byte, n)
		for i := range n {
			all[i] = fresh(random, whole)
		}
		sum := slices.Clone(all[0])
		for _, v := range all[1:] {
			x.reduce(sum, sum, v)
		}
		for rank, d := range x.calls {
			x.in[rank], x.want[rank] = [][]byte{all[rank]}, [][]byte{sum[starts[rank]:starts[rank+1]]}
			if x.out[rank] = nil; !d.InPlace {
				x.out[rank] = [][]byte{blank(size(rank))}
			}
		}
	}
	return x
}

// carryOut carries out a trial by an algorithm, and compares.
func (x *trial) carryOut(a Algorithm, random *rand.Rand, eager bool) (*group, error) {
	g := &group{queues: map[[2]int][][]byte{}, random: random, eager: eager}
	for rank, c := range x.calls {
		if err := c.Validate(); err != nil {
			return nil, err
		}
		s, err := Make(c, a)
		if err != nil {
			return nil, err
		}
		clone := func(all [][]byte) (cloned [][]byte) {
			for _, b := range all {
				cloned = append(cloned, slices.Clone(b))
			}
			return cloned
		}
		m := &member{Run: Run{Call: *c, In: clone(x.in[rank]), Out: clone(x.out[rank]), Temp: make([]byte, s.Temp), Reduce: x.reduce}}
		m.Follow(s)
		g.members = append(g.members, m)
	}
	if err := g.run(); err != nil {
		return nil, err
	}
	for rank, m := range g.members {
		got := m.Out
		if c := x.calls[rank]; c.InPlace && (c.Collective == ReduceScatter || c.Collective == ReduceScatterv) {
			at, _ := c.inRanks().slices()
			got = [][]byte{m.At(at(rank))}
		} else {
			for i, b := range m.In {
				if !slices.Equal(b, x.in[rank][i]) {
					return nil, fmt.Errorf("rank %d: the input has changed", rank)
				}
			}
		}
		for i, want := range x.want[rank] {
			if want != nil && !slices.Equal(got[i], want) {
				return nil, fmt.Errorf("rank %d, piece %d: % x, want % x", rank, i, got[i], want)
			}
		}
	}
	return g, nil
}

// draw draws a call.
func draw(t *rapid.T) Call {
	c := Call{
		Collective: Collective(rapid.IntRange(1, int(Collectives)-1).Draw(t, "collective")), Size: rapid.IntRange(1, 17).Draw(t, "size"),
		Width: width, Segment: rapid.SampledFrom([]int{0, 8, 20, 64}).Draw(t, "segment"),
	}
	if c.Collective.IsRooted() {
		c.Root = rapid.IntRange(0, c.Size-1).Draw(t, "root")
	}
	switch {
	case c.Collective == Barrier, c.Collective == Alltoallv:
	case c.Collective.HasCounts():
		for range c.Size {
			c.Counts = append(c.Counts, rapid.SampledFrom([]int{0, 1, 2, 3, 7}).Draw(t, "count"))
		}
	default:
		c.Count = rapid.SampledFrom([]int{0, 1, 2, 3, 7, 16, 50}).Draw(t, "count")
	}
	c.InPlace = c.Collective != Barrier && c.Collective != Broadcast && rapid.Bool().Draw(t, "in place")
	c.Ordered = c.Collective.Reduces() && rapid.Bool().Draw(t, "ordered")
	if rapid.Bool().Draw(t, "arranged") {
		ranks := make([]int, c.Size)
		for i := range ranks {
			ranks[i] = i
		}
		c.Order = rapid.Permutation(ranks).Draw(t, "order")
	}
	return c
}

// TestAll: every algorithm gives what the oracle gives, in whatever order members go on, also
// where a send waits for its receive; and leaves no message, and the inputs as they were.
func TestAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		eager := rapid.Bool().Draw(t, "eager")
		all := Possible(&c)
		if len(all) == 0 {
			t.Fatalf("nothing can do %v", &c)
		}
		for _, a := range all {
			if _, err := newTrial(c, random).carryOut(a, random, eager); err != nil {
				t.Fatalf("%v by %s: %v", &c, a, err)
			}
		}
	})
}
