package conformance

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// family is a collective.
type family[T reduce.Element] struct {
	name         string
	reduces      bool
	isRooted     bool
	neverInPlace bool
	do           func(*trial[T]) (hostlib.Outcome, error)
}

func families[T reduce.Element]() []family[T] {
	return []family[T]{
		{"allreduce", true, false, false, allreduce[T]},
		{"reduce", true, true, false, reduceTo[T]},
		{"broadcast", false, true, true, broadcast[T]},
		{"barrier", false, false, true, barrier[T]},
		{"gather", false, true, false, gather[T]},
		{"gatherv", false, true, false, gatherv[T]},
		{"scatter", false, true, false, scatter[T]},
		{"scatterv", false, true, false, scatterv[T]},
		{"allgather", false, false, false, allgather[T]},
		{"allgatherv", false, false, false, allgatherv[T]},
		{"alltoall", false, false, false, alltoall[T]},
		{"alltoallv", false, false, false, alltoallv[T]},
		{"reduce-scatter", true, false, false, reduceScatter[T]},
		{"reduce-scatterv", true, false, false, reduceScatterv[T]},
		{"scan", true, false, false, scan[T]},
		{"exscan", true, false, false, exscan[T]},
	}
}

// trial is a case with elements of T.
type trial[T reduce.Element] struct {
	*run
	Case
}

func (x *trial[T]) rank() int    { return x.comm.Rank() }
func (x *trial[T]) size() int    { return x.comm.Size() }
func (x *trial[T]) isRoot() bool { return x.comm.Rank() == x.Root }

// vector returns what a rank gives: small whole numbers, of which sums and products have the same
// bits in any order; products are of ones and a two.
func (x *trial[T]) vector(rank, n int) []T {
	v := make([]T, n)
	for i := range v {
		h := (x.number*31+uint64(rank))*0x9e3779b97f4a7c15 + uint64(i)*0xff51afd7ed558ccd
		h ^= h >> 29
		k := int(h % 4)
		if x.Function == reduce.Product {
			k = 1
			if rank == i%x.size() {
				k = 2
			}
		}
		v[i] = number[T](k)
	}
	return v
}

// number returns a small number as an element.
func number[T reduce.Element](k int) T {
	var v T
	switch p := any(&v).(type) {
	case *reduce.F16:
		*p = reduce.F16From(float32(k))
	case *reduce.BF16:
		*p = reduce.BF16From(float32(k))
	case *int32:
		*p = int32(k)
	case *int64:
		*p = int64(k)
	case *uint32:
		*p = uint32(k)
	case *uint64:
		*p = uint64(k)
	case *float32:
		*p = float32(k)
	case *float64:
		*p = float64(k)
	}
	return v
}

// reduced returns the reduction of the first ranks' vectors.
func (x *trial[T]) reduced(ranks, n int) ([]T, error) {
	k, err := reduce.KernelOf(x.Function, reduce.TypeOf[T]())
	if err != nil {
		return nil, err
	}
	in := make([][]byte, ranks)
	for rank := range ranks {
		in[rank] = make([]byte, n*reduce.TypeOf[T]().Size())
		reduce.Put(in[rank], x.vector(rank, n))
	}
	out := make([]byte, n*reduce.TypeOf[T]().Size())
	k(out, in)
	result := make([]T, n)
	reduce.Get(result, out)
	return result, nil
}

// spoilt returns memory for a result, with something else in it.
func spoilt[T reduce.Element](n int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = number[T](77)
	}
	return v
}

// check compares.
func check[T reduce.Element](what string, got, want []T) error {
	if slices.Equal(got, want) {
		return nil
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Errorf("%w: %s: element %d of %d is %v, want %v", ErrWrong, what, i, len(want), got[min(i, len(got)-1)], want[i])
		}
	}
	return fmt.Errorf("%w: %s: %d elements, want %d", ErrWrong, what, len(got), len(want))
}

// finish checks a result, and that an input has stayed as it was.
func (x *trial[T]) finish(o hostlib.Outcome, err error, got, want, in, before []T) (hostlib.Outcome, error) {
	if err == nil {
		err = check("the result", got, want)
	}
	if err == nil && !x.InPlace {
		err = check("the input", in, before)
	}
	return o, err
}

