package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A block of a vector has blockSize bytes, whose elements share an exponent and, of that, its marks: two uint32, the
// exponent as it is stored, and not 0 if the block has NaNs or infinities.
const (
	blockSize = 128
	markSize  = 8
)

// begin writes the head of a function over blocks, and returns pointers by the names of parameters.
func (m *machine) begin(name, doc, signature string, names ...string) map[string]reg.GPVirtual {
	m.masks = nil
	m.Function(name + m.set.String())
	m.Doc(name + m.set.String() + " " + doc)
	m.Pragma("noescape")
	m.SignatureExpr(signature)
	at := map[string]reg.GPVirtual{}
	for _, n := range names {
		at[n] = m.GP64()
		m.Load(m.Param(n), at[n])
	}
	return at
}

// mark writes a kernel that finds the marks of blocks of numbers of so many bytes.
func (m *machine) mark(size int) {
	at := m.begin(fmt.Sprintf("MarkFloat%d", 8*size), "sets dst to the marks of blocks of src.", "func(dst, src *byte, blocks int) (done int)", "dst", "src", "blocks")
	// Of binary64 the upper half has the exponent.
	mask, infinity, fraction := twice(math.MaxInt32), uint32(0x7f80_0000), uint8(23)
	if size == 8 {
		mask, infinity, fraction = math.MaxInt32<<32, 0x7ff0_0000, 20
	}
	magnitude := m.broadcast(mask)
	done, found, least := m.GP64(), m.GP32(), m.GP32()
	m.XORQ(done, done)
	m.Label("blocks")
	var all []reg.VecVirtual
	for i := 0; i < blockSize; i += m.width() {
		v := m.vector()
		m.and(operand.Mem{Base: at["src"], Disp: i}, magnitude, v)
		all = append(all, v)
	}
	m.greatest(all, found)
	if size == 8 { // a lower half may be all that there is
		m.TESTL(found, found)
		m.JZ(operand.LabelRef("end"))
	}
	m.CMPL(found, operand.U32(infinity))
	m.JAE(operand.LabelRef("end"))
	// A subnormal magnitude has the exponent of the least normal one, 0 has 0.
	m.XORL(least, least)
	m.TESTL(found, found)
	m.SETNE(least.As8())
	m.SHRL(operand.U8(fraction), found)
	m.CMPL(found, least)
	m.CMOVLCS(least, found)
	m.MOVQ(found.As64(), operand.Mem{Base: at["dst"]}) // an operation on 32 bits clears the others
	m.ADDQ(operand.U32(markSize), at["dst"])
	m.ADDQ(operand.U32(blockSize), at["src"])
	m.INCQ(done)
	m.CMPQ(done, at["blocks"])
	m.JNE(operand.LabelRef("blocks"))
	m.end(done)
}

// greatest sets found to the greatest of all 32 bits. It uses the registers up.
func (m *machine) greatest(all []reg.VecVirtual, found reg.Register) {
	for ; len(all) > 1; all = all[:len(all)/2] {
		for i := range len(all) / 2 {
			m.VPMAXUD(all[i], all[i+len(all)/2], all[i])
		}
	}
	if m.wide() {
		y := m.YMM()
		m.VEXTRACTI64X4(operand.U8(1), all[0], y)
		m.VPMAXUD(y, all[0].AsY(), y)
		all[0] = y
	}
	x, other := m.XMM(), m.XMM()
	m.VEXTRACTI128(operand.U8(1), all[0].AsY(), x)
	m.VPMAXUD(all[0].AsX(), x, x)
	for _, order := range []uint8{0x4e, 0xb1} {
		m.VPSHUFD(operand.U8(order), x, other)
		m.VPMAXUD(other, x, x)
	}
	m.VMOVD(x, found)
}

// largest writes a kernel that finds the greatest magnitude of binary32.
func (m *machine) largest() {
	at := m.begin("LargestFloat32", "returns the bits of the greatest magnitude in blocks of src.",
		"func(src *byte, blocks int) (bits uint32)", "src", "blocks")
	magnitude, found := m.broadcast(twice(math.MaxInt32)), m.GP32()
	var all []reg.VecVirtual
	for range blockSize / m.width() {
		v := m.vector()
		m.xor(v, v, v)
		all = append(all, v)
	}
	m.Label("blocks")
	for i, most := range all {
		v := m.vector()
		m.and(operand.Mem{Base: at["src"], Disp: i * m.width()}, magnitude, v)
		m.VPMAXUD(v, most, most)
	}
	m.ADDQ(operand.U32(blockSize), at["src"])
	m.DECQ(at["blocks"])
	m.JNZ(operand.LabelRef("blocks"))
	m.greatest(all, found)
	m.Store(found, m.ReturnIndex(0))
	m.VZEROUPPER()
	m.RET()
}

