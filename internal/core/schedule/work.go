package schedule

import (
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/pathsel"
)

// EagerBytes is the size up to which a message is sent before its receive is known. Above it, it waits
// for that.
const EagerBytes = rail.EagerBytes

const mebibyte = 1 << 20

// WorkOf returns what a call needs by an algorithm that can do it. It depends on nothing that
// members may not give alike.
func WorkOf(c *Call, a Algorithm) pathsel.Work {
	w := tallyOf(c)
	if n := c.Size; n > 1 {
		w.by(c.Collective, a, n)
	}
	w.Busiest[pathsel.Start] = 1
	return w.Work
}

// tally adds up what a call needs.
type tally struct {
	pathsel.Work
	vector  float64 // bytes: of Allgather, Alltoall, Gather, Scatter and ReduceScatter those of a piece
	segment float64
	ordered bool // and not from rank 0
	rotates bool // pieces are not in the order of ranks from the root on
}

func tallyOf(c *Call) tally {
	t := tally{vector: float64(c.Count) * float64(c.Width), segment: float64(max(c.Width, c.Segment)), ordered: c.Ordered && c.Root != 0, rotates: c.Root != 0}
	switch c.Collective {
	case Allgatherv, ReduceScatterv:
		sum := 0.0
		for _, n := range c.Counts {
			sum += float64(n)
		}
		t.vector = sum * float64(c.Width) / float64(c.Size)
	case Gatherv, Scatterv, Alltoallv:
		t.vector = unknownPiece
	}
	return t
}

// add counts steps, one after the other, in each of which the busiest member sends or receives so
// many messages, and all members send so many, of a size.
func (t *tally) add(steps, own, all int, size float64) {
	t.Busiest[pathsel.Step] += float64(steps)
	if size > EagerBytes {
		t.Busiest[pathsel.Rendezvous] += float64(steps)
	}
	t.messages(steps*own, steps*all, size)
}

// messages counts those of the busiest member, and of all.
func (t *tally) messages(own, all int, size float64) {
	t.both(pathsel.Message, float64(own), float64(all))
	t.both(pathsel.Link, float64(own)*size/mebibyte, float64(all)*size/mebibyte)
	if size > EagerBytes {
		t.All[pathsel.Rendezvous] += float64(all)
	}
}

// far counts bytes that every member sends, while all others do, to one that is so far from it.
func (t *tally) far(distance int, bytes float64) { t.Far[floorLog(distance)] += bytes / mebibyte }

// round counts one in which all n members send so many bytes, each to one that is so far from it.
func (t *tally) round(n, distance int, bytes float64) {
	t.add(1, 1, n, bytes)
	t.far(distance, bytes)
}

// toAll counts the bytes that every member of n sends to each other, and its peers.
func (t *tally) toAll(n int, size float64) {
	t.peers(2*(n-1), 2*n*(n-1))
	for near := 1; near <= n/2; near *= 2 {
		others := 2 * (min(2*near, n/2+1) - near)
		if n%2 == 0 && n/2 < 2*near {
			others-- // the one across is on both sides
		}
		t.far(near, float64(others)*size)
	}
}

func (t *tally) both(term pathsel.Term, own, all float64) {
	t.Busiest[term] += own
	t.All[term] += all
}

// local counts bytes that the busiest member reduces or copies, and all do.
func (t *tally) local(own, all float64) { t.both(pathsel.Local, own/mebibyte, all/mebibyte) }

// peers counts members that the busiest exchanges messages with, and on how many sides all do.
func (t *tally) peers(own, all int) { t.both(pathsel.Peer, float64(own), float64(all)) }

// by adds what an algorithm does in a group of n.
func (t *tally) by(of Collective, a Algorithm, n int) {
	v, k := t.vector, ceilLog(n)
	switch of {
	case Allreduce, Barrier:
		t.allreduce(a, n)
	case Reduce, Broadcast:
		t.oneWay(of, a, n)
	case Gather, Gatherv, Scatter, Scatterv:
		if t.local(v, v); a == Linear {
			t.peers(n-1, 2*(n-1))
			t.add(1, n-1, n-1, v)
			return
		}
		t.peers(k, 2*(n-1))
		t.subtrees(n, v)
		t.local(0, float64(n-1)*v/2) // at those that have others below them
		if t.rotates {
			t.local(float64(n)*v, float64(n)*v)
		}
	case Allgather, Allgatherv:
		t.allgather(a, n)
	case Alltoall, Alltoallv:
		t.alltoall(a, n)
	case ReduceScatter, ReduceScatterv:
		t.reduceScatter(a, n)
	case Scan, Exscan:
		if of == Exscan && a == RecursiveDoubling {
			t.add(1, 1, n-1, v)
			n--
		}
		if a == Chain {
			t.chain(n)
			t.Busiest[pathsel.Local], t.All[pathsel.Local] = t.Busiest[pathsel.Link], t.All[pathsel.Link]
			return
		}
		if of == Scan {
			t.local(v, float64(n)*v)
		}
		for bit := 1; bit < n; bit *= 2 {
			t.add(1, 1, n-bit, v)
			t.far(bit, v)
			t.peers(2, 2*(n-bit))
			t.local(v, float64(n-bit)*v)
		}
	}
}

