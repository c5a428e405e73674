package rails

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestLastNumbers(t *testing.T) {
	got, err := lastNumbers([]byte("iterations,50.0_percentile_lat,avg\n 200,1399.422,1396.325,1396.325,44.76,44.76,716,716\n"))
	if err != nil || len(got) != 8 || got[1] != 1399.422 || got[5] != 44.76 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "no such device", "1,2,3,4,5,6,7", "1,2,3,x,5,6,7,8"} {
		if _, err := lastNumbers([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestQuoted has a shell take words for what they are.
func TestQuoted(t *testing.T) {
	words := []string{"plain", "two words", "it's", `"$HOME" \ *`, ""}
	out, err := exec.Command("sh", "-c", `for w in `+quoted(words)+`; do printf '%s\n' "$w"; done`).Output()
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); err != nil || !slices.Equal(got, words) {
		t.Errorf("%q, %v, want %q", got, err, words)
	}
}
