package recovery

import (
	"strings"
	"testing"
)

// TestParts: parts follow each other, and none is negative, though those of different members overlap.
func TestParts(t *testing.T) {
	got := parts(100, []reply{
		{Interrupted: 110, Agreed: 140, Formed: 150, Tree: 160, Shrunk: 170, First: 200},
		{Interrupted: 130, Agreed: 120, Formed: 165, Shrunk: 168, First: 190}, // it leads no host
	})
	want := []int64{10, 20, 10, 25, 0, 5, 30, 100}
	for i, part := range Parts {
		if got[part] != want[i] {
			t.Errorf("%s: %d, want %d", part, got[part], want[i])
		}
	}
}

// TestCompare: an operation takes as long as its slowest member, or from the last beginning to the last end.
func TestCompare(t *testing.T) {
	round := func(spans ...span) (replies []reply) {
		for _, s := range spans {
			all := make([]span, after)
			for k := range all {
				all[k] = s
			}
			replies = append(replies, reply{Spans: all})
		}
		return replies
	}
	free := [][]reply{round(span{0, 4e6}, span{2e6, 4e6})}
	revoked := [][]reply{round(span{0, 12e6}, span{9e6, 12e6})}
	all := compare(free, revoked)
	if len(all) != after || all[0].Slowest() != 3 || all[0].Last() != 1.5 {
		t.Errorf("%+v", all)
	}
	if n := interruption([]reply{{Revoked: 5, Interrupted: 6}, {Interrupted: 9}, {Interrupted: 7}}); n != 4 {
		t.Errorf("%d", n)
	}
	var text strings.Builder
	if err := WritePlans(&text, []PlansRow{{Collective: barrier, After: all}}); err != nil || !strings.Contains(text.String(), "| 4.00 (4.00) | 3.00 | 3.00 | 3.00 | 2.00 (2.00) | 1.50 |") {
		t.Errorf("%v, %s", err, text.String())
	}
}
