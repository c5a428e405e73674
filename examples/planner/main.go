// Command planner uses the planner as a library. It prints the collection tree that a
// group of hosts gets on a fabric, and the tree after its root has failed.
//
//	go run ./examples/planner
//	go run ./examples/planner -fabric dragonfly:2,4,2,9 h0 h9 h33
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func main() {
	fabric := flag.String("fabric", "fat-tree:4", "a generator, such as leaf-spine:2,4,8")
	flag.Parse()
	hosts := flag.Args()
	if len(hosts) == 0 {
		hosts = []string{"h0", "h1", "h5", "h15"}
	}
	if err := plan(*fabric, hosts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func plan(fabric string, hosts []string) error {
	g, err := topology.Parse(fabric)
	if err != nil {
		return err
	}
	request := pathsel.Request{
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32),
		Slots: 128, ChunkBytes: 1432,
		Purpose: pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 16 << 20},
	}
	for _, name := range hosts {
		host, ok := g.Lookup(name)
		if !ok {
			return fmt.Errorf("%s has no host %s", fabric, name)
		}
		request.Members = append(request.Members, host)
	}
	planner, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		return err
	}
	first, err := planner.Plan(g.View(), nil, request)
	if err != nil {
		return err
	}
	fmt.Print(first.Tree.Text(g))
	fmt.Println(first.Figures.Hops, "links, depth", first.Figures.Depth)

	root := first.Tree.Root()
	without, err := topology.NewOverlay(g).With(topology.NodeState(root, false))
	if err != nil {
		return err
	}
	second, err := planner.Repair(without.View(), nil, request, first.Tree)
	if err != nil {
		fmt.Printf("\nwithout %s: %v\n", g.Name(root), err) // names the switch and the reason
		return nil
	}
	fmt.Printf("\nwithout %s:\n%s", g.Name(root), second.Tree.Text(g))
	return nil
}
