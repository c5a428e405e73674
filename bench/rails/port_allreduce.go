package rails

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// reducePort is a host of two that sum vectors, over hosts alone.
type reducePort struct {
	Port // nil: it has no messages
	host *hostlib.Host
	comm *hostlib.Communicator
	side int
}

// OpenAllreduce returns an end of allreduces over all rails.
func OpenAllreduce(ctx context.Context, c PortConfig, ready func() error) (_ Port, err error) {
	p := &reducePort{side: c.Side}
	if p.host, err = hostlib.Join(ctx, c.hostConfig()); err != nil {
		return nil, err
	}
	if err = ready(); err == nil {
		members := make([]hostlib.Member, 2)
		members[c.Side] = hostlib.Member{Host: hostName(c.Side), Addr: c.at(c.Own)}
		members[1-c.Side] = hostlib.Member{Host: hostName(1 - c.Side), Addr: c.at(c.Peer)}
		p.comm, err = p.host.Communicator(ctx, "rails", members)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *reducePort) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return p.host.Close(ctx)
}

// run times allreduces, and checks each result.
func (p *reducePort) run(ctx context.Context, r Request, reply *Reply) error {
	v := make([]int64, max(1, r.Bytes/8))
	for round := range r.Warmup + r.Iterations {
		for i := range v {
			v[i] = int64(round + i + p.side)
		}
		begun := time.Now()
		if _, err := hostlib.Allreduce(ctx, p.comm, reduce.Sum, v, v); err != nil {
			return err
		}
		if took := time.Since(begun); round >= r.Warmup {
			reply.Times = append(reply.Times, took)
		}
		for i := range v {
			if want := int64(2*(round+i) + 1); v[i] != want {
				return fmt.Errorf("%w: element %d is %d, want %d", ErrWrong, i, v[i], want)
			}
		}
	}
	reply.Right = true
	return nil
}
