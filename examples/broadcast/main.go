// Command broadcast runs a function on eight servers and gets one aggregated reply. The
// servers are in one process; the reply says which succeeded, and which failed with
// which error. Requests and replies travel along a tree of the servers.
//
//	go run ./examples/broadcast
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
)

const serviceID = 7 // the same on all servers

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	addresses := map[string]string{} // in production a directory, or membership
	resolve := func(_ context.Context, host string) (string, error) { return addresses[host], nil }
	var targets []scoll.Target
	var services []*scoll.Service
	for i := range 8 {
		name := fmt.Sprintf("server-%d", i)
		host, err := hostlib.Join(ctx, hostlib.Config{Name: name, Resolve: resolve})
		if err != nil {
			return err
		}
		defer host.Close(ctx)
		node, err := scoll.On(host, scoll.Config{})
		if err != nil {
			return err
		}
		service, err := node.Register(serviceID, scoll.Statuses(0, func(r *scoll.Request) (code uint32, text string) {
			return flush(name, string(r.Payload()))
		}, report))
		if err != nil {
			return err
		}
		addresses[name], services = host.Addr(), append(services, service)
		targets = append(targets, scoll.Target{Node: name, Tags: []scoll.Tag{{}}})
	}

	created := make(chan error)
	var group *scoll.Group
	err := services[0].CreateGroup(scoll.GroupSpec{Name: "all", Targets: targets}, func(g *scoll.Group, err error) {
		group = g
		created <- err
	})
	if err == nil {
		err = <-created
	}
	if err != nil {
		return err
	}
	request, err := group.NewRequest(scoll.Broadcast{Payload: []byte("caches")})
	if err != nil {
		return err
	}
	if err := request.Send(); err != nil {
		return err
	}
	<-request.Done() // report has run
	return request.Err()
}

// flush runs on every server. Code 0 is success.
func flush(server, what string) (code uint32, text string) {
	if server == "server-5" {
		return 28, what + ": no space left"
	}
	return 0, ""
}

// report runs on the root, with the replies of all.
func report(_ *scoll.Request, all *aggregate.Statuses) {
	fmt.Println(all.Succeeded(), "succeeded,", all.Failed(), "failed")
	for _, failure := range all.Failures() {
		fmt.Printf("%s: code %d: %s\n", failure.Node, failure.Code, failure.Text)
	}
}
