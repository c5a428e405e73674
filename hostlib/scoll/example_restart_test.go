package scoll_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// A restarted server has forgotten its groups. The root learns that from the outcome of
// its next broadcast, destroys the group and creates it again.
func Example_restart() {
	ctx := context.Background()
	addresses := map[string]string{} // elsewhere a directory, or membership's attributes
	var news scoll.News              // elsewhere hostlib.Config.Membership
	resolve := func(_ context.Context, host string) (string, error) { return addresses[host], nil }
	begin := func(name string) (*hostlib.Host, *scoll.Service) {
		host, err := hostlib.Join(ctx, hostlib.Config{Name: name, Resolve: resolve})
		if err != nil {
			panic(err)
		}
		n, err := scoll.On(host, scoll.Config{Liveness: &news})
		if err != nil {
			panic(err)
		}
		s, err := n.Register(7, scoll.Callbacks{
			IncomingRequest: func(r *scoll.Request) error { return nil }, // what the service does
		})
		if err != nil {
			panic(err)
		}
		addresses[name] = host.Addr()
		news.Up(name, host.Incarnation())
		return host, s
	}
	root, service := begin("oss0")
	server, _ := begin("oss1")

	targets := []scoll.Target{{Node: "oss0", Tags: []scoll.Tag{{0}}}, {Node: "oss1", Tags: []scoll.Tag{{1}}}}
	create := func() (group *scoll.Group) {
		created := make(chan error, 1)
		err := service.CreateGroup(scoll.GroupSpec{Name: "all", Targets: targets}, func(g *scoll.Group, err error) {
			group = g
			created <- err
		})
		if err = errors.Join(err, <-created); err != nil {
			panic(err)
		}
		return group
	}
	broadcast := func(group *scoll.Group) (scoll.Outcome, error) {
		r, err := group.NewRequest(scoll.Broadcast{})
		if err != nil {
			return scoll.Outcome{}, err
		}
		if err := r.Send(); err != nil {
			return scoll.Outcome{}, err
		}
		<-r.Done()
		return r.Outcome(), r.Err()
	}
	group := create()
	if err := server.Close(ctx); err != nil {
		panic(err)
	}
	server, _ = begin("oss1") // in a later incarnation, by the clock

	outcome, err := broadcast(group)
	forgotten := func(m scoll.Missing) bool { return m.Status == scoll.StatusNoGroup }
	if slices.ContainsFunc(outcome.Missing, forgotten) {
		fmt.Println(err)
		if err := group.Destroy(ctx); err != nil {
			panic(err)
		}
		group = create()
		outcome, err = broadcast(group)
	}
	fmt.Println(outcome.Ran, "servers ran it, error:", err)
	for _, h := range []*hostlib.Host{root, server} {
		if err := h.Close(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// scoll: 1 of 2 nodes are known to have run the request; oss1 (1 nodes) no group; a server that has restarted knows no group of its earlier life: destroy this one and make it again
	// 2 servers ran it, error: <nil>
}
