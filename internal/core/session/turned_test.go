package session

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestTurnedElementsAreDistinguished: an operation that turns its elements has, in all its packets, another signature than any
// on vectors of what packets carry; and what its members called can be read from it.
func TestTurnedElementsAreDistinguished(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		elements := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 100_000)).Draw(t, "elements")
		serial := rapid.Uint16().Draw(t, "serial")
		o := Operation{Collective: wire.Allreduce, Function: reduce.Sum, Element: reduce.Float32, Elements: elements}
		cfg := Config{Members: rapid.SampledFrom([]int{2, 64, 65, 70_000}).Draw(t, "members"), ChunkBytes: chunkBytes, Window: 4}
		switch from := rapid.SampledFrom([]reduce.Type{reduce.Float32, reduce.Float64, reduce.NoType}).Draw(t, "fixed"); from {
		case reduce.NoType:
			o.Compressed, o.Element = true, rapid.SampledFrom([]reduce.Type{reduce.Float16, reduce.BFloat16}).Draw(t, "compressed")
		default:
			f, err := reduce.FixedOf(from, cfg.Members)
			if err != nil {
				t.Fatal(err)
			}
			o.Fixed, o.Element, o.Marks = f, f.Word(), make([]byte, 4*f.Marks(elements))
		}
		if rapid.Bool().Draw(t, "whole") {
			o.Whole = Whole{IsSet: true, Elements: elements, Serial: serial}
		}
		o.In = make([]byte, elements*o.Width())
		o.Out = o.In
		s, err := New(cfg, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(o); err != nil {
			t.Fatal(err)
		}
		for _, p := range s.ops {
			plain := new(operation)
			plain.begin(&Operation{
				Collective: p.Collective, Function: p.Function, Element: p.Element, Elements: p.Elements,
				Whole: Whole{IsSet: true, Elements: p.Elements, Serial: p.sig.Operation},
			}, 0, 0, &cfg)
			if p.sig == plain.sig {
				t.Fatalf("%+v is that of %v of %v", p.sig, plain.Function, plain.Element)
			}
			if f, e, n := Called(&plain.sig); f != p.Function || e != p.Element || n != uint32(p.Elements) {
				t.Fatalf("%+v is read as %v of %d %v", plain.sig, f, n, e)
			}
			if f, e, n := Called(&p.sig); f != reduce.Sum || e != o.Vectors() || n != uint32(elements) {
				t.Fatalf("%+v is read as %v of %d %v, of %d %v", p.sig, f, n, e, elements, o.Vectors())
			}
			sig := p.sig
			sig.ChunkElements = uint16(min(p.perItem, p.Elements))
			if !sig.Valid() {
				t.Fatalf("%+v cannot be", sig)
			}
		}
	})
}
