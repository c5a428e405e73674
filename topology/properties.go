package topology

import (
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/reduce"
)

var capabilityFields = []string{"functions", "types", "slots", "children", "chunk", "window"}

// capability changes c by the fields of an object.
func (d *documentReader) capability(f map[string]*document.Value, c *Capability) {
	into(f["functions"], func(v *document.Value) (Functions, bool) {
		return set(d, v, AllFunctions(), func(name string) (Functions, error) {
			x, err := reduce.ParseFunction(name)
			return FunctionsOf(x), err
		})
	}, &c.Functions)
	into(f["types"], func(v *document.Value) (Types, bool) {
		return set(d, v, AllTypes(), func(name string) (Types, error) {
			x, err := reduce.ParseType(name)
			return TypesOf(x), err
		})
	}, &c.Types)
	count := func(v *document.Value) (int, bool) { return d.within(v, "", 0, maxCapability, ErrCapability) }
	into(f["slots"], count, &c.Slots)
	into(f["children"], count, &c.Children)
	into(f["chunk"], count, &c.Chunk)
	into(f["window"], count, &c.Window)
}

// set reads "all", "none" or a list of names into a set of functions or types.
func set[S Functions | Types](d *documentReader, v *document.Value, all S, one func(string) (S, error)) (is S, ok bool) {
	switch {
	case v.Kind == document.String && v.Text == "all":
		return all, true
	case v.Kind == document.String && v.Text == "none":
		return 0, true
	case v.Kind != document.List:
		d.fail(v, fmt.Errorf("must be all, none, or a list of names: %w", ErrField))
		return 0, false
	}
	d.each(v, func(item *document.Value) {
		name, ok := d.text(item)
		if !ok {
			return
		}
		x, err := one(name)
		switch {
		case err != nil:
			d.fail(item, fmt.Errorf("%w: %w", ErrField, err))
		case x&^all != 0:
			d.fail(item, fmt.Errorf("%q is not among %v: %w", name, strings.Join(names(all), ", "), ErrField))
		case is&x != 0:
			d.fail(item, fmt.Errorf("%q is there twice: %w", name, ErrField))
		}
		is |= x & all
	})
	return is, true
}

func names[S Functions | Types](s S) []string {
	var list []string
	switch s := any(s).(type) {
	case Functions:
		for _, f := range s.List() {
			list = append(list, f.String())
		}
	case Types:
		for _, t := range s.List() {
			list = append(list, t.String())
		}
	}
	return list
}

// linkSpec changes s by the fields of an object.
func (d *documentReader) linkSpec(f map[string]*document.Value, s *LinkSpec) {
	into(f["bandwidth"], d.bandwidth, &s.Bandwidth)
	into(f["latency"], d.latency, &s.Latency)
}
