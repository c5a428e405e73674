package scaling

import (
	"errors"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// point is a time that was measured: of a call with so many packets and bytes, in ns.
type point struct {
	packets, bytes int
	took           float64
}

var errFit = errors.New("too few measurements to distinguish calls, packets and bytes")

// fit returns the cost whose relative errors have the least sum of squares, without negative parts.
func fit(all []point) (Cost, error) {
	columns := []int{0, 1, 2}
	for {
		if len(all) < len(columns) {
			return Cost{}, errFit
		}
		a, b := mat.NewDense(len(all), len(columns), nil), mat.NewVecDense(len(all), nil)
		for i, p := range all {
			for j, column := range columns {
				a.Set(i, j, [...]float64{1, float64(p.packets), float64(p.bytes)}[column]/p.took)
			}
			b.SetVec(i, 1)
		}
		var x mat.VecDense
		if err := x.SolveVec(a, b); err != nil {
			var nearly mat.Condition
			if !errors.As(err, &nearly) || math.IsInf(float64(nearly), 1) {
				return Cost{}, errors.Join(errFit, err)
			}
		}
		var parts [3]float64
		worst := -1
		for j, column := range columns {
			parts[column] = x.AtVec(j)
			if parts[column] < 0 && (worst < 0 || parts[column] < parts[columns[worst]]) {
				worst = j
			}
		}
		if worst < 0 {
			return Cost{parts[0], parts[1], parts[2]}, nil
		}
		columns = slices.Delete(columns, worst, worst+1)
	}
}

// coldBytes is memory that no cache of a processor holds next to others.
const coldBytes = 16 << 20

// quartile returns what a quarter of the values are at most.
func quartile(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/4]
}

// mean returns the points of several workers as one's.
func mean(all [][]point) []point {
	m := slices.Clone(all[0])
	for i := range m {
		for _, other := range all[1:] {
			m[i].took += other[i].took
		}
		m[i].took /= float64(len(all))
	}
	return m
}

// together runs f several times at once.
func together[T any](n int, f func() (T, error)) ([]T, error) {
	all, errs := make([]T, n), make([]error, n)
	var w sync.WaitGroup
	for i := range n {
		w.Go(func() { all[i], errs[i] = f() })
	}
	w.Wait()
	return all, errors.Join(errs...)
}

// touch has the caches hold other memory.
func touch(cache []byte) {
	for i := 0; i < len(cache); i += 64 {
		cache[i]++
	}
}

const coreRounds = 400

// coreTimes are what a worker has measured of cores.
type coreTimes struct {
	steps, own []point
	reduce     float64
}

// measureCores times steps of a switch's core with four children, and of a member's, on all
// processors at once.
func (c *Costs) measureCores() error {
	all, err := together(runtime.NumCPU(), func() (t coreTimes, err error) {
		for _, size := range []int{8, 480, 1432} {
			for _, n := range []int{1, 4, 16, wire.BatchChunks} {
				p, err := aggregateStep(n, size)
				if err != nil {
					return t, err
				}
				t.steps = append(t.steps, p)
				if p, err = sessionStep(n, size); err != nil {
					return t, err
				}
				t.own = append(t.own, p)
			}
		}
		t.reduce, err = adds()
		return t, err
	})
	if err != nil {
		return err
	}
	var steps, own [][]point
	for _, t := range all {
		steps, own = append(steps, t.steps), append(own, t.own)
		c.Reduce += t.reduce / float64(len(all))
	}
	if c.Aggregate, err = fit(mean(steps)); err != nil {
		return err
	}
	c.Session, err = fit(mean(own))
	return err
}

const (
	benchWindow   = 256
	openingRounds = 8 // until the congestion window is as large
	benchChildren = 4
)

func child(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1)
}

// newBench returns the core of a root with so many children.
func newBench(children, size int) *switchreduce.Core {
	c := &switchreduce.Config{Group: group, Epoch: epoch, Window: benchWindow, ChunkBytes: max(size, switchreduce.MinChunk)}
	for i := range children {
		c.Children = append(c.Children, switchreduce.Child{Addr: child(i), Lowest: uint32(i)})
	}
	core := switchreduce.New()
	var out switchreduce.Output
	core.Step(0, []switchreduce.Input{{Kind: switchreduce.Install, Config: c}}, &out)
	return core
}

