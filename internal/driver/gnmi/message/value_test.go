package message

import (
	"errors"
	"strings"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

func jsonValue(text string) *pb.TypedValue {
	return &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: []byte(text)}}
}

// TestLeaves: of every value the leaves, or what is wrong with it.
func TestLeaves(t *testing.T) {
	strings := func(all ...*pb.TypedValue) *pb.TypedValue {
		return &pb.TypedValue{Value: &pb.TypedValue_LeaflistVal{LeaflistVal: &pb.ScalarArray{Element: all}}}
	}
	a := &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: "a"}}
	for _, test := range []struct {
		path  string
		value *pb.TypedValue
		want  string // of the first leaf, if it is the only one
		err   error
	}{
		{"/a", a, "/a=a", nil},
		{"/a", strings(a, a), "/a=a a", nil},
		{"/a", strings(), "/a=", nil},
		{"/a", strings(strings(a)), "", ErrValue},
		{"/a", nil, "", ErrValue},
		{"/a", &pb.TypedValue{Value: &pb.TypedValue_IntVal{IntVal: -1}}, "", ErrValue},
		{"/a", &pb.TypedValue{Value: &pb.TypedValue_DoubleVal{DoubleVal: 1}}, "", ErrValue},
		{"/a", jsonValue(`18446744073709551615`), "/a=18446744073709551615", nil},
		{"/a", jsonValue(`5.0`), "/a=5", nil},
		{"/a", jsonValue(`1e30`), "", ErrValue},
		{"/a", jsonValue(`-1`), "", ErrValue},
		{"/a", jsonValue(`null`), "", ErrValue},
		{"/a", jsonValue(`{"m:b": true}`), "/a/b=true", nil},
		{"/a", jsonValue(`{`), "", ErrJSON},
		{"/a", jsonValue(`1 2`), "", ErrJSON},
		{"/a", jsonValue(``), "", ErrJSON},
		{"/interfaces", jsonValue(`{"interface": [{"m:name": "e1", "state": {"mtu": 5}, "x": {}}]}`), "", nil},
		{"/interfaces/interface", jsonValue(`[{"state": {}}]`), "", ErrKey},
		{"/interfaces/interface", jsonValue(`[7]`), "", ErrKey},
		{"/interfaces/interface", jsonValue(`[{"name": "` + longest + `"}]`), "", openconfig.ErrPath},
	} {
		p, err := openconfig.ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		for l, err := range Leaves(p, test.value) {
			if got := l.Path.String() + "=" + l.Value.String(); !errors.Is(err, test.err) || err == nil && test.want != "" && got != test.want {
				t.Errorf("%s of %v: %s, %v", test.path, test.value, got, err)
			}
		}
	}
}

var longest = strings.Repeat("x", openconfig.MaxPath)

// TestDeepJSON: what is nested deeper than a path may be costs no more than to read it: its
// paths together would take gigabytes.
func TestDeepJSON(t *testing.T) {
	const depth = 9000
	n := 0
	for l, err := range Leaves(nil, jsonValue(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth))) {
		n++
		if !errors.Is(err, openconfig.ErrPath) || len(l.Path) > openconfig.MaxDepth+1 {
			t.Errorf("%d elements: %v", len(l.Path), err)
		}
	}
	if n != 1 {
		t.Errorf("%d leaves and errors", n)
	}
}
