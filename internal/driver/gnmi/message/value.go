package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// What is wrong with a value. The errors of Leaves wrap one of them.
var (
	ErrValue = errors.New("a value that no leaf has")
	ErrJSON  = errors.New("malformed JSON")
	ErrKey   = errors.New("an entry of a list without its keys")
)

// Leaf is a leaf's path and value.
type Leaf struct {
	Path  openconfig.Path
	Value openconfig.Value
}

// Leaves lists the leaves that a value at a path has: the one at that path or, in JSON, all
// that are below it. With an error comes the path where it is; the rest follows.
func Leaves(p openconfig.Path, m *pb.TypedValue) iter.Seq2[Leaf, error] {
	return func(yield func(Leaf, error) bool) {
		text, isJSON := JSON(m)
		if !isJSON {
			v, err := scalar(m)
			yield(Leaf{p, v}, err)
			return
		}
		var x any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err := d.Decode(&x)
		if err == nil {
			if _, err = d.Token(); errors.Is(err, io.EOF) {
				flatten(p, x, yield)
				return
			}
			err = errors.New("more than one value")
		}
		yield(Leaf{Path: p}, fmt.Errorf("%w: %w", ErrJSON, err))
	}
}

// JSON returns the JSON that a value is in; false if it is in none.
func JSON(m *pb.TypedValue) ([]byte, bool) {
	switch v := m.GetValue().(type) {
	case *pb.TypedValue_JsonVal:
		return v.JsonVal, true
	case *pb.TypedValue_JsonIetfVal:
		return v.JsonIetfVal, true
	}
	return nil, false
}

// flatten lists the leaves of JSON at a path; false: no more are wanted.
func flatten(p openconfig.Path, x any, yield func(Leaf, error) bool) bool {
	if len(p) > openconfig.MaxDepth {
		return yield(Leaf{Path: p}, openconfig.ErrPath)
	}
	switch x := x.(type) {
	case map[string]any:
		for name, y := range x {
			if !flatten(append(p[:len(p):len(p)], openconfig.Elem{Name: openconfig.Unqualified(name)}), y, yield) {
				return false
			}
		}
		return true
	case []any:
		if keys := openconfig.ListKeys(p); keys != nil {
			for _, y := range x {
				if !entry(p, keys, y, yield) {
					return false
				}
			}
			return true
		}
	}
	v, err := plain(x)
	return yield(Leaf{p, v}, err)
}

// entry lists the leaves of an entry of a list.
func entry(p openconfig.Path, keys []openconfig.Key, x any, yield func(Leaf, error) bool) bool {
	fields, _ := x.(map[string]any)
	e := openconfig.Elem{Name: p[len(p)-1].Name}
	for _, k := range keys {
		v, err := plain(find(fields, k.Name))
		if err != nil {
			return yield(Leaf{Path: p}, ErrKey)
		}
		e.Keys = append(e.Keys, openconfig.Key{Name: k.Name, Value: v.String()})
	}
	at := append(p[:len(p)-1:len(p)-1], e)
	if err := at.Check(); err != nil {
		return yield(Leaf{Path: p}, err)
	}
	return flatten(at, x, yield)
}

func find(fields map[string]any, name string) any {
	for n, x := range fields {
		if openconfig.Unqualified(n) == name {
			return x
		}
	}
	return nil
}

// plain reads a value of JSON that is no object. Numbers may be written as 5.0, too.
func plain(x any) (openconfig.Value, error) {
	switch x := x.(type) {
	case string:
		return openconfig.Text(x), nil
	case bool:
		return openconfig.Of(x), nil
	case json.Number:
		if n, err := strconv.ParseUint(x.String(), 10, 64); err == nil {
			return openconfig.Number(n), nil
		}
		if f, err := x.Float64(); err == nil && f >= 0 && f < 1<<53 && f == float64(uint64(f)) {
			return openconfig.Number(uint64(f)), nil
		}
	case []any:
		list := make([]string, 0, len(x))
		for _, e := range x {
			text, ok := e.(string)
			if !ok {
				return openconfig.Value{}, ErrValue
			}
			list = append(list, text)
		}
		return openconfig.Texts(list), nil
	}
	return openconfig.Value{}, ErrValue
}

// scalar reads a value that is not in JSON.
func scalar(m *pb.TypedValue) (openconfig.Value, error) {
	switch v := m.GetValue().(type) {
	case *pb.TypedValue_StringVal:
		return openconfig.Text(v.StringVal), nil
	case *pb.TypedValue_AsciiVal:
		return openconfig.Text(v.AsciiVal), nil
	case *pb.TypedValue_BoolVal:
		return openconfig.Of(v.BoolVal), nil
	case *pb.TypedValue_UintVal:
		return openconfig.Number(v.UintVal), nil
	case *pb.TypedValue_IntVal:
		if v.IntVal >= 0 {
			return openconfig.Number(uint64(v.IntVal)), nil
		}
	case *pb.TypedValue_LeaflistVal:
		var list []string
		for _, e := range v.LeaflistVal.GetElement() {
			x, err := scalar(e)
			if err != nil || x.Kind() == openconfig.Strings {
				return openconfig.Value{}, ErrValue
			}
			list = append(list, x.String())
		}
		return openconfig.Texts(list), nil
	}
	return openconfig.Value{}, ErrValue
}
