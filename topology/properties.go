package topology

import (
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/reduce"
)

var capabilityFields = []string{"functions", "types", "slots", "children", "chunk", "window", "speed", "plain"}

// capability changes c by the fields of an object.
func (d *documentReader) capability(f map[string]*document.Value, c *Capability) {
	into(f["functions"], func(v *document.Value) (Functions, bool) {
		return set(d, v, AllFunctions(), AllFunctions().List(), reduce.ParseFunction)
	}, &c.Functions)
	into(f["types"], func(v *document.Value) (Types, bool) {
		return set(d, v, AllTypes(), AllTypes().List(), reduce.ParseType)
	}, &c.Types)
	count := func(v *document.Value) (int, bool) { return d.within(v, "", 0, maxCapability, ErrCapability) }
	into(f["slots"], count, &c.Slots)
	into(f["children"], count, &c.Children)
	into(f["chunk"], count, &c.Chunk)
	into(f["window"], count, &c.Window)
	into(f["speed"], d.speed, &c.Speed)
	into(f["plain"], d.truth, &c.Plain)
}

// set reads "all", "none" or a list of names into a set of functions or types.
func set[S ~uint32, T element](d *documentReader, v *document.Value, all S, list []T, parse func(string) (T, error)) (is S, ok bool) {
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
		one, err := parse(name)
		x := toSet[S]([]T{one})
		switch {
		case err != nil:
			d.fail(item, fmt.Errorf("%w: %w", ErrField, err))
		case x&^all != 0:
			d.fail(item, fmt.Errorf("%q is not among %v: %w", name, strings.Join(names(list), ", "), ErrField))
		case is&x != 0:
			d.fail(item, fmt.Errorf("%q is there twice: %w", name, ErrField))
		}
		is |= x & all
	})
	return is, true
}

// speed reads how fast a node reduces: what the object does not have is not known.
func (d *documentReader) speed(v *document.Value) (s Speed, ok bool) {
	f := d.object(v, "bytes", "packets")
	ok = into(f["bytes"], d.rate, &s.Bytes)
	ok = into(f["packets"], d.rate, &s.Packets) && ok
	return s, ok && f != nil
}

// linkSpec changes s by the fields of an object.
func (d *documentReader) linkSpec(f map[string]*document.Value, s *LinkSpec) {
	into(f["bandwidth"], d.bandwidth, &s.Bandwidth)
	into(f["latency"], d.latency, &s.Latency)
}
