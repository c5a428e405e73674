package topology

import (
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/reduce"
)

var capabilityFields = []string{"functions", "types", "slots", "children", "chunk", "window"}

// capability changes c by the fields of an object; v may be nil.
func (d *documentReader) capability(v *document.Value, c *Capability) {
	if v == nil {
		return
	}
	if f := d.object(v, capabilityFields...); f != nil {
		d.capabilityOf(f, c)
	}
}

func (d *documentReader) capabilityOf(f map[string]*document.Value, c *Capability) {
	if v := f["functions"]; v != nil {
		c.Functions = 0
		set(d, v, AllFunctions(), func(name string) (Functions, error) {
			x, err := reduce.ParseFunction(name)
			return FunctionsOf(x), err
		}, &c.Functions)
	}
	if v := f["types"]; v != nil {
		c.Types = 0
		set(d, v, AllTypes(), func(name string) (Types, error) {
			x, err := reduce.ParseType(name)
			return TypesOf(x), err
		}, &c.Types)
	}
	for _, n := range []struct {
		field string
		to    *int
	}{{"slots", &c.Slots}, {"children", &c.Children}, {"chunk", &c.Chunk}, {"window", &c.Window}} {
		v := f[n.field]
		if v == nil {
			continue
		}
		x, ok := d.integer(v)
		if ok && (x < 0 || x > maxCapability) {
			d.fail(v, fmt.Errorf("%d is not within 0 and %d: %w", x, maxCapability, ErrCapability))
		} else if ok {
			*n.to = int(x)
		}
	}
}

// set reads "all", "none" or a list of names into a set of functions or types.
func set[S Functions | Types](d *documentReader, v *document.Value, all S, one func(string) (S, error), to *S) {
	switch {
	case v.Kind == document.String && v.Text == "all":
		*to = all
		return
	case v.Kind == document.String && v.Text == "none":
		return
	case v.Kind != document.List:
		d.fail(v, fmt.Errorf("must be all, none, or a list of names: %w", ErrField))
		return
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
		case *to&x != 0:
			d.fail(item, fmt.Errorf("%q is there twice: %w", name, ErrField))
		}
		*to |= x & all
	})
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

// linkSpec changes s by the fields of an object; v may be nil.
func (d *documentReader) linkSpec(v *document.Value, s *LinkSpec) {
	if v == nil {
		return
	}
	if f := d.object(v, "bandwidth", "latency"); f != nil {
		d.linkSpecOf(f, s)
	}
}

func (d *documentReader) linkSpecOf(f map[string]*document.Value, s *LinkSpec) {
	if v := f["bandwidth"]; v != nil {
		if x, ok := d.bandwidth(v); ok {
			s.Bandwidth = x
		}
	}
	if v := f["latency"]; v != nil {
		if x, ok := d.latency(v); ok {
			s.Latency = x
		}
	}
}
