package field

import (
	"errors"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/bench/timing"
)

func TestMarks(t *testing.T) {
	for line, want := range map[string]struct {
		size       int
		begins, ok bool
	}{
		"MARK begins 8": {8, true, true}, "MARK ends 1048576": {1 << 20, false, true},
		"MARK begins": {}, "MARK begins x": {begins: true}, "tributary,8": {}, "": {},
	} {
		if size, begins, ok := parseMark(line); size != want.size || begins != want.begins || ok != want.ok {
			t.Errorf("%q: %d, %v, %v", line, size, begins, ok)
		}
	}
}

func TestSpans(t *testing.T) {
	for _, want := range [][]timing.Span{nil, {{Begun: 1, Ended: 2}}, {{Begun: 1700000000000000000, Ended: 1700000000000000009}, {Begun: 5, Ended: 7}}} {
		got, ok, err := parseSpans(FormatSpans(want))
		if err != nil || !ok || !slices.Equal(got, want) {
			t.Errorf("%v, %v, %v, want %v", got, ok, err, want)
		}
	}
	if _, ok, err := parseSpans("tributary,8"); ok || err != nil {
		t.Errorf("a row: %v, %v", ok, err)
	}
	for _, line := range []string{"SPANS 1", "SPANS 1-x", "SPANS x-1"} {
		if _, ok, err := parseSpans(line); !ok || !errors.Is(err, ErrWords) {
			t.Errorf("%q: %v, %v", line, ok, err)
		}
	}
}
