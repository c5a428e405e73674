package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blocks adds mantissas of block floating point. The instruction shifts by more
// than 31 as by 31.
func blocks() kernel {
	return kernel{
		name:       "SumBlock32",
		doc:        "adds, after a shift of each vector to the right by exponent less its own one.",
		parameters: "exponents *int8, exponent int, ",
		body: func(m *machine) body {
			start, common := m.GP64(), m.GP64()
			m.Load(m.Param("exponents"), start)
			m.Load(m.Param("exponent"), common)
			own, by, count := m.GP64(), m.GP64(), m.XMM()
			f := m.plain()
			b := m.body(f, 8, func(acc reg.VecVirtual, x operand.Op) { m.VPADDD(x, acc, acc) })
			b.next = func(first bool) {
				if first {
					m.MOVQ(start, own)
				}
				shift := m.GP64()
				m.MOVBQSX(operand.Mem{Base: own}, shift)
				m.INCQ(own)
				m.MOVQ(common, by)
				m.SUBQ(shift, by)
				m.VMOVQ(by, count)
			}
			b.load = func(at operand.Mem) values {
				v := m.load(at, 0)
				m.VPSRAD(count, v, v)
				return values{v}
			}
			return b
		},
	}
}
