//go:build !noasm

package reduce

import "github.com/tributary-fabric/tributary/reduce/internal/asm"

// instructionSets returns those that this machine runs, the fastest first.
func instructionSets() (sets []*instructions) {
	if asm.HasAVX512() {
		sets = append(sets, &instructions{
			name:          "avx512",
			step:          4,
			passes:        avx512Passes,
			locateInteger: asm.LocateIntegerAVX512,
			locateFloat:   asm.LocateFloatAVX512,
			sumBlock32:    asm.SumBlock32AVX512,
			lanes:         16,
			narrow:        [len(typeNames)]func(dst, src *byte, steps int){Float16: asm.NarrowFloat16AVX512, BFloat16: asm.NarrowBFloat16AVX512},
			widen:         [len(typeNames)]func(dst, src *byte, steps int){Float16: asm.WidenFloat16AVX512, BFloat16: asm.WidenBFloat16AVX512},
			fixed: fixedKernels{
				largest: asm.LargestFloat32AVX512,
				mark:    [len(typeNames)]markKernel{Float32: asm.MarkFloat32AVX512, Float64: asm.MarkFloat64AVX512},
				encode:  [forms]turnKernel{asm.EncodeFloat32AsInt32AVX512, asm.EncodeFloat32AsInt64AVX512, asm.EncodeFloat64AsInt64AVX512},
				decode:  [forms]turnKernel{asm.DecodeFloat32AsInt32AVX512, asm.DecodeFloat32AsInt64AVX512, asm.DecodeFloat64AsInt64AVX512},
			},
		})
	}
	if asm.HasAVX2() {
		sets = append(sets, &instructions{
			name:          "avx2",
			step:          32,
			passes:        avx2Passes,
			locateInteger: asm.LocateIntegerAVX2,
			locateFloat:   asm.LocateFloatAVX2,
			sumBlock32:    asm.SumBlock32AVX2,
			lanes:         8,
			narrow:        [len(typeNames)]func(dst, src *byte, steps int){Float16: asm.NarrowFloat16AVX2, BFloat16: asm.NarrowBFloat16AVX2},
			widen:         [len(typeNames)]func(dst, src *byte, steps int){Float16: asm.WidenFloat16AVX2, BFloat16: asm.WidenBFloat16AVX2},
			fixed: fixedKernels{
				largest: asm.LargestFloat32AVX2,
				mark:    [len(typeNames)]markKernel{Float32: asm.MarkFloat32AVX2, Float64: asm.MarkFloat64AVX2},
				encode:  [forms]turnKernel{asm.EncodeFloat32AsInt32AVX2, asm.EncodeFloat32AsInt64AVX2, asm.EncodeFloat64AsInt64AVX2},
				decode:  [forms]turnKernel{asm.DecodeFloat32AsInt32AVX2, asm.DecodeFloat32AsInt64AVX2, asm.DecodeFloat64AsInt64AVX2},
			},
		})
	}
	return sets
}

var avx2Passes = passes{
	Sum: {
		Int32:    asm.SumInt32AVX2,
		Int64:    asm.SumInt64AVX2,
		Uint32:   asm.SumInt32AVX2,
		Uint64:   asm.SumInt64AVX2,
		Float32:  asm.SumFloat32AVX2,
		Float64:  asm.SumFloat64AVX2,
		Float16:  asm.SumFloat16AVX2,
		BFloat16: asm.SumBFloat16AVX2,
	},
	Product: {
		Int32:    asm.ProductInt32AVX2,
		Int64:    asm.ProductInt64AVX2,
		Uint32:   asm.ProductInt32AVX2,
		Uint64:   asm.ProductInt64AVX2,
		Float32:  asm.ProductFloat32AVX2,
		Float64:  asm.ProductFloat64AVX2,
		Float16:  asm.ProductFloat16AVX2,
		BFloat16: asm.ProductBFloat16AVX2,
	},
	Min: {
		Int32:    asm.MinInt32AVX2,
		Int64:    asm.MinInt64AVX2,
		Uint32:   asm.MinUint32AVX2,
		Uint64:   asm.MinUint64AVX2,
		Float32:  asm.MinFloat32AVX2,
		Float64:  asm.MinFloat64AVX2,
		Float16:  asm.MinFloat16AVX2,
		BFloat16: asm.MinBFloat16AVX2,
	},
	Max: {
		Int32:    asm.MaxInt32AVX2,
		Int64:    asm.MaxInt64AVX2,
		Uint32:   asm.MaxUint32AVX2,
		Uint64:   asm.MaxUint64AVX2,
		Float32:  asm.MaxFloat32AVX2,
		Float64:  asm.MaxFloat64AVX2,
		Float16:  asm.MaxFloat16AVX2,
		BFloat16: asm.MaxBFloat16AVX2,
	},
	BAnd: {
		Int32:  asm.BitwiseAndAVX2,
		Int64:  asm.BitwiseAndAVX2,
		Uint32: asm.BitwiseAndAVX2,
		Uint64: asm.BitwiseAndAVX2,
	},
	BOr: {
		Int32:  asm.BitwiseOrAVX2,
		Int64:  asm.BitwiseOrAVX2,
		Uint32: asm.BitwiseOrAVX2,
		Uint64: asm.BitwiseOrAVX2,
	},
	BXor: {
		Int32:  asm.BitwiseXorAVX2,
		Int64:  asm.BitwiseXorAVX2,
		Uint32: asm.BitwiseXorAVX2,
		Uint64: asm.BitwiseXorAVX2,
	},
	LAnd: {
		Int32:  asm.LogicalAndInt32AVX2,
		Int64:  asm.LogicalAndInt64AVX2,
		Uint32: asm.LogicalAndInt32AVX2,
		Uint64: asm.LogicalAndInt64AVX2,
	},
	LOr: {
		Int32:  asm.LogicalOrInt32AVX2,
		Int64:  asm.LogicalOrInt64AVX2,
		Uint32: asm.LogicalOrInt32AVX2,
		Uint64: asm.LogicalOrInt64AVX2,
	},
	LXor: {
		Int32:  asm.LogicalXorInt32AVX2,
		Int64:  asm.LogicalXorInt64AVX2,
		Uint32: asm.LogicalXorInt32AVX2,
		Uint64: asm.LogicalXorInt64AVX2,
	},
}

