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
