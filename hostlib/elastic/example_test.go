package elastic_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/elastic"
	"github.com/tributary-fabric/tributary/reduce"
)

// Three members sum up ten steps. One dies in the middle, and a spare takes its place.
func ExampleRun() {
	ctx := context.Background()
	hosts, members := make([]*hostlib.Host, 4), make([]hostlib.Member, 4)
	for i := range hosts {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			panic(err)
		}
		defer h.Close(ctx)
		hosts[i], members[i] = h, h.Member()
	}
	config := elastic.Config{Name: "job-17", Members: members[:3], Spares: members[3:]}
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			step, total := int64(0), []int64{0} // what all that live have
			err := elastic.Run(ctx, host, config, func(ctx context.Context, comm *hostlib.Communicator) error {
				newest, err := elastic.Newest(ctx, comm, step)
				if err != nil {
					return err
				}
				restored := []int64{total[0]}
				if _, err := hostlib.Broadcast(ctx, comm, newest.Rank, restored); err != nil {
					return err
				}
				for step, total = newest.Step, restored; step < 10; step++ {
					if i == 0 && step == 5 {
						host.Close(ctx)
					}
					v := []int64{int64(comm.Rank())}
					if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); err != nil {
						return err
					}
					total[0] += v[0]
				}
				return nil
			})
			if i == 1 {
				fmt.Println(total[0], "after", step, "steps:", err)
			}
		})
	}
	all.Wait()
	// Output: 30 after 10 steps: <nil>
}
