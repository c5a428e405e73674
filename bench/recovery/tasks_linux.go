package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// operation returns what runs one operation of a collective.
func (m *member) operation(r *request) (func(context.Context, *hostlib.Communicator) error, error) {
	v := make([]int64, max(1, r.Bytes/8))
	sum := make([]int64, len(v))
	switch r.Collective {
	case allreduce:
		return func(ctx context.Context, c *hostlib.Communicator) error {
			for i := range v {
				v[i] = contribution(m.cfg.Rank)
			}
			_, err := hostlib.Allreduce(ctx, c, reduce.Sum, v, sum)
			if want := m.without(); err == nil && (sum[0] != want || sum[len(sum)-1] != want) {
				return fmt.Errorf("%w: the sum is %d, want %d", ErrWrong, sum[0], want)
			}
			return err
		}, nil
	case broadcast:
		return func(ctx context.Context, c *hostlib.Communicator) error {
			_, err := hostlib.Broadcast(ctx, c, 0, v)
			return err
		}, nil
	case barrier:
		return func(ctx context.Context, c *hostlib.Communicator) error {
			_, err := hostlib.Barrier(ctx, c)
			return err
		}, nil
	}
	return nil, fmt.Errorf("%w: no collective %q", ErrConfig, r.Collective)
}

// plans loops operations on a duplicate, A, which the revoker revokes in place of the last one, and
// then on the communicator, B.
func (m *member) plans(ctx context.Context, r *request, answer *reply) error {
	run, err := m.operation(r)
	if err != nil {
		return err
	}
	a, err := m.comm.Duplicate(ctx)
	if err != nil {
		return err
	}
	if _, err := hostlib.Barrier(ctx, m.comm); err != nil {
		return err
	}
	for i := range r.Iterations {
		if m.cfg.Rank == r.Revoker && i == r.Iterations-1 {
			answer.Revoked = gauge.Clock()
			a.Revoke()
		}
		if err = run(ctx, a); err != nil {
			answer.Interrupted = gauge.Clock()
			break
		}
	}
	if revoked := r.Revoker >= 0; err != nil && !(revoked && errors.Is(err, hostlib.ErrRevoked)) {
		return fmt.Errorf("plan A: %w", err)
	} else if revoked && err == nil {
		// Who only sends may be through with all of its operations.
		<-a.Done()
		answer.Interrupted = gauge.Clock()
	}
	for range after {
		s := span{Begun: gauge.Clock()}
		if err := run(ctx, m.comm); err != nil {
			return fmt.Errorf("plan B: %w", err)
		}
		s.Ended = gauge.Clock()
		answer.Spans = append(answer.Spans, s)
	}
	if r.Revoker < 0 {
		return a.Leave(ctx)
	}
	return nil
}

// agree times agreements and allreduces of 8 bytes in turns, after a barrier each.
func (m *member) agree(ctx context.Context, r *request, answer *reply) error {
	own, sum := []int64{contribution(m.cfg.Rank)}, []int64{0}
	timed := func(all *[]span, run func() error) error {
		if _, err := hostlib.Barrier(ctx, m.comm); err != nil {
			return err
		}
		s := span{Begun: gauge.Clock()}
		err := run()
		s.Ended = gauge.Clock()
		*all = append(*all, s)
		return err
	}
	for i := range uint32(r.Iterations) {
		err := timed(&answer.Agreements, func() error {
			a, err := m.comm.Agree(ctx, ^(1 << (uint32(m.cfg.Rank) % 32)))
			if want := ^uint32(1<<min(32, uint32(m.comm.Size())) - 1); err == nil && (a.Flags != want || len(a.Failed) > 0) {
				return fmt.Errorf("%w: agreement %d is %v", ErrWrong, i, a)
			}
			return err
		})
		if err != nil {
			return err
		}
		err = timed(&answer.Spans, func() error {
			_, err := hostlib.Allreduce(ctx, m.comm, reduce.Sum, own, sum)
			if want := m.without(); err == nil && sum[0] != want {
				return fmt.Errorf("%w: the sum is %d, want %d", ErrWrong, sum[0], want)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fall runs allreduces until one fails, revokes, and has the survivors go on.
func (m *member) fall(ctx context.Context, answer *reply) error {
	m.events.take("")
	own, sum := []int64{contribution(m.cfg.Rank), 0}, make([]int64, 2)
	var err error
	for err == nil {
		if _, err = hostlib.Allreduce(ctx, m.comm, reduce.Sum, own, sum); err == nil && sum[0] != m.without() {
			return fmt.Errorf("%w: the sum is %d, want %d", ErrWrong, sum[0], m.without())
		}
	}
	answer.Interrupted, answer.Reason = gauge.Clock(), err.Error()
	if ctx.Err() != nil {
		return err
	}
	m.comm.Revoke()
	smaller, err := m.comm.Shrink(ctx)
	if err != nil {
		return err
	}
	answer.Shrunk = gauge.Clock()
	for _, e := range m.events.take(m.comm.Name()) {
		switch {
		case e.what == "agreed on the dead" && answer.Agreed == 0:
			answer.Agreed = e.at
		case e.what == "formed a communicator":
			answer.Formed = e.at
		case e.what == "entered an epoch" && e.offload:
			answer.Tree = e.at
		}
	}
	return m.first(ctx, smaller, answer)
}

// first runs operations until all survivors have had a right one over switches.
func (m *member) first(ctx context.Context, c *hostlib.Communicator, answer *reply) error {
	m.comm = c
	here := map[string]bool{}
	for _, o := range c.Members() {
		here[o.Host+"#"+o.Process] = true
	}
	var dead []int
	for rank, o := range m.cfg.Members {
		if !here[o.Host+"#"+o.Process] {
			dead = append(dead, rank)
		}
	}
	own, sum := []int64{contribution(m.cfg.Rank), 0}, make([]int64, 2)
	for sum[1] < int64(c.Size()) {
		o, err := hostlib.Allreduce(ctx, c, reduce.Sum, own, sum)
		if err != nil {
			return fmt.Errorf("after Shrink: %w", err)
		}
		if want := m.without(dead...); sum[0] != want {
			return fmt.Errorf("%w: the survivors' sum is %d, want %d", ErrWrong, sum[0], want)
		}
		if o.Transport == hostlib.Offload && answer.First == 0 {
			answer.First, own[1] = gauge.Clock(), 1
		}
	}
	return nil
}
