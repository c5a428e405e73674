package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/reducetest"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// planParts makes an operation in which members hold and get parts, of random lengths or of one,
// with vectors of random float32. Some are in place.
func (w *world) planParts(plans [][]Operation, id uint64) {
	size := len(plans)
	counts, most := make([]int, size), w.rng.IntN(15)
	for r := range counts {
		counts[r] = w.rng.IntN(most + 1)
	}
	o := Operation{ID: id, Collective: wire.Broadcast, Element: reduce.Float32}
	form, root, inPlace, areEqual := w.rng.IntN(4), w.rng.IntN(size), w.rng.IntN(2) == 0, w.rng.IntN(2) == 0
	if areEqual {
		for r := range counts {
			counts[r] = most
		}
	}
	ends, sum := make([]int, size), 0
	for r, n := range counts {
		sum += n
		ends[r] = sum
	}
	if o.Elements = sum; sum == 0 || form < 2 && counts[root] == sum { // nothing is copied
		form = 3
	}
	reduces := form == 3
	if reduces {
		o.Collective, o.Function = wire.Reduce, reduce.Sum
		o.Element = []reduce.Type{reduce.Float32, reduce.Block32}[w.rng.IntN(2)]
	}
	for r := range size {
		all, own := Range{0, sum}, Range{ends[r] - counts[r], ends[r]}
		p := Parts{Mark: uint32(form), Said: sum + min(sum, 3)}
		if form < 2 {
			p.Skip = Range{ends[root] - counts[root], ends[root]}
		}
		if form == 1 || form == 2 {
			if p.Ends = ends; areEqual && most > 0 {
				p.Each, p.Ends = most, nil
			}
		}
		switch form {
		case 0: // scatter
			if p.Wants = own; r == root {
				p.Holds, p.Wants = all, Range{}
			}
		case 1: // gather
			if p.Holds = own; r == root {
				p.Wants = all
			}
		case 2: // allgather
			p.Holds, p.Wants = own, all
		case 3: // reduce-scatter
			p.Holds, p.Wants = all, own
		}
		o.In, o.Out = nil, make([]byte, 4*p.Wants.size())
		for range p.Holds.size() {
			o.In = binary.LittleEndian.AppendUint32(o.In, math.Float32bits(float32(w.rng.NormFloat64())*float32(math.Exp(8*w.rng.NormFloat64()))))
		}
		switch at := 4 * own.From; {
		case reduces && inPlace:
			o.Out = o.In[at : at+len(o.Out)]
		case p.Holds == own && p.Wants == all:
			copy(o.Out[at:], o.In) // which the session leaves to the caller
			if inPlace {
				o.In = o.Out[at : at+len(o.In)]
			}
		}
		o.Parts = &p
		plans[r] = append(plans[r], o)
	}
}

// expectedOfParts is the slow oracle for an operation with Parts.
func expectedOfParts(inputs [][]Operation, i int, rank uint32) []byte {
	o := inputs[rank][i]
	whole := make([]byte, 4*o.Elements)
	in := make([][]byte, len(inputs))
	for r, plan := range inputs {
		in[r] = plan[i].In
		copy(whole[4*plan[i].Parts.Holds.From:], in[r])
	}
	switch {
	case o.Element == reduce.Block32:
		whole = reducetest.InBlocks(in, chunkBytes, reducetest.SumBlocks)
	case o.Collective == wire.Reduce:
		for e := range o.Elements {
			sum := math.Float32frombits(binary.LittleEndian.Uint32(in[0][4*e:]))
			for _, v := range in[1:] {
				sum += math.Float32frombits(binary.LittleEndian.Uint32(v[4*e:]))
			}
			binary.LittleEndian.PutUint32(whole[4*e:], math.Float32bits(sum))
		}
	}
	return bytes.Clone(whole[4*o.Parts.Wants.From : 4*o.Parts.Wants.To])
}

