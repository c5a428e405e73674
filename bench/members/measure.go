package members

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/sim/zone"
)

// Config says what to measure. DefaultConfig is the table.
type Config struct {
	Rows    []string // of Keys; none: all
	Seed    uint64   // of the simulations
	Nodes   int      // of a simulated zone
	Proofs  bool     // simulated nodes prove what they say
	Contest Contest
}

// DefaultConfig returns the table of docs/membership.md.
func DefaultConfig() Config { return Config{Seed: 1, Nodes: 2048, Contest: DefaultContest()} }

// zone returns a simulated zone.
func (c Config) zone(nodes int) zone.Config {
	cfg := zone.DefaultConfig(nodes, c.Seed)
	cfg.Proofs = c.Proofs
	return cfg
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	for _, key := range c.Rows {
		if !slices.Contains(Keys(), key) {
			return fmt.Errorf("%w: no row %q", ErrRig, key)
		}
	}
	if c.Nodes < 32 || c.Nodes > 8192 {
		return fmt.Errorf("%w: a zone of %d nodes, want 32 to 8192", ErrRig, c.Nodes)
	}
	return c.Contest.Validate()
}

// trial is what measures one row, or several that belong together.
type trial struct {
	key string
	run func(ctx context.Context, c Config, progress func(string)) ([]Row, error)
}

// trials are all, in the order of the table.
var trials = []trial{
	{"boot", simulateBoot},
	{"leave-join", simulateChange},
	{"hpm", simulateMonitor},
	{"million", simulateMillion},
	{"faults", simulateFaults},
	{"idle", simulateIdle},
	{"loss", simulateLoss},
	{"impaired", simulateImpaired},
	{"real", playReal},
	{"memory", simulateMemory},
	{"churn", simulateChurn},
}

// Keys returns what Config.Rows may name.
func Keys() []string {
	keys := make([]string, len(trials))
	for i, t := range trials {
		keys[i] = t.key
	}
	return keys
}

// Measure measures the rows, and hands each on when it is there.
func (c Config) Measure(ctx context.Context, progress func(string), add func(Row) error) error {
	for _, t := range trials {
		if len(c.Rows) > 0 && !slices.Contains(c.Rows, t.key) {
			continue
		}
		progress(t.key + " begins")
		begun := time.Now()
		rows, err := t.run(ctx, c, progress)
		if err != nil {
			return fmt.Errorf("row %s: %w", t.key, err)
		}
		for _, r := range rows {
			r.Took = time.Since(begun)
			if err := add(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// playReal compares with memberlist.
func playReal(ctx context.Context, c Config, progress func(string)) ([]Row, error) {
	scores, err := c.Contest.Play(ctx, progress, Tributary{Monitors: true}, Memberlist{})
	if err != nil {
		return nil, err
	}
	return ContestRows(c.Contest, scores[0], scores[1]), nil
}
