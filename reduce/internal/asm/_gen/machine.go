package main

import (
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// set is an instruction set.
type set int

const (
	avx2 set = iota
	avx512
)

// String returns the name that ends those of the set's kernels.
func (s set) String() string { return [...]string{"AVX2", "AVX512"}[s] }

func (s set) file() string { return strings.ToLower(s.String()) }

// machine writes instructions of one set, and hides in what the sets differ.
// Operands stand in the order of Go's assembler, the destination last.
type machine struct {
	*build.Context
	set set
	// masks are of the loads and stores at the end of a vector, one for each
	// register of a step; there are none before the end, nor in AVX2.
	masks []reg.Register
}

func (m *machine) wide() bool { return m.set == avx512 }

// width returns the bytes of a vector register.
func (m *machine) width() int {
	if m.wide() {
		return 64
	}
	return 32
}

func (m *machine) vector() reg.VecVirtual {
	if m.wide() {
		return m.ZMM()
	}
	return m.YMM()
}

// broadcast returns a register of v, again and again.
func (m *machine) broadcast(v uint64) reg.VecVirtual {
	r := m.GP64()
	m.MOVQ(operand.U64(v), r)
	return m.spread(r)
}

// spread returns a register of r, again and again.
func (m *machine) spread(r reg.Register) reg.VecVirtual {
	x, all := m.XMM(), m.vector()
	m.VMOVQ(r, x)
	m.VPBROADCASTQ(x, all)
	return all
}

// twice returns two v of 32 bits in one of 64.
func twice(v uint32) uint64 { return uint64(v)<<32 | uint64(v) }

func (m *machine) and(a, b, dst operand.Op) {
	if m.wide() {
		m.VPANDQ(a, b, dst)
	} else {
		m.VPAND(a, b, dst)
	}
}

// andNot sets dst to a without the bits of b.
func (m *machine) andNot(a, b, dst operand.Op) {
	if m.wide() {
		m.VPANDNQ(a, b, dst)
	} else {
		m.VPANDN(a, b, dst)
	}
}

func (m *machine) or(a, b, dst operand.Op) {
	if m.wide() {
		m.VPORQ(a, b, dst)
	} else {
		m.VPOR(a, b, dst)
	}
}

func (m *machine) xor(a, b, dst operand.Op) {
	if m.wide() {
		m.VPXORQ(a, b, dst)
	} else {
		m.VPXOR(a, b, dst)
	}
}

// inRegister returns x, or a register loaded with it.
func (m *machine) inRegister(x operand.Op) operand.Op {
	if at, inMemory := x.(operand.Mem); inMemory {
		return m.load(at, 0)
	}
	return x
}

// load returns the whole register at the address, the i-th of its step.
func (m *machine) load(at operand.Mem, i int) reg.VecVirtual {
	v := m.vector()
	switch {
	case len(m.masks) > 0:
		m.VMOVDQU32_Z(at, m.masks[i], v)
	case m.wide():
		m.VMOVDQU32(at, v)
	default:
		m.VMOVDQU(at, v)
	}
	return v
}

// save stores v, the i-th of its step.
func (m *machine) save(v reg.VecVirtual, at operand.Mem, i int) {
	switch {
	case len(m.masks) > 0:
		m.VMOVDQU32(v, m.masks[i], at)
	case m.wide():
		m.VMOVDQU32(v, at)
	default:
		m.VMOVDQU(v, at)
	}
}

// choose sets dst to a where the condition holds, and leaves it elsewhere.
func (m *machine) choose(c condition, a operand.Op, dst reg.VecVirtual) {
	if m.wide() {
		m.VMOVDQA64(a, c, dst)
	} else {
		m.VBLENDVPD(c, a, dst, dst)
	}
}

// A condition holds or not for each 64 bits: a mask register in AVX-512, a
// vector of zeros and ones in AVX2.
type condition = reg.Register

// greater reports where a > b, as signed integers of 64 bits.
func (m *machine) greater(a, b operand.Op) condition {
	if m.wide() {
		k := m.K()
		m.VPCMPGTQ(b, a, k)
		return k
	}
	v := m.YMM()
	m.VPCMPGTQ(b, a, v)
	return v
}

// equal reports where a == b, as integers of 64 bits.
func (m *machine) equal(a, b operand.Op) condition {
	if m.wide() {
		k := m.K()
		m.VPCMPEQQ(b, a, k)
		return k
	}
	v := m.YMM()
	m.VPCMPEQQ(b, a, v)
	return v
}

// identify writes a function that reports what golang.org/x/sys/cpu does not.
func (m *machine) identify() {
	m.Function("features")
	m.Doc("features returns what CPUID, of leaf 1, leaves in ECX.")
	m.SignatureExpr("func() (ecx uint32)")
	m.MOVL(operand.U32(1), reg.EAX)
	m.XORL(reg.ECX, reg.ECX)
	m.CPUID()
	m.Store(reg.ECX, m.ReturnIndex(0))
	m.RET()
}
