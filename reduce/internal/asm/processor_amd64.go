//go:build !noasm

package asm

import "golang.org/x/sys/cpu"

// HasAVX2 reports whether this machine runs the kernels of AVX2, which convert
// with F16C.
func HasAVX2() bool {
	const f16c = 1 << 29
	return cpu.X86.HasAVX2 && features()&f16c != 0
}

// HasAVX512 reports whether this machine runs the kernels of AVX-512: of its
// parts, they need the foundation and DQ, besides BMI2 for the masks.
func HasAVX512() bool {
	return cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasBMI2
}
