package session

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

type state uint8

const (
	vacant  state = iota
	flying        // contributed or to be contributed in this epoch
	awaited       // its result comes from another member
	done          // result taken, copy kept
)

// chunk is one number's place in the ring. It is in flight while it is flying
// or a credit.
type chunk struct {
	number uint32
	state  state
	sent   bool // in this epoch, at
	sentAt core.Time
	care   care
	source bool
	sink   bool
	sig    wire.Signature
	credit bool       // held, and to be confirmed in this epoch: see doc.go
	op     *operation // nil once the result was given to the operation
	offset int        // of the chunk in the operation's vectors, in bytes

	// kept is, when done, the result, or the input where the result was empty.
	// Of a chunk of Block32 it is before that what was last contributed, and
	// exponent is that of kept; of any other chunk it is 0.
	kept     []byte
	exponent int8
}

// pending reports whether c waits for a result from the parent.
func (c *chunk) pending() bool { return c.state == flying || c.credit }

// passed reports whether the base may pass c.
func (c *chunk) passed() bool { return c.state == done && !c.credit }

// signature returns what c's contribution in this epoch says.
func (c *chunk) signature() wire.Signature {
	if c.credit {
		return wire.Signature{Collective: wire.Barrier, Operation: c.sig.Operation}
	}
	return c.sig
}

// input returns what c contributes, and its exponent: from the operation's
// vector, or from the kept copy of a chunk that is reduced again.
func (s *Session) input(c *chunk) (data []byte, exponent int8) {
	size := c.sig.PayloadSize()
	isBlock := c.sig.Element == reduce.Block32
	switch {
	case c.sig.Collective.Copies() && !c.source, size == 0 && !isBlock:
		return nil, 0
	case c.op == nil:
		return c.kept, c.exponent
	}
	data = c.op.In[c.offset : c.offset+size]
	if isBlock {
		c.kept = slices.Grow(c.kept[:0], size)[:size]
		c.exponent = reduce.EncodeBlock(c.kept, data, s.cfg.Members)
		return c.kept, c.exponent
	}
	return data, 0
}
