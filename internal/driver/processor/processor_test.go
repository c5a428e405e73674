package processor_test

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/processor"
)

func TestSince(t *testing.T) {
	at := func(busy, total time.Duration) processor.Time { return processor.Time{Busy: busy, Total: total} }
	for name, test := range map[string]struct {
		before, after processor.Time
		share         float64
		ok            bool
	}{
		"a quarter":           {at(10, 100), at(20, 140), 0.25, true},
		"idle":                {at(10, 100), at(10, 140), 0, true},
		"no time":             {at(10, 100), at(10, 100), 0, false},
		"counting anew":       {at(10, 100), at(5, 140), 0, false},
		"an earlier reading":  {at(10, 100), at(10, 90), 0, false},
		"rounded the one way": {at(10, 100), at(31, 120), 1, true},
	} {
		if share, ok := test.after.Since(test.before); share != test.share || ok != test.ok {
			t.Errorf("%s: %v, %v", name, share, ok)
		}
	}
}
