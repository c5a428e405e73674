package p4_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/p4"
)

// leaf returns the state of a switch with two hosts and a parent.
func leaf() p4.State {
	port := func(n byte) p4.Port {
		return p4.Port{Number: uint16(n), Addr: netip.AddrFrom4([4]byte{10, 0, n, 254}), MAC: p4.MAC{2, 0, 0, 0, n, 254}}
	}
	route := func(n byte) p4.Route {
		return p4.Route{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, n, 0}), 24), Port: uint16(n), MAC: p4.MAC{2, 0, 0, 0, n, 1}}
	}
	return p4.State{
		Ports:  []p4.Port{port(1), port(2), port(3)},
		Routes: []p4.Route{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Port: 1, MAC: p4.MAC{2, 0, 0, 0, 1, 9}}, route(1), route(2), route(3)},
		Trees:  []p4.Tree{{Index: 3, Group: 9, Newest: 6}},
		Epochs: []p4.Epoch{
			{
				Tree: 3, Index: 0, Serial: 4711, SlotBase: 16, Epoch: 4, Window: 8, ChunkBytes: 1432,
				Children: []p4.Child{{Addr: addr('a'), Lowest: 0, Cookie: 2}, {Addr: addr('b'), Lowest: 2, Cookie: 3}}, Parent: addr('p'), Own: 1, Cookie: 0xc0ffee, Probes: 3,
			},
			{
				Tree: 3, Index: 7, Serial: 4712, SlotBase: 16, Epoch: 6, Window: 4, ChunkBytes: 64,
				Children: []p4.Child{{Addr: addr('a'), Lowest: 0}, {Addr: addr('e'), Lowest: 1}, {Addr: addr('b'), Lowest: 2}},
			},
		},
	}
}

// TestTranslationFitsTheProgram checks entries against the P4Info: tables, keys,
// actions and the lengths of all values.
func TestTranslationFitsTheProgram(t *testing.T) {
	info := new(configv1.P4Info)
	if err := prototext.Unmarshal([]byte(p4.Info()), info); err != nil {
		t.Fatal(err)
	}
	tables, actions := map[uint32]*configv1.Table{}, map[uint32]*configv1.Action{}
	for _, x := range info.GetTables() {
		tables[x.GetPreamble().GetId()] = x
	}
	for _, x := range info.GetActions() {
		actions[x.GetPreamble().GetId()] = x
	}
	s := leaf()
	program, err := p4.Translate(&s)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	used := map[uint32]bool{}
	for i, e := range program.Entries {
		table, action := tables[e.Table], actions[e.Action]
		used[e.Table] = true
		if next := slices.Index(p4.TableOrder(), e.Table); next < at {
			t.Errorf("entry %d is of a table before that of the last", i)
		} else {
			at = next
		}
		if !slices.ContainsFunc(table.GetActionRefs(), func(r *configv1.ActionRef) bool { return r.GetId() == e.Action }) {
			t.Errorf("entry %d: table %s has no action %s", i, table.GetPreamble().GetName(), action.GetPreamble().GetName())
		}
		for j, f := range e.Match {
			want := table.GetMatchFields()[j]
			if f.ID != want.GetId() || len(f.Value) != int(want.GetBitwidth()+7)/8 || (f.Prefix > 0) != (want.GetMatchType() == configv1.MatchField_LPM) {
				t.Errorf("entry %d: field %+v, want %v", i, f, want)
			}
		}
		if len(e.Params) != len(action.GetParams()) {
			t.Errorf("entry %d: %d parameters, want %d", i, len(e.Params), len(action.GetParams()))
			continue
		}
		for j, b := range e.Params {
			if want := action.GetParams()[j]; len(b) != int(want.GetBitwidth()+7)/8 {
				t.Errorf("entry %d: %x for %v", i, b, want)
			}
		}
	}
	if len(used) != len(p4.TableOrder()) {
		t.Errorf("entries of %d tables, want of all %d", len(used), len(p4.TableOrder()))
	}
}

func TestGroups(t *testing.T) {
	s := leaf()
	program, err := p4.Translate(&s)
	if err != nil {
		t.Fatal(err)
	}
	want := []p4.Group{
		{ID: 1, Replicas: []p4.Replica{{Port: 2, Instance: 1}, {Port: 3, Instance: 2}}},
		{ID: 2, Replicas: []p4.Replica{{Port: 2, Instance: 1}, {Port: 3, Instance: 2}, {Port: 1, Instance: p4.Parent}}},
		{ID: 3, Replicas: []p4.Replica{{Port: 2, Instance: 1}, {Port: 1, Instance: p4.Parent}}},
		{ID: 29, Replicas: []p4.Replica{{Port: 2, Instance: 1}, {Port: 2, Instance: 2}, {Port: 3, Instance: 3}}},
	}
	if diff := cmp.Diff(want, program.Groups); diff != "" {
		t.Error(diff)
	}
}

