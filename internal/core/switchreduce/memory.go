package switchreduce

import "github.com/tributary-fabric/tributary/internal/wire"

const (
	// blockSlots is the slots whose packets lie side by side: more than a batch
	// of the transport takes.
	blockSlots = 64
	// smallPacket is the bytes of a packet up to which a slot has memory of its
	// own: small operations need no blocks.
	smallPacket = wire.HeaderSize + 2*wire.ErrorBodySize
	// maxSpares bounds the packets' memory that is kept for detach.
	maxSpares = 16
)

// memory is where the slots' packets are: in blocks, one behind the other in the
// order of the slots, so that those of numbers that follow each other are one
// piece.
type memory struct {
	stride int      // bytes of the largest packet, rounded up to whole words
	blocks [][]byte // each is made when its first slot is used

	lent   [][]byte // packets' memory given up in this Step while it was lent
	spares [][]byte // packets' memory to be used again, of stride bytes

	// holds is memory for what waits in open slots, to be used again: that which
	// came last first, so that it is as small as what waits at a time, and not
	// as the window, and is in caches still.
	holds [][]byte
}

// fit makes the memory be for so many slots, with packets of size bytes.
func (m *memory) fit(slots, size int) {
	if stride := (size + 7) &^ 7; stride > m.stride {
		// The old blocks live on while slots have packets there.
		m.stride, m.blocks, m.spares, m.holds = stride, nil, nil, nil
	}
	if n := (slots + blockSlots - 1) / blockSlots; n > len(m.blocks) {
		m.blocks = append(m.blocks, make([][]byte, n-len(m.blocks))...)
	}
}

// home returns the place of slot i's packet, one of so many slots.
func (m *memory) home(i, slots int) []byte {
	block := &m.blocks[i/blockSlots]
	if n := min(blockSlots, slots) * m.stride; len(*block) < n {
		*block = make([]byte, n)
	}
	at := i % blockSlots * m.stride
	return (*block)[at : at+m.stride] // and on to the next ones: see joins
}

// reserve makes s's packet have room for size bytes of payload; its contents
// may go. The slot is detached.
func (c *Core) reserve(e *epoch, s *slot, size int) {
	size += wire.HeaderSize
	switch {
	case s.lent == c.step && len(s.packet) == 0: // not home, where a part is lent
		s.packet, s.home = c.spare(), false
	case s.home && len(s.packet) == c.stride:
	case size <= smallPacket && size <= len(s.packet):
	case size <= smallPacket:
		s.packet, s.home = make([]byte, smallPacket), false
	case s.lent != c.step:
		if len(s.packet) == c.stride && len(c.spares) < maxSpares {
			c.spares = append(c.spares, s.packet)
		}
		s.packet, s.home = c.memory.home(int(s.number&(2*e.Window-1)), c.places), true
	case size > len(s.packet):
		s.packet, s.home = c.spare(), false
	}
}

func (m *memory) spare() []byte {
	if n := len(m.spares); n > 0 {
		b := m.spares[n-1]
		m.spares = m.spares[:n-1]
		return b
	}
	return make([]byte, m.stride)
}

// detach must be called before the packet of a slot is written that may have
// been lent. An Output of this Step may still point into it: then the slot gets
// other memory, and the caller's packet stays as it is. So a chunk that takes a
// slot over in the same batch as the old chunk was sent (by a peer that breaks
// the rule of 2W, since one that keeps it cannot do so) never mixes the two.
func (c *Core) detach(s *slot, out *Output) {
	if s.lent != c.step || len(s.packet) == 0 {
		return
	}
	c.emit(out)
	if !s.home && len(s.packet) == c.stride {
		c.lent = append(c.lent, s.packet)
	}
	s.packet, s.size, s.home = nil, 0, false
}

// reclaim takes back what was lent in the Step before.
func (m *memory) reclaim() {
	for i, b := range m.lent {
		if len(m.spares) < maxSpares && len(b) == m.stride {
			m.spares = append(m.spares, b)
		}
		m.lent[i] = nil
	}
	m.lent = m.lent[:0]
}

// lend returns the slot's body, to be sent in this Step.
func (c *Core) lend(s *slot) []byte {
	if s.size == 0 {
		return nil
	}
	s.lent = c.step
	return s.body()
}

// borrowed is a child's payload that is still in its packet, which is the
// core's during a Step only.
type borrowed struct {
	slot          *slot
	epoch, number uint32
	child         int32
}

// borrow keeps a child's payload without copying it.
func (c *Core) borrow(e *epoch, s *slot, child int, payload []byte) {
	if n := len(e.Children); len(s.inputs) != n {
		if cap(s.inputs) < n {
			s.inputs = make([][]byte, n)
		}
		s.inputs = s.inputs[:n]
	}
	s.inputs[child] = payload
	c.borrowed = append(c.borrowed, borrowed{s, s.epoch, s.number, int32(child)})
}

// repay copies what is borrowed and still needed.
func (c *Core) repay() {
	for i := range c.borrowed {
		b := &c.borrowed[i]
		s := b.slot
		b.slot = nil
		if s.state != open || s.epoch != b.epoch || s.number != b.number {
			continue
		}
		payload := s.inputs[b.child]
		size := len(payload)
		if s.held == nil {
			s.held = c.memory.hold(len(s.inputs) * (c.stride - wire.HeaderSize))
		}
		at := s.held[int(b.child)*size:][:size:size]
		copy(at, payload)
		s.inputs[b.child] = at
	}
	c.borrowed = c.borrowed[:0]
}

// hold returns memory of at least size bytes for what waits in a slot.
func (m *memory) hold(size int) []byte {
	if n := len(m.holds); n > 0 {
		b := m.holds[n-1]
		m.holds[n-1] = nil
		m.holds = m.holds[:n-1]
		if len(b) >= size {
			return b
		}
	}
	return make([]byte, size)
}

// drained must be called when s is not open any more: nothing waits there.
func (m *memory) drained(s *slot) {
	clear(s.inputs) // they may be in packets
	if s.held != nil {
		m.holds = append(m.holds, s.held)
		s.held = nil
	}
}
