package schedule

import "github.com/tributary-fabric/tributary/pathsel"

// EagerBytes is the size up to which a message is sent before its receive is known: that of
// package rail. Above it, it waits for that.
const EagerBytes = 16 << 10

const mebibyte = 1 << 20

// WorkOf returns what a call needs by an algorithm that can do it. It depends on nothing that
// members may not give alike.
func WorkOf(c *Call, a Algorithm) pathsel.Work {
	w := tallyOf(c)
	if n := c.Size; n > 1 {
		w.by(c.Collective, a, n)
	}
	w.Work[pathsel.Start] = 1
	return w.Work
}

// HasTree reports whether a collective can be done on the communicator's tree.
func HasTree(of Collective) bool {
	return of == Allreduce || of == Reduce || of == Broadcast || of == Barrier
}

// TreeWork returns what a call needs on the communicator's tree: of hosts, or of switches.
func TreeWork(c *Call, k pathsel.Kind) pathsel.Work {
	w := tallyOf(c)
	w.Work[pathsel.Start] = 1
	n, ways := float64(c.Size), 2.0 // up and down
	if c.Collective == Reduce || c.Collective == Broadcast {
		ways = 1
	}
	mib := w.vector / mebibyte
	w.Work[pathsel.Step], w.Work[pathsel.Traffic] = ways, ways*n*mib
	w.Work[pathsel.Link], w.Work[pathsel.Peer] = mib, n
	if k == pathsel.ByHostTree {
		rounds := float64(ceilLog(c.Size))
		w.Work[pathsel.Step], w.Work[pathsel.Traffic] = ways*rounds, ways*(n-1)*mib
		w.Work[pathsel.Link], w.Work[pathsel.Peer] = rounds*mib, rounds
	}
	return w.Work
}

// tally adds up what a call needs.
type tally struct {
	pathsel.Work
	vector  float64 // bytes: of Allgather, Alltoall, Gather, Scatter and ReduceScatter those of a piece
	segment float64
	ordered bool // and not from rank 0
}

func tallyOf(c *Call) tally {
	t := tally{vector: float64(c.Count) * float64(c.Width), segment: float64(max(c.Width, c.Segment)), ordered: c.Ordered && c.Root != 0}
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
	s, o, a := float64(steps), float64(steps*own), float64(steps*all)
	t.Work[pathsel.Step] += s
	t.Work[pathsel.Message] += o
	t.Work[pathsel.EachMessage] += a
	if size > EagerBytes {
		t.Work[pathsel.Rendezvous] += s
		t.Work[pathsel.EachRendezvous] += a
	}
	t.Work[pathsel.Link] += o * size / mebibyte
	t.Work[pathsel.Traffic] += a * size / mebibyte
	t.burst(float64(own) * size)
}

func (t *tally) burst(bytes float64) {
	t.Work[pathsel.Burst] = max(t.Work[pathsel.Burst], bytes/mebibyte)
}

func (t *tally) local(bytes float64) { t.Work[pathsel.Local] += bytes / mebibyte }

func (t *tally) peers(n int) { t.Work[pathsel.Peer] += float64(n) }

// by adds what an algorithm does in a group of n.
func (t *tally) by(of Collective, a Algorithm, n int) {
	v, k := t.vector, ceilLog(n)
	switch of {
	case Allreduce, Barrier:
		t.allreduce(a, n)
	case Reduce, Broadcast:
		t.oneWay(of, a, n)
	case Gather, Gatherv, Scatter, Scatterv:
		if t.peers(n - 1); a == Linear {
			t.add(1, n-1, n-1, v)
			return
		}
		t.Work[pathsel.Peer] = float64(k)
		t.subtrees(n, v)
		t.local(float64(n) * v)
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
			t.local(v)
			return
		}
		for bit := 1; bit < n; bit *= 2 {
			t.add(1, 1, n-bit, v)
			t.peers(2)
			t.local(v)
		}
	}
}

func (t *tally) allreduce(a Algorithm, n int) {
	v, k := t.vector, ceilLog(n)
	switch a {
	case Dissemination:
		t.add(k, 1, n, 0)
		t.peers(2 * k)
		return
	case Ring:
		t.add(2*(n-1), 1, n, v/float64(n))
		t.local(v)
		t.peers(2)
		return
	case Linear:
		t.add(2, n-1, n-1, v)
		t.local(float64(n-1) * v)
		t.peers(n - 1)
		return
	case Binomial:
		t.tree(2, n, v)
		t.local(float64(k) * v)
		t.peers(k)
		return
	}
	power := floorPower(n)
	t.peers(floorLog(power))
	if extra := n - power; extra > 0 {
		t.add(2, 1, extra, v)
		t.local(v)
		t.peers(1)
	}
	for part := v / 2; power > 1; power, part = power/2, part/2 {
		if a == Rabenseifner {
			t.add(2, 1, floorPower(n), part)
			t.local(part)
		} else {
			t.add(1, 1, floorPower(n), v)
			t.local(v)
		}
	}
}