// located returns the vector of a rank with the places of its elements among all.
func (x *trial[T]) located(rank int) []reduce.Located[T] {
	v := x.vector(rank, x.Count)
	all := make([]reduce.Located[T], len(v))
	for i := range v {
		all[i] = reduce.Located[T]{Value: v[i], Location: int64(rank*len(v) + i)}
	}
	return all
}

// allLocated returns the reduction of all ranks' elements with their places.
func (x *trial[T]) allLocated() ([]reduce.Located[T], error) {
	k, err := reduce.KernelOf(x.Function, reduce.TypeOf[T]())
	if err != nil {
		return nil, err
	}
	in := make([][]byte, x.size())
	for rank := range in {
		in[rank] = make([]byte, x.Count*reduce.LocatedSize)
		reduce.PutLocated(in[rank], x.located(rank))
	}
	out, result := make([]byte, x.Count*reduce.LocatedSize), make([]reduce.Located[T], x.Count)
	k(out, in)
	reduce.GetLocated(result, out)
	return result, nil
}

// reduceLocated is allreduce and reduce of elements with their places.
func reduceLocated[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	want, err := x.allLocated()
	if err != nil {
		return hostlib.Outcome{}, err
	}
	in := x.located(x.rank())
	out := in
	if !x.InPlace {
		out = make([]reduce.Located[T], x.Count)
	}
	var o hostlib.Outcome
	if x.Collective == "allreduce" {
		o, err = hostlib.AllreduceLocated(x.ctx, x.comm, x.Function, in, out)
	} else {
		o, err = hostlib.ReduceLocated(x.ctx, x.comm, x.Function, x.Root, in, out)
	}
	if err == nil && (x.Collective == "allreduce" || x.isRoot()) && !slices.Equal(out, want) {
		err = fmt.Errorf("%w: %v, want %v", ErrWrong, out, want)
	}
	return o, err
}

// sameBits sums random numbers, and has all members compare what they got.
func sameBits[T reduce.Element](x *trial[T]) error {
	v := make([]T, x.Count)
	random := rand.New(rand.NewPCG(x.number, uint64(x.rank())))
	for i := range v {
		f := (random.Float64() - 0.5) * math.Exp2(float64(random.IntN(20)))
		switch p := any(&v[i]).(type) {
		case *reduce.F16:
			*p = reduce.F16From(float32(f) / 1024)
		case *reduce.BF16:
			*p = reduce.BF16From(float32(f))
		case *float32:
			*p = float32(f)
		case *float64:
			*p = f
		default:
			return nil
		}
	}
	if _, err := hostlib.Allreduce(x.ctx, x.comm, reduce.Sum, v, v); err != nil {
		return err
	}
	b := make([]byte, len(v)*reduce.TypeOf[T]().Size())
	reduce.Put(b, v)
	sum := fnv.New64a()
	_, _ = sum.Write(b) // it never fails
	all := make([]uint64, x.size())
	if _, err := hostlib.Allgather(x.ctx, x.comm, []uint64{sum.Sum64()}, all); err != nil {
		return err
	}
	for rank, h := range all {
		if h != all[0] {
			return fmt.Errorf("%w: ranks 0 and %d have other bits of a sum of random numbers", ErrWrong, rank)
		}
	}
	return nil
}

func allreduce[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	if x.Function.Located() {
		return reduceLocated(x)
	}
	if x.Function == reduce.Sum {
		if err := sameBits(x); err != nil {
			return hostlib.Outcome{}, err
		}
	}
	want, err := x.reduced(x.size(), x.Count)
	if err != nil {
		return hostlib.Outcome{}, err
	}
	in := x.vector(x.rank(), x.Count)
	out := in
	if !x.InPlace {
		out = spoilt[T](x.Count)
	}
	before := slices.Clone(in)
	o, err := hostlib.Allreduce(x.ctx, x.comm, x.Function, in, out)
	return x.finish(o, err, out, want, in, before)
}

