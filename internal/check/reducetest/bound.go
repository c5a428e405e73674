package reducetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"github.com/tributary-fabric/tributary/reduce"
)

// Shape is what of a tree the error of a compressed sum depends on. Hosts of a tree of hosts count as switches, whose
// first child is the member there.
type Shape struct {
	Members, Switches int
	Depth             int // switches on the way from a member to the root, at most
	Children          int // of a switch, at most
}

// Or returns a shape that allows what either does.
func (s Shape) Or(o Shape) Shape {
	return Shape{max(s.Members, o.Members), max(s.Switches, o.Switches), max(s.Depth, o.Depth), max(s.Children, o.Children)}
}

// exactly is the bits with which sums of float32 are exact, of up to 2^100 of them, and a bound is nearly so.
const exactly = 400

func float(x float64) *big.Float { return new(big.Float).SetPrec(exactly).SetFloat64(x) }

// growth returns (1 + x)^n.
func growth(x float64, n int) *big.Float {
	all, by := float(1), new(big.Float).Add(float(1), float(x))
	for range n {
		all.Mul(all, by)
	}
	return all
}

// bound returns, as docs/functions.md has it, the most by which an element may differ from the exact sum: a part of the
// magnitudes of its numbers together, and what is added to that.
func (s Shape) bound(to reduce.Type) (part, more *big.Float) {
	u, t := 0x1p-8, 0x1p-134
	if to == reduce.Float16 {
		u, t = 0x1p-11, 0x1p-25
	}
	part = growth(u, s.Depth+1)
	part.Mul(part, growth(0x1p-24, s.Depth*(s.Children-1)))
	return part.Sub(part, float(1)), float(2 * float64(s.Members+s.Switches) * t)
}

// CheckCompressed compares out, a compressed sum of the vectors in over a tree, with the exact one, and returns how
// many elements it has held to the bound: those that cannot overflow, and have no infinity and NaN. What has one of
// these must give it.
func CheckCompressed(to reduce.Type, s Shape, in [][]byte, out []byte) (held int, err error) {
	greatest := float(float64(reduce.BF16(0x7f7f).Float32()))
	if to == reduce.Float16 {
		greatest = float(65504)
	}
	part, more := s.bound(to)
	exact, magnitudes, most, off := float(0), float(0), float(0), float(0)
	for at := 0; at+4 <= len(out); at += 4 {
		got, kind := float64(math.Float32frombits(binary.LittleEndian.Uint32(out[at:]))), 0.0
		exact.SetInt64(0)
		magnitudes.SetInt64(0)
		for _, v := range in {
			x := float64(math.Float32frombits(binary.LittleEndian.Uint32(v[at:])))
			if x != x || math.IsInf(x, 0) {
				kind += x
				continue
			}
			exact.Add(exact, off.SetFloat64(x))
			magnitudes.Add(magnitudes, off.Abs(off))
		}
		most.Mul(part, magnitudes).Add(most, more)
		if off.Add(magnitudes, most).Cmp(greatest) > 0 {
			continue // a rounding may overflow
		}
		switch {
		case kind != kind && got == got, kind == kind && kind != 0 && got != kind, kind == 0 && (got != got || math.IsInf(got, 0)):
			return held, fmt.Errorf("element %d is %v, where %v is summed", at/4, got, kind)
		case kind != 0:
			continue
		}
		if off.Sub(off.SetFloat64(got), exact).Abs(off).Cmp(most) > 0 {
			return held, fmt.Errorf("element %d is %v and not %.10g, which is off by %.4g: %+v allows %.4g", at/4, got, exact, off, s, most)
		}
		held++
	}
	return held, nil
}
