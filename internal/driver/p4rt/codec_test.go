package p4rt

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/p4"
)

// Against arithmetic on big numbers: what fits comes back as long as its field,
// and is on the wire as the shortest bytes of that number.
func TestValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "value")
		if len(value) > 0 && rapid.Bool().Draw(t, "zeros") {
			clear(value[:rapid.IntRange(0, len(value)).Draw(t, "many")])
		}
		width := rapid.Int32Range(1, 140).Draw(t, "width")
		n := new(big.Int).SetBytes(value)
		short, err := shorten(value, width)
		if fits := len(value) > 0 && n.BitLen() <= int(width); fits != (err == nil) {
			t.Fatalf("%x in %d bits: %v", value, width, err)
		}
		if err != nil {
			if !errors.Is(err, ErrEntry) {
				t.Fatal(err)
			}
			return
		}
		wire := n.Bytes()
		if len(wire) == 0 {
			wire = []byte{0}
		}
		if !bytes.Equal(short, wire) {
			t.Fatalf("%x became %x, want %x", value, short, wire)
		}
		long, err := lengthen(short, width)
		if want := n.FillBytes(make([]byte, (width+7)/8)); err != nil || !bytes.Equal(long, want) {
			t.Fatalf("%x became %x, %v; want %x", short, long, err, want)
		}
	})
}

func TestPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.Int32Range(1, 70).Draw(t, "width")
		value := rapid.SliceOfN(rapid.Byte(), bytesOf(width), bytesOf(width)).Draw(t, "value")
		n := rapid.Int32Range(0, width).Draw(t, "prefix")
		want := true
		for bit := range width - n { // from the last
			want = want && new(big.Int).SetBytes(value).Bit(int(bit)) == 0
		}
		if got := inPrefix(value, n, width); got != want {
			t.Fatalf("%x/%d of %d bits: %v", value, n, width, got)
		}
	})
}

