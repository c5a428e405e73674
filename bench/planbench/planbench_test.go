package planbench

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// TestSmallRun measures small sizes: every figure that does not depend on the
// machine's speed is within its limit.
func TestSmallRun(t *testing.T) {
	steps := 0
	r, err := Run(t.Context(), Config{Repaired: 8, Largest: 16, Online: 8, Groups: 100, Fabrics: 1, Members: 12, Runs: 1, Cases: 2, Seed: 1}, func(string) { steps++ })
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if !row.Reached && row.Unit != "ms" && !strings.HasPrefix(row.Unit, "x the time") {
			t.Errorf("%+v", row)
		}
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || steps < 5 || !strings.Contains(text.String(), "most loaded switch CPU") ||
		!strings.Contains(text.String(), "by default, 20 groups") {
		t.Errorf("%v after %d steps\n%s", err, steps, text.String())
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Config{Repaired: 4, Largest: 4, Online: 4, Groups: 1, Members: 2, Fabrics: 1, Runs: 1}, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"an odd k": func(c *Config) { c.Online = 5 }, "too large": func(c *Config) { c.Largest = 1000 },
		"groups of one": func(c *Config) { c.Members = 1 }, "no groups": func(c *Config) { c.Groups = 0 },
		"cases below zero": func(c *Config) { c.Cases = -1 }, "no runs": func(c *Config) { c.Runs = 0 },
	} {
		c := DefaultConfig()
		if spoil(&c); !errors.Is(c.Validate(), ErrConfig) {
			t.Errorf("%s: %v", name, c.Validate())
		}
	}
}
