package scoll_test

import (
	"context"
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
)

// Servers let the controllers alone call a service that evicts clients, and one of them
// make its groups. Without certificates, as here, hosts are who they say they are: in
// production they have some.
func ExampleAccess() {
	ctx := context.Background()
	addresses := map[string]string{}
	resolve := func(_ context.Context, host string) (string, error) { return addresses[host], nil }
	var targets []scoll.Target
	services := map[string]*scoll.Service{}
	for _, name := range []string{"ctl-0", "oss-0"} {
		host, err := hostlib.Join(ctx, hostlib.Config{Name: name, Resolve: resolve})
		if err != nil {
			panic(err)
		}
		defer host.Close(ctx)
		node, err := scoll.On(host, scoll.Config{})
		if err != nil {
			panic(err)
		}
		evict := scoll.Statuses(0,
			func(*scoll.Request) (code uint32, text string) { return 0, "" },
			func(*scoll.Request, *aggregate.Statuses) {})
		evict.Access = scoll.Access{Call: scoll.HostsLike("ctl-*"), Create: scoll.Hosts("ctl-0")}
		if services[name], err = node.Register(7, evict); err != nil {
			panic(err)
		}
		addresses[name] = host.Addr()
		targets = append(targets, scoll.Target{Node: name, Tags: []scoll.Tag{{}}})
	}
	for _, root := range []string{"ctl-0", "oss-0"} {
		made := make(chan error)
		spec := scoll.GroupSpec{Name: "all", Targets: targets}
		if err := services[root].CreateGroup(spec, func(_ *scoll.Group, err error) { made <- err }); err != nil {
			panic(err)
		}
		fmt.Println(root, <-made)
	}
	// Output:
	// ctl-0 <nil>
	// oss-0 scoll: 1 of 2 nodes are known to have run the request; ctl-0 (1 nodes) denied: rule "hosts ctl-0" does not let oss-0 make or destroy groups of service 7
}