// TestNeighbours: a packet is a neighbour's by the port to which it would be routed, its
// address and UDP port; each neighbour has a cookie of its own, in both directions.
func TestNeighbours(t *testing.T) {
	s := leaf()
	s.Epochs = s.Epochs[:1]
	program, err := p4.Translate(&s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range program.Entries {
		switch e.Table {
		case p4.TableNeighbours:
			got = append(got, fmt.Sprintf("from %x %x %x cookie %x", e.Match[1].Value, e.Match[2].Value, e.Match[3].Value, e.Params[len(e.Params)-1]))
		case p4.TableRewrite:
			got = append(got, fmt.Sprintf("to %x %x cookie %x", e.Params[1], e.Params[2], e.Params[len(e.Params)-1]))
		}
	}
	want := []string{
		"to 0a00020a 13e9 cookie 000000000002", "to 0a00030a 13ea cookie 000000000003", "to 0a00010a 12b7 cookie 000000c0ffee",
		"from 0002 0a00020a 13e9 cookie 000000000002", "from 0003 0a00030a 13ea cookie 000000000003", "from 0001 0a00010a 12b7 cookie 000000c0ffee",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReadIsTheWayBack shuffles what Translate makes, shortens values as
// P4Runtime does, and reads it.
func TestReadIsTheWayBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		program, err := p4.Translate(&s)
		if err != nil {
			t.Fatal(err)
		}
		order := rapid.Permutation(program.Entries).Draw(t, "order")
		for _, e := range order {
			for i, b := range e.Params {
				for len(b) > 1 && b[0] == 0 {
					b = b[1:]
				}
				e.Params[i] = b
			}
		}
		program.Entries = order
		got, err := p4.Read(program)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
			cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Fatal(diff)
		}
	})
}

// drawState draws epochs for the ports of leaf.
func drawState(t *rapid.T) p4.State {
	cookie := rapid.Uint64Range(0, 1<<48-1)
	s := leaf()
	s.Trees, s.Epochs = nil, nil
	for tree := range rapid.IntRange(0, 3).Draw(t, "trees") {
		s.Trees = append(s.Trees, p4.Tree{Index: 5 * tree, Group: rapid.Uint32().Draw(t, "group"), Newest: 10})
		for epoch := range rapid.IntRange(0, 3).Draw(t, "epochs") {
			e := p4.Epoch{
				Tree: 5 * tree, Index: 4*tree + epoch, Serial: uint64(100*tree + epoch + 1), SlotBase: 64 * tree,
				Epoch: uint32(2*epoch + 2), Window: 1 << rapid.IntRange(0, 5).Draw(t, "window"), ChunkBytes: rapid.IntRange(p4.MinChunk, p4.Chunk).Draw(t, "chunk"),
				Probes: rapid.IntRange(0, p4.MaxProbes).Draw(t, "probes"), Own: rapid.Uint16().Draw(t, "own"),
			}
			if rapid.Bool().Draw(t, "parent") {
				e.Parent, e.Cookie = addr('p'), cookie.Draw(t, "cookie")
			}
			for i := range rapid.IntRange(1, 8).Draw(t, "children") {
				e.Children = append(e.Children, p4.Child{Addr: addr('a' + byte(i)), Lowest: uint32(3 * i), Cookie: cookie.Draw(t, "child's cookie")})
			}
			s.Epochs = append(s.Epochs, e)
		}
	}
	return s
}

