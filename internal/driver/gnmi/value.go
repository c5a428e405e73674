package gnmi

import (
	"encoding/json"
	"slices"
	"strconv"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// encodings are those that are served.
var encodings = []pb.Encoding{pb.Encoding_JSON, pb.Encoding_JSON_IETF, pb.Encoding_PROTO}

// checkEncoding refuses the others, by name.
func checkEncoding(e pb.Encoding) error {
	for _, served := range encodings {
		if e == served {
			return nil
		}
	}
	return status.Errorf(codes.Unimplemented, "encoding %s is not supported: %v are", e, encodings)
}

// typed encodes the value of a leaf.
func typed(l *openconfig.Leaf, v openconfig.Value, as pb.Encoding) *pb.TypedValue {
	if as != pb.Encoding_PROTO {
		return jsonValue(plain(l, v, as == pb.Encoding_JSON_IETF), as)
	}
	switch v.Kind() {
	case openconfig.Bool:
		return &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: v.Bool()}}
	case openconfig.Uint:
		return &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: v.Number()}}
	case openconfig.Strings:
		list := &pb.ScalarArray{}
		for _, s := range v.Texts() {
			list.Element = append(list.Element, &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: s}})
		}
		return &pb.TypedValue{Value: &pb.TypedValue_LeaflistVal{LeaflistVal: list}}
	}
	return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: v.String()}}
}

// plain returns a value as package json is to write it. By RFC 7951 numbers of 64 bits are
// texts, and identities have the name of their module.
func plain(l *openconfig.Leaf, v openconfig.Value, ietf bool) any {
	switch v.Kind() {
	case openconfig.Bool:
		return v.Bool()
	case openconfig.Uint:
		if ietf && l.Bits == 64 {
			return strconv.FormatUint(v.Number(), 10)
		}
		return v.Number()
	case openconfig.Strings:
		if list := v.Texts(); list != nil {
			return list
		}
		return []string{}
	}
	if ietf && l.Identity != "" {
		return l.Identity + ":" + v.String()
	}
	return v.String()
}

func jsonValue(x any, as pb.Encoding) *pb.TypedValue {
	b, err := json.Marshal(x)
	if err != nil {
		b = []byte("null") // none of the types above fails
	}
	if as == pb.Encoding_JSON_IETF {
		return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: b}}
	}
	return &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: b}}
}

// subtree returns what is below a node as package json is to write it.
func subtree(depth int, entries []*telemetry.Entry, ietf bool) any {
	root := map[string]any{}
	for _, e := range entries {
		if len(e.Path) == depth {
			return plain(e.Leaf, e.Value, ietf)
		}
		if len(root) == 0 && depth > 0 {
			list := &e.Path[depth-1]
			for _, k := range list.Keys { // an entry has its keys
				root[qualified(e, depth-1, k.Name, ietf)] = keyValue(list, k)
			}
		}
		at := root
		for d := depth; d < len(e.Path); d++ {
			name := memberName(e, d, d == depth, ietf)
			if d == len(e.Path)-1 {
				at[name] = plain(e.Leaf, e.Value, ietf)
				break
			}
			at = member(at, name, &e.Path[d])
		}
	}
	return root
}

// memberName is the name of an element in JSON: RFC 7951 has it with its module where that
// is another than that of the member around it.
func memberName(e *telemetry.Entry, at int, first, ietf bool) string {
	if first || e.Leaf.Modules[at] != "" {
		return qualified(e, at, e.Path[at].Name, ietf)
	}
	return e.Path[at].Name
}

// qualified is a name with the module of an element.
func qualified(e *telemetry.Entry, at int, name string, ietf bool) string {
	for ; ietf && at >= 0; at-- {
		if module := e.Leaf.Modules[at]; module != "" {
			return module + ":" + name
		}
	}
	return name
}

// member returns an object in at, which is made if it is not there: the one of that name,
// or the entry of that list.
func member(at map[string]any, name string, e *openconfig.Elem) map[string]any {
	if len(e.Keys) == 0 {
		x, ok := at[name].(map[string]any)
		if !ok {
			x = map[string]any{}
			at[name] = x
		}
		return x
	}
	list, _ := at[name].([]any)                   // none is an empty one
	for _, entry := range slices.Backward(list) { // the leaves of an entry follow each other
		if x, ok := entry.(map[string]any); ok && sameKeys(x, e) {
			return x
		}
	}
	x := map[string]any{}
	for _, k := range e.Keys {
		x[k.Name] = keyValue(e, k)
	}
	at[name] = append(list, x)
	return x
}

func sameKeys(x map[string]any, e *openconfig.Elem) bool {
	for _, k := range e.Keys {
		if x[k.Name] != keyValue(e, k) {
			return false
		}
	}
	return true
}

// keyValue is a key's value as package json is to write it.
func keyValue(e *openconfig.Elem, k openconfig.Key) any {
	if openconfig.KeyKind(e.Name, k.Name) == openconfig.Uint {
		if n, err := strconv.ParseUint(k.Value, 10, 32); err == nil {
			return n
		}
	}
	return k.Value
}
