package offload_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/offload"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// Four servers of a leaf-spine fabric count their objects: the request goes down
// and the sum comes up through the switches.
func Example() {
	ctx := context.Background()
	graph, err := topology.Parse("leaf-spine:2,2,1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fabric, err := embedded.Start(ctx, embedded.Config{Topology: graph})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fabric.Close()

	spec := offload.Spec{Name: "objects"}
	var nodes []*scoll.Node
	for _, host := range fabric.Hosts() {
		node, err := scoll.On(host, scoll.Config{RoundTrip: time.Minute}) // nothing expires however slow the machine is
		if err != nil {
			fmt.Println(err)
			return
		}
		nodes, spec.Members = append(nodes, node), append(spec.Members, host.Member())
	}

	groups := make([]*offload.Group[uint64], len(nodes))
	var all sync.WaitGroup
	for i, host := range fabric.Hosts() { // each is a process of its own elsewhere
		all.Go(func() {
			service, err := offload.Register(nodes[i], host, offload.Config[uint64]{
				ID: 12, Function: reduce.Sum, Elements: 1, RoundTrip: time.Minute,
				Run: func(r *offload.Request, objects []uint64) error {
					objects[0] = uint64(10 * (i + 1))
					return nil
				},
			})
			if err == nil {
				groups[i], err = service.Join(ctx, spec)
			}
			if err != nil {
				panic(err)
			}
		})
	}
	all.Wait()

	result, err := groups[0].Broadcast(ctx, []byte("how many?"))
	fmt.Println(result.Vector[0], "objects on", result.Outcome.Ran, "servers", err)
	for _, g := range groups {
		all.Go(func() {
			if err := g.Close(ctx); err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	// Output:
	// 100 objects on 4 servers <nil>
}
