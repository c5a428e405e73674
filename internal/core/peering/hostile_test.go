package peering

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestDrainedAreFew: a host that calls again and again holds a few places alone, though
// what it had sent before is still read.
func TestDrainedAreFew(t *testing.T) {
	w := newTrial(nil)
	for i := 1; i <= 1000; i++ {
		w.do(fmt.Sprintf("arrive %d 10.0.0.1; greet %d call=%d", i, i, i))
		if n := w.c.Counters().Connections; n > drainMost+1 {
			t.Fatalf("%d connections of one channel after %d calls", n, i)
		}
	}
	if got := w.do("finished 999; end 1000"); !strings.Contains(got, "close 999") {
		t.Errorf("the latest ones are not drained: %s", got)
	}
}

// TestIncarnationZero: it would stand for one that is not known.
func TestIncarnationZero(t *testing.T) {
	if _, err := New(Config{Name: "a", Classes: 1}); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	w := newTrial(nil)
	if got := w.do("arrive 1 10.0.0.1; greet 1 inc=0"); !strings.HasPrefix(got, "refuse 1 for good") {
		t.Error(got)
	}
}

// TestIncarnationLast: a host in the last incarnation there is can be spoken to.
func TestIncarnationLast(t *testing.T) {
	w := newTrial(nil)
	if got := w.do("arrive 1 10.0.0.1; greet 1 inc=18446744073709551615"); !strings.HasPrefix(got, "accept 1") {
		t.Error(got)
	}
	if got := w.do("end 1; want b 0"); !strings.Contains(got, "known=18446744073709551615") {
		t.Error(got)
	}
}
