package hostlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/reduce"
)

// everyCollective has each collective once, of about n elements a member.
func everyCollective(n int) map[string]func(ctx context.Context, c *Communicator) error {
	type vector = []int64
	of := func(_ Outcome, err error) error { return err }
	pieces := func(c *Communicator) (all []vector) {
		for range c.Size() {
			all = append(all, make(vector, n))
		}
		return all
	}
	return map[string]func(ctx context.Context, c *Communicator) error{
		"allreduce": func(ctx context.Context, c *Communicator) error {
			return of(Allreduce(ctx, c, reduce.Sum, make(vector, n), make(vector, n)))
		},
		"reduce": func(ctx context.Context, c *Communicator) error {
			return of(Reduce(ctx, c, reduce.Sum, 1, make(vector, n), make(vector, n)))
		},
		"broadcast": func(ctx context.Context, c *Communicator) error { return of(Broadcast(ctx, c, 1, make(vector, n))) },
		"barrier":   func(ctx context.Context, c *Communicator) error { return of(Barrier(ctx, c)) },
		"gather": func(ctx context.Context, c *Communicator) error {
			return of(Gather(ctx, c, 1, make(vector, n), make(vector, n*c.Size())))
		},
		"allgather": func(ctx context.Context, c *Communicator) error {
			return of(Allgather(ctx, c, make(vector, n), make(vector, n*c.Size())))
		},
		"allgatherv": func(ctx context.Context, c *Communicator) error {
			return of(Allgatherv(ctx, c, make(vector, n), pieces(c)))
		},
		"scatter": func(ctx context.Context, c *Communicator) error {
			return of(Scatter(ctx, c, 1, make(vector, n*c.Size()), make(vector, n)))
		},
		"alltoall": func(ctx context.Context, c *Communicator) error {
			return of(Alltoall(ctx, c, make(vector, n*c.Size()), make(vector, n*c.Size())))
		},
		"alltoallv": func(ctx context.Context, c *Communicator) error {
			return of(Alltoallv(ctx, c, pieces(c), pieces(c)))
		},
		"reduce-scatter": func(ctx context.Context, c *Communicator) error {
			return of(ReduceScatter(ctx, c, reduce.Sum, make(vector, n*c.Size()), make(vector, n)))
		},
		"scan": func(ctx context.Context, c *Communicator) error {
			return of(Scan(ctx, c, reduce.Sum, make(vector, n), make(vector, n)))
		},
		"exscan": func(ctx context.Context, c *Communicator) error {
			return of(Exscan(ctx, c, reduce.Sum, make(vector, n), make(vector, n)))
		},
	}
}

// endings runs every collective again and again, each on a communicator of its own, kills some
// members in the middle, and checks what the survivors get: on each communicator the same error,
// of one of the dead. Then it shrinks all.
func endings(t *testing.T, hosts []*Host, members []Member, elements int, onSwitches bool, dead ...int) {
	t.Helper()
	ctx := within(t)
	collectives := everyCollective(elements)
	comms, smaller := map[string][]*Communicator{}, map[string][]*Communicator{}
	for name := range collectives {
		comms[name] = form(t, name, hosts, members)
		smaller[name] = make([]*Communicator, len(hosts))
	}
	if onSwitches {
		offloaded(t, comms["allreduce"], 0)
	}
	var all, running sync.WaitGroup
	running.Add(3 * len(collectives) * len(hosts))
	errs := map[string][]error{}
	for name, run := range collectives {
		errs[name] = make([]error, len(hosts))
		for rank, c := range comms[name] {
			all.Go(func() {
				for k := 0; ; k++ {
					if k < 3 {
						running.Done()
					}
					if err := run(ctx, c); err != nil {
						for ; k < 2; k++ {
							running.Done()
						}
						errs[name][rank] = err
						break
					}
				}
				if slices.Contains(dead, rank) {
					return
				}
				<-c.Done() // one that only sends may have been done before
				s, err := c.Shrink(ctx)
				if err != nil {
					t.Errorf("%s: rank %d: %v", name, rank, err)
					return
				}
				smaller[name][rank] = s
			})
		}
	}
	running.Wait()
	die(t, hosts, dead...)
	for _, rank := range dead { // its calls end, too
		for name := range collectives {
			comms[name][rank].Abort("it is dead")
		}
	}
	all.Wait()
	for name, list := range errs {
		var first *MemberError
		for rank, err := range list {
			if slices.Contains(dead, rank) {
				continue
			}
			var m *MemberError
			if !errors.As(err, &m) || !slices.Contains(dead, m.Rank) || m.Host != members[m.Rank].Host {
				t.Errorf("%s: rank %d: got %v, want the death of %v", name, rank, err, dead)
				continue
			}
			if first == nil {
				first = m
			}
			if len(dead) == 1 && m.Rank != first.Rank {
				t.Errorf("%s: rank %d gets %v, another %v", name, rank, m, first)
			}
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	for name, list := range smaller {
		list = slices.DeleteFunc(list, func(c *Communicator) bool { return c == nil })
		if n := len(hosts) - len(dead); len(list) != n || list[0].Size() != n {
			t.Fatalf("%s: %d communicators of %d, want %d", name, len(list), list[0].Size(), n)
		}
		if onSwitches && name == "allreduce" {
			offloaded(t, list, 0)
			wantTransport(t, sum(t, list, 1000), Offload)
		}
		sum(t, list, 1000)
		leave(t, list)
	}
}

// TestDeathInEveryCollective: when a member, or two, are killed in the middle of whatever collective,
// the survivors get the same error, which names the dead, and form a communicator that works.
func TestDeathInEveryCollective(t *testing.T) {
	for k, dead := range fewer([][]int{{0}, {1}, {4}, {0, 3}, {1, 2}, {0, 1, 2, 3}}, [][]int{{0, 3}, {1, 2}})[0] {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"}, patient)
			endings(t, hosts, members, []int{20, 20_000}[k%2], false, dead...)
		})
	}
}

// TestDeathInEveryCollectiveOnSwitches is that with switches.
func TestDeathInEveryCollectiveOnSwitches(t *testing.T) {
	for _, dead := range fewer([]int{0}, []int{2}, []int{1, 3}, []int{0, 1}) {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			f := newFabric(t, 2, func(*agentd.Config) {})
			hosts, members := f.join(patient)
			endings(t, hosts, members, 2000, true, dead...)
		})
	}
}
