package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// locate finds least values and where they are, of all integer types or of all
// floating-point ones: what differs among these is in the order, four words.
//
// Values and locations, which take turns in memory, are in two registers. There
// a value is its rank, a signed integer that is less the rather the value is the
// result: the value in the upper bits, of floating-point values negative ones
// with the bits below the sign inverted, and everything inverted if the greatest
// value is wanted. NaNs have the least rank that there is.
func locate(float bool) kernel {
	k := kernel{
		name:       "LocateInteger",
		doc:        "takes the least, or greatest, and of equal ones that with the least location.",
		parameters: "order *[4]uint64, ",
	}
	if float {
		k.name = "LocateFloat"
	}
	k.body = func(m *machine) body {
		r := m.order(float)
		unroll := 2
		if float && !m.wide() {
			unroll = 1 // there are 16 registers
		}
		return body{
			step: 2 * m.width(), lane: 4, unroll: unroll,
			load: func(at operand.Mem) values {
				a, b := m.load(at, 0), m.load(at.Offset(m.width()), 1)
				value, location := m.vector(), m.vector()
				m.VPUNPCKLQDQ(b, a, value)
				m.VPUNPCKHQDQ(b, a, location)
				r.rank(value)
				return values{value, location}
			},
			combine: func(acc accumulator, x values) {
				better := m.before(acc, x)
				m.choose(better, x[0], acc[0])
				m.choose(better, x[1], acc[1])
			},
			store: func(acc accumulator, at operand.Mem) {
				r.unrank(acc[0])
				a, b := m.vector(), m.vector()
				m.VPUNPCKLQDQ(acc[1], acc[0], a)
				m.VPUNPCKHQDQ(acc[1], acc[0], b)
				m.save(a, at, 0)
				m.save(b, at.Offset(m.width()), 1)
			},
		}
	}
	return k
}

// before reports where x comes before acc: by rank, or else by location.
func (m *machine) before(acc accumulator, x values) condition {
	less, same := m.greater(acc[0], x[0]), m.equal(acc[0], x[0])
	if m.wide() {
		either := m.K()
		m.VPCMPGTQ(x[1], acc[1], same, same)
		m.KORW(less, same, either)
		return either
	}
	nearer := m.greater(acc[1], x[1])
	m.VPAND(nearer, same, same)
	m.VPOR(same, less, less)
	return less
}

// An order has what is in the four words.
type order struct {
	*machine
	float bool
	shift reg.VecVirtual // by how much values are shifted to the upper bits
	flip  reg.VecVirtual // the bits of ranks that are inverted
	// Of floating-point types:
	infinity  reg.VecVirtual // in the upper bits
	nan       reg.VecVirtual // the canonical NaN
	lowest    reg.VecVirtual // the rank of NaNs
	magnitude reg.VecVirtual // all bits but the sign
	zero      reg.VecVirtual // of AVX2 only
}

func (m *machine) order(float bool) *order {
	at, word := m.GP64(), m.GP64()
	m.Load(m.Param("order"), at)
	r := &order{machine: m, float: float, shift: m.XMM()}
	m.VMOVQ(operand.Mem{Base: at}, r.shift)
	read := func(i int) reg.VecVirtual {
		m.MOVQ(operand.Mem{Base: at, Disp: 8 * i}, word)
		return m.spread(word)
	}
	r.flip = read(1)
	if float {
		r.infinity, r.nan = read(2), read(3)
		r.lowest, r.magnitude = m.broadcast(1<<63), m.broadcast(math.MaxInt64)
	}
	if float && !m.wide() {
		r.zero = m.YMM()
		m.VPXOR(r.zero, r.zero, r.zero)
	}
	return r
}

// rank turns values to ranks.
func (r *order) rank(v reg.VecVirtual) {
	r.VPSLLQ(r.shift, v, v)
	if !r.float {
		r.xor(r.flip, v, v)
		return
	}
	magnitude := r.vector()
	r.and(r.magnitude, v, magnitude)
	isNaN := r.greater(magnitude, r.infinity)
	r.arrange(v)
	r.xor(r.flip, v, v)
	r.choose(isNaN, r.lowest, v)
}

// unrank turns ranks to values.
func (r *order) unrank(v reg.VecVirtual) {
	if !r.float {
		r.xor(r.flip, v, v)
		r.VPSRLQ(r.shift, v, v)
		return
	}
	isNaN := r.equal(v, r.lowest)
	r.xor(r.flip, v, v)
	r.arrange(v)
	r.VPSRLQ(r.shift, v, v)
	r.choose(isNaN, r.nan, v)
}

// arrange inverts the bits below the sign of what is negative; done twice, it
// changes nothing.
func (r *order) arrange(v reg.VecVirtual) {
	sign := r.vector()
	if r.wide() {
		r.VPSRAQ(operand.U8(63), v, sign)
	} else {
		r.VPCMPGTQ(v, r.zero, sign)
	}
	r.and(r.magnitude, sign, sign)
	r.xor(sign, v, v)
}
