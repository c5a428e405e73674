package topology

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// namer gives the nodes' names and finds nodes by name.
type namer interface {
	name(NodeID) string
	lookup(string) (NodeID, bool)
	bytes() int
}

// ErrName is wrapped by every error about a name that no node may have.
var ErrName = errors.New("invalid node name")

// maxName is the most bytes of a name (that of a DNS name).
const maxName = 253

// CheckName reports what is wrong with a node's name: it is made of letters,
// digits and . _ - / and begins with a letter or digit.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("it is empty: %w", ErrName)
	}
	if len(name) > maxName {
		return fmt.Errorf("it has %d bytes, more than %d: %w", len(name), maxName, ErrName)
	}
	for i, c := range name {
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || !strings.ContainsRune("._-/", c)) {
			return fmt.Errorf("%q may not have %q at %d (letters, digits, and within . _ - /): %w", name, c, i, ErrName)
		}
	}
	return nil
}

// validFabric reports what is wrong with a fabric's name, which is any printable
// text.
func validFabric(name string) error {
	if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("the fabric's name must be printable and at most %d bytes: %w", maxName, ErrName)
	}
	return nil
}

// pattern names count nodes from first on: prefix and index; or, where there are
// inner radices, prefix and the index's digits in them with dashes between, the
// last radix counting fastest and the first digit as large as it needs to be;
// or, where bare, the prefix alone.
type pattern struct {
	prefix string
	first  NodeID
	count  int
	inner  []int
	bare   bool
}

// patterns is the namer of generated fabrics: it keeps no names. Patterns lie
// in the order of their nodes and leave none out.
type patterns []pattern

func (ps patterns) name(n NodeID) string {
	for _, p := range ps {
		i := int(n - p.first)
		switch {
		case i >= p.count:
			continue
		case p.bare:
			return p.prefix
		default:
			return string(p.digits([]byte(p.prefix), i))
		}
	}
	panic("topology: a node without a name")
}

// digits appends the digits of index i, dashes between.
func (p pattern) digits(to []byte, i int) []byte {
	below := 1
	for _, radix := range p.inner {
		below *= radix
	}
	to = strconv.AppendInt(to, int64(i/below), 10)
	for _, radix := range p.inner {
		i %= below
		below /= radix
		to = strconv.AppendInt(append(to, '-'), int64(i/below), 10)
	}
	return to
}

func (ps patterns) lookup(name string) (NodeID, bool) {
	for _, p := range ps {
		rest, ok := strings.CutPrefix(name, p.prefix)
		if !ok {
			continue
		}
		if i, ok := p.index(rest); ok {
			return p.first + NodeID(i), true
		}
	}
	return NoNode, false
}

// index returns which of the pattern's nodes has this after its prefix.
func (p pattern) index(rest string) (int, bool) {
	if p.bare {
		return 0, rest == "" && p.count == 1
	}
	limit := p.count
	for _, radix := range p.inner {
		limit /= radix
	}
	digit, rest, more := strings.Cut(rest, "-")
	i, ok := decimal(digit, limit)
	for _, radix := range p.inner {
		if !ok || !more {
			return 0, false
		}
		digit, rest, more = strings.Cut(rest, "-")
		var d int
		d, ok = decimal(digit, radix)
		i = i*radix + d
	}
	return i, ok && !more
}

// decimal reads a number below limit written the one way strconv.Itoa does.
func decimal(s string, limit int) (int, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		if n = n*10 + int(s[i]-'0'); n >= limit {
			return 0, false
		}
	}
	return n, true
}

func (ps patterns) bytes() int {
	sum := sliceBytes(ps)
	for _, p := range ps {
		sum += len(p.prefix) + sliceBytes(p.inner)
	}
	return sum
}

// nameTable keeps names end to end in one array, and finds them by a hash
// table of numbers: about 9 bytes a name beside its own.
type nameTable struct {
	text  []byte
	ends  []uint32 // name i ends there and begins where the one before ends
	table []int32  // open addressing: number + 1; 0 is free; at most 3/4 full
	seed  maphash.Seed
}

func (t *nameTable) at(i int32) []byte {
	from := uint32(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return t.text[from:t.ends[i]]
}

func (t *nameTable) name(n NodeID) string { return string(t.at(int32(n))) }

// place returns where name is in the table, or the free place for it.
func (t *nameTable) place(name string) int {
	mask := len(t.table) - 1
	i := int(maphash.String(t.seed, name)) & mask
	for t.table[i] != 0 && string(t.at(t.table[i]-1)) != name {
		i = (i + 1) & mask
	}
	return i
}

func (t *nameTable) lookup(name string) (NodeID, bool) {
	if len(t.table) == 0 {
		return NoNode, false
	}
	if found := t.table[t.place(name)]; found != 0 {
		return NodeID(found - 1), true
	}
	return NoNode, false
}

// add appends name as the next number, unless it is there already.
func (t *nameTable) add(name string) {
	if 4*(len(t.ends)+1) > 3*len(t.table) {
		t.grow()
	}
	place := t.place(name)
	if t.table[place] != 0 {
		return
	}
	t.text = append(t.text, name...)
	t.ends = append(t.ends, uint32(len(t.text)))
	t.table[place] = int32(len(t.ends))
}

func (t *nameTable) grow() { t.rehash(max(8, 2*len(t.table))) }

// reserve makes room in an empty table for count names of so many bytes in all,
// and no more.
func (t *nameTable) reserve(count, text int) {
	t.text, t.ends = make([]byte, 0, text), make([]uint32, 0, count)
	size := 8
	for 4*count > 3*size {
		size *= 2
	}
	t.rehash(size)
}

func (t *nameTable) rehash(size int) {
	if t.table == nil {
		t.seed = maphash.MakeSeed()
	}
	t.table = make([]int32, size)
	for i := range t.ends {
		t.table[t.place(string(t.at(int32(i))))] = int32(i) + 1
	}
}

func (t *nameTable) bytes() int {
	return int(unsafe.Sizeof(*t)) + sliceBytes(t.text) + sliceBytes(t.ends) + sliceBytes(t.table)
}
