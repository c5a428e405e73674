package scoll_test

import (
	"context"
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
)

// A server is a host with a node on it. In production each is a process, and
// Config.Resolve, or Config.Membership, has the addresses of the others.
func ExampleOn() {
	ctx := context.Background()
	addresses := map[string]string{}
	resolve := func(_ context.Context, host string) (string, error) { return addresses[host], nil }
	var targets []scoll.Target
	var service *scoll.Service
	for _, name := range []string{"oss0", "oss1"} {
		host, err := hostlib.Join(ctx, hostlib.Config{Name: name, Resolve: resolve})
		if err != nil {
			panic(err)
		}
		defer host.Close(ctx) // and the node before it
		node, err := scoll.On(host, scoll.Config{})
		if err != nil {
			panic(err)
		}
		service, err = node.Register(7, scoll.Statuses(0,
			func(*scoll.Request) (code uint32, text string) { return 0, "" }, // on every server
			func(_ *scoll.Request, all *aggregate.Statuses) { fmt.Println(all.Succeeded(), "succeeded") }))
		if err != nil {
			panic(err)
		}
		addresses[name] = host.Addr()
		targets = append(targets, scoll.Target{Node: name, Tags: []scoll.Tag{{}}})
	}
	done := make(chan error)
	err := service.CreateGroup(scoll.GroupSpec{Name: "all", Targets: targets}, func(group *scoll.Group, err error) {
		if err == nil {
			var request *scoll.Request
			if request, err = group.NewRequest(scoll.Broadcast{}); err == nil {
				err = request.Send()
				<-request.Done()
			}
		}
		done <- err
	})
	if err == nil {
		err = <-done
	}
	fmt.Println("error:", err)
	// Output:
	// 2 succeeded
	// error: <nil>
}
