package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// format returns the format of t where its values need no change.
func (m *machine) format(t element) format {
	if t.isFloat() {
		return m.floats(t)
	}
	return m.plain()
}

func sum(t element) kernel {
	return kernel{
		name: fmt.Sprintf("Sum%v", t),
		doc:  "adds.",
		body: func(m *machine) body {
			return m.body(m.format(t), 8, func(acc reg.VecVirtual, x operand.Op) {
				switch {
				case t == float64s:
					m.VADDPD(x, acc, acc)
				case t.isFloat():
					m.VADDPS(x, acc, acc)
				case t.double():
					m.VPADDQ(x, acc, acc)
				default:
					m.VPADDD(x, acc, acc)
				}
			})
		},
	}
}

func product(t element) kernel {
	return kernel{
		name: fmt.Sprintf("Product%v", t),
		doc:  "multiplies.",
		body: func(m *machine) body {
			return m.body(m.format(t), 8, func(acc reg.VecVirtual, x operand.Op) {
				switch {
				case t == float64s:
					m.VMULPD(x, acc, acc)
				case t.isFloat():
					m.VMULPS(x, acc, acc)
				case !t.double():
					m.VPMULLD(x, acc, acc)
				case m.wide():
					m.VPMULLQ(x, acc, acc)
				default:
					m.multiply64(acc, m.inRegister(x))
				}
			})
		},
	}
}

// multiply64 sets acc to acc * x, integers of 64 bits, for which AVX2 has no
// instruction: the product of the lower halves, and above it the sum of those
// of a lower and an upper half.
func (m *machine) multiply64(acc reg.VecVirtual, x operand.Op) {
	upper, cross := m.YMM(), m.YMM()
	m.VPSRLQ(operand.U8(32), acc, upper)
	m.VPMULUDQ(x, upper, upper)
	m.VPSRLQ(operand.U8(32), x, cross)
	m.VPMULUDQ(cross, acc, cross)
	m.VPADDQ(upper, cross, cross)
	m.VPSLLQ(operand.U8(32), cross, cross)
	m.VPMULUDQ(x, acc, acc)
	m.VPADDQ(cross, acc, acc)
}

func extreme(t element, largest bool) kernel {
	k := kernel{name: fmt.Sprintf("Min%v", t), doc: "takes the least."}
	if largest {
		k = kernel{name: fmt.Sprintf("Max%v", t), doc: "takes the greatest."}
	}
	k.body = func(m *machine) body {
		switch {
		case t.isFloat():
			return m.extremeFloat(t, largest)
		case t.double() && !m.wide():
			return m.extreme64(t, largest)
		}
		return m.body(m.plain(), 8, func(acc reg.VecVirtual, x operand.Op) { m.extremeInteger(t, largest, acc, x) })
	}
	return k
}

func (m *machine) extremeInteger(t element, largest bool, acc reg.VecVirtual, x operand.Op) {
	switch {
	case t == int32s && !largest:
		m.VPMINSD(x, acc, acc)
	case t == int32s:
		m.VPMAXSD(x, acc, acc)
	case t == uint32s && !largest:
		m.VPMINUD(x, acc, acc)
	case t == uint32s:
		m.VPMAXUD(x, acc, acc)
	case t == int64s && !largest:
		m.VPMINSQ(x, acc, acc)
	case t == int64s:
		m.VPMAXSQ(x, acc, acc)
	case !largest:
		m.VPMINUQ(x, acc, acc)
	default:
		m.VPMAXUQ(x, acc, acc)
	}
}

// extreme64 is of integers of 64 bits, which AVX2 compares as signed only:
// unsigned ones are in registers less 2^63.
func (m *machine) extreme64(t element, largest bool) body {
	f := m.plain()
	if t.unsigned() {
		f = m.flipped(f, 1<<63)
	}
	return m.body(f, 4, func(acc reg.VecVirtual, x operand.Op) {
		x = m.inRegister(x)
		better := m.greater(acc, x)
		if largest {
			better = m.greater(x, acc)
		}
		m.choose(better, x, acc)
	})
}

// extremeFloat takes the least; for the greatest, numbers are in registers with
// the other sign. Of two zeros, and of what is not ordered, the instructions
// take the second operand. Both ways joined by or make -0 of zeros of different
// signs, and a NaN of anything and a NaN.
func (m *machine) extremeFloat(t element, largest bool) body {
	f := m.floats(t)
	if sign := uint64(1) << 63; largest && t.double() {
		f = m.flipped(f, sign)
	} else if largest {
		f = m.flipped(f, sign|1<<31)
	}
	return m.body(f, 4, func(acc reg.VecVirtual, x operand.Op) {
		x = m.inRegister(x)
		other := m.vector()
		if t.double() {
			m.VMINPD(x, acc, other)
			m.VMINPD(acc, x, acc)
		} else {
			m.VMINPS(x, acc, other)
			m.VMINPS(acc, x, acc)
		}
		m.or(other, acc, acc)
	})
}
