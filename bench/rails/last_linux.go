package rails

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

// RunLast builds two hosts and has all rails between them fail, at one host, in each of some
// ways, while requests are under way. It fails unless all requests do, and
// unless messages pass on all rails again when these are repaired.
func RunLast(ctx context.Context, c SoakConfig, faults []netlab.Fault) (all []Last, err error) {
	c.Fabric.Hosts = 2
	if err := c.Fabric.Validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &site{program: c.Program, kinds: c.Kinds, dir: dir, log: &shared{to: c.Log}}
	if c.TLS {
		s.trust = dir + "/trust"
		if err := Issue(s.trust); err != nil {
			return nil, err
		}
	}
	if s.fabric, err = netlab.BuildRails(c.Fabric); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.fabric.Close()) }()
	one, err := s.start(ctx, Messages)
	if err != nil {
		return nil, err
	}
	defer one.close()
	for _, fault := range faults {
		row, err := s.last(ctx, one.(processes), fault, c.Limit)
		if err != nil {
			return all, fmt.Errorf("all rails %v: %w", fault, err)
		}
		fmt.Fprintf(s.log, "%-8s %d requests have failed after %v; all rails again after %v\n  %s\n", row.Fault, row.Failed, row.After.Round(time.Millisecond), row.Back.Round(time.Millisecond), row.Error)
		all = append(all, row)
	}
	return all, nil
}

// lastMessages are those of a stream that shows whether hosts are joined.
const lastMessages = 64

func (s *site) last(ctx context.Context, p processes, fault netlab.Fault, limit time.Duration) (row Last, err error) {
	works := Request{What: stream, Bytes: 1 << 16, Iterations: lastMessages, Window: 8, Limit: limit}
	if err := works.check(ctx, p); err != nil {
		return row, fmt.Errorf("before: %w", err)
	}
	cut := make(chan error, 1)
	start := time.Now()
	go func() {
		var errs []error
		for rail := range s.fabric.Rails() {
			errs = append(errs, s.fabric.SetFault(Answerer, rail, fault))
		}
		cut <- errors.Join(errs...)
	}()
	replies, err := p.ask(ctx, Request{What: losing, Bytes: 1 << 20, Iterations: 10, Window: 1, Rails: devices(s.fabric.Rails()), Limit: limit})
	row = Last{Fault: fault.String(), Failed: replies[0].Failed + replies[1].Failed, After: time.Since(start), Error: replies[Asker].Why}
	if err = errors.Join(err, <-cut, repair(s.fabric)); err != nil {
		return row, err
	}
	start = time.Now()
	for isBack := false; !isBack; {
		if row.Back = time.Since(start); row.Back > limit {
			return row, fmt.Errorf("%w: after %v there are rails that carry nothing", ErrWrong, limit)
		}
		before, err := s.sent()
		if err == nil {
			err = works.check(ctx, p)
		}
		after, e := s.sent()
		if err = errors.Join(err, e); err != nil {
			return row, fmt.Errorf("afterwards: %w", err)
		}
		isBack = true
		for rail := range after {
			isBack = isBack && after[rail]-before[rail] >= uint64(works.Bytes)
		}
	}
	row.Back = time.Since(start)
	return row, nil
}

// check runs a stream, and reports what is wrong with it.
func (r Request) check(ctx context.Context, p processes) error {
	r.Start = time.Now().UnixNano()
	f, err := p.flow(ctx, r)
	if err == nil && !f.Exact() {
		err = fmt.Errorf("%w: %v", ErrWrong, f.Ledger)
	}
	return err
}
