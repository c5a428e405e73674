package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A format is how values of a type lie in vectors, and in registers.
type format struct {
	step, lane int
	load       func(at operand.Mem) operand.Op
	store      func(v reg.VecVirtual, at operand.Mem)
}

// body returns one that combines values of the format. A round is of four steps
// in AVX-512, where more gain nothing, and of so many in AVX2.
func (m *machine) body(f format, unroll int, combine func(acc reg.VecVirtual, x operand.Op)) body {
	if m.wide() {
		unroll = 4
	}
	return body{
		step: f.step, lane: f.lane, unroll: unroll,
		load:    func(at operand.Mem) values { return values{f.load(at)} },
		combine: func(acc accumulator, x values) { combine(acc[0], x[0]) },
		store:   func(acc accumulator, at operand.Mem) { f.store(acc[0], at) },
	}
}

// plain is of values that are in registers as they are in vectors: integers of
// any size, or bits.
func (m *machine) plain() format {
	return format{
		step: m.width(),
		lane: 4,
		load: func(at operand.Mem) operand.Op {
			if len(m.masks) > 0 {
				return m.load(at, 0)
			}
			return at
		},
		store: func(v reg.VecVirtual, at operand.Mem) { m.save(v, at, 0) },
	}
}

// flipped is f with the bits of by, in every value, inverted in registers.
func (m *machine) flipped(f format, by uint64) format {
	flip, load, store := m.broadcast(by), f.load, f.store
	f.load = func(at operand.Mem) operand.Op {
		v := m.vector()
		m.xor(load(at), flip, v)
		return v
	}
	f.store = func(v reg.VecVirtual, at operand.Mem) {
		m.xor(flip, v, v)
		store(v, at)
	}
	return f
}

// The canonical NaNs.
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8 << 48
)

// floats is the format of a floating-point type. Those of 16 bits are binary32
// in registers.
func (m *machine) floats(t element) format {
	f := m.plain()
	nan := uint64(nan64)
	if t != float64s {
		nan = twice(nan32)
	}
	switch t {
	case float16s:
		f = m.float16()
	case bfloat16s:
		f = m.bfloat16()
	}
	settled, store := m.broadcast(nan), f.store
	f.store = func(v reg.VecVirtual, at operand.Mem) {
		m.settle(t, settled, v)
		store(v, at)
	}
	return f
}

// settle makes every NaN of v the one of nan.
func (m *machine) settle(t element, nan, v reg.VecVirtual) {
	const unordered = operand.U8(3)
	switch double := t == float64s; {
	case m.wide() && double:
		k := m.K()
		m.VCMPPD(unordered, v, v, k)
		m.VMOVAPD(nan, k, v)
	case m.wide():
		k := m.K()
		m.VCMPPS(unordered, v, v, k)
		m.VMOVAPS(nan, k, v)
	case double:
		c := m.YMM()
		m.VCMPPD(unordered, v, v, c)
		m.VBLENDVPD(c, nan, v, v)
	default:
		c := m.YMM()
		m.VCMPPS(unordered, v, v, c)
		m.VBLENDVPS(c, nan, v, v)
	}
}

func (m *machine) float16() format {
	const nearestEven = operand.U8(0)
	return format{
		step: m.width() / 2,
		lane: 2,
		load: func(at operand.Mem) operand.Op {
			v := m.vector()
			if len(m.masks) > 0 {
				m.VCVTPH2PS_Z(at, m.masks[0], v)
			} else {
				m.VCVTPH2PS(at, v)
			}
			return v
		},
		store: func(v reg.VecVirtual, at operand.Mem) {
			if len(m.masks) > 0 {
				m.VCVTPS2PH(nearestEven, v, m.masks[0], at)
			} else {
				m.VCVTPS2PH(nearestEven, v, at)
			}
		},
	}
}

// bfloat16 rounds as the Go twin does; VCVTNEPS2BF16 would flush subnormal
// numbers to zero.
func (m *machine) bfloat16() format {
	one, half := m.broadcast(twice(1)), m.broadcast(twice(0x7fff))
	return format{
		step: m.width() / 2,
		lane: 2,
		load: func(at operand.Mem) operand.Op {
			v := m.vector()
			if len(m.masks) > 0 {
				m.VPMOVZXWD_Z(at, m.masks[0], v)
			} else {
				m.VPMOVZXWD(at, v)
			}
			m.VPSLLD(operand.U8(16), v, v)
			return v
		},
		store: func(v reg.VecVirtual, at operand.Mem) {
			odd := m.vector()
			m.VPSRLD(operand.U8(16), v, odd)
			m.and(one, odd, odd)
			m.VPADDD(half, v, v)
			m.VPADDD(odd, v, v)
			m.VPSRLD(operand.U8(16), v, v)
			m.saveLower(v, at)
		},
	}
}

// saveLower stores the lower half of each 32 bits of v; the upper one is 0.
func (m *machine) saveLower(v reg.VecVirtual, at operand.Mem) {
	switch {
	case len(m.masks) > 0:
		m.VPMOVDW(v, m.masks[0], at)
	case m.wide():
		m.VPMOVDW(v, at)
	default:
		upper := m.XMM()
		m.VEXTRACTI128(operand.U8(1), v, upper)
		m.VPACKUSDW(upper, v.AsX(), upper)
		m.VMOVDQU(upper, at)
	}
}
