package gnmi

import (
	"encoding/json"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/protobuf/proto"

	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// FuzzRequests: no request makes the target panic, and no path comes back other than it
// was.
func FuzzRequests(f *testing.F) {
	for _, m := range []proto.Message{
		&pb.SubscriptionList{Prefix: &pb.Path{Origin: "openconfig"}, Subscription: []*pb.Subscription{{Path: &pb.Path{Elem: []*pb.PathElem{{Name: "interfaces"}}}}}},
		&pb.SubscriptionList{Mode: pb.SubscriptionList_ONCE, Subscription: []*pb.Subscription{{Path: &pb.Path{Origin: "tributary", Elem: []*pb.PathElem{{Name: "..."}, {Name: "*", Key: map[string]string{"a": "b"}}}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m pb.SubscriptionList
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		_, open, err := newWriter(&m, &written{})
		if err != nil {
			return
		}
		c := telemetry.New(telemetry.Config{})
		open.Stream = 1
		var out telemetry.Output
		c.Step(0, []telemetry.Input{open, telemetry.Snapshot{Part: telemetry.Events}, telemetry.Ready{Stream: 1}}, &out)
		for _, s := range open.Subscriptions {
			back, err := message.Path(nil, message.OfPath(s.Path))
			if err != nil || back.String() != s.Path.String() {
				t.Fatalf("%v comes back as %v, %v", s.Path, back, err)
			}
		}
	})
}

// FuzzJSON: a value that is read from JSON is written as the same JSON again.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`true`, `"x"`, `18446744073709551615`, `["a",""]`, `[]`, `-1`, `1.5`, `{}`, `null`, `[1]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := value(&pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: b}})
		if err != nil {
			return
		}
		l := &openconfig.Leaf{Kind: v.Kind(), Bits: 32}
		back, err := value(typed(l, v, pb.Encoding_JSON_IETF))
		if err != nil || back != v {
			t.Fatalf("%s is %v, then %v: %v", b, v, back, err)
		}
		if again, err := value(typed(l, v, pb.Encoding_PROTO)); err != nil || again != v {
			t.Fatalf("%s is %v, then %v: %v", b, v, again, err)
		}
		if !json.Valid(b) {
			t.Fatalf("%s is taken", b)
		}
	})
}

// FuzzSet: no request to set makes the target panic.
func FuzzSet(f *testing.F) {
	elems := func(names ...string) *pb.Path {
		p := &pb.Path{}
		for _, n := range names {
			p.Elem = append(p.Elem, &pb.PathElem{Name: n})
		}
		return p
	}
	for _, m := range []*pb.SetRequest{
		{Delete: []*pb.Path{elems("...", "...", "...", "...", "drain"), elems()}},
		{Prefix: elems("tributary"), Update: []*pb.Update{{Path: elems("config"), Val: &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: []byte(`{"drain": true}`)}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m pb.SetRequest
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		r := &reader{prefix: m.GetPrefix()}
		for _, p := range m.GetDelete() {
			if q, err := r.settable(p); err == nil {
				q.selects(settable.Path)
			}
			u := &pb.Update{Path: p, Val: &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: true}}}
			if is, err := r.decided(u); err == nil && (is == nil || !*is) {
				t.Fatalf("%v is taken, and decides nothing", p)
			}
		}
		for _, u := range append(m.GetUpdate(), m.GetReplace()...) {
			_, _ = r.decided(u) // any error will do
		}
	})
}

// FuzzGet: no path makes an answer fail, and every answer is JSON.
func FuzzGet(f *testing.F) {
	d := openconfig.Device{Name: "leaf", Agent: &openconfig.Agent{Switch: "leaf"}, Interfaces: map[string]*openconfig.Interface{
		"eth0": {Name: "eth0", Oper: openconfig.Up, Neighbors: []openconfig.Neighbor{{ID: "1", SystemName: "spine"}}},
	}}
	var entries []telemetry.Entry
	for name, v := range d.Leaves() {
		p, err := openconfig.ParsePath(name)
		if err != nil {
			f.Fatal(err)
		}
		l, _ := openconfig.Find(p)
		entries = append(entries, telemetry.Entry{Name: name, Path: p, Leaf: l, Value: v})
	}
	for _, s := range []string{"/", "/interfaces/interface[name=eth0]", "/.../neighbor/.../system-name", "/*/*/*/*/*/*/*"} {
		f.Add(s, "openconfig", "")
		f.Add(s, "", "tributary")
	}
	f.Fuzz(func(t *testing.T, path, origin, inPrefix string) {
		p, err := openconfig.ParsePath(path)
		if err != nil {
			return
		}
		m := message.OfPath(p)
		m.Origin = origin
		for _, as := range encodings {
			w := &writer{reader: reader{prefix: &pb.Path{Origin: inPrefix}}, shared: &written{}, encoding: as}
			q, err := w.read(m)
			if err != nil {
				return
			}
			selected, err := w.selected([]requested{q}, entries, pb.GetRequest_ALL)
			if err != nil {
				return
			}
			for _, u := range w.notification(&q, selected[0]).GetUpdate() {
				if text, isJSON := message.JSON(u.GetVal()); isJSON && !json.Valid(text) {
					t.Fatalf("%s has %s", u.GetPath(), text)
				}
			}
		}
	})
}