// aggregateStep times a step that takes a batch from each child and answers all of them.
func aggregateStep(n, size int) (p point, err error) {
	agg := newBench(benchChildren, size)
	packet := wire.HeaderSize + size
	h := wire.Header{Type: wire.Contribution, Flags: wire.Sink, Group: group, Epoch: epoch, Signature: wire.Signature{
		Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Float32, Elements: uint32(size / 4), ChunkElements: uint16(size / 4),
	}}
	out := switchreduce.Output{TakesBatches: true}
	var times []float64
	var next uint32
	batches := make([][]byte, benchChildren)
	for i := range batches {
		batches[i] = make([]byte, n*packet)
	}
	for round := range coreRounds {
		in := make([]switchreduce.Input, 0, benchChildren)
		for i, t := range batches {
			for k := range n {
				h.Child, h.Lowest, h.Chunk = uint16(i), uint32(i), next+uint32(k)
				h.Put(t[k*packet:])
			}
			in = append(in, switchreduce.Input{Kind: switchreduce.Packet, From: child(i), Packet: t, Size: packet})
		}
		next += uint32(n)
		out.Reset()
		begun := time.Now()
		agg.Step(core.Time(round), in, &out)
		times = append(times, float64(time.Since(begun)))
		if len(out.Batches)+len(out.Sends) < benchChildren {
			return p, errors.New("the switch's core did not answer")
		}
	}
	return point{benchChildren * n, benchChildren * n * packet, quartile(times)}, nil
}

// sessionStep times a step that takes a batch of results and sends as many contributions, of a
// vector that no cache holds.
func sessionStep(n, size int) (p point, err error) {
	m, err := session.New(session.Config{ChunkBytes: max(size, switchreduce.MinChunk), Window: benchWindow}, 0)
	if err != nil {
		return p, err
	}
	chunk := max(size, switchreduce.MinChunk)
	agg := newBench(1, chunk)
	out, answers := session.Output{TakesBatches: true}, switchreduce.Output{TakesBatches: true}
	if err := m.Enter(0, session.Link{Group: group, Epoch: epoch, Window: benchWindow, Parent: child(9)}, session.Decision{}, &out); err != nil {
		return p, err
	}
	vector, result := make([]byte, coldBytes), make([]byte, coldBytes)
	if err := m.Start(session.Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Float32, Elements: coldBytes / 4, In: vector, Out: result}); err != nil {
		return p, err
	}
	now := core.Time(0)
	m.Step(now, nil, &out)
	var waiting [][]byte // results, in the order of their numbers
	var times []float64
	for round := 0; len(times) < coreRounds; round++ {
		for i := range out.Sends {
			waiting = append(waiting, answersTo(agg, &out.Sends[i], &answers)...)
		}
		take := n
		if round < openingRounds {
			take = len(waiting)
		}
		if len(waiting) < max(take, 1) {
			break
		}
		batch := slices.Concat(waiting[:take]...)
		waiting = waiting[take:]
		in := []session.Input{{From: child(9), Packet: batch, Size: wire.HeaderSize + chunk}}
		out.Reset()
		now = now.Add(time.Microsecond)
		begun := time.Now()
		m.Step(now, in, &out)
		if round >= openingRounds {
			times = append(times, float64(time.Since(begun)))
		}
	}
	if len(times) < 100 {
		return p, errors.New("the member's core did not go on")
	}
	return point{2 * n, 2 * n * (wire.HeaderSize + chunk), quartile(times)}, nil
}

// answersTo returns the results of what a member sends.
func answersTo(agg *switchreduce.Core, s *session.Send, out *switchreduce.Output) (all [][]byte) {
	heads, rest, size := s.Heads, s.Body, s.Size
	if size == 0 {
		heads, size = s.Head[:], len(s.Body)
	}
	for ; len(rest) > 0; heads = heads[wire.HeaderSize:] {
		k := min(size, len(rest))
		packet := slices.Concat(heads[:wire.HeaderSize], rest[:k])
		rest = rest[k:]
		out.Reset()
		agg.Step(0, []switchreduce.Input{{Kind: switchreduce.Packet, From: child(0), Packet: packet}}, out)
		for i := range out.Sends {
			all = append(all, slices.Concat(out.Sends[i].Head[:], out.Sends[i].Body))
		}
		for i := range out.Batches {
			out.Batches[i].Address()
			all = append(all, slices.Clone(out.Batches[i].Packets))
		}
	}
	return all
}

// adds returns the time of a byte that is added to a vector.
func adds() (float64, error) {
	kernel, err := reduce.KernelOf(reduce.Sum, reduce.Float32)
	if err != nil {
		return 0, err
	}
	a, b := make([]byte, coldBytes), make([]byte, coldBytes)
	var times []float64
	for range 20 {
		begun := time.Now()
		kernel(a, [][]byte{a, b})
		times = append(times, float64(time.Since(begun)))
	}
	return quartile(times) / coldBytes, nil
}
