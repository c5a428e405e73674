package gossip

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestXAES: the vectors of c2sp.org/XAES-256-GCM, whose keys have the highest bit of CMAC's
// subkey set and not set.
func TestXAES(t *testing.T) {
	nonce := [nonceSize]byte([]byte("ABCDEFGHIJKLMNOPQRSTUVWX"))
	for _, c := range []struct {
		key        byte
		aad, wants string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x := newXAES(bytes.Repeat([]byte{c.key}, 32))
		sealed := x.seal(nil, &nonce, []byte("XAES-256-GCM"), []byte(c.aad))
		if got := hex.EncodeToString(sealed); got != c.wants {
			t.Errorf("key %d: %s, want %s", c.key, got, c.wants)
		}
		if text, err := x.open(nil, &nonce, sealed, []byte(c.aad)); err != nil || string(text) != "XAES-256-GCM" {
			t.Errorf("key %d: %q, %v", c.key, text, err)
		}
	}
}

// TestNoncesAreLongEnough: all nodes of a zone seal by one key, and none knows how often the
// others have; so that two never meet by chance, random nonces have 24 bytes, and each half of
// one is used.
func TestNoncesAreLongEnough(t *testing.T) {
	k := ring(t, true, secret(1))
	plain := (&Packet{Type: Attributes, Body: []byte("the same")}).Append(nil)
	halves := map[[12]byte]bool{}
	for range 1000 {
		b := k.Seal(nil, plain)
		for _, half := range [][12]byte{[12]byte(b[headerSize:]), [12]byte(b[headerSize+12:])} {
			if halves[half] {
				t.Fatal("a half of a nonce came twice")
			}
			halves[half] = true
		}
		for _, at := range []int{headerSize, headerSize + 12} {
			changed := bytes.Clone(b)
			changed[at] ^= 1
			if _, err := k.Open(changed); err == nil {
				t.Fatalf("byte %d of the nonce does not count", at-headerSize)
			}
		}
	}
}

func BenchmarkSealEncrypted(b *testing.B) {
	k := ring(b, true, secret(1))
	plain := (&Packet{Type: Attributes, Body: make([]byte, 1000)}).Append(nil)
	var to []byte
	b.ReportAllocs()
	for b.Loop() {
		to = k.Seal(to[:0], plain)
	}
}