func TestNormalIsWhatIsRead(t *testing.T) {
	s := toySchema(t)
	rapid.Check(t, func(t *rapid.T) {
		state := drawState(t, s)
		for _, e := range state.Entries {
			m, err := s.entry(&e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.decode(m)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(e, got); d != "" {
				t.Fatalf("entry (-want +got):\n%s", d)
			}
		}
		for _, g := range state.Groups {
			m, err := encodeGroup(g, rapid.Bool().Draw(t, "ports as bytes"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decodeGroup(m); err != nil || cmp.Diff(g, got) != "" {
				t.Fatalf("group %v became %v, %v", g, got, err)
			}
		}
		again, err := s.Normal(state)
		if d := cmp.Diff(state, again); err != nil || d != "" {
			t.Fatalf("normal form of a normal form: %v (-want +got):\n%s", err, d)
		}
	})
}

func TestNormal(t *testing.T) {
	s := toySchema(t)
	long := pair(3)
	long.Match = []p4.Field{{ID: 2, Value: []byte{0, 0, 0, 0, 3}}, {ID: 1, Value: []byte{1, 0xfe}}}
	long.Params = [][]byte{{1}, {2, 0, 0, 0, 0, 3}}
	got, err := s.Normal(p4.Program{Entries: []p4.Entry{long}})
	if d := cmp.Diff(p4.Program{Entries: []p4.Entry{pair(3)}}, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	twice := []p4.Entry{pair(3), long}
	if _, err := s.Normal(p4.Program{Entries: twice}); !errors.Is(err, ErrEntry) {
		t.Errorf("an entry twice: %v", err)
	}
	if _, err := s.Normal(p4.Program{Groups: []p4.Group{{ID: 1}, {ID: 1}}}); !errors.Is(err, ErrEntry) {
		t.Errorf("a group twice: %v", err)
	}
}

func TestEntriesThatDoNotFit(t *testing.T) {
	s := toySchema(t)
	with := func(e p4.Entry, change func(*p4.Entry)) p4.Entry { change(&e); return e }
	for name, test := range map[string]struct {
		entry p4.Entry
		words string // that the error has
	}{
		"no table":          {p4.Entry{Table: 1}, "no table 0x1"},
		"program's table":   {p4.Entry{Table: kinds}, "ingress.kinds"},
		"field missing":     {with(pair(1), func(e *p4.Entry) { e.Match = e.Match[:1] }), "no value for label"},
		"field twice":       {with(pair(1), func(e *p4.Entry) { e.Match = append(e.Match, e.Match[0]) }), "two for one"},
		"unknown field":     {with(pair(1), func(e *p4.Entry) { e.Match = append(e.Match, p4.Field{ID: 3}) }), "does not have"},
		"value too wide":    {with(pair(1), func(e *p4.Entry) { e.Match = []p4.Field{{ID: 1, Value: []byte{2, 0}}, e.Match[1]} }), "port: p4rt: no such entry in this program: 0x0200 needs 10 bits, and there are 9"},
		"value empty":       {with(pair(1), func(e *p4.Entry) { e.Match = []p4.Field{{ID: 1}, e.Match[1]} }), "no value"},
		"prefix in exact":   {with(pair(1), func(e *p4.Entry) { e.Match = []p4.Field{{ID: 1, Value: []byte{1}, Prefix: 9}, e.Match[1]} }), "prefix"},
		"prefix of no bits": {with(route("10.0.0.0/8", 1), func(e *p4.Entry) { e.Match = []p4.Field{{ID: 1, Value: make([]byte, 4)}} }), "0.0.0.0/0"},
		"prefix too long":   {with(route("10.0.0.0/8", 1), func(e *p4.Entry) { e.Match = []p4.Field{{ID: 1, Value: make([]byte, 4), Prefix: 33}} }), "1 to 32 bits"},
		"bits beyond it":    {with(route("10.0.0.0/8", 1), func(e *p4.Entry) { e.Match = []p4.Field{{ID: 1, Value: []byte{10, 1, 0, 0}, Prefix: 8}} }), "10.1.0.0/8"},
		"priority":          {with(pair(1), func(e *p4.Entry) { e.Priority = 1 }), "priority 1"},
		"no priority":       {guard(1, 0), "priority 0"},
		"unknown action":    {with(pair(1), func(e *p4.Entry) { e.Action = 1 }), "no action 0x1"},
		"other's action":    {with(pair(1), func(e *p4.Entry) { e.Action = copyTo }), "no action"},
		"default's action":  {with(route("10.0.0.0/8", 1), func(e *p4.Entry) { e.Action, e.Params = drop, nil }), "no action"},
		"parameters":        {with(pair(1), func(e *p4.Entry) { e.Params = nil }), "takes 2 parameters, not 0"},
		"parameter width":   {with(pair(1), func(e *p4.Entry) { e.Params = [][]byte{{2, 0}, {0}} }), "port"},
	} {
		_, err := s.update(Update{Op: Insert, Entry: &test.entry}, false)
		if !errors.Is(err, ErrEntry) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v, want it to report %q", name, err, test.words)
		}
	}
	for name, u := range map[string]Update{
		"nothing":         {Op: Insert},
		"two things":      {Op: Insert, Entry: new(pair(1)), Group: &p4.Group{ID: 1}},
		"no operation":    {Entry: new(pair(1))},
		"group 0":         {Op: Insert, Group: new(p4.Group)},
		"a replica twice": {Op: Insert, Group: &p4.Group{ID: 1, Replicas: make([]p4.Replica, 2)}},
	} {
		if _, err := s.update(u, false); !errors.Is(err, ErrEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeletedGroupHasNoReplicas(t *testing.T) {
	m, err := toySchema(t).update(Update{Op: Delete, Group: &someState().Groups[0]}, false)
	group := m.GetEntity().GetPacketReplicationEngineEntry().GetMulticastGroupEntry()
	if err != nil || group.GetMulticastGroupId() != 1 || len(group.GetReplicas()) != 0 {
		t.Errorf("%v, %v", m, err)
	}
}

// TestCookiesAreNotInErrors: neighbours' cookies are in entries, which errors describe.
func TestCookiesAreNotInErrors(t *testing.T) {
	s, err := tributary.Schema()
	if err != nil {
		t.Fatal(err)
	}
	cookie := []byte{0, 0, 0xc0, 0xff, 0xee, 0x11}
	for want, e := range map[string]p4.Entry{
		"lowest 5, cookie secret)": {Table: p4.TableNeighbours, Action: p4.ActionChild, Params: [][]byte{{1}, {1}, {1}, {5}, cookie}},
		"(cookie secret)":          {Table: p4.TableNeighbours, Action: p4.ActionParent, Params: [][]byte{cookie}},
	} {
		if got := s.words(Update{Op: Insert, Entry: &e}); !strings.HasSuffix(got, want) {
			t.Errorf("got %s, want it to end with %s", got, want)
		}
	}
}

func TestWords(t *testing.T) {
	s := toySchema(t)
	large := pair(1)
	large.Table = 5
	for want, u := range map[string]Update{
		"insert entry of table ingress.routes for address 10.0.0.0/8: ingress.forward(port 3, next 02:00:00:00:00:03)": {Op: Insert, Entry: new(route("10.0.0.0/8", 3))},
		"delete entry of table ingress.pairs for port 510, label 7":                                                    {Op: Delete, Entry: new(pair(7))},
		"modify entry of table ingress.guards for label 7, priority 9: NoAction()":                                     {Op: Modify, Entry: new(guard(7, 9))},
		"insert multicast group 2: to port 1 as 7, port 2 as 8":                                                        {Op: Insert, Group: &p4.Group{ID: 2, Replicas: []p4.Replica{{Port: 1, Instance: 7}, {Port: 2, Instance: 8}}}},
		"insert entry of unknown table 0x5":                                                                            {Op: Insert, Entry: &large},
		"entry of table ingress.pairs for unknown field 0x9: unknown action 0x8":                                       {Entry: &p4.Entry{Table: pairs, Action: 8, Match: []p4.Field{{ID: 9}}}},
		"operation 9 nothing": {Op: 9},
	} {
		if got := s.words(u); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := asNumber.words([]byte{1, 2, 3, 4, 5}); got != "0x102030405" {
		t.Errorf("a wide number is %s", got)
	}
}

func TestSchemaRefuses(t *testing.T) {
	table := func(change func(*p4config.Table)) func(*p4config.P4Info) {
		return func(i *p4config.P4Info) { change(i.Tables[0]) }
	}
	for name, change := range map[string]func(*p4config.P4Info){
		"two tables of one id": table(func(t *p4config.Table) { t.Preamble.Id = pairs }),
		"table 0":              table(func(t *p4config.Table) { t.Preamble.Id = 0 }),
		"unknown action":       table(func(t *p4config.Table) { t.ActionRefs[0].Id = 1 }),
		"key of no bits":       table(func(t *p4config.Table) { t.MatchFields[0].Bitwidth = 0 }),
		"key matched by a mask": table(func(t *p4config.Table) {
			t.MatchFields[0].Match = &p4config.MatchField_MatchType_{MatchType: p4config.MatchField_TERNARY}
		}),
		"action profile":        table(func(t *p4config.Table) { t.ImplementationId = 1 }),
		"two actions of one id": func(i *p4config.P4Info) { i.Actions[0].Preamble.Id = i.Actions[1].Preamble.Id },
		"parameter of no bits":  func(i *p4config.P4Info) { i.Actions[1].Params[0].Bitwidth = -1 },
		"huge counter":          func(i *p4config.P4Info) { i.Counters[0].Size = 1 << 40 },
		"wide packet field":     func(i *p4config.P4Info) { i.ControllerPacketMetadata[0].Metadata[0].Bitwidth = 65 },
	} {
		info := proto.CloneOf(toySchema(t).info)
		change(info)
		if _, err := NewSchema(info, nil); !errors.Is(err, ErrProgram) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewSchema(toySchema(t).info, []uint32{1}); !errors.Is(err, ErrProgram) {
		t.Errorf("order with an unknown table: %v", err)
	}
}
