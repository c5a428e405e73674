package members

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// Contest is how nodes of two systems are compared, in real time: one system
// after the other, each alone on the machine, since two that boot at once starve
// each other.
type Contest struct {
	Nodes int // of each system
	Seeds int // of them, that all others ask first
	// Settle is how long both rest after they have booted, and Window how long
	// what they send is then counted. Memberlist exchanges whole views every two
	// minutes among 256 nodes, and not before: these count from 150 s on.
	Settle, Window time.Duration
	Rounds         int // blows of each kind against each system
	// Patience is how long a boot may take. One that takes longer is noted, and
	// made again: memberlist's gossip may miss a node, which then waits for an exchange
	// of whole views.
	Patience time.Duration
}

// DefaultContest returns the comparison of the table.
func DefaultContest() Contest {
	return Contest{Nodes: 256, Seeds: 8, Settle: 150 * time.Second, Window: 120 * time.Second, Rounds: 3, Patience: 30 * time.Second}
}

// Validate reports what is wrong with c.
func (c Contest) Validate() error {
	switch {
	case c.Nodes < 8 || c.Nodes > 4096:
		return fmt.Errorf("%w: %d nodes, want 8 to 4096", ErrRig, c.Nodes)
	case c.Seeds < 1 || c.Seeds > c.Nodes:
		return fmt.Errorf("%w: %d seeds of %d nodes", ErrRig, c.Seeds, c.Nodes)
	case c.Settle < 0 || c.Window <= 0 || c.Patience <= 0:
		return fmt.Errorf("%w: settling for %v, counting for %v, patience for %v", ErrRig, c.Settle, c.Window, c.Patience)
	case c.Rounds < 1 || c.Seeds+2*c.Rounds > c.Nodes/2:
		return fmt.Errorf("%w: %d rounds, want 1 to %d", ErrRig, c.Rounds, (c.Nodes/2-c.Seeds)/2)
	}
	return nil
}

// Score is what one system did.
type Score struct {
	System  string               `json:"system"`
	Boots   []time.Duration      `json:"boots_ns"`
	Missed  int                  `json:"boots_not_within_patience"`
	Traffic Traffic              `json:"traffic"` // of all nodes in the window
	Rate    float64              `json:"bytes_per_second_and_node"`
	Known   map[Blow][]Knowledge `json:"known"`
	Wrong   int                  `json:"false_deaths"`
}

// boot returns the shortest of the boots: what disturbs makes them longer.
func (s *Score) boot() time.Duration { return least(s.Boots) }

// last returns the median over the blows of when the last survivor knew.
func (s *Score) last(b Blow) time.Duration { return median(lasts(s.Known[b])) }

// Play compares systems, one after the other, so that none takes processors from
// another: each boots several times, the last time rests while what it sends is
// counted, and is struck at the end.
func (c Contest) Play(ctx context.Context, progress func(string), systems ...System) ([]Score, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	scores := make([]Score, len(systems))
	for i, s := range systems {
		scores[i].System = s.Name()
		if err := c.play(ctx, s, &scores[i], byte(16+8*i), progress); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// play has one system do its part.
func (c Contest) play(ctx context.Context, s System, score *Score, net byte, progress func(string)) error {
	for round := range c.Rounds {
		r, took, err := c.boot(ctx, s, score, net+byte(round%8), progress)
		if err != nil {
			return err
		}
		score.Boots = append(score.Boots, took)
		progress(fmt.Sprintf("%s: %d nodes have booted in %s", s.Name(), c.Nodes, brief(took)))
		if round < c.Rounds-1 {
			r.Close()
			continue
		}
		defer r.Close()
		err = c.rest(ctx, progress, r, score)
		if err == nil {
			err = c.strike(ctx, progress, r, score)
		}
		score.Wrong = r.Wrong()
		return err
	}
	return nil
}

// attempts at a boot.
const attempts = 5

// boot boots a system, again if it takes too long.
func (c Contest) boot(ctx context.Context, s System, score *Score, net byte, progress func(string)) (*Rig, time.Duration, error) {
	for try := 1; ; try++ {
		within, cancel := context.WithTimeoutCause(ctx, c.Patience, fmt.Errorf("not within %v", c.Patience))
		r, took, err := Boot(within, s, c.Nodes, c.Seeds, net)
		cancel()
		if err == nil || within.Err() == nil || ctx.Err() != nil || try == attempts {
			return r, took, err
		}
		score.Missed++
		progress(err.Error())
	}
}

// rest counts what all send while nothing happens.
func (c Contest) rest(ctx context.Context, progress func(string), r *Rig, s *Score) error {
	progress(fmt.Sprintf("all rest for %v, and are counted for %v", c.Settle, c.Window))
	if err := runner.Pause(ctx, c.Settle); err != nil {
		return err
	}
	begun := time.Now()
	before, _ := r.Traffic()
	if err := runner.Pause(ctx, c.Window); err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	after, nodes := r.Traffic()
	s.Traffic = after.Sub(before)
	s.Rate = float64(s.Traffic.Bytes()) / took / float64(nodes)
	progress(fmt.Sprintf("%s: %.0f B/s a node", s.System, s.Rate))
	return nil
}

// strike loses nodes, one after the other.
func (c Contest) strike(ctx context.Context, progress func(string), r *Rig, s *Score) error {
	s.Known = map[Blow][]Knowledge{}
	for round := range c.Rounds {
		for k, how := range []Blow{Killed, Silent} {
			victim := c.Seeds + (2*round+k+1)*(c.Nodes-c.Seeds)/(2*c.Rounds+1)
			known, err := r.Strike(ctx, victim, how)
			if err != nil {
				return err
			}
			s.Known[how] = append(s.Known[how], known)
			progress(fmt.Sprintf("%s: %s: %s knows first, the last survivor after %s", s.System, how, brief(known.First), brief(known.Last)))
		}
	}
	return nil
}
