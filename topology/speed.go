package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Speed is how fast a node reduces: it takes at most so many packets of children, and
// reduces at most so many bytes of theirs, in a second. Of each number 0 is that it is
// not known, and NoSpeed that it is none.
type Speed struct {
	Bytes   int64
	Packets int64
}

// NoSpeed is a speed of nothing at all. A switch with it can be on no tree.
const NoSpeed = -1

// LineRate is a speed of whatever arrives, as hardware has it: links are slower. It
// bounds a speed; what is above it is a typing error.
const LineRate = 1_000_000_000_000_000

// lineRate is LineRate in files.
const lineRate = "line-rate"

// ErrSpeed is wrapped by every error about a speed out of range.
var ErrSpeed = errors.New("invalid speed of reduction")

// Validate reports what is out of range in s.
func (s Speed) Validate() error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"bytes", s.Bytes}, {"packets", s.Packets}} {
		if n.value < NoSpeed || n.value > LineRate {
			return fmt.Errorf("%d %s a second are not within 0 and %d: %w", n.value, n.name, int64(LineRate), ErrSpeed)
		}
	}
	return nil
}

// Known reports whether anything is known of it.
func (s Speed) Known() bool { return s != Speed{} }

// None reports whether it is none at all.
func (s Speed) None() bool { return s.Bytes == NoSpeed || s.Packets == NoSpeed }

// AtLineRate reports whether links alone limit it: neither bytes nor packets do, nor a
// CPU.
func (s Speed) AtLineRate() bool {
	return s.Bytes == LineRate && (s.Packets == LineRate || s.Packets == 0)
}

// String says it in words, such as "2.5 GB/s, 1.2 M packets/s".
func (s Speed) String() string {
	if s.AtLineRate() {
		return "line rate"
	}
	var parts []string
	if s.Bytes != 0 {
		parts = append(parts, amountText(s.Bytes)+"B/s")
	}
	if s.Packets != 0 {
		parts = append(parts, amountText(s.Packets)+"packets/s")
	}
	if len(parts) == 0 {
		return "not known"
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes s as the file format has it: without what is not known, and 0 for
// NoSpeed.
func (s Speed) MarshalJSON() ([]byte, error) {
	rate := func(n int64) *int64 {
		if n == 0 {
			return nil
		}
		n = max(n, 0)
		return &n
	}
	return json.Marshal(struct {
		Bytes   *int64 `json:"bytes,omitempty"`
		Packets *int64 `json:"packets,omitempty"`
	}{rate(s.Bytes), rate(s.Packets)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Speed) UnmarshalJSON(text []byte) error {
	var f struct{ Bytes, Packets *int64 }
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("read speed: %w", err)
	}
	rate := func(n *int64) int64 {
		switch {
		case n == nil:
			return 0
		case *n == 0:
			return NoSpeed
		}
		return *n
	}
	*s = Speed{rate(f.Bytes), rate(f.Packets)}
	return nil
}

// amountText writes a number with three digits and a unit, and a blank before what is
// counted.
func amountText(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if float64(n) >= 0.9995*unit.size {
			return fmt.Sprintf("%.3g %s", float64(n)/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d ", max(n, 0))
}
