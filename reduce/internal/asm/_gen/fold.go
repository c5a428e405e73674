package main

import (
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A kernel is a function to generate.
type kernel struct {
	name       string // without that of the set
	doc        string // what it does to each element, after the name
	parameters string // those after dst and in
	body       func(*machine) body
}

// A body is what is particular to a kernel. It works in steps: values from step
// bytes of each vector, in one register or more, are one accumulator.
type body struct {
	step   int // bytes of a vector
	lane   int // bytes of the smallest part that a mask distinguishes
	unroll int // steps in a round

	// next is called before the steps on each vector; it may be nil.
	next func(first bool)
	// load returns the values at an address: registers, or the memory itself.
	load func(at operand.Mem) values
	// combine sets acc to acc op x.
	combine func(acc accumulator, x values)
	// store writes the result; acc is then of no more use.
	store func(acc accumulator, at operand.Mem)
}

type values []operand.Op

type accumulator []reg.VecVirtual

// A loop holds the registers of a kernel's loops.
type loop struct {
	*machine
	body           body
	dst, in, k, to reg.GPVirtual
	at             reg.GPVirtual    // the place in the vectors, in bytes
	ends           [][]reg.Register // the masks of each step in a last round
	ahead          int              // the bytes that are fetched ahead, or 0
	labels         int
}

// headerSize is the bytes from one slice in a slice of slices to the next.
const headerSize = 24

// lineSize is the bytes of a line in the caches.
const lineSize = 64

// ahead is the bytes of each vector that are on their way from memory to the
// second-level cache. What processors fetch on their own, seeing many vectors
// being read, leaves memory idle for a part of the time.
const ahead = 512

// generate writes the function of k: rounds of several steps while they fit,
// then steps for what is left. Each reads from all vectors before it writes, so
// that dst may be one of them.
func (m *machine) generate(k kernel) {
	m.Function(k.name + m.set.String())
	m.Doc(k.name + m.set.String() + " " + k.doc)
	m.Pragma("noescape")
	m.SignatureExpr("func(dst *byte, in *[]byte, " + k.parameters + "k, from, to int, far bool)")
	l := &loop{machine: m, dst: m.GP64(), in: m.GP64(), k: m.GP64(), to: m.GP64(), at: m.GP64()}
	m.Load(m.Param("dst"), l.dst)
	m.Load(m.Param("in"), l.in)
	m.Load(m.Param("k"), l.k)
	m.Load(m.Param("to"), l.to)
	from := m.Load(m.Param("from"), m.GP64())
	m.SUBQ(from, l.dst) // so that results, too, go to the current place
	l.body = k.body(m)
	m.masks = nil
	if m.wide() {
		l.maskedAtEnd()
	} else {
		l.overlappingAtEnd()
	}
	m.VZEROUPPER()
	m.RET()
}

// maskedAtEnd does a last round under masks, if any is left of the vectors: of
// 64 lanes, as every round is.
func (l *loop) maskedAtEnd() {
	perStep := l.body.step / l.body.lane
	if l.body.unroll*perStep != 64 {
		panic("a round that a word has no mask of")
	}
	l.Load(l.Param("from"), l.at)
	l.rounds()
	left, mask := l.GP64(), l.GP64()
	l.MOVQ(l.to, left)
	l.SUBQ(l.at, left)
	l.JZ(operand.LabelRef("done"))
	l.SHRQ(operand.U8(bits.TrailingZeros(uint(l.body.lane))), left)
	l.MOVQ(operand.I32(-1), mask)
	l.BZHIQ(left, mask, mask)
	for lane := 0; lane < 64; lane += 16 {
		if lane%perStep == 0 {
			l.ends = append(l.ends, nil)
		}
		k := l.K()
		l.KMOVW(mask.As32(), k)
		step := &l.ends[len(l.ends)-1]
		*step = append(*step, k)
		if lane < 48 {
			l.SHRQ(operand.U8(16), mask)
		}
	}
	l.finish(l.fold(l.body.unroll))
	l.Label("done")
}

// mask has the loads and stores of a step use its masks, if it has any.
func (l *loop) mask(step int) {
	if l.ends != nil {
		l.masks = l.ends[step]
	}
}

// overlappingAtEnd does the last step, which may overlap the one before it,
// first, and stores it last: what it reads may be in dst. There must be a whole
// step.
func (l *loop) overlappingAtEnd() {
	last := l.at
	l.MOVQ(l.to, last)
	l.SUBQ(operand.U32(l.body.step), last)
	end := l.fold(1)
	l.Load(l.Param("from"), l.at)
	l.rounds()
	l.SUBQ(operand.U32(l.body.step), l.to)
	l.CMPQ(l.at, l.to)
	l.JGE(operand.LabelRef("end"))
	l.Label("steps")
	l.finish(l.fold(1))
	l.ADDQ(operand.U32(l.body.step), l.at)
	l.CMPQ(l.at, l.to)
	l.JL(operand.LabelRef("steps"))
	l.Label("end")
	l.MOVQ(l.to, l.at)
	l.finish(end)
}

// rounds does as many rounds as fit, in one of two loops.
func (l *loop) rounds() {
	limit, far := l.GP64(), l.GP8()
	l.MOVQ(l.to, limit)
	l.SUBQ(operand.U32(l.body.unroll*l.body.step), limit)
	l.CMPQ(l.at, limit)
	l.JG(operand.LabelRef("last"))
	l.Load(l.Param("far"), far)
	l.TESTB(far, far)
	l.JNZ(operand.LabelRef("far"))
	l.round("near", limit)
	l.JMP(operand.LabelRef("last"))
	l.ahead = ahead
	l.round("far", limit)
	l.ahead = 0
	l.Label("last")
}

// round does rounds up to the limit.
func (l *loop) round(name string, limit reg.GPVirtual) {
	l.Label(name)
	l.finish(l.fold(l.body.unroll))
	l.ADDQ(operand.U32(l.body.unroll*l.body.step), l.at)
	l.CMPQ(l.at, limit)
	l.JLE(operand.LabelRef(name))
}

// fold reduces so many steps of all vectors to accumulators.
func (l *loop) fold(steps int) []accumulator {
	l.labels++
	again, done := fmt.Sprintf("vectors%d", l.labels), fmt.Sprintf("folded%d", l.labels)
	header, left, v := l.GP64(), l.GP64(), l.GP64()
	l.MOVQ(l.in, header)
	l.MOVQ(l.k, left)
	l.enter(v, header, true)
	all := make([]accumulator, steps)
	for i := range all {
		for _, x := range l.read(v, i) {
			acc, isRegister := l.inRegister(x).(reg.VecVirtual)
			if !isRegister {
				panic("a value that is neither memory nor a register")
			}
			all[i] = append(all[i], acc)
		}
	}
	l.DECQ(left)
	l.JZ(operand.LabelRef(done))
	l.Label(again)
	l.ADDQ(operand.U8(headerSize), header)
	l.enter(v, header, false)
	for i, acc := range all {
		l.body.combine(acc, l.read(v, i))
	}
	l.DECQ(left)
	l.JNZ(operand.LabelRef(again))
	l.Label(done)
	return all
}

// read loads the values of the i-th step from v on.
func (l *loop) read(v reg.GPVirtual, i int) values {
	begin := i * l.body.step
	for line := (begin + lineSize - 1) / lineSize * lineSize; l.ahead > 0 && line < begin+l.body.step; line += lineSize {
		l.PREFETCHT1(operand.Mem{Base: v, Disp: line + l.ahead})
	}
	l.mask(i)
	return l.body.load(operand.Mem{Base: v, Disp: begin})
}

// enter sets v to the current place in the vector of the header.
func (l *loop) enter(v, header reg.GPVirtual, first bool) {
	l.MOVQ(operand.Mem{Base: header}, v)
	l.ADDQ(l.at, v)
	if l.body.next != nil {
		l.body.next(first)
	}
}

// finish stores the results at the current place.
func (l *loop) finish(all []accumulator) {
	to := l.GP64()
	l.MOVQ(l.dst, to)
	l.ADDQ(l.at, to)
	for i, acc := range all {
		l.mask(i)
		l.body.store(acc, operand.Mem{Base: to, Disp: i * l.body.step})
	}
}
