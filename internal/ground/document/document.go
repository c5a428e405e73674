package document

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a piece of a document that knows its line and its way from the top.
type Value struct {
	Kind  Kind
	Line  int      // from 1
	Text  string   // of a scalar
	Items []*Value // of a list or an object
	Key   string   // in a parent that is an object

	parent *Value
	index  int // in a parent that is a list
}

// Kind is what a Value is.
type Kind uint8

// The kinds of value.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

var kindNames = [...]string{"nothing", "true or false", "a number", "a string", "a list", "an object"}

// String returns the kind with its article, such as "a list".
func (k Kind) String() string { return kindNames[k] }

// maxDepth is far deeper than any format that is read here nests.
const maxDepth = 16

// Path names the value from the top, such as links[3].between[1].
func (v *Value) Path() string {
	if v.parent == nil {
		return ""
	}
	up, key := v.parent.Path(), v.Key
	if !plain(key) {
		key = strconv.Quote(key)
	}
	switch {
	case v.parent.Kind == List:
		return up + "[" + strconv.Itoa(v.index) + "]"
	case up == "":
		return key
	default:
		return up + "." + key
	}
}

// Field returns the field of that name in an object, or nil.
func (v *Value) Field(name string) *Value {
	if v.Kind != Object {
		return nil
	}
	for _, f := range v.Items {
		if f.Key == name {
			return f
		}
	}
	return nil
}

// plain reports whether a field's name can stand in a path without quotes.
func plain(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r))
	})
}

// SyntaxError is what is wrong with a document's syntax.
type SyntaxError struct {
	Line int // from 1; 0 where it is not known
	Err  error
}

// Error says what is wrong, without the line.
func (e *SyntaxError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *SyntaxError) Unwrap() error { return e.Err }

// Options say what a document may have beyond plain values.
type Options struct {
	// Aliases of YAML: each is read as what its anchor stands at, up to
	// MaxValues in the whole document.
	Aliases bool

	// YAML: so is what begins with a brace. It may be JSON all the same, which
	// YAML has in it; the objects of YAML on one line are more than JSON.
	YAML bool
}

// MaxValues is the most values of a document with aliases: a small file of them
// can stand for an enormous one.
const MaxValues = 1 << 20

// notUTF8 returns where the first byte stands that is not of UTF-8, or -1.
func notUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// lineOf returns the line, from 1, on which a byte stands.
func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }

// Parse reads a document in JSON if it begins with a brace, unless options say
// otherwise, and else in YAML; both in UTF-8.
func Parse(data []byte, o Options) (*Value, *SyntaxError) {
	if at := notUTF8(data); at >= 0 {
		return nil, &SyntaxError{Line: lineOf(data, at), Err: fmt.Errorf("it is not UTF-8: it has the byte 0x%02x", data[at])}
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); !o.YAML && len(trimmed) > 0 && trimmed[0] == '{' {
		return parseJSON(data)
	}
	return parseYAML(data, o)
}
