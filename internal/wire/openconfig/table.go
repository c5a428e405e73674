package openconfig

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Leaf is a leaf of the schema: where it is, and what its values are.
type Leaf struct {
	Path     Path     // every list with its keys, whose values are empty
	Modules  []string // of each element the YANG module, where it is not that of the element before; else empty
	Kind     Kind
	Bits     int    // of a Uint: 8, 16, 32 or 64
	Identity string // the module of the identities that it takes; empty: it takes none
	Config   bool   // it can be set
	Counter  bool   // it changes by itself, so that it is sampled rather than reported on change
	Alias    bool   // it is read where other targets send it, and never sent

	order []place // of the keys in Path
}

// place is a key of an element.
type place struct {
	elem int
	key  string
}

// leaf is a leaf of a T, which is one level of a Device.
type leaf[T any] struct {
	path string // with modules, and the names of keys: "/module:list[key]/leaf"
	Leaf
	get   func(*T) Value
	set   func(*T, Value)                    // of a Value of Kind, or None
	check func(keys []string, v Value) error // before set; nil: any Value of Kind will do
}

// rule is a leaf of a Device.
type rule struct {
	Leaf
	pieces []string // of the path, between the values of keys
	set    func(d *Device, keys []string, v Value) error
}

// level is a kind of struct in a Device.
type level[T any] struct {
	// each yields every T with its keys, as long as yield wants more.
	each func(d *Device, yield func(keys []string, x *T) bool) bool
	// find returns the T of these keys, nil if there is none and it is not to be
	// made.
	find func(d *Device, keys []string, create bool) (*T, error)
	// drop removes the T of these keys if nothing is left of it.
	drop func(d *Device, keys []string)
}

// table has the rules of all levels.
type table struct {
	rules   map[string]*rule // by names of elements
	lists   map[string][]Key // of each list, by names of elements
	schema  []*rule
	listers []func(d *Device, aliases bool, yield func(string, Value) bool) bool
}

func add[T any](t *table, of level[T], leaves []leaf[T]) {
	rules := make([]*rule, len(leaves))
	for i, l := range leaves {
		r := t.add(l.path, l.Leaf)
		r.set = func(d *Device, keys []string, v Value) error {
			if l.check != nil && v.kind != None {
				if err := l.check(keys, v); err != nil {
					return err
				}
			}
			x, err := of.find(d, keys, v.kind != None)
			if err != nil || x == nil {
				return err
			}
			l.set(x, v)
			if v.kind == None && of.drop != nil {
				of.drop(d, keys)
			}
			return nil
		}
		rules[i] = r
	}
	t.listers = append(t.listers, func(d *Device, aliases bool, yield func(string, Value) bool) bool {
		return of.each(d, func(keys []string, x *T) bool {
			for i := range leaves {
				if leaves[i].Alias && !aliases {
					continue
				}
				if v := leaves[i].get(x); v.kind != None && !yield(rules[i].at(keys), v) {
					return false
				}
			}
			return true
		})
	})
}

func (t *table) add(path string, l Leaf) *rule {
	r := &rule{Leaf: l}
	piece := ""
	for _, text := range strings.Split(path[1:], "/") {
		name, keys, _ := strings.Cut(text, "[")
		module, name, qualified := strings.Cut(name, ":")
		if !qualified {
			module, name = "", module
		}
		e := Elem{Name: name}
		piece += "/" + name
		if keys != "" {
			key := strings.TrimSuffix(keys, "]")
			e.Keys = []Key{{Name: key}}
			r.order = append(r.order, place{len(r.Path), key})
			r.pieces = append(r.pieces, piece+"["+key+"=")
			piece = "]"
		}
		r.Path, r.Modules = append(r.Path, e), append(r.Modules, module)
		if e.Keys != nil {
			t.lists[names(r.Path)] = e.Keys
		}
	}
	r.pieces = append(r.pieces, piece)
	names := names(r.Path)
	if t.rules[names] != nil {
		panic("openconfig: " + names + " is there twice")
	}
	t.rules[names] = r
	t.schema = append(t.schema, r)
	return r
}

// names is a path without keys.
func names(p Path) string {
	var b strings.Builder
	for i := range p {
		b.WriteByte('/')
		b.WriteString(p[i].Name)
	}
	return b.String()
}

// at returns the path of the rule's leaf that has these keys.
func (r *rule) at(keys []string) string {
	if len(keys) == 0 {
		return r.pieces[0]
	}
	var b strings.Builder
	for i, k := range keys {
		b.WriteString(r.pieces[i])
		escape(&b, k, `\=]`)
	}
	b.WriteString(r.pieces[len(keys)])
	return b.String()
}

