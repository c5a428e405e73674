// Command members prints joins and leaves of a zone's nodes.
//
// Without flags it runs a zone of three nodes in this process, of which one leaves and
// another one stops without notice, and ends when both are gone:
//
//	go run ./examples/members
//
// With flags it joins a zone as one more node, and prints until interrupted:
//
//	go run ./examples/members -name watcher -bootstrap 10.0.0.1:7946
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/tributary-fabric/tributary/membership"
)

func main() {
	name := flag.String("name", "watcher", "name of this node")
	listen := flag.String("listen", "", "address of this node; empty: a free port")
	bootstrap := flag.String("bootstrap", "", "address of a node of the zone; empty: run a zone of three in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config := membership.Config{Name: *name, Listen: *listen}
	if *bootstrap != "" {
		config.Bootstrap = []string{*bootstrap}
	}
	if err := watch(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func watch(ctx context.Context, config membership.Config) error {
	node, err := membership.Join(ctx, config)
	if err != nil {
		return err
	}
	defer node.Close(ctx)
	others := map[string]*membership.Node{}
	if len(config.Bootstrap) == 0 {
		for _, name := range []string{"h1", "h2"} {
			others[name], err = membership.Join(ctx, membership.Config{Name: name, Bootstrap: []string{node.Addr().String()}})
			if err != nil {
				return err
			}
			defer others[name].Close(ctx)
		}
	}
	gone := 0
	for notice := range node.Notices(ctx) {
		fmt.Println(notice)
		switch {
		case len(others) == 0 || notice.Member.Name == config.Name:
		case notice.Kind == membership.Left:
			if gone++; gone == len(others) {
				return nil
			}
		case notice.Member.Name == "h1": // leaves, with an exit code
			err = others["h1"].Leave(ctx, 7)
		case notice.Member.Name == "h2": // stops like a killed process: its neighbours detect it
			err = others["h2"].Close(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
