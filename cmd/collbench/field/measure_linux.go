package field

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// Mark is told before the timed operations of a measurement and after them;
// meanwhile all members wait.
type Mark func(size int, begins bool) error

// Measure runs one process a host with these arguments of the command run, and
// hands rank 0's rows on. It returns when all processes have ended, or ended
// them all after the first that failed.
func (f *Fabric) Measure(ctx context.Context, args []string, mark Mark, row func(line string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all []*process
	defer func() { stop(all) }()
	var first *rank
	for r := range f.members {
		m, err := f.startRank(r, args)
		if err != nil {
			return err
		}
		all = append(all, m.process)
		if r == 0 {
			first = m
		}
		go func() {
			<-m.done
			if m.err != nil {
				cancel(m.err)
			}
		}()
	}
	heard := make(chan error, 1)
	go func() {
		err := converse(first, mark, row)
		if err != nil {
			cancel(err)
		}
		heard <- err
	}()
	err := f.wait(ctx, all)
	if err != nil {
		stop(all)
	}
	// The process has ended, and so does the talk with it.
	if talk := <-heard; err == nil {
		err = talk
	}
	return errors.Join(err, first.close())
}

// wait waits until all processes have ended well, one of them has not, or ctx
// ends.
func (f *Fabric) wait(ctx context.Context, all []*process) error {
	for _, p := range all {
		select {
		case <-p.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return failure(all)
}

// converse takes what rank 0 says, and tells it to go on after each mark.
func converse(m *rank, mark Mark, row func(string) error) error {
	lines := bufio.NewScanner(m.out)
	for lines.Scan() {
		size, begins, ok := parseMark(lines.Text())
		if !ok {
			if err := row(lines.Text()); err != nil {
				return err
			}
			continue
		}
		if mark != nil {
			if err := mark(size, begins); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(m.in, "go on"); err != nil {
			return fmt.Errorf("rank 0 listens no more: %w", err)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
