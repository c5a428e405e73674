// Command servicecost counts what hosts with all three services have open. It prints
// listeners, connections, sockets and goroutines.
//
//	go run -C bench ./servicecost
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
)

const hosts = 8

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	before := runtime.NumGoroutine()
	var seeds []string
	var all []*hostlib.Host
	var members []hostlib.Member
	var targets []scoll.Target
	var first *scoll.Service
	for i := range hosts {
		host, err := hostlib.Join(ctx, hostlib.Config{Name: fmt.Sprint("h", i), Membership: &membership.Config{Bootstrap: seeds}})
		if err != nil {
			return err
		}
		node, err := scoll.On(host, scoll.Config{})
		if err != nil {
			return err
		}
		service, err := node.Register(1, scoll.Statuses(0,
			func(*scoll.Request) (uint32, string) { return 0, "" }, func(*scoll.Request, *aggregate.Statuses) {}))
		if err != nil {
			return err
		}
		if i == 0 {
			seeds, first = []string{host.Addr()}, service
		}
		all, members = append(all, host), append(members, host.Member())
		targets = append(targets, scoll.Target{Node: host.Name(), Tags: []scoll.Tag{{}}})
	}
	if err := broadcast(first, targets); err != nil {
		return err
	}
	made := 0
	for _, communicators := range []int{1, 20, 200} {
		for ; made < communicators; made++ {
			if err := allreduce(ctx, all, members, fmt.Sprint("job", made)); err != nil {
				return err
			}
		}
		c, err := count()
		if err != nil {
			return err
		}
		c.goroutines -= before
		fmt.Printf("%d hosts, %d communicators of all: %v\n", hosts, communicators, c)
	}
	return nil
}

// broadcast has one server collective run on all hosts.
func broadcast(service *scoll.Service, targets []scoll.Target) error {
	sent := make(chan error, 1)
	err := service.CreateGroup(scoll.GroupSpec{Name: "all", Targets: targets}, func(group *scoll.Group, err error) {
		var r *scoll.Request
		if err == nil {
			r, err = group.NewRequest(scoll.Broadcast{Payload: []byte("x")})
		}
		if err == nil {
			err = r.Send()
		}
		if err == nil {
			<-r.Done()
			err = r.Err()
		}
		sent <- err
	})
	if err != nil {
		return err
	}
	return <-sent
}

// allreduce forms a communicator of all hosts, which stays, and runs one operation on it.
func allreduce(ctx context.Context, all []*hostlib.Host, members []hostlib.Member, name string) error {
	ends := make(chan error, len(all))
	for _, h := range all {
		go func() {
			c, err := h.Communicator(ctx, name, members)
			if err == nil {
				v := []float64{1}
				_, err = hostlib.Allreduce(ctx, c, reduce.Sum, v, v)
			}
			ends <- err
		}()
	}
	for range all {
		if err := <-ends; err != nil {
			return err
		}
	}
	return nil
}
