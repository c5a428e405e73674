package reduce

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Narrow rounds src, a vector of Float32, to dst, one of Float16 or BFloat16: to nearest, of two equally near to
// the one whose last bit is 0; NaNs are canonical. It panics where the lengths do not fit. dst and src do not
// overlap.
func Narrow(to Type, dst, src []byte) {
	checkNarrow(to, dst, src)
	done := fastest.turnHalves(to, dst, src, true)
	for i := done; i < len(dst)/2; i++ {
		x := math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		h := uint16(BF16From(x))
		if to == Float16 {
			h = uint16(F16From(x))
		}
		binary.LittleEndian.PutUint16(dst[2*i:], h)
	}
}

// Widen turns src, a vector of Float16 or BFloat16, into dst, one of Float32, exactly; NaNs are canonical. It
// panics where the lengths do not fit. dst and src do not overlap.
func Widen(from Type, dst, src []byte) {
	checkNarrow(from, src, dst)
	done := fastest.turnHalves(from, dst, src, false)
	for i := done; i < len(src)/2; i++ {
		h := binary.LittleEndian.Uint16(src[2*i:])
		x := BF16(h).Float32()
		if from == Float16 {
			x = F16(h).Float32()
		}
		if x != x {
			x = math.Float32frombits(nan32)
		}
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

func checkNarrow(t Type, halves, whole []byte) {
	if t != Float16 && t != BFloat16 || len(halves)%2 != 0 || len(whole) != 2*len(halves) {
		panic(fmt.Sprintf("reduce: %d bytes of %v from or to %d of %v", len(halves), t, len(whole), Float32))
	}
}

// turnHalves narrows or widens as many elements as the set can do, and returns their number.
func (s *instructions) turnHalves(t Type, dst, src []byte, narrows bool) (done int) {
	if s == nil {
		return 0
	}
	run, n := s.widen[t], len(src)/2
	if narrows {
		run, n = s.narrow[t], len(dst)/2
	}
	steps := n / s.lanes
	if steps == 0 {
		return 0
	}
	run(&dst[0], &src[0], steps)
	return steps * s.lanes
}
