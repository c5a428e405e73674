package recovery

import (
	"context"
	"fmt"
	"io"
)

// turns is how many agreements and allreduces a request has.
const turns = 10

// Agreements measures agreements without failures, in turns with allreduces on the same communicator.
func Agreements(ctx context.Context, c Config, log io.Writer) (rows []AgreeRow, err error) {
	err = c.with(ctx, nil, func(members *crew) error {
		for _, way := range []string{"tree-of-hosts", "hosts"} {
			row, err := c.agreements(ctx, members, way)
			if err != nil {
				return fmt.Errorf("agreements, %s: %w", way, err)
			}
			fmt.Fprintf(log, "%s: an agreement takes %v ms, an allreduce %v ms\n", way, row.Agree, row.Allreduce)
			rows = append(rows, *row)
		}
		return nil
	})
	return rows, err
}

// agreements measures one communicator. The first turns find neither connections nor memory, and do not count.
func (c *Config) agreements(ctx context.Context, members *crew, way string) (*AgreeRow, error) {
	if _, err := members.ask(ctx, request{What: form, Name: "agree-" + way, Way: way}, nil); err != nil {
		return nil, err
	}
	row := &AgreeRow{Hosts: members.hosts(), Processes: max(1, c.Field.Processes), Way: way}
	var agreements, allreduces []int64
	for round := range c.Rounds + 1 {
		replies, err := members.ask(ctx, request{What: agree, Iterations: turns}, nil)
		if err != nil {
			return nil, err
		}
		if round == 0 {
			continue
		}
		agreements = append(agreements, slowest(replies, func(r *reply) []span { return r.Agreements })...)
		allreduces = append(allreduces, slowest(replies, func(r *reply) []span { return r.Spans })...)
	}
	row.Rounds, row.Agree, row.Allreduce = len(agreements), figureOf(agreements), figureOf(allreduces)
	_, err := members.ask(ctx, request{What: leave}, nil)
	return row, err
}
