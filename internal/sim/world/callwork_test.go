package world

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/reduce"
)

// callWork is an operation of a group by messages.
type callWork struct {
	number int
	by     schedule.Algorithm
	parts  []callPart // by rank
	reduce func(to, a, b []byte)
	rounds bool // the bits depend on the order: all members get the same
}

// callPart is a member's part.
type callPart struct {
	schedule.Call
	in, out   [][]byte // its buffers
	before    [][]byte // what in was
	want      [][]byte // what out, or the own part of in, is to be; nil: it is not looked at
	got       [][]byte
	isStarted bool
	isDone    bool
	err       error
	own, size int // of a reduce-scatter in place: its part of in, in bytes
}

const callWidth = 8

// compose is the function of maps x -> ax+b modulo 2^32, one after the other: it is associative, and
// does not commute.
func compose(to, first, second []byte) {
	for i := 0; second != nil && i < len(to); i += callWidth {
		a1, b1 := binary.LittleEndian.Uint32(first[i:]), binary.LittleEndian.Uint32(first[i+4:])
		a2, b2 := binary.LittleEndian.Uint32(second[i:]), binary.LittleEndian.Uint32(second[i+4:])
		binary.LittleEndian.PutUint32(to[i:], a1*a2)
		binary.LittleEndian.PutUint32(to[i+4:], b1*a2+b2)
	}
}

// kernelOf returns a function of 8-byte elements for schedules.
func kernelOf(f reduce.Function, t reduce.Type) func(to, a, b []byte) {
	k, err := reduce.KernelOf(f, t)
	if err != nil {
		panic(err)
	}
	return func(to, a, b []byte) {
		if b == nil {
			k(to, [][]byte{a})
		} else {
			k(to, [][]byte{a, b})
		}
	}
}

// drawCall draws an operation by messages: any collective, algorithm, root and lengths.
func drawCall(r *rand.Rand, n, longest int) *callWork {
	c := schedule.Call{
		Collective: schedule.Collective(1 + r.IntN(int(schedule.Collectives)-1)), Size: n, Width: callWidth,
		Segment: []int{8, 24, 64}[r.IntN(3)],
	}
	if c.Collective.IsRooted() {
		c.Root = r.IntN(n)
	}
	if c.Collective == schedule.Barrier {
		c.Width = 0
	}
	k := &callWork{reduce: kernelOf(reduce.Sum, reduce.Uint64)}
	if c.Collective.Reduces() {
		switch r.IntN(3) {
		case 0:
			c.Ordered, k.reduce = true, compose
		case 1:
			k.rounds, k.reduce = true, kernelOf(reduce.Sum, reduce.Float64)
		}
	}
	sizes := make([]int, n) // of the ranks' pieces
	for i := range sizes {
		sizes[i] = r.IntN(1 + r.IntN(longest+1))
	}
	switch {
	case c.Collective == schedule.Barrier || c.Collective == schedule.Alltoallv:
	case c.Collective.HasCounts():
		c.Counts = sizes
	default:
		c.Count = sizes[0]
		for i := range sizes {
			sizes[i] = c.Count
		}
	}
	possible := schedule.Possible(&c)
	k.by = possible[r.IntN(len(possible))]
	k.parts = make([]callPart, n)
	for rank := range k.parts {
		p := &k.parts[rank]
		p.Call, p.size = c, -1
		p.Rank = rank
		p.InPlace = r.IntN(2) == 0 && (!c.Collective.IsRooted() || rank == c.Root) && c.Collective != schedule.Broadcast && c.Collective != schedule.Barrier
		if c.Collective == schedule.Gatherv || c.Collective == schedule.Scatterv {
			if p.Own = sizes[rank]; rank != c.Root {
				p.Counts = nil
			}
		}
	}
	k.fill(r, sizes)
	for rank := range k.parts {
		p := &k.parts[rank]
		p.before = cloneAll(p.in)
		if err := p.Validate(); err != nil {
			panic(fmt.Sprintf("%v by %v: %v", p.Collective, k.by, err))
		}
	}
	return k
}

func cloneAll(all [][]byte) (cloned [][]byte) {
	for _, b := range all {
		cloned = append(cloned, slices.Clone(b))
	}
	return cloned
}

// vector draws elements.
func (k *callWork) vector(r *rand.Rand, elements int) []byte {
	v := make([]byte, 0, elements*callWidth)
	for range elements {
		word := r.Uint64()
		if k.rounds {
			word = 0x3ff<<52 | word>>12 // from 1 to 2
		}
		v = binary.LittleEndian.AppendUint64(v, word)
	}
	return v
}

// fold reduces vectors in the order of ranks; nil: of none.
func (k *callWork) fold(all [][]byte) []byte {
	if len(all) == 0 {
		return nil
	}
	acc := slices.Clone(all[0])
	for _, v := range all[1:] {
		k.reduce(acc, acc, v)
	}
	return acc
}