// end writes the end of a function that returns done.
func (m *machine) end(done reg.GPVirtual) {
	m.Label("end")
	m.Store(done, m.ReturnIndex(0))
	m.VZEROUPPER()
	m.RET()
}

// fixed writes a kernel that turns numbers of so many bytes into integers of so many, or back.
func (m *machine) fixed(from, word int, encodes bool) {
	numbers, words := fmt.Sprintf("Float%d", 8*from), fmt.Sprintf("Int%d", 8*word)
	name, doc, src, dst := "Encode"+numbers+"As"+words, "turns numbers into integers.", from, word
	if !encodes {
		name, doc, src, dst = "Decode"+numbers+"As"+words, "turns integers into numbers.", word, from
	}
	at := m.begin(name, doc, "func(dst, src, marks *byte, origin uint64, constant float64, at, units int) (done int)", "dst", "src", "marks", "origin", "at", "units")
	c := &fixedUnit{machine: m, from: from, word: word, scale: m.vector(), values: map[uint64]reg.VecVirtual{}}
	if from == 8 {
		c.constant = m.vector()
		x := m.XMM()
		m.Load(m.Param("constant"), x)
		m.VBROADCASTSD(x, c.constant)
	}
	c.load(encodes)
	done, mark, exponent, power, zero := m.GP64(), m.GP64(), m.GP64(), m.GP64(), m.GP64()
	m.XORQ(done, done)
	m.XORQ(zero, zero)
	m.Label("units")
	m.LEAQ(operand.Mem{Base: at["at"], Index: done, Scale: 1}, mark)
	if word > from { // a block is two units
		m.SHRQ(operand.U8(1), mark)
	}
	m.CMPL(operand.Mem{Base: at["marks"], Index: mark, Scale: markSize, Disp: markSize / 2}, operand.U8(0))
	m.JNE(operand.LabelRef("end"))
	m.MOVL(operand.Mem{Base: at["marks"], Index: mark, Scale: markSize}, exponent.As32())
	m.MOVQ(at["origin"], power)
	if encodes {
		m.SUBQ(exponent, power)
	} else {
		m.ADDQ(exponent, power)
	}
	m.SHLQ(operand.U8(52), power)
	m.TESTQ(exponent, exponent)
	m.CMOVQEQ(zero, power)
	x := m.XMM()
	m.VMOVQ(power, x)
	m.VBROADCASTSD(x, c.scale)
	lanes := m.width() / 8
	for i := 0; i < blockSize/word; i += lanes {
		in, out := operand.Mem{Base: at["src"], Disp: i * src}, operand.Mem{Base: at["dst"], Disp: i * dst}
		if encodes {
			c.encode(in, out)
		} else {
			c.decode(in, out)
		}
	}
	m.ADDQ(operand.U32(blockSize/word*src), at["src"])
	m.ADDQ(operand.U32(blockSize/word*dst), at["dst"])
	m.INCQ(done)
	m.CMPQ(done, at["units"])
	m.JNE(operand.LabelRef("units"))
	m.end(done)
}

// fixedUnit is what turns a unit, a register of binary64 at a time.
type fixedUnit struct {
	*machine
	from, word      int
	scale, constant reg.VecVirtual // of binary64 alone there is a constant

	values map[uint64]reg.VecVirtual // again and again, by their bits
}

// What AVX2 lacks is conversion of 64 bits. A binary64 of 1.5 2^52 plus an integer has that in its lower bits.
const (
	integerBits  = 0x4338_0000_0000_0000                        // 1.5 2^52
	integersBits = integerBits<<32&math.MaxUint64 + integerBits // of two integers, one of which is shifted
	up32Bits     = (1023 + 32) << 52                            // 2^32
	down32Bits   = (1023 - 32) << 52                            // 2^-32
	lowerBits    = (1023 + 52) << 52                            // 2^52
	upperBits    = (1023+84)<<52 | 1<<31                        // 2^84 + 2^63
	offsetBits   = upperBits | 1<<20                            // and 2^52
	lowBits      = 1<<10 - 1                                    // what 63 bits have beyond the 53 of a binary64
)

// load has the registers loaded with all values that a unit takes.
func (c *fixedUnit) load(encodes bool) {
	var all []uint64
	switch {
	case c.wide() || c.word == 4:
	case encodes:
		all = []uint64{integerBits, integersBits, up32Bits, down32Bits}
	case c.from == 4:
		all = []uint64{0, lowBits, ^uint64(lowBits), 1 << 53}
		fallthrough
	default:
		all = append(all, upperBits, offsetBits, lowerBits)
	}
	for _, v := range all {
		c.values[v] = c.broadcast(v)
	}
}

