package openconfig

import (
	"maps"
	"slices"
)

// The levels of a switch agent, which are in the module tributary.

var agents = level[Agent]{
	each: func(d *Device, yield func([]string, *Agent) bool) bool { return d.Agent == nil || yield(nil, d.Agent) },
	find: func(d *Device, _ []string, create bool) (*Agent, error) { return d.agent(create), nil },
	drop: func(d *Device, _ []string) {
		if d.Agent != nil && d.Agent.Switch == "" {
			d.Agent = nil // it is there as long as it has a name
		}
	},
}

func (d *Device) agent(create bool) *Agent {
	if d.Agent == nil && create {
		d.Agent = &Agent{}
	}
	return d.Agent
}

var agentLeaves = []leaf[Agent]{
	text(own+"/state/switch", func(a *Agent) *string { return &a.Switch }),
	text(own+"/state/version", func(a *Agent) *string { return &a.Version }),
	text(own+"/state/address", func(a *Agent) *string { return &a.Address }),
	number(own+"/state/incarnation", func(a *Agent) *uint64 { return &a.Incarnation }),
	text(own+"/state/data-plane", func(a *Agent) *string { return &a.DataPlane }),
	always(flag(own+"/state/drain", func(a *Agent) *bool { return &a.Draining })),
	configured(always(flag(own+"/config/drain", func(a *Agent) *bool { return &a.Draining }))),
	text(own+"/state/unusable", func(a *Agent) *string { return &a.Unusable }),
	texts(own+"/capability/state/functions", func(a *Agent) *[]string { return &a.Functions }),
	texts(own+"/capability/state/types", func(a *Agent) *[]string { return &a.Types }),
	always(number(own+"/capability/state/slots", func(a *Agent) *uint32 { return &a.Slots })),
	always(number(own+"/capability/state/children", func(a *Agent) *uint32 { return &a.Children })),
	always(number(own+"/capability/state/chunk", func(a *Agent) *uint32 { return &a.Chunk })),
	always(number(own+"/capability/state/window", func(a *Agent) *uint32 { return &a.Window })),
	stable(count(own+"/capability/state/reduce-bytes", 64, func(a *Agent) *Count { return &a.ReduceBytes })),
	stable(count(own+"/capability/state/reduce-packets", 64, func(a *Agent) *Count { return &a.ReducePackets })),
	counter(number(own+"/state/slots-used", func(a *Agent) *uint32 { return &a.SlotsUsed })),
	counter(number(own+"/state/counters/in-packets", func(a *Agent) *uint64 { return &a.PacketsIn })),
	counter(number(own+"/state/counters/in-bytes", func(a *Agent) *uint64 { return &a.BytesIn })),
	counter(number(own+"/state/counters/out-packets", func(a *Agent) *uint64 { return &a.PacketsOut })),
	counter(number(own+"/state/counters/out-bytes", func(a *Agent) *uint64 { return &a.BytesOut })),
	counter(number(own+"/state/counters/send-failures", func(a *Agent) *uint64 { return &a.Refused })),
	counter(number(own+"/state/counters/receive-overflows", func(a *Agent) *uint64 { return &a.Overflowed })),
}

// configured makes a leaf one that can be set at the target, and that repeats another
// here.
func configured(l leaf[Agent]) leaf[Agent] {
	l.Config = true
	l.set = func(*Agent, Value) {}
	return l
}

// stable makes a number one that does not change by itself.
func stable(l leaf[Agent]) leaf[Agent] {
	l.Counter = false
	return l
}

// entry is an entry of a list with one number.
type entry struct {
	in   map[string]uint64
	name string
}

// counts is a list of numbers by name.
func counts(list func(*Agent) *map[string]uint64) level[entry] {
	return level[entry]{
		each: func(d *Device, yield func([]string, *entry) bool) bool {
			if d.Agent == nil {
				return true
			}
			in := *list(d.Agent)
			for _, name := range slices.Sorted(maps.Keys(in)) {
				if !yield([]string{name}, &entry{in, name}) {
					return false
				}
			}
			return true
		},
		find: func(d *Device, keys []string, create bool) (*entry, error) {
			a := d.agent(create)
			if a == nil {
				return nil, nil
			}
			in := list(a)
			if _, there := (*in)[keys[0]]; !there {
				if !create {
					return nil, nil
				}
				if *in == nil {
					*in = map[string]uint64{}
				}
				(*in)[keys[0]] = 0
			}
			return &entry{*in, keys[0]}, nil
		},
		drop: func(d *Device, _ []string) {
			if in := list(d.Agent); len(*in) == 0 {
				*in = nil
			}
		},
	}
}

func countLeaves(at, name, number string) []leaf[entry] {
	of := sampled(key(at+"/"+name, func(e *entry) string { return e.name }))
	of.set = func(e *entry, v Value) {
		if v.kind == None {
			delete(e.in, e.name)
		}
	}
	return []leaf[entry]{of, {
		path: at + "/" + number, Leaf: Leaf{Kind: Uint, Bits: 64, Counter: true},
		get: func(e *entry) Value { return Number(e.in[e.name]) },
		set: func(e *entry, v Value) {
			if _, there := e.in[e.name]; there {
				e.in[e.name] = v.Number()
			}
		},
	}}
}

// grown is the trees of a group at the switch.
type grown = member[uint32, Tree]

var trees = numbered("a group", func(d *Device, create bool) *map[uint32]*Tree {
	if a := d.agent(create); a != nil {
		return &a.Trees
	}
	return nil
})

var treeLeaves = func() []leaf[grown] {
	const at = own + "/trees/tree[group]/state"
	return []leaf[grown]{
		numberKey[uint32, Tree](at + "/group"),
		counter(number(at+"/in-packets", func(t *grown) *uint64 { return &t.x.PacketsIn })),
		counter(number(at+"/in-bytes", func(t *grown) *uint64 { return &t.x.BytesIn })),
		counter(number(at+"/out-packets", func(t *grown) *uint64 { return &t.x.PacketsOut })),
		counter(number(at+"/out-bytes", func(t *grown) *uint64 { return &t.x.BytesOut })),
		counter(number(at+"/dropped", func(t *grown) *uint64 { return &t.x.Dropped })),
	}
}()
