package recovery

import (
	"context"
	"fmt"
	"io"
	"time"
)

// settled is how long members run operations before one is killed.
const settled = 100 * time.Millisecond

// Kills kills members of a fabric, one after the other, and has the survivors go on over switches.
func Kills(ctx context.Context, c Config, log io.Writer) (rows []KillRow, err error) {
	err = c.with(ctx, []string{"--zone"}, func(members *crew) error {
		rows, err = c.kills(ctx, members, log)
		return err
	})
	return rows, err
}

func (c *Config) kills(ctx context.Context, members *crew, log io.Writer) (rows []KillRow, err error) {
	for _, rank := range c.Dead {
		if rank < 0 {
			rank += len(members.seats)
		}
		row := KillRow{Hosts: members.hosts(), Processes: max(1, c.Field.Processes), Rank: rank, Parts: map[string]figure{}}
		took := map[string][]int64{}
		for row.Kills < c.Rounds {
			all, err := members.recover(ctx, fmt.Sprintf("kill-%d-%d", rank, row.Kills), rank)
			if err != nil {
				return rows, fmt.Errorf("kill %d of rank %d: %w", row.Kills+1, rank, err)
			}
			row.Kills++
			text := ""
			for _, part := range Parts {
				took[part] = append(took[part], all[part])
				text += fmt.Sprintf(" %s %.2f", part, ms(all[part]))
			}
			fmt.Fprintf(log, "kill %d of rank %d:%s\n", row.Kills, rank, text)
		}
		for part, times := range took {
			row.Parts[part] = figureOf(times)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// recover kills a member, and returns what the parts of the recovery have taken. Then it is
// there again.
func (c *crew) recover(ctx context.Context, name string, rank int) (map[string]int64, error) {
	if _, err := c.ask(ctx, request{What: form, Name: name, Way: "switches", Zone: true}, nil); err != nil {
		return nil, err
	}
	var killed int64
	replies, err := c.ask(ctx, request{What: fall}, func() int {
		timer := time.NewTimer(settled)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		killed = c.kill(rank)
		return rank
	})
	if err != nil {
		return nil, err
	}
	survivors := append(replies[:rank:rank], replies[rank+1:]...)
	all := parts(killed, survivors)
	return all, c.replace(ctx, rank)
}
