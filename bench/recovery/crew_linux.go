package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/gauge"
)

// crew is the members' processes, by rank, and the talk with them. After an error it is of no more use.
type crew struct {
	fabric   *field.Fabric
	args     []string // of a member's process
	limit    time.Duration
	dir      string
	listener *net.UnixListener
	workers  []*field.Worker
	seats    []*seat
}

type seat struct {
	conn *net.UnixConn
	in   *json.Decoder
}

// hire starts a process for each member, and waits until all have joined.
func hire(ctx context.Context, f *field.Fabric, limit time.Duration, args []string) (_ *crew, err error) {
	c := &crew{fabric: f, args: append(args, "--limit", limit.String()), limit: limit, workers: make([]*field.Worker, f.Ranks()), seats: make([]*seat, f.Ranks())}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.dir, err = os.MkdirTemp("", "collbench-"); err != nil {
		return nil, err
	}
	if c.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(c.dir, "s"), Net: "unix"}); err != nil {
		return nil, err
	}
	for rank := range c.workers {
		if err := c.begin(rank); err != nil {
			return nil, err
		}
	}
	for range c.workers {
		if err := c.seat(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// hosts returns the number of hosts.
func (c *crew) hosts() int { return c.fabric.Lab().Topology().Hosts() }

// begin starts the process of a member.
func (c *crew) begin(rank int) (err error) {
	args := append([]string{"node", "recovery", "--rank", fmt.Sprint(rank), "--members", c.fabric.MemberFile(),
		"--manager", c.fabric.ManagerAddr(), "--socket", c.listener.Addr().String()}, c.args...)
	c.workers[rank], err = c.fabric.Work(rank, args...)
	return err
}

// seat waits for one more member that has joined.
func (c *crew) seat(ctx context.Context) error {
	_ = c.listener.SetDeadline(c.deadline()) // one that is closed fails by itself
	stop := context.AfterFunc(ctx, func() { _ = c.listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := c.listener.AcceptUnix()
	if err != nil {
		return errors.Join(context.Cause(ctx), err, c.failure())
	}
	s := &seat{conn, json.NewDecoder(conn)}
	var h hello
	if err := s.in.Decode(&h); err != nil || h.Rank < 0 || h.Rank >= len(c.seats) {
		return errors.Join(fmt.Errorf("%w: rank %d says that it is there", ErrWrong, h.Rank), err, conn.Close())
	}
	c.seats[h.Rank] = s
	return nil
}

// deadline returns by when a member answers, if only that it could not do it.
func (c *crew) deadline() time.Time { return time.Now().Add(c.limit + 10*time.Second) }

// failure returns how the first of the processes that have ended has.
func (c *crew) failure() error {
	for rank, w := range c.workers {
		if w == nil {
			continue
		}
		select {
		case <-w.Gone():
			return fmt.Errorf("the process of rank %d has ended: %w", rank, errors.Join(w.Err()))
		default:
		}
	}
	return nil
}

// ask has all members do something at once, and returns what they reply. Meanwhile it calls during,
// if that is not nil, which returns the rank of a member that it has killed, or -1.
func (c *crew) ask(ctx context.Context, r request, during func() int) ([]reply, error) {
	for _, s := range c.seats {
		_ = s.conn.SetDeadline(c.deadline())
	}
	stop := context.AfterFunc(ctx, func() {
		for _, s := range c.seats {
			_ = s.conn.SetDeadline(time.Unix(1, 0))
		}
	})
	defer stop()
	for rank, s := range c.seats {
		if err := json.NewEncoder(s.conn).Encode(r); err != nil {
			return nil, errors.Join(context.Cause(ctx), fmt.Errorf("rank %d: %w", rank, err), c.failure())
		}
	}
	dead := -1
	if during != nil {
		dead = during()
	}
	replies, errs := make([]reply, len(c.seats)), make([]error, len(c.seats))
	var all sync.WaitGroup
	for rank, s := range c.seats {
		if rank == dead {
			continue
		}
		all.Go(func() {
			if err := s.in.Decode(&replies[rank]); err != nil {
				errs[rank] = fmt.Errorf("rank %d: %w", rank, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(context.Cause(ctx), err, c.failure())
	}
	if err := failed(replies); err != nil {
		return nil, fmt.Errorf("%s: %w", r.What, err)
	}
	return replies, nil
}

// kill ends a member's process as kill -9 does, and returns when.
func (c *crew) kill(rank int) (at int64) {
	at = gauge.Clock()
	c.workers[rank].Kill()
	return at
}

// replace starts the process of a member that was killed anew.
func (c *crew) replace(ctx context.Context, rank int) error {
	if err := c.seats[rank].conn.Close(); err != nil {
		return err
	}
	if err := c.begin(rank); err != nil {
		return err
	}
	return c.seat(ctx)
}

// close ends all processes.
func (c *crew) close() (err error) {
	for _, s := range c.seats {
		if s != nil {
			err = errors.Join(err, s.conn.Close())
		}
	}
	var all []*field.Worker
	for _, w := range c.workers {
		if w != nil {
			all = append(all, w)
		}
	}
	field.EndWorkers(all)
	if c.listener != nil {
		err = errors.Join(err, c.listener.Close())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
