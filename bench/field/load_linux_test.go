package field

import (
	"errors"
	"math"
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const stat = "42 (a (b) c d) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 20 0 1 0 99\n"
	if got, err := parseStat([]byte(stat)); err != nil || got != 2*time.Second {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "42 (a) S 1 2 3", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 13", "42 (a) S 1 2 3 4 5 6 7 8 9 10 5 -1 13"} {
		if _, err := parseStat([]byte(text)); !errors.Is(err, errStat) {
			t.Errorf("%q: %v", text, err)
		}
	}
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseStat(own); err != nil {
		t.Errorf("%s: %v", own, err)
	}
}

func TestStrangers(t *testing.T) {
	before := Load{Fabric: 5, Own: 1, Busy: 100, Whole: 200}
	now := Load{Fabric: 45, Own: 2, Busy: 160, Whole: 300}
	if got := now.Strangers(before); math.Abs(got-0.19) > 1e-9 {
		t.Errorf("%v", got)
	}
	if got := before.Strangers(before); got != 0 {
		t.Errorf("in no time: %v", got)
	}
	if got := (Load{Fabric: 90, Busy: 120, Whole: 300}).Strangers(before); got != 0 {
		t.Errorf("less than nothing: %v", got)
	}
}
