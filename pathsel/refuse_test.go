package pathsel

import (
	"errors"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func TestSelectRefusals(t *testing.T) {
	g := fabric(t, "leaf-spine:3,2,1")
	leaf0, leaf1, spine := node(t, g, "leaf-0"), node(t, g, "leaf-1"), node(t, g, "spine-0")
	h0 := node(t, g, "h0")
	access, _ := g.LinkAt(h0, 1)
	uplink, _ := g.LinkAt(leaf1, 4)
	with := func(n topology.NodeID, change func(*topology.Capability)) topology.Change {
		c := g.Capability(n)
		change(&c)
		return topology.SwitchCapability(n, c)
	}
	for _, test := range []struct {
		name    string
		changes []topology.Change
		change  func(*Request)
		want    Refusal
		text    string
	}{
		{
			"host down", []topology.Change{topology.NodeState(h0, false)}, nil,
			Refusal{Resource: Path, Switch: topology.NoNode, Member: h0, Need: 1}, "rank 0 (h0) is down",
		}, {
			"link to host down", []topology.Change{topology.LinkState(access, false)}, nil,
			Refusal{Resource: Path, Switch: topology.NoNode, Member: h0, Need: 1}, "rank 0 (h0) has no link",
		}, {
			"leaf down", []topology.Change{topology.NodeState(leaf0, false)}, nil,
			Refusal{Resource: Path, Switch: leaf0, Member: h0}, "switch leaf-0 is down",
		}, {
			"leaf excluded", nil, func(r *Request) { r.Exclude = []topology.NodeID{leaf0} },
			Refusal{Resource: Path, Switch: leaf0, Member: h0}, "switch leaf-0 is excluded",
		}, {
			"link to leaf excluded", nil, func(r *Request) { r.ExcludeLinks = []topology.LinkID{access} },
			Refusal{Resource: Path, Switch: topology.NoNode, Member: h0, Need: 1}, "rank 0 (h0) has no link",
		}, {
			"functions of a leaf",
			[]topology.Change{with(leaf0, func(c *topology.Capability) { c.Functions = topology.FunctionsOf(reduce.Min) })}, nil,
			Refusal{Resource: Functions, Switch: leaf0, Member: h0, Free: 1 << reduce.Min, Need: 1 << reduce.Sum},
			"leaf-0 does not reduce sum (it has min)",
		}, {
			"types of the spine",
			[]topology.Change{with(spine, func(c *topology.Capability) { c.Types = topology.TypesOf(reduce.Int32) })}, nil,
			Refusal{Resource: Types, Switch: spine, Member: 3, Free: 1 << reduce.Int32, Need: 1 << reduce.Float32},
			"join h0 with 3 of 6 members, not with h3; switch spine-0 does not know the type float32",
		}, {
			"chunk of the spine",
			[]topology.Change{with(spine, func(c *topology.Capability) { c.Chunk = 256 })}, nil,
			Refusal{Resource: Chunk, Switch: spine, Member: 3, Free: 256, Need: 1432}, "spine-0 takes chunks of 256 bytes, 1432 are needed",
		}, {
			"slots of a leaf", nil, func(r *Request) { r.Slots = 50000 },
			Refusal{Resource: Slots, Switch: leaf0, Member: h0, Free: 32768, Need: 50000}, "leaf-0 has 32768 of its 32768 slots free, 50000 are needed",
		}, {
			"children of a leaf",
			[]topology.Change{with(leaf1, func(c *topology.Capability) { c.Children = 2 })}, nil,
			Refusal{Resource: Children, Switch: leaf1, Member: topology.NoNode, Free: 2, Need: 3}, "leaf-1 can serve 2 of the 3 children that it would have",
		}, {
			"children of every root",
			[]topology.Change{
				with(spine, func(c *topology.Capability) { c.Children = 1 }),
				with(leaf0, func(c *topology.Capability) { c.Children = 3 }),
				with(leaf1, func(c *topology.Capability) { c.Children = 3 }),
			}, nil,
			Refusal{Resource: Children, Switch: spine, Member: topology.NoNode, Free: 1, Need: 2}, "spine-0 can serve 1 of the 2 children that it would have",
		}, {
			"forwards only", []topology.Change{topology.SwitchCapability(spine, topology.Capability{})},
			func(r *Request) { r.Functions, r.Types, r.Slots, r.ChunkBytes = 0, 0, 0, 0 },
			Refusal{Resource: Children, Switch: spine, Member: 3, Need: 1}, "spine-0 can serve 0 of the 1 children",
		}, {
			"parted", []topology.Change{topology.LinkState(uplink, false)}, nil,
			Refusal{Resource: Path, Switch: topology.NoNode, Member: 3, Free: 3, Need: 6}, "usable switches join h0 with 3 of 6 members, not with h3",
		}, {
			"spine down", []topology.Change{topology.NodeState(spine, false)}, nil,
			Refusal{Resource: Path, Switch: spine, Member: 3, Free: 3, Need: 6}, "not with h3; switch spine-0 is down",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := usual(g.AllHosts())
			if test.change != nil {
				test.change(&req)
			}
			_, err := selectTree(changed(t, g, test.changes...), nil, req)
			r := checkRefusal(t, g, err)
			got := *r
			got.text = ""
			if got != test.want || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%+v: %v\nwant %+v: %s", got, err, test.want, test.text)
			}
		})
	}
}

func TestSelectSlotsOfOthers(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,2")
	load := NewLoad(g)
	req := usual(g.AllHosts())
	req.Slots = 30000
	first := mustSelect(t, g.View(), load, req)
	load.Add(first.Tree, req.Slots)
	_, err := selectTree(g.View(), load, req)
	r := checkRefusal(t, g, err)
	if r.Resource != Slots || r.Free != 2768 || r.Need != 30000 {
		t.Errorf("%+v: %v", *r, err)
	}
	load.Remove(first.Tree, req.Slots)
	mustSelect(t, g.View(), load, req)
}

func TestSelectInvalidRequests(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,2")
	for _, test := range []struct {
		name string
		req  Request
		load *Load
		want error
	}{
		{"no members", usual(nil), nil, ErrNoMembers},
		{"a switch as member", usual([]topology.NodeID{0, node(t, g, "leaf-0")}), nil, ErrUnknownHost},
		{"no such host", usual([]topology.NodeID{0, -1}), nil, ErrUnknownHost},
		{"far beyond", usual([]topology.NodeID{1 << 30}), nil, ErrUnknownHost},
		{"twice", usual([]topology.NodeID{0, 1, 0}), nil, ErrDuplicateMember},
		{"excluded host", Request{Members: g.AllHosts(), Exclude: []topology.NodeID{0}}, nil, ErrRequest},
		{"excluded link", Request{Members: g.AllHosts(), ExcludeLinks: []topology.LinkID{99}}, nil, ErrRequest},
		{"negative slots", Request{Members: g.AllHosts(), Slots: -1}, nil, ErrRequest},
		{"negative chunk", Request{Members: g.AllHosts(), ChunkBytes: -1}, nil, ErrRequest},
		{"load of another graph", usual(g.AllHosts()), NewLoad(fabric(t, "fat-tree:4")), ErrRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := selectTree(g.View(), test.load, test.req)
			if !errors.Is(err, test.want) || !errors.Is(err, ErrRequest) || errors.Is(err, ErrNoTree) {
				t.Errorf("%v; want %v", err, test.want)
			}
		})
	}
}
