package peers

import (
	"fmt"
	"slices"
	"time"
)

// Config says what is compared.
type Config struct {
	Rows   []Row
	Peers  []string      // by name
	Rounds int           // turns of each contestant in each row
	Turn   time.Duration // what a turn takes, about; at least one operation is timed
	Limit  time.Duration // after which a peer that has not answered is left out
	// Ways: the contestants are Tributary's ways of doing each row, and what it chooses.
	Ways bool
	// Protected adds Tributary in switches with plain, with authenticated and with encrypted packets, each
	// on a communicator of its own.
	Protected bool
	// Kernel adds Tributary on a second fabric, whose switches reduce in their kernels.
	Kernel bool
	// Numbers adds Tributary in switches with plain sums, with reproducible ones, and with those that are
	// compressed to bfloat16, likewise.
	Numbers bool
	// SkipMissing leaves out peers that are not installed.
	SkipMissing bool
}

// DefaultConfig returns all rows and peers, in less than ten minutes.
func DefaultConfig() Config {
	return Config{Peers: Names(), Rounds: 3, Turn: time.Second, Limit: time.Minute}
}

// Bounds of a plan.
const (
	maxRounds     = 1000
	maxIterations = 10000 // of one turn
	maxWarmup     = 20
)

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case len(c.Rows) == 0:
		return fmt.Errorf("%w: no rows", ErrConfig)
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return fmt.Errorf("%w: %d rounds, want 1 to %d", ErrConfig, c.Rounds, maxRounds)
	case c.Turn <= 0 || c.Limit <= c.Turn:
		return fmt.Errorf("%w: turns of %v, which must be positive, and a limit of %v, which must be longer", ErrConfig, c.Turn, c.Limit)
	}
	_, err := find(c.Peers)
	return err
}

// iterations returns how many operations of this length fill a turn, and how
// many go before them to warm up.
func (c *Config) iterations(took time.Duration) (iterations, warmup int) {
	iterations = maxIterations
	if took > 0 {
		iterations = int(min(maxIterations, max(1, c.Turn/took)))
	}
	return iterations, min(maxWarmup, iterations/10+1)
}

// order returns who plays when in a round, of n contestants: each round begins
// with another one, so that nobody always follows the same.
func order(n, round int) []int {
	turns := make([]int, n)
	for i := range turns {
		turns[i] = (i + round) % n
	}
	return turns
}

// fabrics returns the rows of each fabric that is built: those of one rate.
func fabrics(rows []Row) (parts [][]Row) {
	return slices.Collect(func(yield func([]Row) bool) {
		for len(rows) > 0 {
			n := slices.IndexFunc(rows, func(r Row) bool { return r.Rate != rows[0].Rate })
			if n < 0 {
				n = len(rows)
			}
			if !yield(rows[:n]) {
				return
			}
			rows = rows[n:]
		}
	})
}