// keys returns the values of the keys of a path, which has the rule's names; false if it
// has other keys than the rule.
func (r *rule) keys(p Path) (values []string, ok bool) {
	n := 0
	for i := range p {
		n += len(p[i].Keys)
	}
	if n != len(r.order) {
		return nil, false
	}
	for _, at := range r.order {
		v, ok := p[at.elem].Get(at.key)
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

// take makes v a value of the leaf's kind: numbers may come as texts (RFC 7951, section
// 6.1), identities with the prefix of their module.
func (l *Leaf) take(v Value) (Value, error) {
	wrong := fmt.Errorf("wants %s, not %s %q", l.Kind, v.kind, v)
	switch {
	case v.kind == None:
		return v, nil
	case v.kind == String && l.Kind == Uint:
		n, err := parseUint(v.text, l.Bits)
		if err != nil {
			return v, wrong
		}
		return Number(n), nil
	case v.kind != l.Kind:
		return v, wrong
	case v.kind == Uint && l.Bits < 64 && v.number > math.MaxUint64>>(64-l.Bits):
		return v, fmt.Errorf("wants a number of %d bits, not %d", l.Bits, v.number)
	case l.Identity != "":
		return Text(Unqualified(v.text)), nil
	}
	return v, nil
}

// The constructors of leaves. Each reads and writes the field that it is given.

func text[T any, S ~string](path string, field func(*T) *S) leaf[T] {
	return leaf[T]{
		path: path, Leaf: Leaf{Kind: String},
		get: func(x *T) Value {
			if s := *field(x); s != "" {
				return Text(string(s))
			}
			return Value{}
		},
		set: func(x *T, v Value) { *field(x) = S(v.text) },
	}
}

func identity[T any](path, module string, field func(*T) *string) leaf[T] {
	l := text(path, field)
	l.Identity = module
	return l
}

func texts[T any](path string, field func(*T) *[]string) leaf[T] {
	return leaf[T]{
		path: path, Leaf: Leaf{Kind: Strings},
		get: func(x *T) Value {
			if s := *field(x); len(s) > 0 {
				return Texts(s)
			}
			return Value{}
		},
		set: func(x *T, v Value) { *field(x) = v.Texts() },
	}
}

func number[T any, N ~uint8 | ~uint16 | ~uint32 | ~uint64](path string, field func(*T) *N) leaf[T] {
	return leaf[T]{
		path: path, Leaf: Leaf{Kind: Uint, Bits: bits[N]()},
		get: func(x *T) Value {
			if n := *field(x); n != 0 {
				return Number(uint64(n))
			}
			return Value{}
		},
		set: func(x *T, v Value) { *field(x) = N(v.Number()) },
	}
}

func bits[N ~uint8 | ~uint16 | ~uint32 | ~uint64]() int {
	n := 0
	for top := ^N(0); top != 0; top >>= 1 {
		n++
	}
	return n
}

func flag[T any](path string, field func(*T) *bool) leaf[T] {
	return leaf[T]{
		path: path, Leaf: Leaf{Kind: Bool},
		get: func(x *T) Value {
			if *field(x) {
				return Of(true)
			}
			return Value{}
		},
		set: func(x *T, v Value) { *field(x) = v.Bool() },
	}
}

func count[T any](path string, bits int, field func(*T) *Count) leaf[T] {
	return leaf[T]{
		path: path, Leaf: Leaf{Kind: Uint, Bits: bits, Counter: true},
		get: func(x *T) Value {
			if c := *field(x); c.Said {
				return Number(c.N)
			}
			return Value{}
		},
		set: func(x *T, v Value) { *field(x) = Count{v.Number(), v.kind != None} },
	}
}

// always makes a leaf that is reported also where it is zero.
func always[T any](l leaf[T]) leaf[T] {
	get, zero := l.get, Value{kind: l.Kind}
	l.get = func(x *T) Value {
		if v := get(x); v.kind != None {
			return v
		}
		return zero
	}
	return l
}

// counter makes a leaf a counter, which is reported also where it is zero.
func counter[T any](l leaf[T]) leaf[T] {
	l = always(l)
	l.Counter = true
	return l
}

// member is an entry of a list by number.
type member[K ~uint32 | ~uint64, T any] struct {
	x  *T
	in map[K]*T
	at K
}

// numbered is a list by number, of what is counted. The map is nil where it is in something
// that is not there and not to be made.
func numbered[K ~uint32 | ~uint64, T any](what string, list func(d *Device, create bool) *map[K]*T) level[member[K, T]] {
	return level[member[K, T]]{
		each: func(d *Device, yield func([]string, *member[K, T]) bool) bool {
			in := list(d, false)
			if in == nil {
				return true
			}
			for _, n := range slices.Sorted(maps.Keys(*in)) {
				if !yield([]string{strconv.FormatUint(uint64(n), 10)}, &member[K, T]{(*in)[n], *in, n}) {
					return false
				}
			}
			return true
		},
		find: func(d *Device, keys []string, create bool) (*member[K, T], error) {
			number, err := parseUint(keys[0], bits[K]())
			if err != nil {
				return nil, fmt.Errorf("no number of %s: %q", what, keys[0])
			}
			in, n := list(d, create), K(number)
			if in == nil || (*in)[n] == nil && !create {
				return nil, nil
			}
			if *in == nil {
				*in = map[K]*T{}
			}
			if (*in)[n] == nil {
				(*in)[n] = new(T)
			}
			return &member[K, T]{(*in)[n], *in, n}, nil
		},
		drop: func(d *Device, _ []string) {
			if in := list(d, false); len(*in) == 0 {
				*in = nil
			}
		},
	}
}

// numberKey is the leaf that repeats the key of such a list.
func numberKey[K ~uint32 | ~uint64, T any](path string) leaf[member[K, T]] {
	return leaf[member[K, T]]{
		path: path, Leaf: Leaf{Kind: Uint, Bits: bits[K](), Counter: true},
		get: func(x *member[K, T]) Value { return Number(uint64(x.at)) },
		set: func(x *member[K, T], v Value) {
			if v.kind == None {
				delete(x.in, x.at)
			}
		},
		check: func(keys []string, v Value) error {
			if is := keys[len(keys)-1]; v.String() != is {
				return fmt.Errorf("the entry of %q says that it is %v", is, v)
			}
			return nil
		},
	}
}

// sampled makes a leaf one that changes by itself, or is the key of such ones.
func sampled[T any](l leaf[T]) leaf[T] {
	l.Counter = true
	return l
}

// alias makes a leaf one that is only read.
func alias[T any](l leaf[T]) leaf[T] {
	l.Alias = true
	return l
}