func TestReadRefusesWhatDoesNotBelongTogether(t *testing.T) {
	for name, spoil := range map[string]func(*p4.Program){
		"an entry is missing":             func(p *p4.Program) { p.Entries = p.Entries[:len(p.Entries)-1] },
		"an entry comes twice":            func(p *p4.Program) { p.Entries = append(p.Entries, p.Entries[3]) },
		"a group is missing":              func(p *p4.Program) { p.Groups = p.Groups[1:] },
		"a replica has another port":      func(p *p4.Program) { p.Groups[0].Replicas[0].Port = 3 },
		"an action is of another program": func(p *p4.Program) { p.Entries[0].Action = 1 },
		"a parameter is missing":          func(p *p4.Program) { p.Entries[0].Params = nil },
		"a value is too large":            func(p *p4.Program) { p.Entries[0].Params[1] = slices.Repeat([]byte{9}, 9) },
	} {
		t.Run(name, func(t *testing.T) {
			s := leaf()
			program, err := p4.Translate(&s)
			if err != nil {
				t.Fatal(err)
			}
			spoil(&program)
			if _, err := p4.Read(program); !errors.Is(err, p4.ErrProgram) && !errors.Is(err, p4.ErrState) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for want, spoil := range map[string]func(*p4.State){
		"port 0, want":                        func(s *p4.State) { s.Ports[0].Number = 0 },
		"port 508, want":                      func(s *p4.State) { s.Ports[0].Number = p4.LoopOutPort },
		"want IPv4":                           func(s *p4.State) { s.Ports[0].Addr = netip.IPv6Loopback() },
		"port 1 twice":                        func(s *p4.State) { s.Ports[1].Number = 1 },
		"at two ports":                        func(s *p4.State) { s.Ports[1].Addr = s.Ports[0].Addr },
		"want a masked IPv4 prefix":           func(s *p4.State) { s.Routes[1].Prefix = netip.MustParsePrefix("10.0.0.1/24") },
		"two routes to 10.0.1.0/24":           func(s *p4.State) { s.Routes[2].Prefix = s.Routes[1].Prefix },
		"by port 9, which has no address":     func(s *p4.State) { s.Routes[1].Port = 9 },
		"the switch's own address":            func(s *p4.State) { s.Routes[1].Prefix = netip.MustParsePrefix("10.0.1.254/32") },
		"there is room for 64":                func(s *p4.State) { s.Trees[0].Index = p4.Trees },
		"tree without an epoch":               func(s *p4.State) { s.Trees[0].Newest = 0 },
		"two trees at index 3":                func(s *p4.State) { s.Trees = append(s.Trees, s.Trees[0]) },
		"there is room for 256":               func(s *p4.State) { s.Epochs[0].Index = p4.Epochs },
		"two epochs at index 7":               func(s *p4.State) { s.Epochs[0].Index = 7 },
		"no tree at index 2":                  func(s *p4.State) { s.Epochs[0].Tree = 2 },
		"want 1 to 6, the newest of its tree": func(s *p4.State) { s.Epochs[0].Epoch = 8 },
		"serial number 0":                     func(s *p4.State) { s.Epochs[0].Serial = 0 },
		"have serial number 4712":             func(s *p4.State) { s.Epochs[0].Serial = 4712 },
		"have serial numbers 4712 and 4713":   func(s *p4.State) { s.Epochs[0].Serial = 4713 },
		"cookie of more than 48 bits":         func(s *p4.State) { s.Epochs[0].Cookie = 1 << 48 },
		"child 1 has a cookie of more than":   func(s *p4.State) { s.Epochs[0].Children[1].Cookie = 1 << 48 },
		"window 3":                            func(s *p4.State) { s.Epochs[0].Window = 3 },
		"slots from 4090":                     func(s *p4.State) { s.Epochs[0].SlotBase = 4090 },
		"chunk of 1433 bytes":                 func(s *p4.State) { s.Epochs[0].ChunkBytes = p4.Chunk + 1 },
		"256 probes":                          func(s *p4.State) { s.Epochs[0].Probes = 256 },
		"0 children":                          func(s *p4.State) { s.Epochs[0].Children = nil },
		"33 children":                         func(s *p4.State) { s.Epochs[0].Children = make([]p4.Child, 33) },
		"lowest rank 0 after 0":               func(s *p4.State) { s.Epochs[0].Children[1].Lowest = 0 },
		"lowest rank 16777216":                func(s *p4.State) { s.Epochs[0].Children[1].Lowest = 1 << 24 },
		"another neighbour's address":         func(s *p4.State) { s.Epochs[0].Children[1].Addr = addr('p') },
		"no route to 10.0.1.254":              func(s *p4.State) { s.Epochs[0].Parent = netip.AddrPortFrom(s.Ports[0].Addr, 5) },
		"want IPv4 and a port":                func(s *p4.State) { s.Epochs[0].Children[0].Addr = netip.AddrPort{} },
		"share slots": func(s *p4.State) {
			s.Trees = append(s.Trees, p4.Tree{Index: 0, Newest: 4})
			s.Epochs[0].Tree = 0
		},
	} {
		t.Run(want, func(t *testing.T) {
			s := leaf()
			spoil(&s)
			_, err := p4.Translate(&s)
			if !errors.Is(err, p4.ErrState) || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestOutcomeNames(t *testing.T) {
	if got := p4.DropStale.String(); got != "drop-stale" || !p4.DropStale.Drop() || p4.DropStale.Fault() {
		t.Errorf("%s, dropped %v, fault %v", got, p4.DropStale.Drop(), p4.DropStale.Fault())
	}
	if !p4.FaultLength.Drop() || !p4.FaultLength.Fault() || p4.Taken.Drop() {
		t.Error("a fault is a drop, and what is taken none")
	}
	if got := p4.Outcome(63).String() + " " + p4.Discard(99).String(); got != "outcome(63) discard(99)" {
		t.Error(got)
	}
}
