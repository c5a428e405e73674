package hostlib_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

// Three hosts, here in one process, sum their vectors. Without an offload manager the
// operation runs over hosts, and its outcome says so.
func Example() {
	ctx := context.Background()
	hosts, members := make([]*hostlib.Host, 3), make([]hostlib.Member, 3)
	for i := range hosts {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			panic(err)
		}
		defer h.Close(ctx)
		hosts[i], members[i] = h, h.Member()
	}
	var wg sync.WaitGroup
	for rank, host := range hosts {
		wg.Go(func() {
			comm, err := host.Communicator(ctx, "job-17", members, hostlib.OnTree())
			if err != nil {
				panic(err)
			}
			v := []float64{float64(rank), 0.5}
			outcome, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v)
			if err != nil {
				panic(err)
			}
			if rank == 0 {
				fmt.Println(v, "by", outcome.Transport, "since", outcome.Reason)
			}
			if err := comm.Leave(ctx); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	// Output: [3 1.5] by host-tree since this host has no offload manager
}

// Reproducible sums do not depend on the order of members, nor on what reduces. A plain sum of these numbers is 0 or 1,
// by the order in which they are added.
func ExampleReproducible() {
	ctx := context.Background()
	numbers := map[string]float32{"a": 1, "b": 1e8, "c": -1e8}
	hosts, members := map[string]*hostlib.Host{}, []hostlib.Member(nil)
	for _, name := range []string{"a", "b", "c"} {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: name})
		if err != nil {
			panic(err)
		}
		defer h.Close(ctx)
		hosts[name], members = h, append(members, h.Member())
	}
	for round, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		var wg sync.WaitGroup
		ranks := []hostlib.Member{members[order[0]], members[order[1]], members[order[2]]}
		for rank, m := range ranks {
			wg.Go(func() {
				comm, err := hosts[m.Host].Communicator(ctx, fmt.Sprint("job-", round), ranks, hostlib.Reproducible())
				if err != nil {
					panic(err)
				}
				v := []float32{numbers[m.Host]}
				outcome, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v)
				if err != nil {
					panic(err)
				}
				if rank == 0 {
					fmt.Println(v, outcome.Reproducible)
				}
				if err := comm.Leave(ctx); err != nil {
					panic(err)
				}
			})
		}
		wg.Wait()
	}
	// Output:
	// [1] true
	// [1] true
}

// Several operations may be in flight; the buffers of each are free when it is done.
func ExampleRequest() {
	ctx := context.Background()
	host, err := hostlib.Join(ctx, hostlib.Config{Name: "h0"})
	if err != nil {
		panic(err)
	}
	defer host.Close(ctx)
	comm, err := host.Communicator(ctx, "alone", []hostlib.Member{host.Member()})
	if err != nil {
		panic(err)
	}
	a, b := []int32{1, 2}, []int32{3}
	first := hostlib.StartAllreduce(comm, reduce.Sum, a, a)
	second := hostlib.StartBroadcast(comm, 0, b)
	for _, r := range []*hostlib.Request{first, second} {
		if _, err := r.Wait(ctx); err != nil {
			panic(err)
		}
	}
	fmt.Println(a, b)
	// Output: [1 2] [3]
}

// Switches that can only add integers serve a group that allows block floating point
// for its sums of float32, and sums nothing else.
func ExampleBlockFloat() {
	ctx := context.Background()
	host, err := hostlib.Join(ctx, hostlib.Config{Name: "h0"})
	if err != nil {
		panic(err)
	}
	defer host.Close(ctx)
	comm, err := host.Communicator(ctx, "alone", []hostlib.Member{host.Member()},
		hostlib.OnlyFunctions(reduce.Sum), hostlib.OnlyTypes(reduce.Float32), hostlib.BlockFloat())
	if err != nil {
		panic(err)
	}
	v := []float32{1, -0.375}
	outcome, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v)
	if err != nil {
		panic(err)
	}
	fmt.Println(v, outcome.BlockFloat)
	// Output: [1 -0.375] true
}

// A group that declares its purpose gets a tree for it: with high bandwidth for long
// vectors.
func ExampleExpect() {
	ctx := context.Background()
	host, err := hostlib.Join(ctx, hostlib.Config{Name: "h0"})
	if err != nil {
		panic(err)
	}
	defer host.Close(ctx)
	comm, err := host.Communicator(ctx, "alone", []hostlib.Member{host.Member()}, hostlib.Expect(pathsel.Allreduce, 64<<20))
	if err != nil {
		panic(err)
	}
	v := []float32{1, 2} // others work as well
	if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); err != nil {
		panic(err)
	}
	fmt.Println(v)
	// Output: [1 2]
}

