package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bitwise is of integers of any size.
func bitwise(operator string) kernel {
	return kernel{
		name: "Bitwise" + operator,
		doc:  "does a bitwise " + strings.ToLower(operator) + ".",
		body: func(m *machine) body {
			return m.body(m.plain(), 8, func(acc reg.VecVirtual, x operand.Op) { m.bits(operator, x, acc) })
		},
	}
}

// bits sets acc to acc op x.
func (m *machine) bits(operator string, x operand.Op, acc reg.VecVirtual) {
	switch operator {
	case "And":
		m.and(x, acc, acc)
	case "Or":
		m.or(x, acc, acc)
	default:
		m.xor(x, acc, acc)
	}
}

// logical is bitwise on truth values, which are 0 and 1.
func logical(operator string, t element) kernel {
	return kernel{
		name: fmt.Sprintf("Logical%s%v", operator, t),
		doc:  "does a logical " + strings.ToLower(operator) + "; whatever is not 0 is true.",
		body: func(m *machine) body {
			f, one := m.plain(), m.broadcast(1)
			if !t.double() {
				one = m.broadcast(twice(1))
			}
			load := f.load
			f.load = func(at operand.Mem) operand.Op {
				v := m.vector()
				switch x := load(at); {
				case !t.double():
					m.VPMINUD(x, one, v)
				case m.wide():
					m.VPMINUQ(x, one, v)
				default:
					zero := m.YMM()
					m.VPXOR(zero, zero, zero)
					m.andNot(one, m.equal(zero, x), v)
				}
				return v
			}
			return m.body(f, 8, func(acc reg.VecVirtual, x operand.Op) { m.bits(operator, x, acc) })
		},
	}
}
