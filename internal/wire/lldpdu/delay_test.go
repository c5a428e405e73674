package lldpdu

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

var someDelays = map[string]Delay{
	"delay-request":  {Kind: DelayRequest, Target: [6]byte{2, 0, 0, 0, 0, 9}, Nonce: 0x0102030405060708},
	"delay-response": {Kind: DelayResponse, Target: [6]byte{2, 0, 0, 0, 0, 9}, Nonce: 0x0102030405060708, Hold: time.Microsecond},
}

// with returns leaf's LLDPDU with a Delay.
func with(t testing.TB, d Delay) []byte {
	t.Helper()
	pdu, err := leaf.Append(nil)
	if err == nil {
		pdu, err = AppendDelay([]byte("before"), pdu, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimPrefix(pdu, []byte("before"))
}

// TestDelay: a Delay changes nothing in what is announced, and is read as it was written.
func TestDelay(t *testing.T) {
	for name, d := range someDelays {
		pdu := with(t, d)
		a, discarded, err := Decode(pdu)
		if err != nil || discarded != 0 || !a.Equal(&leaf) {
			t.Errorf("%s: %+v, %d discarded, %v", name, a, discarded, err)
		}
		if got, ok := DecodeDelay(append(pdu, 0, 0, 0)); !ok || got != d {
			t.Errorf("%s is read as %+v, %v", name, got, ok)
		}
		v := string(pdu[bytes.LastIndex(pdu, []byte(organization))+4 : len(pdu)-2])
		for _, bad := range []string{v[1:], v + "x", "\x00" + v[1:], "\x03" + v[1:], v[:15] + "\xff" + v[16:], "\x01" + v[1:15] + "\x00\x00\x00\x00\x00\x00\x00\x01"} {
			pdu := []byte(head + tlv(127, organization+"\x04"+bad) + last)
			if got, ok := DecodeDelay(pdu); ok {
				t.Errorf("%q is read as %+v", bad, got)
			}
			if _, discarded, err := Decode(pdu); err != nil || discarded != 1 {
				t.Errorf("%q: %d discarded, %v", bad, discarded, err)
			}
		}
	}
	plain, err := leaf.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := DecodeDelay(plain); ok {
		t.Errorf("an announcement without a Delay has %+v", d)
	}
	long := leaf
	x := strings.Repeat("x", 255)
	long.PortDescription, long.SystemName, long.SystemDescription, long.Tributary.Name, long.Chassis.Value = x, x, x, x, x
	if plain, err = long.Append(nil); err != nil {
		t.Fatal(err)
	}
	if len(plain) <= MaxSize-29 {
		plain = append(plain[:len(plain)-2], tlv(9, strings.Repeat("x", MaxSize-2-len(plain)))+last...)
	}
	if _, err := AppendDelay(nil, plain, Delay{}); !errors.Is(err, ErrTooLong) {
		t.Errorf("%d bytes: %v", len(plain), err)
	}
}
