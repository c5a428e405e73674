package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a flag's number of bytes, such as 65536, 64KiB or 4MiB.
type size int

var units = []struct {
	suffix string
	bytes  int
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1},
}

// String returns the number with the largest unit that divides it.
func (s *size) String() string {
	for _, u := range []int{2, 1, 0} {
		if n := int(*s); n != 0 && n%units[u].bytes == 0 {
			return strconv.Itoa(n/units[u].bytes) + units[u].suffix
		}
	}
	return strconv.Itoa(int(*s))
}

// Type names the value in the usage.
func (s *size) Type() string { return "size" }

// Set reads a number, with a unit or without.
func (s *size) Set(text string) error {
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
		return fmt.Errorf("%q is no number of bytes: a whole number is, alone or with KiB, MiB or GiB", text)
	case n < 0:
		return fmt.Errorf("%d bytes: the number must not be negative", n)
	case n > math.MaxInt/unit:
		return fmt.Errorf("%q is too large", text)
	}
	*s = size(n * unit)
	return nil
}