func (t *tally) allreduce(a Algorithm, n int) {
	v, k := t.vector, ceilLog(n)
	switch a {
	case Dissemination:
		t.add(k, 1, n, 0)
		t.peers(2*k, 2*k*n)
		return
	case Ring:
		t.add(2*(n-1), 1, n, v/float64(n))
		t.local(v, float64(n)*v)
		t.peers(2, 2*n)
		return
	case Linear:
		t.add(2, n-1, n-1, v)
		t.local(float64(n-1)*v, float64(n-1)*v)
		t.peers(n-1, 2*(n-1))
		return
	case Binomial:
		t.tree(2, n, v)
		t.local(float64(k)*v, float64(n-1)*v)
		t.peers(k, 2*(n-1))
		return
	}
	power := floorPower(n)
	t.peers(floorLog(power), floorLog(power)*power)
	if extra := n - power; extra > 0 {
		t.add(2, 1, extra, v)
		t.local(v, float64(n-extra)*v) // those that are not paired copy theirs
		t.peers(1, 2*extra)
	} else {
		t.local(v, float64(n)*v)
	}
	for part, left := v/2, power; left > 1; left, part = left/2, part/2 {
		if a == Rabenseifner {
			t.add(2, 1, power, part)
			t.far(power/left, 2*part)
			t.local(part, float64(power)*part)
		} else {
			t.round(power, power/left, v)
			t.local(v, float64(power)*v)
		}
	}
}

// oneWay is of reduce and broadcast.
func (t *tally) oneWay(of Collective, a Algorithm, n int) {
	v, k := t.vector, ceilLog(n)
	switch a {
	case Binomial:
		t.tree(1, n, v)
		if t.peers(k, 2*(n-1)); of == Reduce {
			t.local(float64(k)*v, float64(n-1)*v)
			if t.ordered {
				t.add(1, 1, 1, v)
			}
		}
	case Chain:
		t.chain(n)
	case RingGather:
		t.add(n-1, 1, n, v/float64(n))
		t.add(1, n-1, n-1, v/float64(n))
		t.local(v, float64(n)*v)
		t.peers(n, 4*n)
	case ScatterAllgather:
		block := v / float64(n)
		t.subtrees(n, block)
		t.add(n-1, 1, n-k, block) // about k blocks at a member are there already
		t.peers(k+2, 4*n)
	}
}

// tree is of vectors that go up a binomial tree, or down, or both.
func (t *tally) tree(ways, n int, size float64) {
	t.add(ways*ceilLog(n), 1, 0, size)
	t.messages(0, ways*(n-1), size)
}

// subtrees is of pieces along a binomial tree: each edge carries those of all below it.
func (t *tally) subtrees(n int, piece float64) {
	for have := 1; have < n; have *= 2 {
		full := (n - have - 1) / (2 * have) // and one that may have fewer below it
		last := float64(min(have, n-full*2*have-have)) * piece
		if full == 0 {
			t.add(1, 1, 1, last)
			continue
		}
		t.add(1, 1, full, float64(have)*piece)
		t.messages(0, 1, last)
	}
}

// chain is of segments that go from member to member.
func (t *tally) chain(n int) {
	segments := int((t.vector + t.segment - 1) / t.segment)
	if segments == 0 {
		return
	}
	size := t.vector / float64(segments)
	t.add(n+segments-2, 1, 0, size) // the last member gets its last segment after so many
	t.messages(0, (n-1)*segments, size)
	t.peers(2, 2*(n-1))
}

func (t *tally) allgather(a Algorithm, n int) {
	v := t.vector
	switch a {
	case Ring:
		t.add(n-1, 1, n, v)
		t.peers(2, 2*n)
	case Linear:
		t.add(1, n-1, n*(n-1), v)
		t.toAll(n, v)
	default:
		each := 1
		if a == Bruck {
			t.local(float64(n)*v, float64(n*n)*v)
			each = 2
		}
		for have := 1; have < n; have *= 2 {
			t.round(n, have, float64(min(have, n-have))*v)
			t.peers(each, each*n)
		}
	}
	t.local(v, float64(n)*v)
}

func (t *tally) alltoall(a Algorithm, n int) {
	v := t.vector
	t.local(v, float64(n)*v)
	switch a {
	case Bruck:
		for bit := 1; bit < n; bit *= 2 {
			going := n / (2 * bit) * bit // pieces whose way has the bit
			going += max(0, n%(2*bit)-bit)
			t.round(n, bit, float64(going)*v)
			t.local(2*float64(going)*v, 2*float64(going*n)*v)
			t.peers(2, 2*n)
		}
		t.local(2*float64(n)*v, 2*float64(n*n)*v)
	case Linear:
		t.add((n+linearAtOnce-2)/linearAtOnce, 0, 0, v)
		t.messages(n-1, n*(n-1), v)
		t.toAll(n, v)
	default:
		t.add(n-1, 1, n, v)
		t.toAll(n, v)
	}
}

func (t *tally) reduceScatter(a Algorithm, n int) {
	v := t.vector
	t.local(float64(n-1)*v, float64(n*(n-1))*v)
	switch a {
	case Halving:
		t.local(float64(n+1)*v, float64(n*(n+1))*v)
		for part := n / 2; part > 0; part /= 2 {
			t.round(n, n/2/part, float64(part)*v)
			t.peers(1, n)
		}
	case Linear:
		t.add(1, n-1, n*(n-1), v)
		t.toAll(n, v)
		t.local(v, float64(n)*v)
	case Ring:
		t.add(n-1, 1, n, v)
		t.peers(2, 2*n)
	default:
		t.add(n-1, 1, n, v)
		t.toAll(n, v)
	}
}

// ceilLog returns the binary logarithm of n, rounded up.
func ceilLog(n int) int { return floorLog(2*n - 1) }
