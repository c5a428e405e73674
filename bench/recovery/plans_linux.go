package recovery

import (
	"context"
	"fmt"
	"io"
)

// operationsOfA is how often plan A loops.
const operationsOfA = 20

// Plans measures revokes of communicator A, and operations on B after them, in turns with rounds
// without a revoke.
func Plans(ctx context.Context, c Config, log io.Writer) (rows []PlansRow, err error) {
	err = c.with(ctx, nil, func(members *crew) error {
		if _, err := members.ask(ctx, request{What: form, Name: "b", Way: c.Way}, nil); err != nil {
			return err
		}
		for _, collective := range c.Collectives {
			for _, bytes := range c.Bytes {
				if collective == barrier && bytes != c.Bytes[0] {
					continue
				}
				r := request{What: plans, Collective: collective, Bytes: bytes, Iterations: operationsOfA}
				row, err := c.plans(ctx, members, r)
				if err != nil {
					return fmt.Errorf("%s of %d bytes: %w", collective, bytes, err)
				}
				fmt.Fprintf(log, "%s of %d bytes: interrupted within %v ms\n", collective, bytes, row.Interrupted)
				rows = append(rows, *row)
			}
		}
		_, err := members.ask(ctx, request{What: leave}, nil)
		return err
	})
	return rows, err
}

// plans measures one collective.
func (c *Config) plans(ctx context.Context, members *crew, r request) (*PlansRow, error) {
	row := &PlansRow{Hosts: members.hosts(), Processes: max(1, c.Field.Processes), Collective: r.Collective, Bytes: r.Bytes, Rounds: c.Rounds, Way: c.Way}
	var free, revoked [][]reply
	var interrupted []int64
	for round := range c.Rounds {
		r.Revoker = -1
		replies, err := members.ask(ctx, r, nil)
		if err != nil {
			return nil, err
		}
		free = append(free, replies)
		r.Revoker = (7*round + 1) % len(members.seats)
		if replies, err = members.ask(ctx, r, nil); err != nil {
			return nil, err
		}
		revoked = append(revoked, replies)
		interrupted = append(interrupted, interruption(replies))
	}
	row.Interrupted, row.After = figureOf(interrupted), compare(free, revoked)
	return row, nil
}
