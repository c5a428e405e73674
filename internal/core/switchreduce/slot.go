package switchreduce

import (
	"math/bits"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// state is the state of a slot.
type state uint8

const (
	vacant   state = iota
	open           // some children's contributions are held, some are missing
	complete       // all are held and reduced, the partial is on its way up
	finished       // the result is held
	failed         // an error is held
)

// slot is where one chunk is reduced.
type slot struct {
	state  state
	lost   bool   // complete: the parent's last answer was Lost
	epoch  uint32 // epoch and number that the slot serves, unless vacant
	number uint32

	missing    int32 // open: children that have not contributed
	unanswered int32 // complete: probes to the parent since its last answer

	sig    wire.Signature // of every contribution held
	whole  int            // bytes of the payload that it speaks of
	first  uint32         // lowest rank beneath the child that contributed first
	source int32          // child that holds the vector, in a collective that copies; -1: none
	origin uint32         // lowest rank beneath that child

	// packet is the memory of the packet that the slot sends: its header, and
	// size bytes of payload. That is the partial while complete, the result
	// while finished, the error while failed. The partial of a collective that
	// copies is the source's payload, which is here from the start; of one
	// without elements, or where no child is the source, it is empty.
	packet []byte
	size   int
	home   bool   // packet is the slot's place in a block
	lent   uint64 // the Step in which an Output got a part of packet

	// inputs are, while open, the children's payloads: parts of held, where one
	// had to wait for the next Step, or, within the Step in which they come, of
	// their packets.
	inputs [][]byte
	held   []byte

	// Of a chunk of reduce.Block32, exponents holds, while open, those of the
	// children's contributions; exponent is, afterwards, that of body. Of any
	// other chunk exponent is 0.
	exponents []int8
	exponent  int8

	// sets holds two sets of children, one bit a child: who has contributed,
	// and who wants the vector.
	sets []uint64
}

// age is how a slot stands to a chunk.
type age int8

const (
	older age = -1 // vacant, or of an earlier epoch or number: to be taken over
	same  age = 0
	newer age = 1 // the chunk is late
)

func (s *slot) age(epoch, number uint32) age {
	switch {
	case s.state == vacant || s.epoch < epoch:
		return older
	case s.epoch > epoch:
		return newer
	case s.number == number:
		return same
	case wire.Newer(number, s.number):
		return older
	}
	return newer
}

// slots are a tree's places for chunks, in pages that are made when their first
// slot is used.
type slots struct {
	places int
	pages  []*[pageSlots]slot
}

const pageSlots = 16 // of a page, a power of two

// extend makes room for so many places.
func (s *slots) extend(places int) {
	s.places = max(s.places, places)
	if n := (s.places + pageSlots - 1) / pageSlots; n > len(s.pages) {
		s.pages = append(s.pages, make([]*[pageSlots]slot, n-len(s.pages))...)
	}
}

// at returns the slot of number n in epoch e.
func (s *slots) at(e *epoch, n uint32) *slot {
	i := n & (2*e.Window - 1)
	page := &s.pages[i/pageSlots]
	if *page == nil {
		*page = new([pageSlots]slot)
	}
	return &(*page)[i%pageSlots]
}

// each calls f with every slot that may be in use.
func (s *slots) each(f func(*slot)) {
	for _, page := range s.pages {
		if page != nil {
			for i := range page {
				f(&page[i])
			}
		}
	}
}

// Forget gives back the slots of the numbers before n, and their memory: nobody
// asks for them any more. It must be called between Steps, when what was lent is
// not needed any more.
func (c *Core) Forget(n uint32) {
	left := false
	c.each(func(s *slot) {
		if s.state != vacant && wire.Newer(n, s.number) {
			c.drained(s)
			*s = slot{}
		}
		left = left || s.state != vacant
	})
	c.borrowed, c.queue, c.last.epoch = nil, queue{}, nil
	if !left {
		clear(c.pages)
		stride := c.stride
		c.memory = memory{}
		c.fit(c.places, stride)
	}
}

// claim makes s serve number n of epoch e, with nothing in it.
func (c *Core) claim(e *epoch, s *slot, n uint32, out *Output) {
	c.detach(s, out)
	c.drained(s)
	words := 2 * setWords(len(e.Children))
	if cap(s.sets) < words {
		s.sets = make([]uint64, words)
	}
	s.sets = s.sets[:words]
	clear(s.sets)
	*s = slot{
		state: open, epoch: e.Epoch, number: n,
		missing: int32(len(e.Children)), source: -1,
		packet: s.packet, home: s.home, lent: s.lent,
		inputs: s.inputs, sets: s.sets, exponents: s.exponents,
	}
}

// keepExponent notes the exponent of a child's contribution.
func (s *slot) keepExponent(child, children int, exponent int8) {
	if cap(s.exponents) < children {
		s.exponents = make([]int8, children)
	}
	s.exponents = s.exponents[:children]
	s.exponents[child] = exponent
}

func setWords(children int) int { return (children + 63) / 64 }

// contributed and wants return the two sets of s.
func (s *slot) contributed() []uint64 { return s.sets[:len(s.sets)/2] }
func (s *slot) wants() []uint64       { return s.sets[len(s.sets)/2:] }

func has(set []uint64, i int) bool { return set[i>>6]>>(i&63)&1 != 0 }
func add(set []uint64, i int)      { set[i>>6] |= 1 << (i & 63) }

func isEmpty(set []uint64) bool { return count(set) == 0 }

func count(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

// body returns the payload of what the slot sends.
func (s *slot) body() []byte { return s.packet[wire.HeaderSize : wire.HeaderSize+s.size] }
