package openconfig

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrPath is wrapped by the errors of ParsePath.
var ErrPath = errors.New("malformed path")

// Bounds of a path.
const (
	MaxDepth = 32   // elements
	MaxPath  = 4096 // bytes
)

// Path is the place of a node in a tree of data, from the root.
type Path []Elem

// Elem is an element of a path. The keys of a list's entry are in the order of their
// names.
type Elem struct {
	Name string
	Keys []Key
}

// Key is a key of a list's entry.
type Key struct{ Name, Value string }

// Wildcards, in paths that select: any element or key's value, and any number of
// elements.
const (
	AnyElem  = "*"
	AnyDepth = "..."
)

// Get returns the value of a key.
func (e *Elem) Get(key string) (string, bool) {
	for _, k := range e.Keys {
		if k.Name == key {
			return k.Value, true
		}
	}
	return "", false
}

// KeyKind returns the kind of a list's key: all are texts as far as paths go, but not in
// JSON.
func KeyKind(list, key string) Kind {
	if list == "subinterface" && key == "index" || list == "tree" && key == "group" || list == "process" && key == "pid" {
		return Uint
	}
	return String
}

// String returns p as gNMI's convention for path strings has it: ParsePath reads it.
func (p Path) String() string {
	if len(p) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, e := range p {
		b.WriteByte('/')
		escape(&b, e.Name, `\/[`)
		for _, k := range e.Keys {
			b.WriteByte('[')
			escape(&b, k.Name, `\=]`)
			b.WriteByte('=')
			escape(&b, k.Value, `\=]`)
			b.WriteByte(']')
		}
	}
	return b.String()
}

func escape(b *strings.Builder, s, special string) {
	for i := range len(s) {
		if strings.IndexByte(special, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
}

// ParsePath reads a path string: elements that begin with "/", each followed by its
// keys, "[name=value]"; a backslash takes the next character literally. Names lose
// the prefix of their module, which some targets add.
func ParsePath(s string) (Path, error) {
	if len(s) > MaxPath {
		return nil, fmt.Errorf("%w: %d bytes, and %d are allowed", ErrPath, len(s), MaxPath)
	}
	if s == "/" {
		return nil, nil
	}
	var p Path
	r := reader{text: s}
	for r.more() {
		if !r.take('/') {
			return nil, fmt.Errorf("%w: %q has no / at byte %d", ErrPath, s, r.at)
		}
		e := Elem{Name: Unqualified(r.until("/["))}
		for r.take('[') {
			k := Key{Name: r.until("=]")}
			if !r.take('=') {
				return nil, fmt.Errorf("%w: %q has a key without a value at byte %d", ErrPath, s, r.at)
			}
			k.Value = r.until("]")
			if !r.take(']') {
				return nil, fmt.Errorf("%w: %q has a key without an end", ErrPath, s)
			}
			e.Keys = append(e.Keys, k)
		}
		p = append(p, e)
	}
	if r.cut {
		return nil, fmt.Errorf("%w: %q ends in a backslash", ErrPath, s)
	}
	return p, p.Check()
}

// Unqualified returns a name without the prefix of its module.
func Unqualified(name string) string {
	if i := strings.IndexByte(name, ':'); i > 0 && i+1 < len(name) {
		return name[i+1:]
	}
	return name
}

// Check brings the keys of every element into order, and reports what is wrong with
// p.
func (p Path) Check() error {
	if len(p) > MaxDepth {
		return fmt.Errorf("%w: %d elements, and %d are allowed", ErrPath, len(p), MaxDepth)
	}
	size := 0
	for i := range p {
		size += len(p[i].Name) + 1
		for _, k := range p[i].Keys {
			size += len(k.Name) + len(k.Value) + 3
		}
	}
	if size > MaxPath {
		return fmt.Errorf("%w: %d bytes, and %d are allowed", ErrPath, size, MaxPath)
	}
	for i := range p {
		e := &p[i]
		if e.Name == "" {
			return fmt.Errorf("%w: element %d of %s has no name", ErrPath, i+1, p)
		}
		slices.SortStableFunc(e.Keys, func(a, b Key) int { return cmp.Compare(a.Name, b.Name) })
		for j, k := range e.Keys {
			if k.Name == "" {
				return fmt.Errorf("%w: a key of %s in %s has no name", ErrPath, e.Name, p)
			}
			if j > 0 && e.Keys[j-1].Name == k.Name {
				return fmt.Errorf("%w: %s in %s has key %s twice", ErrPath, e.Name, p, k.Name)
			}
		}
	}
	return nil
}

// Covers reports whether a path that may have wildcards selects q, or what it is
// in.
func (p Path) Covers(q Path) bool {
	n := 0        // elements of q that are matched
	anchor := -1  // of p, behind the last AnyDepth; -1: there was none
	var begun int // of q, where what is behind it was last tried
	for i := 0; i < len(p); {
		switch {
		case p[i].Name == AnyDepth:
			i++
			anchor, begun = i, n
		case n < len(q) && p[i].Matches(&q[n]):
			i++
			n++
		case anchor < 0 || begun >= len(q):
			return false
		default: // one element more
			begun++
			i, n = anchor, begun
		}
	}
	return true
}

// Matches reports whether an element that may have wildcards selects x.
func (e *Elem) Matches(x *Elem) bool {
	if e.Name != AnyElem && e.Name != x.Name {
		return false
	}
	for _, k := range e.Keys {
		if v, ok := x.Get(k.Name); !ok || k.Value != AnyElem && k.Value != v {
			return false
		}
	}
	return true
}

// reader reads a path string.
type reader struct {
	text string
	at   int
	cut  bool // ended behind a backslash
}

func (r *reader) more() bool { return r.at < len(r.text) }

func (r *reader) take(c byte) bool {
	if r.more() && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// until reads up to one of the characters in stop, which it leaves.
func (r *reader) until(stop string) string {
	begin := r.at
	for r.more() && r.text[r.at] != '\\' && strings.IndexByte(stop, r.text[r.at]) < 0 {
		r.at++
	}
	if !r.more() || r.text[r.at] != '\\' {
		return r.text[begin:r.at]
	}
	var b strings.Builder
	b.WriteString(r.text[begin:r.at])
	for r.more() && strings.IndexByte(stop, r.text[r.at]) < 0 {
		if r.text[r.at] == '\\' {
			if r.at++; !r.more() {
				r.cut = true
				break
			}
		}
		b.WriteByte(r.text[r.at])
		r.at++
	}
	return b.String()
}
