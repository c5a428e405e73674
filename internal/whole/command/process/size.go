package process

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a flag's number of bytes, such as 65536, 64KiB or 4MiB.
type Size int

var units = []struct {
	suffix string
	bytes  int
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1},
}

// String returns the number with the largest unit that divides it.
func (s *Size) String() string {
	for _, u := range []int{2, 1, 0} {
		if n := int(*s); n != 0 && n%units[u].bytes == 0 {
			return strconv.Itoa(n/units[u].bytes) + units[u].suffix
		}
	}
	return strconv.Itoa(int(*s))
}

// Type names the value in the usage.
func (s *Size) Type() string { return "size" }

// Set reads a number, with a unit or without.
func (s *Size) Set(text string) error {
	n, err := ParseSize(text)
	if err == nil {
		*s = Size(n)
	}
	return err
}

// ParseSize reads a number of bytes, with a unit or without.
func ParseSize(text string) (int, error) {
	digits, unit := text, 1
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no number of bytes: a whole number is, alone or with KiB, MiB or GiB", text)
	case n < 0:
		return 0, fmt.Errorf("%d bytes: the number must not be negative", n)
	case n > math.MaxInt/unit:
		return 0, fmt.Errorf("%q is too large", text)
	}
	return n * unit, nil
}