// fill makes the buffers of all members, and the oracle's results.
func (k *callWork) fill(r *rand.Rand, sizes []int) {
	c, n := &k.parts[0].Call, len(sizes)
	joined := func(pieces [][]byte) [][]byte {
		if c.Collective.HasCounts() {
			return pieces
		}
		return [][]byte{slices.Concat(pieces...)}
	}
	own := make([][]byte, n)
	for i := range own {
		own[i] = k.vector(r, sizes[i])
	}
	for rank := range k.parts {
		p := &k.parts[rank]
		isRoot := rank == c.Root
		switch c.Collective {
		case schedule.Allreduce:
			p.in, p.want = [][]byte{own[rank]}, [][]byte{k.fold(own)}
		case schedule.Scan:
			p.in, p.want = [][]byte{own[rank]}, [][]byte{k.fold(own[:rank+1])}
		case schedule.Exscan:
			p.in, p.want = [][]byte{own[rank]}, [][]byte{k.fold(own[:rank])}
			p.out = [][]byte{make([]byte, len(own[rank]))}
		case schedule.Reduce:
			if p.in = [][]byte{own[rank]}; isRoot {
				p.want = [][]byte{k.fold(own)}
			}
		case schedule.Broadcast:
			if p.in = [][]byte{own[rank]}; !isRoot {
				p.in, p.want = nil, [][]byte{own[c.Root]}
			}
		case schedule.Gather, schedule.Gatherv:
			if p.in = [][]byte{own[rank]}; isRoot {
				p.want = joined(own)
			}
		case schedule.Scatter, schedule.Scatterv:
			if p.want = [][]byte{own[rank]}; isRoot {
				p.in = joined(own)
			}
		case schedule.Allgather, schedule.Allgatherv:
			p.in, p.want = [][]byte{own[rank]}, joined(own)
		}
	}
	switch c.Collective {
	case schedule.Alltoall, schedule.Alltoallv:
		k.fillPairs(r, joined)
	case schedule.ReduceScatter, schedule.ReduceScatterv:
		k.fillParts(r, sizes)
	}
	for rank := range k.parts {
		p := &k.parts[rank]
		p.in, p.want = cloneAll(p.in), cloneAll(p.want)
		if p.out == nil && p.size < 0 {
			for _, w := range p.want {
				p.out = append(p.out, make([]byte, len(w)))
			}
		}
		if p.InPlace {
			p.inPlace(sizes)
		}
	}
}

// inPlace puts what the member gives to where its result will be.
func (p *callPart) inPlace(sizes []int) {
	switch p.Collective {
	case schedule.Allreduce, schedule.Scan, schedule.Exscan, schedule.Reduce:
		copy(p.out[0], p.in[0])
	case schedule.Gather, schedule.Allgather:
		copy(p.out[0][p.Rank*sizes[p.Rank]*callWidth:], p.in[0])
	case schedule.Gatherv, schedule.Allgatherv:
		copy(p.out[p.Rank], p.in[0])
	case schedule.Alltoall, schedule.Alltoallv:
		for i := range p.out {
			copy(p.out[i], p.in[i])
		}
	case schedule.Scatter, schedule.Scatterv:
		p.out, p.want = nil, nil // it stays where it is
		return
	default: // of a reduce-scatter: In stays
		return
	}
	p.in = nil
}

func (k *callWork) fillPairs(r *rand.Rand, joined func([][]byte) [][]byte) {
	n := len(k.parts)
	isInPlace := k.parts[0].InPlace // then every two members give each other as much
	counts, pieces := make([][]int, n), make([][][]byte, n)
	for i := range n {
		counts[i], pieces[i] = make([]int, n), make([][]byte, n)
		for j := range n {
			if counts[i][j] = k.parts[0].Count; k.parts[0].Collective == schedule.Alltoallv {
				if counts[i][j] = r.IntN(4); isInPlace && j < i {
					counts[i][j] = counts[j][i]
				}
			}
			pieces[i][j] = k.vector(r, counts[i][j])
		}
	}
	for i := range n {
		p := &k.parts[i]
		var theirs [][]byte
		var recv []int
		for j := range n {
			theirs, recv = append(theirs, pieces[j][i]), append(recv, counts[j][i])
		}
		p.in, p.want = joined(pieces[i]), joined(theirs)
		if p.Collective == schedule.Alltoallv {
			p.Counts, p.RecvCounts, p.InPlace = counts[i], recv, isInPlace
		}
	}
}

func (k *callWork) fillParts(r *rand.Rand, sizes []int) {
	whole := 0
	for _, n := range sizes {
		whole += n
	}
	all := make([][]byte, len(sizes))
	for i := range all {
		all[i] = k.vector(r, whole)
	}
	sum, at := k.fold(all), 0
	for rank, n := range sizes {
		p := &k.parts[rank]
		p.in, p.want = [][]byte{all[rank]}, [][]byte{sum[at : at+n*callWidth]}
		if p.InPlace {
			p.own, p.size = at, n*callWidth
		}
		at += n * callWidth
	}
}

