package p4rt

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/bits"
	"net"
	"net/netip"
	"strings"
)

// On the wire a number is its big-endian bytes without leading zeros, and zero
// is one byte. In package p4 it is as long as its field, rounded up to bytes.

// shorten returns a number of a field of so many bits as it is on the wire, or
// an error if it does not fit. What is longer than the field is taken if the
// surplus is zeros.
func shorten(value []byte, width int32) ([]byte, error) {
	if len(value) == 0 {
		return nil, fmt.Errorf("%w: no value", ErrEntry)
	}
	value = trim(value)
	if need := (len(value)-1)*8 + bits.Len8(value[0]); need > int(width) {
		return nil, fmt.Errorf("%w: 0x%s needs %d bits, and there are %d", ErrEntry, hex.EncodeToString(value), need, width)
	}
	return value, nil
}

// lengthen is the inverse of shorten. Targets may send leading zeros.
func lengthen(value []byte, width int32) ([]byte, error) {
	short, err := shorten(value, width)
	if err != nil {
		return nil, err
	}
	long := make([]byte, bytesOf(width))
	copy(long[len(long)-len(short):], short)
	return long, nil
}

func bytesOf(width int32) int { return (int(width) + 7) / 8 }

// trim returns a number that has bytes without leading zeros.
func trim(value []byte) []byte {
	if t := bytes.TrimLeft(value, "\x00"); len(t) > 0 {
		return t
	}
	return value[:1]
}

// inPrefix reports whether a number as long as its field has no bit beyond its
// first n.
func inPrefix(value []byte, n, width int32) bool {
	tail := new(big.Int).SetBytes(value)
	beyond := new(big.Int).Lsh(big.NewInt(1), uint(width-n))
	return tail.And(tail, beyond.Sub(beyond, big.NewInt(1))).Sign() == 0
}

// A look is how the program wants a value to be written for people, which it
// says in annotations of P4Info.
type look uint8

const (
	asNumber look = iota
	asIP
	asMAC
	asSecret // not at all
)

var looks = map[string]look{
	"@format(IPV4_ADDRESS)": asIP,
	"@format(IPV6_ADDRESS)": asIP,
	"@format(MAC_ADDRESS)":  asMAC,
}

// lookOf returns how a value is written; cookies of neighbours are secret.
func lookOf(name string, annotations []string) look {
	if name == "cookie" {
		return asSecret
	}
	for _, a := range annotations {
		if l, ok := looks[strings.ReplaceAll(a, `"`, "")]; ok {
			return l
		}
	}
	return asNumber
}

// decimalBytes is the longest number that is written in decimal.
const decimalBytes = 4

// words returns a value for people.
func (l look) words(value []byte) string {
	switch l {
	case asIP:
		if a, ok := netip.AddrFromSlice(value); ok {
			return a.String()
		}
	case asMAC:
		return net.HardwareAddr(value).String()
	case asSecret:
		return "secret"
	case asNumber:
	}
	n := new(big.Int).SetBytes(value)
	if len(value) <= decimalBytes {
		return n.String()
	}
	return "0x" + n.Text(16)
}
