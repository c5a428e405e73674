package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// formed is what the hosts answer when the groups stand.
type formed struct {
	Seconds float64 `json:"seconds"`
}

// standing is how the groups run now.
type standing struct {
	Offloaded int    `json:"offloaded"` // groups of which every member is
	Why       string `json:"why,omitempty"`
}

// timed is what the hosts answer of operations on all groups at once.
type timed struct {
	Seconds []float64 `json:"seconds"` // of each
	Wrong   int       `json:"wrong"`   // results
}

// crowd is the groups in the process of the hosts, by group and rank.
type crowd struct {
	hosts  []*hostlib.Host
	groups [][]*hostlib.Communicator
}

// Hosts serves as the process of all hosts of a fabric; manager may be empty.
func Hosts(ctx context.Context, g *topology.Graph, manager string, window uint32, in io.Reader, out io.Writer, log *slog.Logger) error {
	var c crowd
	for n := range topology.NodeID(g.Hosts()) {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: g.Name(n), Manager: manager, Window: window, Log: log})
		if err != nil {
			return err
		}
		defer func() { _ = h.Close(context.Background()) }() // nothing more is measured
		c.hosts = append(c.hosts, h)
	}
	return serve(ctx, in, out, map[string]verb{
		"form": func(ctx context.Context, arguments string) (any, error) {
			var n int
			if _, err := fmt.Sscan(arguments, &n); err != nil {
				return nil, fmt.Errorf("form %q: %w", arguments, err)
			}
			return c.form(ctx, n)
		},
		"stand": func(context.Context, string) (any, error) { return c.stand(), nil },
		"run": func(ctx context.Context, arguments string) (any, error) {
			var bytes, times int
			if _, err := fmt.Sscan(arguments, &bytes, &times); err != nil {
				return nil, fmt.Errorf("run %q: %w", arguments, err)
			}
			return c.run(ctx, bytes, times)
		},
	})
}

// form makes n groups of all hosts at once.
func (c *crowd) form(ctx context.Context, n int) (formed, error) {
	members := make([]hostlib.Member, len(c.hosts))
	for i, h := range c.hosts {
		members[i] = h.Member()
	}
	c.groups = make([][]*hostlib.Communicator, n)
	errs := make([]error, n*len(c.hosts))
	begun := time.Now()
	var making sync.WaitGroup
	for i := range c.groups {
		c.groups[i] = make([]*hostlib.Communicator, len(c.hosts))
		for rank, h := range c.hosts {
			making.Go(func() {
				c.groups[i][rank], errs[i*len(c.hosts)+rank] = h.Communicator(ctx, fmt.Sprintf("group-%d", i), members)
			})
		}
	}
	making.Wait()
	return formed{time.Since(begun).Seconds()}, errors.Join(errs...)
}

// stand reports how the groups run now.
func (c *crowd) stand() (s standing) {
	for _, g := range c.groups {
		offloaded := 0
		for _, comm := range g {
			if transport, why := comm.Transport(); transport == hostlib.Offload {
				offloaded++
			} else {
				s.Why = why
			}
		}
		if offloaded == len(g) {
			s.Offloaded++
		}
	}
	return s
}

// run sums vectors of so many bytes on all groups at once, and then so many times
// again.
func (c *crowd) run(ctx context.Context, bytes, times int) (t timed, err error) {
	elements, ranks := bytes/4, len(c.hosts)
	inputs := make([][]float32, ranks)
	for rank := range inputs {
		inputs[rank] = make([]float32, elements)
		for i := range inputs[rank] {
			inputs[rank][i] = float32(i%1000 + rank)
		}
	}
	results := make([]float32, len(c.groups)*ranks*elements)
	requests := make([]*hostlib.Request, len(c.groups)*ranks)
	for k := range times + 1 {
		clear(results)
		begun := time.Now()
		for i := range requests {
			requests[i] = hostlib.StartAllreduce(c.groups[i/ranks][i%ranks], reduce.Sum, inputs[i%ranks], results[i*elements:][:elements:elements])
		}
		for _, r := range requests {
			_, failed := r.Wait(ctx)
			err = errors.Join(err, failed)
		}
		if err != nil {
			return t, err
		}
		if took := time.Since(begun).Seconds(); k > 0 {
			t.Seconds = append(t.Seconds, took)
		}
		t.Wrong += wrong(results, elements, ranks)
	}
	return t, nil
}

// wrong returns how many of the results of so many elements each are not the sum.
func wrong(results []float32, elements, ranks int) (n int) {
	for len(results) > 0 {
		for i, got := range results[:elements] {
			if got != float32(ranks*(i%1000)+ranks*(ranks-1)/2) {
				n++
				break
			}
		}
		results = results[elements:]
	}
	return n
}