var avx512Passes = passes{
	Sum: {
		Int32:    asm.SumInt32AVX512,
		Int64:    asm.SumInt64AVX512,
		Uint32:   asm.SumInt32AVX512,
		Uint64:   asm.SumInt64AVX512,
		Float32:  asm.SumFloat32AVX512,
		Float64:  asm.SumFloat64AVX512,
		Float16:  asm.SumFloat16AVX512,
		BFloat16: asm.SumBFloat16AVX512,
	},
	Product: {
		Int32:    asm.ProductInt32AVX512,
		Int64:    asm.ProductInt64AVX512,
		Uint32:   asm.ProductInt32AVX512,
		Uint64:   asm.ProductInt64AVX512,
		Float32:  asm.ProductFloat32AVX512,
		Float64:  asm.ProductFloat64AVX512,
		Float16:  asm.ProductFloat16AVX512,
		BFloat16: asm.ProductBFloat16AVX512,
	},
	Min: {
		Int32:    asm.MinInt32AVX512,
		Int64:    asm.MinInt64AVX512,
		Uint32:   asm.MinUint32AVX512,
		Uint64:   asm.MinUint64AVX512,
		Float32:  asm.MinFloat32AVX512,
		Float64:  asm.MinFloat64AVX512,
		Float16:  asm.MinFloat16AVX512,
		BFloat16: asm.MinBFloat16AVX512,
	},
	Max: {
		Int32:    asm.MaxInt32AVX512,
		Int64:    asm.MaxInt64AVX512,
		Uint32:   asm.MaxUint32AVX512,
		Uint64:   asm.MaxUint64AVX512,
		Float32:  asm.MaxFloat32AVX512,
		Float64:  asm.MaxFloat64AVX512,
		Float16:  asm.MaxFloat16AVX512,
		BFloat16: asm.MaxBFloat16AVX512,
	},
	BAnd: {
		Int32:  asm.BitwiseAndAVX512,
		Int64:  asm.BitwiseAndAVX512,
		Uint32: asm.BitwiseAndAVX512,
		Uint64: asm.BitwiseAndAVX512,
	},
	BOr: {
		Int32:  asm.BitwiseOrAVX512,
		Int64:  asm.BitwiseOrAVX512,
		Uint32: asm.BitwiseOrAVX512,
		Uint64: asm.BitwiseOrAVX512,
	},
	BXor: {
		Int32:  asm.BitwiseXorAVX512,
		Int64:  asm.BitwiseXorAVX512,
		Uint32: asm.BitwiseXorAVX512,
		Uint64: asm.BitwiseXorAVX512,
	},
	LAnd: {
		Int32:  asm.LogicalAndInt32AVX512,
		Int64:  asm.LogicalAndInt64AVX512,
		Uint32: asm.LogicalAndInt32AVX512,
		Uint64: asm.LogicalAndInt64AVX512,
	},
	LOr: {
		Int32:  asm.LogicalOrInt32AVX512,
		Int64:  asm.LogicalOrInt64AVX512,
		Uint32: asm.LogicalOrInt32AVX512,
		Uint64: asm.LogicalOrInt64AVX512,
	},
	LXor: {
		Int32:  asm.LogicalXorInt32AVX512,
		Int64:  asm.LogicalXorInt64AVX512,
		Uint32: asm.LogicalXorInt32AVX512,
		Uint64: asm.LogicalXorInt64AVX512,
	},
}
