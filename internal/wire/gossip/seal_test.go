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
		encrypt                bool
		pulse, datagram, frame int
	}{{false, 8, 16, 16}, {true, 8, 28, 16}} {
		k := ring(t, c.encrypt, secret(1))
		s := k.Stream(MakePreamble([16]byte{1}), MakePreamble([16]byte{2}))
		got := []int{len(k.Seal(nil, pulse)) - len(pulse), len(k.Seal(nil, nack)) - len(nack), len(s.Seal(nil, nack)) - len(nack) - 4}
		if want := []int{c.pulse, c.datagram, c.frame}; got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("encrypt %v: overheads %v, want %v", c.encrypt, got, want)
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
		a, b := MakePreamble([16]byte{1}), MakePreamble([16]byte{2})
		_, err := c.to.Open(c.from.Seal(nil, plain))
		_, streamed := c.to.Stream(b, a).Open(c.from.Stream(a, b).Seal(nil, plain)[4:])
		if (err == nil) != c.ok || (streamed == nil) != c.ok {
			t.Errorf("case %d: %v, %v; want success %v", i, err, streamed, c.ok)
		}
	}
}

// TestRekey: the keys of a stream that stands are changed one after another, at
// one end and then at the other. What was sealed before is of no use after it.
func TestRekey(t *testing.T) {
	plain := (&Packet{Type: Nack, Nonce: 1}).Append(nil)
	for _, encrypt := range []bool{false, true} {
		old, oldNew, newOld, fresh := ring(t, encrypt, secret(1)), ring(t, encrypt, secret(1), secret(2)), ring(t, encrypt, secret(2), secret(1)), ring(t, encrypt, secret(2))
		a, b := MakePreamble([16]byte{1}), MakePreamble([16]byte{2})
		here, there := old.Stream(a, b), old.Stream(b, a)
		pass := func() (frame []byte) {
			t.Helper()
			for _, end := range [][2]*Stream{{here, there}, {there, here}} {
				frame = end[0].Seal(nil, plain)[4:]
				if got, err := end[1].Open(bytes.Clone(frame)); err != nil || !bytes.Equal(got, plain) {
					t.Fatalf("encrypt %v: %x, %v", encrypt, got, err)
				}
			}
			return frame
		}
		first := pass()
		for _, k := range []*Keyring{oldNew, newOld, fresh, newOld, oldNew} {
			here.Rekey(k)
			if k != fresh { // until the other has it, too
				pass()
			}
			there.Rekey(k)
			pass()
		}
		if _, err := here.Open(first); !errors.Is(err, ErrSeal) {
			t.Errorf("encrypt %v: a frame comes twice: %v", encrypt, err)
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

// TestStreamOrder: frames are opened in the order in which they were sealed, in
// their own stream, and in no other.
func TestStreamOrder(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		k := ring(t, encrypt, secret(1))
		a, b := MakePreamble([16]byte{1}), MakePreamble([16]byte{2})
		here, there := k.Stream(a, b), k.Stream(b, a)
		var frames [][]byte
		for i := range 3 {
			frames = append(frames, here.Seal(nil, (&Packet{Type: Nack, Nonce: uint32(i)}).Append(nil))[4:])
		}
		if _, err := k.Stream(b, a).Open(bytes.Clone(frames[1])); !errors.Is(err, ErrSeal) {
			t.Errorf("the second before the first: %v", err)
		}
		if _, err := k.Stream(b, MakePreamble([16]byte{3})).Open(bytes.Clone(frames[0])); !errors.Is(err, ErrSeal) {
			t.Errorf("in another stream: %v", err)
		}
		if _, err := k.Stream(a, b).Open(bytes.Clone(frames[0])); !errors.Is(err, ErrSeal) {
			t.Errorf("sent back: %v", err)
		}
		for i, f := range frames {
			if _, err := there.Open(f); err != nil {
				t.Errorf("frame %d: %v", i, err)
			}
		}
	}
	k, a := ring(t, false, secret(1)), MakePreamble([16]byte{1})
	mirror := k.Stream(a, a)
	if _, err := mirror.Open(mirror.Seal(nil, (&Packet{Type: Goodbye}).Append(nil))[4:]); !errors.Is(err, ErrSeal) {
		t.Errorf("what a mirror sends back: %v, want ErrSeal", err)
	}
	if err := (Preamble{}).Check(); !errors.Is(err, ErrVersion) {
		t.Errorf("an empty preamble: %v", err)
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
