package rails

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestLedger has a stream whose messages are lost, doubled, late and corrupted, and
// expects the counts of a slow reckoning.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{8, 12, 16, 17, 100}).Draw(t, "size")
		sent := rapid.IntRange(1, 30).Draw(t, "sent")
		order := rapid.SliceOfN(rapid.IntRange(0, sent-1), 0, 60).Draw(t, "order")
		var got, want Ledger
		seen := map[int]bool{}
		latest := -1
		for i, n := range order {
			b := make([]byte, size)
			fill(b, uint64(n), n == sent-1)
			if size > headBytes && rapid.Bool().Draw(t, "corrupt") {
				b[rapid.IntRange(8, size-1).Draw(t, "at")] ^= 1 << (i % 8)
				want.Corrupt++
			} else if seen[n] {
				want.Doubled++
			} else {
				seen[n] = true
				want.Arrived++
				if n < latest {
					want.Disorder++
				}
				latest = max(latest, n)
			}
			got.Add(b)
		}
		want.Lost = uint64(sent - len(seen))
		got.End(uint64(sent))
		got.next, got.missing = 0, nil
		if got.String() != want.String() || got.Exact() != (want.Lost+want.Doubled+want.Disorder+want.Corrupt == 0) {
			t.Fatalf("%v, want %v", &got, &want)
		}
	})
}

// TestMessages expects that a number makes its message, and that each changed byte shows.
func TestMessages(t *testing.T) {
	a, b := make([]byte, 1000), make([]byte, 1000)
	fill(a, 7, true)
	fill(b, 7, true)
	if n, last, right := parse(a); n != 7 || !last || !right || !bytes.Equal(a, b) {
		t.Errorf("%d, %v, %v", n, last, right)
	}
	if fill(b, 8, true); bytes.Equal(a[headBytes:], b[headBytes:]) {
		t.Error("two numbers make the same bytes")
	}
	for i := numberBytes; i < len(a); i++ {
		a[i]++
		if _, _, right := parse(a); right {
			t.Errorf("byte %d changed: it is right", i)
		}
		a[i]--
	}
	for _, short := range [][]byte{nil, a[:7], a[:999]} {
		if _, _, right := parse(short); right {
			t.Errorf("%d bytes are right", len(short))
		}
	}
	far := make([]byte, 8)
	fill(far, maxMissing+1, false)
	var l Ledger
	if l.Add(far); l.Corrupt != 1 || len(l.missing) > 0 {
		t.Errorf("a number far ahead: %v", &l)
	}
}
