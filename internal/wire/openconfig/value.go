package openconfig

import (
	"strconv"
	"strings"
)

// Kind is what a Value is.
type Kind uint8

// The kinds of values.
const (
	None    Kind = iota // not reported
	Bool                // a truth value
	Uint                // a number that is not negative
	String              // a text
	Strings             // several texts, in order
)

var kinds = [...]string{"nothing", "a truth value", "an unsigned number", "a text", "a list of texts"}

// String names k.
func (k Kind) String() string { return kinds[min(int(k), len(kinds)-1)] }

// Value is the value of a leaf. Two are the same if they are equal; the zero Value
// is none.
type Value struct {
	kind   Kind
	number uint64 // of Strings, how many
	text   string // of Strings, joined by separator
}

// separator is a character that no text of YANG has (RFC 7950, section 9.4).
const separator = "\x00"

// Of returns the Value of a truth value.
func Of(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.number = 1
	}
	return v
}

// Number returns the Value of a number.
func Number(n uint64) Value { return Value{kind: Uint, number: n} }

// Text returns the Value of a text. Bytes that are not UTF-8, which no message can have, are
// replaced.
func Text(s string) Value { return Value{kind: String, text: Valid(s)} }

// Valid returns s with what is not UTF-8 replaced.
func Valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// Texts returns the Value of several texts, like Text. They lose zero bytes.
func Texts(list []string) Value {
	clean := make([]string, len(list))
	for i, s := range list {
		clean[i] = strings.ReplaceAll(Valid(s), separator, "")
	}
	return Value{kind: Strings, number: uint64(len(list)), text: strings.Join(clean, separator)}
}

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// Bool returns the truth value that v is.
func (v Value) Bool() bool { return v.kind == Bool && v.number == 1 }

// Number returns the number that v is.
func (v Value) Number() uint64 {
	if v.kind != Uint {
		return 0
	}
	return v.number
}

// Texts returns the texts that v has.
func (v Value) Texts() []string {
	if v.kind != Strings || v.number == 0 {
		return nil
	}
	return strings.Split(v.text, separator)
}

// String returns v as people write it.
func (v Value) String() string {
	switch v.kind {
	case Bool:
		return strconv.FormatBool(v.number == 1)
	case Uint:
		return strconv.FormatUint(v.number, 10)
	case Strings:
		return strings.Join(v.Texts(), " ")
	}
	return v.text
}

// Size is about how many bytes v takes.
func (v Value) Size() int { return len(v.text) + 8 }