// A long vector is cut over the trees that the manager finds; without a manager there
// is one stripe.
func ExampleStripes() {
	ctx := context.Background()
	host, err := hostlib.Join(ctx, hostlib.Config{Name: "h0"})
	if err != nil {
		panic(err)
	}
	defer host.Close(ctx)
	comm, err := host.Communicator(ctx, "alone", []hostlib.Member{host.Member()}, hostlib.Stripes(2))
	if err != nil {
		panic(err)
	}
	v := []int64{1, 2}
	if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); err != nil {
		panic(err)
	}
	for i, stripe := range comm.Stripes() {
		fmt.Println(v, "by stripe", i, stripe.Name)
	}
	// Output: [1 2] by stripe 0 alone
}

// The members are divided among the roots that the manager finds; without a manager
// there is no partition.
func ExampleRoots() {
	ctx := context.Background()
	host, err := hostlib.Join(ctx, hostlib.Config{Name: "h0"})
	if err != nil {
		panic(err)
	}
	defer host.Close(ctx)
	comm, err := host.Communicator(ctx, "alone", []hostlib.Member{host.Member()}, hostlib.Roots(2))
	if err != nil {
		panic(err)
	}
	v := []int64{1, 2}
	if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); err != nil {
		panic(err)
	}
	fmt.Println(v, "in", len(comm.Parts()), "parts")
	// Output: [1 2] in 0 parts
}

// One of three members finds that its input is wrong, when the others wait for it already. It
// revokes the communicator, which interrupts them, and all make a new one to begin again.
func ExampleCommunicator_Revoke() {
	ctx := context.Background()
	hosts, members := make([]*hostlib.Host, 3), make([]hostlib.Member, 3)
	for i := range hosts {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			panic(err)
		}
		defer h.Close(ctx)
		hosts[i], members[i] = h, h.Member()
	}
	var wg sync.WaitGroup
	for rank, host := range hosts {
		wg.Go(func() {
			comm, err := host.Communicator(ctx, "job-17", members)
			if err != nil {
				panic(err)
			}
			v := []int64{int64(rank)}
			if rank == 1 {
				comm.Revoke()
			} else if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); !errors.Is(err, hostlib.ErrRevoked) {
				panic(err)
			}
			if rank == 0 {
				fmt.Println(comm.Err())
			}
			if comm, err = comm.Shrink(ctx); err != nil {
				panic(err)
			}
			v[0] = 1
			if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); err != nil {
				panic(err)
			}
			if rank == 0 {
				fmt.Println(v, "by", comm.Name())
			}
			if err := comm.Leave(ctx); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	// Output:
	// hostlib: the communicator is revoked, by rank 1 (h1)
	// [3] by job-17~1
}

// Three members agree on whether all have what they need, before any of them goes on.
func ExampleCommunicator_Agree() {
	ctx := context.Background()
	hosts, members := make([]*hostlib.Host, 3), make([]hostlib.Member, 3)
	for i := range hosts {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			panic(err)
		}
		defer h.Close(ctx)
		hosts[i], members[i] = h, h.Member()
	}
	const hasData, hasSpace = 1, 2
	var wg sync.WaitGroup
	for rank, host := range hosts {
		wg.Go(func() {
			comm, err := host.Communicator(ctx, "job-17", members)
			if err != nil {
				panic(err)
			}
			flags := uint32(hasData | hasSpace)
			if rank == 2 {
				flags = hasData
			}
			a, err := comm.Agree(ctx, flags)
			if err != nil && !errors.Is(err, hostlib.ErrUnacknowledged) {
				panic(err)
			}
			if rank == 0 {
				fmt.Println("all have data:", a.Flags&hasData != 0)
				fmt.Println("all have space:", a.Flags&hasSpace != 0)
				fmt.Println("died:", a.Failed)
			}
			if err := comm.Leave(ctx); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	// Output:
	// all have data: true
	// all have space: false
	// died: []
}

// Two members take a spare, which knows nothing of them but learns all from their invitation.
func ExampleCommunicator_Grow() {
	ctx := context.Background()
	hosts, members := make([]*hostlib.Host, 3), make([]hostlib.Member, 3)
	for i := range hosts {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			panic(err)
		}
		defer h.Close(ctx)
		hosts[i], members[i] = h, h.Member()
	}
	var wg sync.WaitGroup
	for rank, host := range hosts {
		wg.Go(func() {
			var larger *hostlib.Communicator
			if rank == 2 {
				var err error
				if larger, err = host.AwaitInvitation(ctx); err != nil {
					panic(err)
				}
			} else {
				comm, err := host.Communicator(ctx, "job-17", members[:2])
				if err != nil {
					panic(err)
				}
				if larger, err = comm.Grow(ctx, members[2:]); err != nil {
					panic(err)
				}
				if err := comm.Leave(ctx); err != nil {
					panic(err)
				}
			}
			v := []int64{1}
			if _, err := hostlib.Allreduce(ctx, larger, reduce.Sum, v, v); err != nil {
				panic(err)
			}
			if rank == 2 {
				fmt.Println(v, "by", larger.Name())
			}
			if err := larger.Leave(ctx); err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	// Output: [3] by job-17/1
}
