package main

import "github.com/mmcloughlin/avo/operand"

// narrow writes a kernel that rounds binary32 to 16 bits, or one that goes back: steps of as many
// elements as there are binary32 in a register.
func (m *machine) narrow(t element, narrows bool) {
	name, doc := "Narrow", "rounds binary32 of src to 16 bits, to nearest, ties to even."
	if !narrows {
		name, doc = "Widen", "turns numbers of 16 bits of src into binary32."
	}
	at := m.begin(name+t.String(), doc, "func(dst, src *byte, steps int)", "dst", "src", "steps")
	half := m.floats(t)
	m.Label("steps")
	from, to := operand.Mem{Base: at["src"]}, operand.Mem{Base: at["dst"]}
	if narrows {
		half.store(m.load(from, 0), to)
	} else {
		v := m.inRegister(half.load(from))
		x := m.vector()
		m.VMOVAPS(v, x)
		m.settle(float32s, m.broadcast(twice(nan32)), x)
		m.save(x, to, 0)
	}
	in, out := m.width(), m.width()/2
	if !narrows {
		in, out = out, in
	}
	m.ADDQ(operand.U32(in), at["src"])
	m.ADDQ(operand.U32(out), at["dst"])
	m.DECQ(at["steps"])
	m.JNZ(operand.LabelRef("steps"))
	m.VZEROUPPER()
	m.RET()
}
