package rudp

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRanges holds ranges against a set of single numbers.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 64
		var r ranges
		var slow [most]bool
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			from := rapid.Uint64Range(0, most).Draw(t, "from")
			s := span{from, rapid.Uint64Range(from, most).Draw(t, "to")}
			switch rapid.SampledFrom([]string{"add", "add", "remove", "prune", "has"}).Draw(t, "what") {
			case "add":
				r.add(s)
				for i := s.from; i < s.to; i++ {
					slow[i] = true
				}
			case "remove":
				r.remove(s)
				for i := s.from; i < s.to; i++ {
					slow[i] = false
				}
			case "prune":
				r.prune(s.from)
				for i := range s.from {
					slow[i] = false
				}
			case "has":
				want := true
				for i := s.from; i < s.to; i++ {
					want = want && slow[i]
				}
				if s.from < s.to && r.has(s) != want {
					t.Fatalf("%v has %v: %v", r, s, !want)
				}
			}
			var got [most]bool
			for i, s := range r {
				if s.from >= s.to || i > 0 && s.from <= r[i-1].to {
					t.Fatalf("not in order, or touching: %v", r)
				}
				for n := s.from; n < s.to; n++ {
					got[n] = true
				}
			}
			if got != slow {
				t.Fatalf("%v, want %v", r, slow)
			}
		}
	})
}

// TestRing holds a ring against a plain slice.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64Range(0, 1<<40).Draw(t, "start")
		r := ring{first: start, end: start}
		plain := []byte{}
		for i := range rapid.IntRange(1, 30).Draw(t, "operations") {
			b := noise(rapid.IntRange(0, 9000).Draw(t, "bytes"), uint64(i))
			at := rapid.IntRange(0, len(plain)).Draw(t, "at")
			r.put(r.first+uint64(at), b)
			plain = append(plain, make([]byte, max(0, at+len(b)-len(plain)))...)
			copy(plain[at:], b)
			n := rapid.IntRange(0, len(plain)).Draw(t, "drop")
			var got []byte
			for from := r.first; from < r.end; {
				part := r.slice(from, r.end)
				got = append(got, part...)
				from += uint64(len(part))
			}
			if string(got) != string(plain) {
				t.Fatalf("%d bytes differ from %d", len(got), len(plain))
			}
			r.drop(r.first + uint64(n))
			plain = plain[n:]
		}
	})
}