func reduceTo[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	if x.Function.Located() {
		return reduceLocated(x)
	}
	want, err := x.reduced(x.size(), x.Count)
	if err != nil {
		return hostlib.Outcome{}, err
	}
	in := x.vector(x.rank(), x.Count)
	before := slices.Clone(in)
	if !x.isRoot() {
		o, err := hostlib.Reduce(x.ctx, x.comm, x.Function, x.Root, in, nil)
		return x.finish(o, err, nil, nil, in, before)
	}
	out := in
	if !x.InPlace {
		out = spoilt[T](x.Count)
	}
	o, err := hostlib.Reduce(x.ctx, x.comm, x.Function, x.Root, in, out)
	return x.finish(o, err, out, want, in, before)
}

func broadcast[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	v, want := spoilt[T](x.Count), x.vector(x.Root, x.Count)
	if x.isRoot() {
		v = x.vector(x.Root, x.Count)
	}
	o, err := hostlib.Broadcast(x.ctx, x.comm, x.Root, v)
	return x.finish(o, err, v, want, nil, nil)
}

func barrier[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	return hostlib.Barrier(x.ctx, x.comm)
}

// pieces returns what the ranks give, of these lengths.
func (x *trial[T]) pieces(counts []int) [][]T {
	all := make([][]T, x.size())
	for rank := range all {
		all[rank] = x.vector(rank, counts[rank])
	}
	return all
}

// even returns equal lengths; uneven others, some of which are 0.
func (x *trial[T]) even() []int { return slices.Repeat([]int{x.Count}, x.size()) }
func (x *trial[T]) uneven() []int {
	counts := make([]int, x.size())
	for rank := range counts {
		counts[rank] = x.Count * (rank % 3) / 2
	}
	return counts
}

func blanks[T reduce.Element](counts []int) [][]T {
	all := make([][]T, len(counts))
	for i, n := range counts {
		all[i] = spoilt[T](n)
	}
	return all
}

func gather[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	all := x.pieces(x.even())
	in := slices.Clone(all[x.rank()])
	if !x.isRoot() {
		o, err := hostlib.Gather(x.ctx, x.comm, x.Root, in, nil)
		return x.finish(o, err, nil, nil, in, all[x.rank()])
	}
	out := spoilt[T](x.Count * x.size())
	if x.InPlace {
		in = out[x.rank()*x.Count : (x.rank()+1)*x.Count]
		copy(in, all[x.rank()])
	}
	o, err := hostlib.Gather(x.ctx, x.comm, x.Root, in, out)
	return x.finish(o, err, out, slices.Concat(all...), in, all[x.rank()])
}

func gatherv[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	all := x.pieces(x.uneven())
	in := slices.Clone(all[x.rank()])
	if !x.isRoot() {
		o, err := hostlib.Gatherv(x.ctx, x.comm, x.Root, in, nil)
		return x.finish(o, err, nil, nil, in, all[x.rank()])
	}
	out := blanks[T](x.uneven())
	if x.InPlace {
		out[x.rank()] = in
	}
	o, err := hostlib.Gatherv(x.ctx, x.comm, x.Root, in, out)
	return x.finish(o, err, slices.Concat(out...), slices.Concat(all...), in, all[x.rank()])
}

func scatter[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	all := x.pieces(x.even())
	out := spoilt[T](x.Count)
	var in []T
	if x.isRoot() {
		in = slices.Concat(all...)
		if x.InPlace {
			out = in[x.rank()*x.Count : (x.rank()+1)*x.Count]
		}
	}
	before := slices.Clone(in)
	o, err := hostlib.Scatter(x.ctx, x.comm, x.Root, in, out)
	return x.finish(o, err, out, all[x.rank()], in, before)
}

func scatterv[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	all := x.pieces(x.uneven())
	out := spoilt[T](len(all[x.rank()]))
	var in [][]T
	if x.isRoot() {
		in = x.pieces(x.uneven())
		if x.InPlace {
			out = in[x.rank()]
		}
	}
	o, err := hostlib.Scatterv(x.ctx, x.comm, x.Root, in, out)
	if err == nil && x.isRoot() {
		err = check("the input", slices.Concat(in...), slices.Concat(all...))
	}
	return x.finish(o, err, out, all[x.rank()], nil, nil)
}

func allgather[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	all := x.pieces(x.even())
	in, out := slices.Clone(all[x.rank()]), spoilt[T](x.Count*x.size())
	if x.InPlace {
		in = out[x.rank()*x.Count : (x.rank()+1)*x.Count]
		copy(in, all[x.rank()])
	}
	o, err := hostlib.Allgather(x.ctx, x.comm, in, out)
	return x.finish(o, err, out, slices.Concat(all...), in, all[x.rank()])
}

