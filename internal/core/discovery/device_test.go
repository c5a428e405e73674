package discovery

import (
	"testing"
	"time"
)

// TestSteadyLatency: what a busy machine adds to a latency is not followed, another cable is.
func TestSteadyLatency(t *testing.T) {
	for _, test := range []struct{ was, is, want time.Duration }{
		{0, 2664, 2664},
		{2664, 0, 2664},
		{2664, 12653, 2664},
		{12653, 2664, 2664},
		{2664, 1400, 2664},
		{2664, 22_663, 2664},
		{2664, 22_664, 22_664},
		{50_000, 199_999, 50_000},
		{50_000, 200_000, 200_000},
		{500, 250, 250},
	} {
		if got := steadyLatency(test.was, test.is); got != test.want {
			t.Errorf("%v after %v is taken for %v", test.is, test.was, got)
		}
	}
}