// start returns the command with which a member begins its part.
func (k *callWork) start(rank int) callStart {
	p := &k.parts[rank]
	p.isStarted = true
	element, function := uint8(reduce.Uint64), uint8(reduce.Sum)
	return callStart{k.number, &schedule.Run{
		Call: p.Call, In: p.in, Out: p.out, Tag: p.Tag(uint16(k.number), function, element), Reduce: k.reduce,
	}, k.by}
}

// end takes that a member's part has ended, checks it, and spoils its buffers: whoever still reads or
// writes them is found out.
func (k *callWork) end(rank int, err error) error {
	p := &k.parts[rank]
	if p.isDone {
		return fmt.Errorf("call %d is over twice at rank %d", k.number, rank)
	}
	p.isDone, p.err = true, err
	if err == nil {
		if p.size >= 0 {
			p.got = [][]byte{slices.Clone(p.in[0][p.own : p.own+p.size])}
		} else if p.got = cloneAll(p.out); !equalAll(p.in, p.before) {
			return fmt.Errorf("call %d, %v by %v: rank %d's input has changed", k.number, p.Collective, k.by, rank)
		}
	}
	for _, v := range slices.Concat(p.in, p.out) {
		fillWith(v, 0xa5)
	}
	return nil
}

func fillWith(v []byte, x byte) {
	for i := range v {
		v[i] = x
	}
}

func equalAll(a, b [][]byte) bool {
	return slices.EqualFunc(a, b, func(x, y []byte) bool { return bytes.Equal(x, y) })
}

// judgeCall checks an operation that was completed at some members or at all.
func (v *verdict) judgeCall(k *callWork) error {
	if slices.ContainsFunc(k.parts, func(p callPart) bool { return p.isDone }) {
		v.operations++
	}
	var first []byte
	for rank := range k.parts {
		p := &k.parts[rank]
		if !p.isDone {
			continue
		}
		for _, b := range slices.Concat(p.in, p.out) {
			if slices.ContainsFunc(b, func(x byte) bool { return x != 0xa5 }) {
				v.wrong++
				return fmt.Errorf("call %d, %v by %v: rank %d's memory was written after the end", k.number, p.Collective, k.by, rank)
			}
		}
		if p.err != nil {
			continue
		}
		switch {
		case p.Collective == schedule.Allreduce && k.rounds:
			if first == nil {
				first = p.got[0]
			}
			if !bytes.Equal(first, p.got[0]) {
				v.disagreements++
				return fmt.Errorf("call %d, %v by %v: rank %d has\n%x, another\n%x", k.number, p.Collective, k.by, rank, p.got[0], first)
			}
		case k.rounds:
		default:
			for i, w := range p.want {
				if w != nil && !bytes.Equal(p.got[i], w) {
					v.wrong++
					return fmt.Errorf("call %d, %+v by %v: rank %d has\n%x, want\n%x", k.number, p.Call, k.by, rank, p.got[i], w)
				}
			}
		}
	}
	return nil
}

// addCall gives the group an operation by messages to do.
func (c *crew) addCall(k *callWork) *callWork {
	k.number = len(c.calls)
	c.calls = append(c.calls, k)
	c.pending += len(c.Hosts)
	return k
}

// startCall has a member begin an operation by messages.
func (c *crew) startCall(k *callWork, rank int) {
	if c.World.Alive(c.Nodes[rank]) {
		c.World.Command(c.Nodes[rank], k.start(rank))
	}
}

// turn has a member begin an operation: one that blocks, when those before are done.
func (c *crew) turn(rank int, begin func()) {
	if !c.isBlocking[rank] {
		begin()
		return
	}
	for len(c.turns) <= rank {
		c.turns = append(c.turns, nil)
	}
	if c.turns[rank] = append(c.turns[rank], begin); len(c.turns[rank]) == 1 {
		begin()
	}
}

// done takes that a member's operation is done: the next one's turn has come.
func (c *crew) done(rank int) {
	if rank >= len(c.turns) || len(c.turns[rank]) == 0 {
		return
	}
	c.World.After(0, "next turn", func() {
		if c.turns[rank] = c.turns[rank][1:]; len(c.turns[rank]) > 0 && c.World.Alive(c.Nodes[rank]) && c.Hosts[rank].Ended == nil {
			c.turns[rank][0]()
		}
	})
}

// called takes that a member's part has ended.
func (c *crew) called(rank int, r callResult) {
	if err := c.calls[r.number].end(rank, r.err); err != nil && c.err == nil {
		c.err = err
	}
	c.pending--
	c.done(rank)
}
