package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockSize is the bytes of a block of a vector, all of whose elements have one scale.
const blockSize = 128

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

// largest writes a kernel that finds the greatest 32 bits of each block.
func (m *machine) largest() {
	at := m.begin("Largest", "sets dst to the greatest 32 bits, without a sign, of each block of 128 bytes of src under the mask.",
		"func(dst *uint64, src *byte, mask uint64, blocks int)", "dst", "src", "mask", "blocks")
	mask := m.spread(at["mask"])
	m.Label("blocks")
	var all []reg.VecVirtual
	for i := 0; i < blockSize; i += m.width() {
		v := m.vector()
		m.and(operand.Mem{Base: at["src"], Disp: i}, mask, v)
		all = append(all, v)
	}
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
	result := m.GP32()
	m.VMOVD(x, result)
	m.MOVQ(result.As64(), operand.Mem{Base: at["dst"]}) // a move of 32 bits clears the others
	m.ADDQ(operand.U32(8), at["dst"])
	m.ADDQ(operand.U32(blockSize), at["src"])
	m.DECQ(at["blocks"])
	m.JNZ(operand.LabelRef("blocks"))
	m.VZEROUPPER()
	m.RET()
}

// fixed writes a kernel that turns numbers into integers of so many bytes, or back.
func (m *machine) fixed(size int, encodes bool) {
	name, doc, by := fmt.Sprintf("FixedInt%d", 8*size), "turns numbers of src into integers", ""
	if !encodes {
		name, doc = "From"+name, "turns integers of src into numbers"
	}
	if doc += ": times the scale of their block of 128 bytes"; size == 8 {
		doc, by = doc+", times the constant", "constant float64, "
	}
	at := m.begin(name, doc+"; rounded to nearest, ties to even.", "func(dst, src *byte, scales *float64, "+by+"blocks int)", "dst", "src", "scales", "blocks")
	constant, scale := m.vector(), m.vector()
	if size == 8 {
		x := m.XMM()
		m.Load(m.Param("constant"), x)
		m.VBROADCASTSD(x, constant)
	}
	m.Label("blocks")
	m.VBROADCASTSD(operand.Mem{Base: at["scales"]}, scale)
	step := m.width() * size / 8 // of as many bytes are as many numbers as there are binary64 in a register
	for i := 0; i < blockSize; i += step {
		from, to := operand.Mem{Base: at["src"], Disp: i}, operand.Mem{Base: at["dst"], Disp: i}
		v := m.vector()
		switch {
		case size == 8 && encodes:
			m.VMULPD(from, scale, v)
			m.VMULPD(constant, v, v)
			m.VCVTPD2QQ(v, v)
			m.save(v, to, 0)
		case size == 8:
			m.VCVTQQ2PD(from, v)
			m.VMULPD(constant, v, v)
			m.VMULPD(scale, v, v)
			m.save(v, to, 0)
		case encodes:
			m.VCVTPS2PD(from, v)
			m.VMULPD(scale, v, v)
			m.half(func(h reg.VecVirtual) { m.toInt32(v, h) }, to)
		default:
			m.VCVTDQ2PD(from, v)
			m.VMULPD(scale, v, v)
			m.half(func(h reg.VecVirtual) { m.toFloat32(v, h) }, to)
		}
	}
	m.ADDQ(operand.U32(8), at["scales"])
	m.ADDQ(operand.U32(blockSize), at["src"])
	m.ADDQ(operand.U32(blockSize), at["dst"])
	m.DECQ(at["blocks"])
	m.JNZ(operand.LabelRef("blocks"))
	m.VZEROUPPER()
	m.RET()
}

// half stores what makes a register of half the width.
func (m *machine) half(from func(h reg.VecVirtual), to operand.Mem) {
	var h reg.VecVirtual = m.XMM()
	if m.wide() {
		h = m.YMM()
	}
	from(h)
	m.VMOVDQU(h, to)
}

func (m *machine) toInt32(v, h reg.VecVirtual) {
	if m.wide() {
		m.VCVTPD2DQ(v, h)
	} else {
		m.VCVTPD2DQY(v, h)
	}
}

func (m *machine) toFloat32(v, h reg.VecVirtual) {
	if m.wide() {
		m.VCVTPD2PS(v, h)
	} else {
		m.VCVTPD2PSY(v, h)
	}
}