// encode turns the numbers at in.
func (c *fixedUnit) encode(in, out operand.Mem) {
	v := c.vector()
	if c.from == 4 {
		c.VCVTPS2PD(in, v)
		c.VMULPD(c.scale, v, v)
	} else {
		c.VMULPD(in, c.scale, v)
		c.VMULPD(c.constant, v, v)
	}
	switch {
	case c.word == 4:
		h := c.half()
		if c.wide() {
			c.VCVTPD2DQ(v, h)
		} else {
			c.VCVTPD2DQY(v, h)
		}
		c.VMOVDQU(h, out)
		return
	case c.wide():
		c.VCVTPD2QQ(v, v)
	default:
		c.toInt64(v)
	}
	c.save(v, out, 0)
}

// decode turns the integers at in.
func (c *fixedUnit) decode(in, out operand.Mem) {
	v := c.vector()
	switch {
	case c.word == 4:
		c.VCVTDQ2PD(in, v)
	case c.wide() && c.from == 4: // rounded to binary32 before it is scaled, as by the twin
		h := c.half()
		c.VCVTQQ2PS(in, h)
		c.VCVTPS2PD(h, v)
	case c.wide():
		c.VCVTQQ2PD(in, v)
	case c.from == 4:
		c.VMOVDQU(in, v)
		c.toOdd(v)
		c.fromInt64(v)
		h := c.half()
		c.VCVTPD2PSY(v, h)
		c.VCVTPS2PD(h, v)
	default:
		c.VMOVDQU(in, v)
		c.fromInt64(v)
	}
	if c.from == 8 {
		c.VMULPD(c.constant, v, v)
	}
	c.VMULPD(c.scale, v, v)
	if c.from == 8 {
		c.save(v, out, 0)
		return
	}
	h := c.half()
	if c.wide() {
		c.VCVTPD2PS(v, h)
	} else {
		c.VCVTPD2PSY(v, h)
	}
	c.VMOVDQU(h, out)
}

// half returns a register of half the width.
func (m *machine) half() reg.VecVirtual {
	if m.wide() {
		return m.YMM()
	}
	return m.XMM()
}

// toInt64 makes each of v, whose magnitude is below 2^63, the nearest integer: v = 2^32 upper + lower.
func (c *fixedUnit) toInt64(v reg.VecVirtual) {
	integer, upper, part := c.values[integerBits], c.YMM(), c.YMM()
	c.VMULPD(c.values[down32Bits], v, upper)
	c.VADDPD(integer, upper, upper)
	c.VSUBPD(integer, upper, part)
	c.VMULPD(c.values[up32Bits], part, part)
	c.VSUBPD(part, v, v) // exact: it is 2^31 at most, and a multiple of what v has last
	c.VADDPD(integer, v, v)
	c.VPSLLQ(operand.U8(32), upper, upper)
	c.VPADDQ(upper, v, v)
	c.VPSUBQ(c.values[integersBits], v, v)
}

// fromInt64 makes each integer of v the nearest binary64, from its halves: the upper one, its sign turned, in
// 2^84 + 2^32 upper, and the lower one in 2^52 + lower. The sum without the powers is rounded once.
func (c *fixedUnit) fromInt64(v reg.VecVirtual) {
	upper := c.YMM()
	c.VPSRLQ(operand.U8(32), v, upper)
	c.VPXOR(c.values[upperBits], upper, upper)
	c.VSUBPD(c.values[offsetBits], upper, upper)
	c.VPBLENDD(operand.U8(0xaa), c.values[lowerBits], v, v)
	c.VADDPD(upper, v, v)
}

// toOdd makes each integer of v that a binary64 may not hold one that it does, and that rounds to the same
// binary32: without its low bits, and the next one set if one of these was.
func (c *fixedUnit) toOdd(v reg.VecVirtual) {
	isShort, odd := c.YMM(), c.YMM()
	c.VPADDQ(c.values[1<<53], v, isShort)
	c.VPSRLQ(operand.U8(54), isShort, isShort)
	c.VPCMPEQQ(c.values[0], isShort, isShort)
	c.VPAND(c.values[lowBits], v, odd)
	c.VPADDQ(c.values[lowBits], odd, odd)
	c.VPOR(odd, v, odd)
	c.VPAND(c.values[^uint64(lowBits)], odd, odd)
	c.VBLENDVPD(isShort, v, odd, v)
}