func allgatherv[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	all := x.pieces(x.uneven())
	in, out := slices.Clone(all[x.rank()]), blanks[T](x.uneven())
	if x.InPlace {
		out[x.rank()] = in
	}
	o, err := hostlib.Allgatherv(x.ctx, x.comm, in, out)
	return x.finish(o, err, slices.Concat(out...), slices.Concat(all...), in, all[x.rank()])
}

// given returns what one rank gives another.
func (x *trial[T]) given(from, to, n int) []T { return x.vector(from*x.size()+to, n) }

func alltoall[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	var in, want []T
	for i := range x.size() {
		in = append(in, x.given(x.rank(), i, x.Count)...)
		want = append(want, x.given(i, x.rank(), x.Count)...)
	}
	before, out := slices.Clone(in), in
	if !x.InPlace {
		out = spoilt[T](len(in))
	}
	o, err := hostlib.Alltoall(x.ctx, x.comm, in, out)
	return x.finish(o, err, out, want, in, before)
}

func alltoallv[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	between := func(from, to int) int {
		if x.InPlace {
			return x.Count * ((from + to) % 3) / 2
		}
		return x.Count * ((2*from + to) % 4) / 2
	}
	in, want, out := make([][]T, x.size()), make([][]T, x.size()), make([][]T, x.size())
	for i := range x.size() {
		in[i] = x.given(x.rank(), i, between(x.rank(), i))
		want[i] = x.given(i, x.rank(), between(i, x.rank()))
		if out[i] = in[i]; !x.InPlace {
			out[i] = spoilt[T](len(want[i]))
		}
	}
	before := slices.Concat(in...)
	o, err := hostlib.Alltoallv(x.ctx, x.comm, in, out)
	return x.finish(o, err, slices.Concat(out...), slices.Concat(want...), slices.Concat(in...), before)
}

// scattered reduces, and gives each rank its part.
func (x *trial[T]) scattered(counts []int, do func(in, out []T) (hostlib.Outcome, error)) (hostlib.Outcome, error) {
	whole, from := 0, 0
	for rank, n := range counts {
		if rank == x.rank() {
			from = whole
		}
		whole += n
	}
	all, err := x.reduced(x.size(), whole)
	if err != nil {
		return hostlib.Outcome{}, err
	}
	in := x.vector(x.rank(), whole)
	before, out := slices.Clone(in), spoilt[T](counts[x.rank()])
	if x.InPlace {
		out = in[from : from+len(out)]
	}
	o, err := do(in, out)
	return x.finish(o, err, out, all[from:from+len(out)], in, before)
}

func reduceScatter[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	return x.scattered(x.even(), func(in, out []T) (hostlib.Outcome, error) {
		return hostlib.ReduceScatter(x.ctx, x.comm, x.Function, in, out)
	})
}

func reduceScatterv[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	return x.scattered(x.uneven(), func(in, out []T) (hostlib.Outcome, error) {
		return hostlib.ReduceScatterv(x.ctx, x.comm, x.Function, in, out, x.uneven())
	})
}

func scan[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	want, err := x.reduced(x.rank()+1, x.Count)
	if err != nil {
		return hostlib.Outcome{}, err
	}
	in := x.vector(x.rank(), x.Count)
	before, out := slices.Clone(in), in
	if !x.InPlace {
		out = spoilt[T](x.Count)
	}
	o, err := hostlib.Scan(x.ctx, x.comm, x.Function, in, out)
	return x.finish(o, err, out, want, in, before)
}

func exscan[T reduce.Element](x *trial[T]) (hostlib.Outcome, error) {
	in := x.vector(x.rank(), x.Count)
	before, out := slices.Clone(in), in
	if !x.InPlace {
		out = spoilt[T](x.Count)
	}
	want := slices.Clone(out)
	if x.rank() > 0 {
		var err error
		if want, err = x.reduced(x.rank(), x.Count); err != nil {
			return hostlib.Outcome{}, err
		}
	}
	o, err := hostlib.Exscan(x.ctx, x.comm, x.Function, in, out)
	return x.finish(o, err, out, want, in, before)
}
