package processor

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const one = " 1 2 3 4 5 6 7 8 9 10\n"
	got, sum, err := parse(strings.NewReader("intr 5\ncpu0" + one + "cpu  100 20 30 400 50 6 7 8 9 10\ncpu1" + one + "cpu2" + one))
	want := Time{Busy: 570 * time.Millisecond, Total: 2070 * time.Millisecond}
	if err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	together := Sum{User: 1200 * time.Millisecond, System: 300 * time.Millisecond, Soft: 70 * time.Millisecond,
		Hard: 60 * time.Millisecond, Idle: 4500 * time.Millisecond, Stolen: 80 * time.Millisecond}
	if sum != together {
		t.Errorf("%+v, want %+v", sum, together)
	}
	for _, text := range []string{
		"", "cpu 1 2 3\n", "cpu 1 2 x 4 5 6 7 8\n", "cpu 1 2 3 4 5 six 7 8\n", "cpu 1 2 -3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7 8 9 10\n",
		"cpu 0 1000000000000 0 0 0 0 0 0", "cpu 0 72057594037927936 0 0 0 0 0 0",
	} {
		if got, sum, err := parse(strings.NewReader(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v, %v", text, got, sum, err)
		}
	}
}

// What many processors have spent together may be more than can be reported, what each
// has on average is not.
func TestManyProcessors(t *testing.T) {
	read := func(user string) (Time, Sum) {
		got, sum, err := parse(strings.NewReader("cpu " + user + " 0 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8\ncpu1 1 2 3 4 5 6 7 8\n"))
		if err != nil {
			t.Fatal(err)
		}
		return got, sum
	}
	_, before := read("900000000000")
	got, after := read("1000000000000")
	if got.Busy != 500_000_000_000*tick || after.User-before.User != 100_000_000_000*tick {
		t.Errorf("%v, and %v after %v", got, after, before)
	}
}

func TestRead(t *testing.T) {
	got, err := Read()
	if err != nil || got.Total <= 0 || got.Busy > got.Total {
		t.Errorf("%v, %v", got, err)
	}
	sum, err := ReadSum()
	if err != nil || sum.User <= 0 || sum.System <= 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("cpu  100 20 30 400 50 6 7 8 9 10\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got, _, err := parse(strings.NewReader(text)); err == nil && (got.Busy < 0 || got.Busy > got.Total) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}
