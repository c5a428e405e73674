// Command allreduce sums a vector over several hosts.
//
// Without flags three hosts run in this process:
//
//	go run ./examples/allreduce
//
// Or run each in a process; all need the same list, in the same order:
//
//	go run ./examples/allreduce -name h0 -members h0=127.0.0.1:7500,h1=127.0.0.1:7501 &
//	go run ./examples/allreduce -name h1 -members h0=127.0.0.1:7500,h1=127.0.0.1:7501
//
// With -manager ADDRESS the switches of that manager's fabric reduce.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

func main() {
	name := flag.String("name", "", "this host; empty: all hosts in this process")
	list := flag.String("members", "h0=127.0.0.1:7500,h1=127.0.0.1:7501,h2=127.0.0.1:7502", "host=address of every member")
	manager := flag.String("manager", "", "address of the offload manager; empty: none")
	flag.Parse()
	var members []hostlib.Member
	for entry := range strings.SplitSeq(*list, ",") {
		host, address, _ := strings.Cut(entry, "=")
		members = append(members, hostlib.Member{Host: host, Addr: address})
	}
	var running sync.WaitGroup
	for rank, member := range members {
		if *name == "" || *name == member.Host {
			running.Go(func() {
				if err := allreduce(rank, members, *manager); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			})
		}
	}
	running.Wait()
}

func allreduce(rank int, members []hostlib.Member, manager string) error {
	ctx := context.Background()
	host, err := hostlib.Join(ctx, hostlib.Config{Name: members[rank].Host, Listen: members[rank].Addr, Manager: manager})
	if err != nil {
		return err
	}
	defer host.Close(ctx)
	comm, err := host.Communicator(ctx, "example", members) // returns when all members have called it
	if err != nil {
		return err
	}
	vector := []float32{float32(rank), 1}
	outcome, err := hostlib.Allreduce(ctx, comm, reduce.Sum, vector, vector)
	if err != nil {
		return err
	}
	fmt.Printf("%s: sum %v by %v: %s\n", host.Name(), vector, outcome.Transport, outcome.Reason)
	return comm.Leave(ctx)
}