// TestPartsAreValidated: a layout that cannot be is refused before anything is sent.
func TestPartsAreValidated(t *testing.T) {
	right := Parts{Holds: Range{2, 4}, Wants: Range{0, 8}, Each: 2, Said: 8}
	for what, change := range map[string]func(*Operation, *Parts){
		"right":                          func(*Operation, *Parts) {},
		"an allreduce":                   func(o *Operation, _ *Parts) { o.Collective, o.Function = wire.Allreduce, reduce.Sum },
		"aside":                          func(o *Operation, _ *Parts) { o.Aside = true },
		"held beyond the end":            func(_ *Operation, p *Parts) { p.Holds = Range{8, 10} },
		"wanted beyond the end":          func(_ *Operation, p *Parts) { p.Wants = Range{1, 9} },
		"a range that ends early":        func(_ *Operation, p *Parts) { p.Skip = Range{3, 2} },
		"parts that do not fill it":      func(_ *Operation, p *Parts) { p.Each = 3 },
		"ends that do not reach it":      func(_ *Operation, p *Parts) { p.Each, p.Ends = 0, []int{4, 7} },
		"ends that fall":                 func(_ *Operation, p *Parts) { p.Each, p.Ends = 0, []int{4, 3, 8} },
		"a mark of more than 24 bits":    func(_ *Operation, p *Parts) { p.Mark = 1 << 24 },
		"fewer elements said":            func(_ *Operation, p *Parts) { p.Said = 7 },
		"everything skipped":             func(_ *Operation, p *Parts) { p.Skip = Range{0, 8} },
		"an input of another length":     func(o *Operation, _ *Parts) { o.In = o.In[4:] },
		"an output of another length":    func(o *Operation, _ *Parts) { o.Out = o.Out[4:] },
		"a reduction of what is missing": func(o *Operation, _ *Parts) { o.Collective, o.Function = wire.Reduce, reduce.Sum },
	} {
		p := right
		o := Operation{Collective: wire.Broadcast, Element: reduce.Int32, Elements: 8, In: make([]byte, 8), Out: make([]byte, 32), Parts: &p}
		change(&o, &p)
		err := o.Validate(Config{Rank: 1, Members: 4, ChunkBytes: chunkBytes, Window: 4})
		if what == "right" && err != nil || what != "right" && !errors.Is(err, ErrOperation) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPartsOfChunks: chunks do not reach over the ends of parts, nor into what is skipped.
func TestPartsOfChunks(t *testing.T) {
	type cut struct {
		from, elements int
		source, sink   bool
	}
	for what, c := range map[string]struct {
		parts    Parts
		elements int
		want     []cut
	}{
		"scatter at the root":   {Parts{Holds: Range{0, 9}, Skip: Range{3, 6}}, 9, []cut{{0, 3, true, false}, {6, 3, true, false}}},
		"scatter elsewhere":     {Parts{Wants: Range{6, 9}, Skip: Range{0, 3}}, 9, []cut{{3, 4, false, true}, {7, 2, false, true}}},
		"gather":                {Parts{Holds: Range{5, 10}, Each: 5, Skip: Range{10, 15}}, 15, []cut{{0, 4, false, false}, {4, 1, false, false}, {5, 4, true, false}, {9, 1, true, false}}},
		"allgather":             {Parts{Holds: Range{0, 1}, Wants: Range{0, 6}, Ends: []int{1, 1, 6, 6}}, 6, []cut{{0, 1, true, false}, {1, 4, false, true}, {5, 1, false, true}}},
		"the last part skipped": {Parts{Holds: Range{2, 4}, Each: 2, Skip: Range{2, 4}, Wants: Range{0, 4}}, 4, []cut{{0, 2, false, true}}},
	} {
		o := Operation{Collective: wire.Broadcast, Element: reduce.Int32, Elements: c.elements, Parts: &c.parts}
		var p operation
		p.begin(&o, 0, 0, &Config{ChunkBytes: chunkBytes, Window: 4})
		var got []cut
		for range p.chunks {
			var k chunk
			p.cut(&k)
			got = append(got, cut{k.offset / 4, int(k.elements), k.source, k.sink})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}
