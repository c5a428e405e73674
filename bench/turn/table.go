package turn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Table is where the ranks of one implementation sit, by rank.
type Table struct {
	listener *net.UnixListener
	seats    []*seat
}

type seat struct {
	conn net.Conn
	in   *bufio.Reader
}

// Lay lays a table for so many ranks at a socket; Seat waits for them.
func Lay(socket string, ranks int) (*Table, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("a table: %w", err)
	}
	return &Table{l, make([]*seat, ranks)}, nil
}

// Seat waits until all ranks have joined, or ctx ends.
func (t *Table) Seat(ctx context.Context) error {
	return within(ctx, func(deadline time.Time) { _ = t.listener.SetDeadline(deadline) }, func() error {
		for joined := range t.seats {
			if err := t.seat(); err != nil {
				return fmt.Errorf("%d of %d ranks have joined: %w", joined, len(t.seats), err)
			}
		}
		return nil
	})
}

func (t *Table) seat() error {
	conn, err := t.listener.Accept()
	if err != nil {
		return err
	}
	s := &seat{conn, bufio.NewReader(conn)}
	// Only what was started for this table knows where it is, and says so at once.
	line, err := s.in.ReadString('\n')
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "rank ")
	rank, e := strconv.Atoi(text)
	if err != nil || !ok || e != nil || rank < 0 || rank >= len(t.seats) || t.seats[rank] != nil {
		return errors.Join(fmt.Errorf("%w: %q in place of a rank that is not there yet", ErrWords, line), conn.Close())
	}
	t.seats[rank] = s
	return nil
}

// Play has all ranks play, and returns what they did together. After an error
// the table is of no more use.
func (t *Table) Play(ctx context.Context, r Request) (o Outcome, err error) {
	replies := make([]Reply, len(t.seats))
	errs := make([]error, len(t.seats))
	err = within(ctx, func(deadline time.Time) {
		for _, s := range t.seats {
			_ = s.conn.SetDeadline(deadline) // one that is closed fails by itself
		}
	}, func() error {
		var all sync.WaitGroup
		for rank, s := range t.seats {
			all.Go(func() { replies[rank], errs[rank] = s.play(r) })
		}
		all.Wait()
		for rank, err := range errs {
			if err != nil {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
		}
		return nil
	})
	if err != nil {
		return o, err
	}
	return Combine(replies)
}

func (s *seat) play(r Request) (Reply, error) {
	if _, err := fmt.Fprintln(s.conn, r); err != nil {
		return Reply{}, err
	}
	line, err := s.in.ReadString('\n')
	if err != nil {
		return Reply{}, err
	}
	return ParseReply(strings.TrimSpace(line))
}

// within runs f, whose waits end by a deadline when ctx does.
func within(ctx context.Context, set func(time.Time), f func() error) error {
	set(time.Time{})
	stop := context.AfterFunc(ctx, func() { set(time.Unix(1, 0)) })
	defer stop()
	err := f()
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// Close sends all ranks away.
func (t *Table) Close() error {
	err := t.listener.Close()
	for _, s := range t.seats {
		if s != nil {
			err = errors.Join(err, s.conn.Close())
		}
	}
	return err
}
