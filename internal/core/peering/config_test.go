package peering

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// TestConfigNamesTheField: an error names what is to be set otherwise.
func TestConfigNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"Remember is -1":   func(c *Config) { c.Remember = -1 },
		"GreetWithin is":   func(c *Config) { c.GreetWithin = -time.Second },
		"third of DeadAft": func(c *Config) { c.DeadAfter = 1 },
	} {
		c := Config{Name: "a", Incarnation: 1, Classes: 1}
		spoil(&c)
		if _, err := New(c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
}

// TestRefusalSaysItOnce: the sentence that a code stands for is in the reason, too.
func TestRefusalSaysItOnce(t *testing.T) {
	for code, kind := range map[greeting.Code]error{greeting.Taken: ErrName, greeting.Outdated: ErrOutdated, greeting.Busy: ErrBusy} {
		w := newTrial(func(c *Config) { c.RetryMin = time.Hour })
		w.do("want b 0; pinned")
		in := Input{Kind: Answered, ID: 1 | Dialled, Answer: greeting.Answer{Code: code, Incarnation: 20, Reason: kind.Error() + ": why"}}
		if got, want := w.step(in), "fail b/0: refused: "+kind.Error()+": why\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
