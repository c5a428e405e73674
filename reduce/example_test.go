package reduce_test

import (
	"fmt"

	"github.com/tributary-fabric/tributary/reduce"
)

// A switch with three children adds what they sent, in the order of the
// children.
func ExampleKernelOf() {
	a, b, c := []float32{1, 2, 3}, []float32{10, 20, 30}, []float32{0.5, 0.25, 0.125}
	kernel, err := reduce.KernelOf(reduce.Sum, reduce.TypeOf[float32]())
	if err != nil {
		fmt.Println(err)
		return
	}
	in := make([][]byte, 3)
	for j, v := range [][]float32{a, b, c} {
		in[j] = make([]byte, 4*len(v))
		reduce.Put(in[j], v)
	}
	kernel(in[0], in) // the result may take the place of a vector
	reduce.Get(a, in[0])
	fmt.Println(a)
	// Output: [11.5 22.25 33.125]
}

// Where memory has the order of vectors, slices are reduced where they lie.
func ExampleBytes() {
	a, b := []int64{1, -5}, []int64{2, 7}
	if !reduce.LittleEndian() {
		fmt.Println("[1 -5]")
		return // the way there is Put and Get
	}
	kernel, err := reduce.KernelOf(reduce.Min, reduce.Int64)
	if err != nil {
		fmt.Println(err)
		return
	}
	kernel(reduce.Bytes(a), [][]byte{reduce.Bytes(a), reduce.Bytes(b)})
	fmt.Println(a)
	// Output: [1 -5]
}

// Two members sum float32 by way of integers, as switches do that add nothing
// else. The smaller of the exponents gives way, and with it the last bits.
func ExampleSumBlocks() {
	in, exponents := make([][]byte, 2), make([]int8, 2)
	for rank, v := range [][]float32{{1, -0.375}, {0.5, 1e-12}} {
		in[rank] = make([]byte, 4*len(v))
		reduce.Put(in[rank], v)
		exponents[rank] = reduce.EncodeBlock(in[rank], in[rank], 2)
	}
	fmt.Println(exponents)
	exponent := reduce.SumBlocks(in[0], in, exponents)
	reduce.DecodeBlock(in[0], in[0], exponent)
	sum := make([]float32, 2)
	reduce.Get(sum, in[0])
	fmt.Println(exponent, sum)
	// Output:
	// [-29 -30]
	// -29 [1.5 -0.375]
}

// Which rank has the smallest value? Of two, the lower one.
func ExampleLocated() {
	in := make([][]byte, 3)
	for rank, load := range []float64{0.7, 0.2, 0.2} {
		in[rank] = make([]byte, reduce.LocatedSize)
		reduce.PutLocated(in[rank], []reduce.Located[float64]{{Value: load, Location: int64(rank)}})
	}
	kernel, err := reduce.KernelOf(reduce.MinLoc, reduce.Float64)
	if err != nil {
		fmt.Println(err)
		return
	}
	least := make([]reduce.Located[float64], 1)
	kernel(in[0], in)
	reduce.GetLocated(least, in[0])
	fmt.Printf("rank %d has %v\n", least[0].Location, least[0].Value)
	// Output: rank 1 has 0.2
}

func ExampleParseFunction() {
	f, err := reduce.ParseFunction("maxloc")
	fmt.Println(f, f.Located(), err)
	_, err = reduce.ParseType("float8")
	fmt.Println(err)
	// Output:
	// maxloc true <nil>
	// parse type "float8": unknown name (one of int32, int64, uint32, uint64, float32, float64, float16, bfloat16, block32)
}

func ExampleDefined() {
	fmt.Println(reduce.Defined(reduce.BXor, reduce.Uint32), reduce.Defined(reduce.BXor, reduce.Float32))
	// Output: true false
}

// Sixteen bits round to the nearest value, ties to even.
func ExampleF16From() {
	for _, x := range []float32{1, 2049, 2051, 70000} {
		fmt.Println(reduce.F16From(x).Float32())
	}
	// Output:
	// 1
	// 2048
	// 2052
	// +Inf
}
