package gossip

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func secret(n uint8) SharedKey { return SharedKey{Number: n, Secret: [32]byte{n}} }

func ring(t testing.TB, encrypt bool, shared ...SharedKey) *Keyring {
	t.Helper()
	k, err := NewKeyring(encrypt, shared...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestSealOverhead: seals are as large as the package says.
func TestSealOverhead(t *testing.T) {
	nack, pulse := (&Packet{Type: Nack}).Append(nil), Pulse{}.Append(nil)
	for _, c := range []struct {
		encrypt         bool
		pulse, datagram int
	}{{false, 8, 16}, {true, 8, 40}} {
		k := ring(t, c.encrypt, secret(1))
		if p, d := len(k.Seal(nil, pulse))-len(pulse), len(k.Seal(nil, nack))-len(nack); p != c.pulse || d != c.datagram {
			t.Errorf("encrypt %v: overheads %d and %d, want %d and %d", c.encrypt, p, d, c.pulse, c.datagram)
		}
	}
	if n := len(ring(t, false, secret(1)).Seal(nil, pulse)); n != 21 {
		t.Errorf("a sealed heartbeat has %d bytes, want 21", n)
	}
}

// TestSealed: what was sealed is opened; what was changed anywhere, or sealed by
// another key, is not.
func TestSealed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		encrypt := rapid.Bool().Draw(t, "encrypt")
		ours, err := NewKeyring(encrypt, secret(3))
		if err != nil {
			t.Fatal(err)
		}
		theirs, _ := NewKeyring(encrypt, SharedKey{Number: 3})
		plain := (&Packet{Type: Attributes, Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body")}).Append(nil)
		if rapid.Bool().Draw(t, "heartbeat") {
			plain = Pulse{Tag: rapid.Uint32().Draw(t, "tag")}.Append(nil)
		}
		sealed := ours.Seal(nil, plain)
		if encrypt && TypeIs(sealed, Attributes) && len(plain) > 10 && bytes.Contains(sealed, plain[2:]) {
			t.Fatal("the body can be read")
		}
		if got, err := theirs.Open(bytes.Clone(sealed)); !errors.Is(err, ErrSeal) {
			t.Fatalf("another key opens it: %x, %v", got, err)
		}
		changed := bytes.Clone(sealed)
		changed[rapid.IntRange(0, len(changed)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if got, err := ours.Open(changed); err == nil {
			t.Fatalf("a changed packet is opened: %x", got)
		}
		if got, err := ours.Open(sealed); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("opened %x, %v; want %x", got, err, plain)
		}
	})
}

// TypeIs reports whether a packet is of a type.
func TypeIs(b []byte, want Type) bool {
	t, err := TypeOf(b)
	return err == nil && t == want
}

// TestKeyRotation: keys are changed one after another, and nobody is ever not
// understood.
func TestKeyRotation(t *testing.T) {
	plain := (&Packet{Type: Nack, Nonce: 1}).Append(nil)
	old, both, next := ring(t, true, secret(1)), ring(t, true, secret(2), secret(1)), ring(t, true, secret(2))
	for i, c := range []struct {
		from, to *Keyring
		ok       bool
	}{{old, ring(t, true, secret(1), secret(2)), true}, {both, ring(t, true, secret(1), secret(2)), true}, {old, both, true}, {next, both, true}, {both, next, true}, {old, next, false}} {
		if _, err := c.to.Open(c.from.Seal(nil, plain)); (err == nil) != c.ok {
			t.Errorf("case %d: %v; want success %v", i, err, c.ok)
		}
	}
}

// TestNoDowngrade: who has a key takes nothing without, and who encrypts nothing
// that is not.
func TestNoDowngrade(t *testing.T) {
	plain := (&Packet{Type: Nack, Nonce: 1}).Append(nil)
	if _, err := ring(t, false, secret(1)).Open(bytes.Clone(plain)); !errors.Is(err, ErrSeal) {
		t.Errorf("not sealed: %v, want ErrSeal", err)
	}
	if _, err := ring(t, true, secret(1)).Open(ring(t, false, secret(1)).Seal(nil, plain)); !errors.Is(err, ErrSeal) {
		t.Errorf("not encrypted: %v, want ErrSeal", err)
	}
	if got, err := ring(t, false).Open(bytes.Clone(plain)); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("without keys: %x, %v", got, err)
	}
}

// TestKeyringRefuses: numbers are from 1 to 15, each once.
func TestKeyringRefuses(t *testing.T) {
	for _, shared := range [][]SharedKey{{secret(0)}, {secret(16)}, {secret(1), secret(1)}} {
		if _, err := NewKeyring(false, shared...); !errors.Is(err, ErrKey) {
			t.Errorf("keys %v: %v, want ErrKey", shared[0].Number, err)
		}
	}
	if _, err := NewKeyring(true); !errors.Is(err, ErrKey) {
		t.Errorf("encryption without a key: %v", err)
	}
}
