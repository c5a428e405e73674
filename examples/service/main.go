// Command service uses all three services. Membership reports which servers are alive,
// a server collective makes all of them run a job, and the job is an allreduce among
// them. Four servers run in this process; in production each is a process, whose host
// has one name, one port and one set of connections.
//
//	go run ./examples/service
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
)

const servers = 4

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var first *hostlib.Host
	var service *scoll.Service // of the first
	var seeds []string
	for i := range servers {
		host, err := hostlib.Join(ctx, hostlib.Config{
			Name: fmt.Sprintf("server-%d", i), Membership: &membership.Config{Bootstrap: seeds},
		})
		if err != nil {
			return err
		}
		defer host.Close(ctx)
		collectives, err := scoll.On(host, scoll.Config{})
		if err != nil {
			return err
		}
		job := func(r *scoll.Request) (code uint32, text string) {
			if err := sum(ctx, host, float64(i), strings.Fields(string(r.Payload()))); err != nil {
				return 1, err.Error()
			}
			return 0, ""
		}
		registered, err := collectives.Register(1, scoll.Statuses(0, job, report))
		if err != nil {
			return err
		}
		if i == 0 {
			first, service, seeds = host, registered, []string{host.Addr()}
		}
	}
	return runJob(ctx, first.Members(), service)
}

// runJob waits for all servers, and makes them run the job.
func runJob(ctx context.Context, zone *membership.Node, service *scoll.Service) error {
	var names []string
	var targets []scoll.Target
	for notice := range zone.Notices(ctx) {
		names = append(names, notice.Member.Name)
		targets = append(targets, scoll.Target{Node: notice.Member.Name, Tags: []scoll.Tag{{}}})
		if len(names) == servers {
			break
		}
	}
	sent := make(chan error, 1)
	err := service.CreateGroup(scoll.GroupSpec{Name: "all", Targets: targets}, func(group *scoll.Group, err error) {
		var request *scoll.Request
		if err == nil {
			request, err = group.NewRequest(scoll.Broadcast{Payload: []byte(strings.Join(names, " "))})
		}
		if err == nil {
			err = request.Send()
		}
		if err == nil {
			<-request.Done() // report has run
			err = request.Err()
		}
		sent <- err
	})
	if err != nil {
		return err
	}
	return <-sent
}

// sum is the job: it runs on every server.
func sum(ctx context.Context, host *hostlib.Host, value float64, names []string) error {
	var members []hostlib.Member
	for _, name := range names {
		members = append(members, hostlib.Member{Host: name}) // membership has the addresses
	}
	comm, err := host.Communicator(ctx, "job", members)
	if err != nil {
		return err
	}
	v := []float64{value}
	if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, v, v); err != nil {
		return err
	}
	fmt.Println(host.Name(), "has the sum", v[0])
	return comm.Leave(ctx)
}

// report runs on the root, with the replies of all.
func report(_ *scoll.Request, all *aggregate.Statuses) {
	fmt.Println(all.Succeeded(), "servers ran the job,", all.Failed(), "failed")
}