// oneWay is of reduce and broadcast.
func (t *tally) oneWay(of Collective, a Algorithm, n int) {
	v, k := t.vector, ceilLog(n)
	switch a {
	case Binomial:
		t.tree(1, n, v)
		if t.peers(k); of == Reduce {
			t.local(float64(k) * v)
			if t.ordered {
				t.add(1, 1, 1, v)
			}
		}
	case Chain:
		t.chain(n)
	case RingGather:
		t.add(n-1, 1, n, v/float64(n))
		t.add(1, n-1, n-1, v/float64(n))
		t.local(v)
		t.peers(n)
	case ScatterAllgather:
		block := v / float64(n)
		t.subtrees(n, block)
		t.add(n-1, 1, n-k, block) // about k blocks at a member are there already
		t.peers(k + 2)
	}
}

// tree is of vectors that go up a binomial tree, or down, or both.
func (t *tally) tree(ways, n int, size float64) {
	t.add(ways*ceilLog(n), 1, 0, size)
	all := float64(ways * (n - 1))
	t.Work[pathsel.EachMessage] += all
	t.Work[pathsel.Traffic] += all * size / mebibyte
	if size > EagerBytes {
		t.Work[pathsel.EachRendezvous] += all
	}
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
		t.Work[pathsel.EachMessage]++
		t.Work[pathsel.Traffic] += last / mebibyte
		if last > EagerBytes {
			t.Work[pathsel.EachRendezvous]++
		}
	}
}

// chain is of segments that go from member to member.
func (t *tally) chain(n int) {
	segments := int((t.vector + t.segment - 1) / t.segment)
	if segments == 0 {
		return
	}
	size := t.vector / float64(segments)
	t.add(n+segments-2, 1, 0, 0)
	all := float64((n - 1) * segments)
	t.Work[pathsel.Message] = float64(segments)
	t.Work[pathsel.EachMessage] += all
	t.Work[pathsel.Link] += t.vector / mebibyte
	t.burst(size)
	t.Work[pathsel.Traffic] += all * size / mebibyte
	if size > EagerBytes {
		t.Work[pathsel.Rendezvous] += float64(n + segments - 2)
		t.Work[pathsel.EachRendezvous] += all
	}
	t.peers(2)
}

func (t *tally) allgather(a Algorithm, n int) {
	v := t.vector
	switch a {
	case Ring:
		t.add(n-1, 1, n, v)
		t.peers(2)
	case Linear:
		t.add(1, n-1, n*(n-1), v)
		t.peers(2 * (n - 1))
	default:
		each := 1
		if a == Bruck {
			t.local(float64(n) * v)
			each = 2
		}
		for have := 1; have < n; have *= 2 {
			t.add(1, 1, n, float64(min(have, n-have))*v)
			t.peers(each)
		}
	}
	t.local(v)
}

func (t *tally) alltoall(a Algorithm, n int) {
	v := t.vector
	t.local(v)
	switch a {
	case Bruck:
		for bit := 1; bit < n; bit *= 2 {
			going := n / (2 * bit) * bit // pieces whose way has the bit
			going += max(0, n%(2*bit)-bit)
			t.add(1, 1, n, float64(going)*v)
			t.local(2 * float64(going) * v)
			t.peers(2)
		}
		t.local(2 * float64(n) * v)
	case Linear:
		steps := (n + linearAtOnce - 2) / linearAtOnce
		t.add(n-1, 1, n, v)
		t.Work[pathsel.Step] = float64(steps)
		t.burst(float64(min(n-1, linearAtOnce)) * v)
		t.Work[pathsel.Rendezvous] = min(t.Work[pathsel.Rendezvous], float64(steps))
		t.peers(2 * (n - 1))
	default:
		t.add(n-1, 1, n, v)
		t.peers(2 * (n - 1))
	}
}

func (t *tally) reduceScatter(a Algorithm, n int) {
	v := t.vector
	t.local(float64(n-1) * v)
	switch a {
	case Halving:
		t.local(float64(n+1) * v)
		for part := n / 2; part > 0; part /= 2 {
			t.add(1, 1, n, float64(part)*v)
			t.peers(1)
		}
	case Linear:
		t.add(1, n-1, n*(n-1), v)
		t.peers(2 * (n - 1))
	case Ring:
		t.add(n-1, 1, n, v)
		t.peers(2)
	default:
		t.add(n-1, 1, n, v)
		t.peers(2 * (n - 1))
	}
}

// ceilLog returns the binary logarithm of n, rounded up.
func ceilLog(n int) int { return floorLog(2*n - 1) }
