package processor

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader("intr 5\ncpu  100 20 30 400 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu2 1 2 3 4 5 6 7 8 9 10\n"))
	want := Time{Busy: 570 * time.Millisecond, Total: 2070 * time.Millisecond}
	if err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3\n", "cpu 1 2 x 4 5 6 7 8\n", "cpu 1 2 -3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7 8 9 10\n", "cpu 0 1000000000000 0 0 0 0 0 0"} {
		if got, err := parse(strings.NewReader(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestSystem(t *testing.T) {
	got, err := System().Read()
	if err != nil || got.Total <= 0 || got.Busy > got.Total {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("cpu  100 20 30 400 50 6 7 8 9 10\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := parse(strings.NewReader(text)); err == nil && (got.Busy < 0 || got.Busy > got.Total) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
