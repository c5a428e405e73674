package linkdelay

import (
	"errors"
	"testing"
	"time"
)

// TestGolden: the bytes of both messages.
func TestGolden(t *testing.T) {
	target := [6]byte{2, 0, 0, 0, 0, 9}
	for want, m := range map[string]Message{
		"TRIB\x01\x01\x02\x00\x00\x00\x00\x09\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x00\x00": {Kind: Request, Target: target, Nonce: 0x0102030405060708},
		"TRIB\x01\x02\x02\x00\x00\x00\x00\x09\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x03\xe8": {Kind: Response, Target: target, Nonce: 0x0102030405060708, Hold: time.Microsecond},
	} {
		b := m.Append([]byte("x"))
		if string(b) != "x"+want || len(want) != Size {
			t.Errorf("%+v is %q, want %q", m, b, want)
		}
		if got, err := Decode(append([]byte(want), 0, 0)); got != m || err != nil {
			t.Errorf("%q is read as %+v, %v", want, got, err)
		}
		for _, bad := range []string{want[:Size-1], "", "TRIC" + want[4:], want[:4] + "\x02" + want[5:], want[:5] + "\x03" + want[6:], want[:5] + "\x00" + want[6:], want[:20] + "\xff" + want[21:]} {
			if got, err := Decode([]byte(bad)); !errors.Is(err, ErrMalformed) || got != (Message{}) {
				t.Errorf("%q is read as %+v, %v", bad, got, err)
			}
		}
	}
	if _, err := Decode([]byte("TRIB\x01\x01\x02\x00\x00\x00\x00\x09\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x00\x00\x00\x00\x01")); !errors.Is(err, ErrMalformed) {
		t.Errorf("a request that was held: %v", err)
	}
}

// FuzzDecode: what is read is written as the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add((&Message{Kind: Response, Nonce: 7, Hold: 8}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Error(err)
			}
			return
		}
		if again := m.Append(nil); string(again) != string(b[:Size]) {
			t.Errorf("%x is read as %+v, which is %x", b, m, again)
		}
	})
}
