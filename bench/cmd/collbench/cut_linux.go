package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/rails"
	"github.com/tributary-fabric/tributary/topology"
)

// cutSample is how often what links carry is looked at.
const cutSample = 10 * time.Millisecond

// cuts has hosts' links fail and recover by a schedule, and follows what the links of host
// h0 carry, in both directions.
type cuts struct {
	lab      *netlab.Lab
	schedule rails.Schedule
	log      io.Writer
	begun    time.Time
	samples  []cutSampled
}

type cutSampled struct {
	at    time.Duration
	bytes []uint64 // by rail, since the beginning
}

// startCuts begins the schedule, if there is one, with the first operation that the fabric
// runs. The function that it returns ends it and reports.
func (f *fabricFlags) startCuts(ctx context.Context, fabric *field.Fabric, log io.Writer) (end func() error, err error) {
	if f.cut == "" {
		return func() error { return nil }, nil
	}
	c := &cuts{lab: fabric.Lab(), log: log}
	if c.schedule, err = rails.Parse(f.cut, c.lab.Topology().Hosts(), f.rails); err != nil {
		return nil, fmt.Errorf("%w --cut: %w", errUsage, err)
	}
	for _, e := range c.schedule {
		if e.Slow > 0 || e.Fault == netlab.Deleted {
			return nil, fmt.Errorf("%w --cut: %v is not for links to switches", errUsage, e)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = c.run(ctx) })
	return func() error {
		cancel()
		running.Wait()
		if failed == nil {
			c.report()
		}
		return failed
	}, nil
}

// busy is the bytes that h0 has to carry before the schedule begins: operations run.
const busy = 1 << 20

func (c *cuts) run(ctx context.Context) error {
	tick := time.NewTicker(cutSample)
	defer tick.Stop()
	next := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		bytes, err := c.carried()
		if err != nil {
			return err
		}
		sum := uint64(0)
		for _, n := range bytes {
			sum += n
		}
		if c.begun.IsZero() {
			if sum < busy {
				continue
			}
			c.begun = time.Now()
		}
		now := time.Since(c.begun)
		c.samples = append(c.samples, cutSampled{now, bytes})
		for ; next < len(c.schedule) && c.schedule[next].At <= now; next++ {
			if err := c.apply(c.schedule[next]); err != nil {
				return err
			}
		}
	}
}

func (c *cuts) apply(e rails.Event) error {
	hosts := []int{e.Host}
	if e.Host == rails.AllHosts {
		hosts = hosts[:0]
		for h := range c.lab.Topology().Hosts() {
			hosts = append(hosts, h)
		}
	}
	var errs []error
	for _, h := range hosts {
		errs = append(errs, c.lab.SetFault(topology.NodeID(h), e.Rail, e.Fault))
	}
	return errors.Join(errs...)
}

// carried returns what h0 has sent and received, by rail.
func (c *cuts) carried() (bytes []uint64, err error) {
	counts, err := c.lab.CountsOf(0)
	for _, n := range counts {
		bytes = append(bytes, n.Bytes)
	}
	return bytes, err
}

// usedRate is what a link carries that is in use, in bit/s both ways together.
const usedRate = 100e6

// report writes, from each event to the next, the rate of each link, both ways together, the
// longest time in which none carried anything, and when each link was in use.
func (c *cuts) report() {
	for i := -1; i < len(c.schedule); i++ {
		from, to, what := time.Duration(0), time.Duration(1<<62), "before"
		if i >= 0 {
			from, what = c.schedule[i].At, c.schedule[i].String()
		}
		if i+1 < len(c.schedule) {
			to = c.schedule[i+1].At
		}
		c.interval(what, from, to)
	}
}

func (c *cuts) interval(what string, from, to time.Duration) {
	var span []cutSampled
	for _, s := range c.samples {
		if s.at >= from && s.at < to {
			span = append(span, s)
		}
	}
	if len(span) < 2 {
		return
	}
	first, last := span[0], span[len(span)-1]
	fmt.Fprintf(c.log, "%s: ", what)
	for r := range first.bytes {
		rate := float64(last.bytes[r]-first.bytes[r]) * 8 / (last.at - first.at).Seconds() / 1e6
		fmt.Fprintf(c.log, "rail%d %.0f Mbit/s, ", r, rate)
	}
	var gap, silent time.Duration
	back := make([]time.Duration, len(first.bytes))
	const window = 10 // samples
	for i := 1; i < len(span); i++ {
		sum := uint64(0)
		for r := range first.bytes {
			n := span[i].bytes[r] - span[i-1].bytes[r]
			sum += n
			if k := i - window; k >= 0 && back[r] == 0 {
				rate := float64(span[i].bytes[r]-span[k].bytes[r]) * 8 / (span[i].at - span[k].at).Seconds()
				if rate > usedRate {
					back[r] = span[i].at - from
				}
			}
		}
		if sum < 1000 {
			silent += span[i].at - span[i-1].at
			gap = max(gap, silent)
		} else {
			silent = 0
		}
	}
	fmt.Fprintf(c.log, "longest gap %v", gap.Round(time.Millisecond))
	for r, at := range back {
		if at > 0 {
			fmt.Fprintf(c.log, ", rail%d in use after %v", r, at.Round(time.Millisecond))
		}
	}
	fmt.Fprintln(c.log)
}
