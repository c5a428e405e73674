package hostlib_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// job has n hosts, here in one process, do their parts in a communicator.
func job(n int, part func(ctx context.Context, comm *hostlib.Communicator) error) {
	ctx := context.Background()
	hosts, members := make([]*hostlib.Host, n), make([]hostlib.Member, n)
	for i := range hosts {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			panic(err)
		}
		defer h.Close(ctx)
		hosts[i], members[i] = h, h.Member()
	}
	var wg sync.WaitGroup
	for _, host := range hosts {
		wg.Go(func() {
			comm, err := host.Communicator(ctx, "job", members)
			if err == nil {
				err = part(ctx, comm)
			}
			if err == nil {
				err = comm.Leave(ctx)
			}
			if err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
}

// Words of different lengths are gathered: the lengths first, and then the words, each into a slice
// of its own.
func ExampleAllgatherv() {
	words := []string{"in", "network", "computing"}
	job(3, func(ctx context.Context, comm *hostlib.Communicator) error {
		own := []byte(words[comm.Rank()])
		sizes := make([]int32, comm.Size())
		if _, err := hostlib.Allgather(ctx, comm, []int32{int32(len(own))}, sizes); err != nil {
			return err
		}
		all := make([][]byte, comm.Size())
		for rank, n := range sizes {
			all[rank] = make([]byte, n)
		}
		_, err := hostlib.Allgatherv(ctx, comm, own, all)
		if comm.Rank() == 0 && err == nil {
			fmt.Printf("%s\n", all)
		}
		return err
	})
	// Output: [in network computing]
}

// The members of each parity have a communicator of their own, in which each rank learns the sum of
// those up to it.
func ExampleCommunicator_Split() {
	var mu sync.Mutex
	sums := map[int]int64{}
	job(6, func(ctx context.Context, comm *hostlib.Communicator) error {
		half, err := comm.Split(ctx, comm.Rank()%2, comm.Rank())
		if err != nil {
			return err
		}
		v := []int64{int64(comm.Rank())}
		if _, err := hostlib.Scan(ctx, half, reduce.Sum, v, v); err != nil {
			return err
		}
		mu.Lock()
		sums[comm.Rank()] = v[0]
		mu.Unlock()
		return half.Leave(ctx)
	})
	fmt.Println(sums)
	// Output: map[0:0 1:1 2:2 3:4 4:6 5:9]
}

// An operator of one's own need not commute: members are taken in the order of their ranks.
func ExampleCustom() {
	// Two digits of each element are the first and last of a run of numbers.
	join := hostlib.Custom("join", false, func(to, first, second []uint32) {
		for i := range to {
			to[i] = first[i]/10*10 + second[i]%10
		}
	})
	job(4, func(ctx context.Context, comm *hostlib.Communicator) error {
		v := []uint32{uint32(11 * comm.Rank())}
		_, err := hostlib.Allreduce(ctx, comm, join, v, v)
		if comm.Rank() == 3 && err == nil {
			fmt.Printf("%02d\n", v[0])
		}
		return err
	})
	// Output: 03
}
