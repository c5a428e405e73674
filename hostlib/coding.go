package hostlib

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// Reproducible makes sums of float32 and float64 give the same bits on every tree, in switches or on hosts, by every
// algorithm of hosts, after every failure, and for the members in any order: an element depends on nothing but the
// members' numbers, and how many members there are. The members agree on an exponent for each block of 128 bytes of
// the vector, and sum integers that are scaled by it: two operations, of which callers see one. With n members an
// element differs from the exact sum, before it is rounded to its type, by at most n M / 2^b, where M is the greatest
// magnitude that any member has in the block, and b is 28 for float32 and 60 for float64 among 8 members;
// docs/functions.md has it for other numbers, and for blocks with a NaN or an infinity, which keep far less of their
// other elements: 20 and 53 bits there, and of float32 among 64 members 11. It holds for every collective that sums;
// Outcome reports it. It is not to be combined with BlockFloat and Compressed. Scans and reduce-scatter run on hosts
// then, and where several processes of a host are members all sums of these types.
func Reproducible() GroupOption { return func(t *groupOptions) { t.reproducible = true } }

// Compressed makes packets of sums of float32 carry 16 bits for each element: reduce.BFloat16 or
// reduce.Float16. Each member rounds its elements, and each switch, which adds in binary32, its result;
// docs/functions.md has the bound of the error. It holds for Allreduce and Reduce of vectors that a packet has no room
// for, which then run over the communicator's tree, as with OnTree; shorter ones stay as they are. Outcome reports
// it. It is not to be combined with BlockFloat and Reproducible.
func Compressed(to reduce.Type) GroupOption { return func(t *groupOptions) { t.compressed = to } }

// coding is what elements were on their way, where they are not those of the vectors.
type coding struct {
	blockFloat   bool
	reproducible bool
	compressed   reduce.Type // NoType: they were not
}

// report has an outcome say it.
func (k coding) report(o *Outcome) {
	o.BlockFloat, o.Reproducible, o.Compressed = k.blockFloat, k.reproducible, k.compressed
}

// validateCoding reports what of the options cannot be together.
func (t groupOptions) validateCoding() error {
	switch {
	case t.compressed != reduce.NoType && t.compressed != reduce.Float16 && t.compressed != reduce.BFloat16:
		return fmt.Errorf("%w: vectors are compressed to %v or %v, not %v", ErrArgument, reduce.BFloat16, reduce.Float16, t.compressed)
	case t.compressed != reduce.NoType && t.blockFloat, t.reproducible && (t.blockFloat || t.compressed != reduce.NoType):
		return fmt.Errorf("%w: of BlockFloat, Compressed and Reproducible there can be one", ErrArgument)
	}
	return nil
}

// codingWords says how floating-point numbers are summed.
func (t groupOptions) codingWords() string {
	switch {
	case t.reproducible:
		return "Reproducible sums"
	case t.blockFloat:
		return "sums in BlockFloat"
	case t.compressed != reduce.NoType:
		return fmt.Sprintf("sums Compressed to %v", t.compressed)
	}
	return "plain sums"
}

// sumsFixed reports whether a reduction is Reproducible as integers: it would depend on the order otherwise.
func (t groupOptions) sumsFixed(f reduce.Function, e reduce.Type) bool {
	return t.reproducible && f == reduce.Sum && (e == reduce.Float32 || e == reduce.Float64)
}

// fixed returns how the members sum a type, if that is Reproducible as integers.
func (c *Communicator) fixed(f reduce.Function, e reduce.Type) (as reduce.Fixed, is bool) {
	if !c.options.sumsFixed(f, e) {
		return as, false
	}
	as, err := reduce.FixedOf(e, len(c.members))
	return as, err == nil // always: see checkCoding
}

// checkCoding reports whether the group is too large for its options.
func (t groupOptions) checkCoding(members int) error {
	if t.reproducible && members > reduce.MaxFixedMembers {
		return fmt.Errorf("%w: Reproducible is for up to %d members, and there are %d", ErrArgument, reduce.MaxFixedMembers, members)
	}
	return nil
}

// code has o, an operation of the communicator's tree, turn its elements as the options have it. The marks of a
// Fixed sum are temporary memory.
func (c *Communicator) code(o *session.Operation) (k coding, marks *[]byte) {
	t := &c.options
	fixed, isFixed := c.fixed(o.Function, o.Element)
	switch {
	case t.blocks(o):
		o.Element, k.blockFloat = reduce.Block32, true
	case t.compresses(o, c.chunkBytes()):
		o.Element, o.Compressed, k.compressed = t.compressed, true, t.compressed
	case isFixed:
		k.reproducible = true
		if o.Elements == 0 || len(o.In) != o.Elements*o.Element.Size() {
			break // there is nothing to sum, or Validate finds out
		}
		size := 4 * fixed.Marks(o.Elements)
		marks = tempOf(size)
		o.Fixed, o.Element, o.Marks = fixed, fixed.Word(), (*marks)[:size]
		fixed.Mark(o.Marks, o.In)
	}
	return k, marks
}

// compresses reports whether packets of o carry its elements compressed.
func (t groupOptions) compresses(o *session.Operation, chunkBytes int) bool {
	return t.compressed != reduce.NoType && o.Parts == nil && o.Function == reduce.Sum && o.Element == reduce.Float32 && o.Elements*o.Element.Size() > chunkBytes
}

// needs returns the functions and types that a switch must know for a communicator of so many members. Where
// float32 is only summed in block floating point, or floating-point numbers are only summed as integers, it need not
// know them: what only copies vectors need not know their type.
func (t groupOptions) needs(members int) (functions topology.Functions, types topology.Types) {
	functions, types = t.functions, t.types
	if !functions.Has(reduce.Sum) {
		return functions, types
	}
	var others topology.Types
	add := func(f reduce.Function, of ...reduce.Type) {
		functions |= topology.FunctionsOf(f)
		others |= topology.TypesOf(of...)
	}
	sumsAlone := functions == topology.FunctionsOf(reduce.Sum)
	var instead topology.Types
	fix := func(from reduce.Type) {
		if f, err := reduce.FixedOf(from, members); err == nil { // of others no communicator is formed: see checkCoding
			add(reduce.Max, reduce.Uint32, f.Word())
			instead |= topology.TypesOf(from)
		}
	}
	if types.Has(reduce.Float32) {
		switch {
		case t.blockFloat:
			add(reduce.Sum, reduce.Block32)
			instead = topology.TypesOf(reduce.Float32)
		case t.compressed != reduce.NoType:
			add(reduce.Sum, t.compressed)
		case t.reproducible:
			fix(reduce.Float32)
		}
	}
	if t.reproducible && types.Has(reduce.Float64) {
		fix(reduce.Float64)
	}
	if sumsAlone {
		types &^= instead
	}
	return functions, types | others
}
