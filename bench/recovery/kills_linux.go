package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
		for number := 1; row.Kills < c.Rounds; number++ {
			all, why, err := members.recover(ctx, fmt.Sprintf("kill-%d-%d", rank, number), rank)
			if err != nil {
				fmt.Fprintf(log, "kill %d of rank %d: %v\n", number, rank, err)
				if row.Failed++; row.Failed > c.Rounds/2 || ctx.Err() != nil {
					return rows, fmt.Errorf("%d recoveries from the death of rank %d have failed, at last: %w", row.Failed, rank, err)
				}
				continue
			}
			row.Kills++
			text := ""
			for _, part := range Parts {
				took[part] = append(took[part], all[part])
				text += fmt.Sprintf("%s %.2f, ", part, ms(all[part]))
			}
			fmt.Fprintf(log, "kill %d of rank %d: %sms; the first to know: %s\n", number, rank, text, why)
		}
		for part, times := range took {
			row.Parts[part] = figureOf(times)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// recover kills a member, and returns what the parts of the recovery have taken, and how the first
// survivor knew of the death. Then the member is there again.
func (c *crew) recover(ctx context.Context, name string, rank int) (took map[string]int64, why string, err error) {
	if _, err := c.ask(ctx, request{What: form, Name: name, Way: "switches", Zone: true}, nil); err != nil {
		return nil, "", err
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
	if e := c.replace(ctx, rank); e != nil || err != nil {
		return nil, "", errors.Join(err, e)
	}
	survivors := slices.Delete(replies, rank, rank+1)
	first := slices.MinFunc(survivors, func(a, b reply) int { return cmp.Compare(a.Interrupted, b.Interrupted) })
	return parts(killed, survivors), first.Reason, nil
}
