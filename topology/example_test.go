package topology_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/tributary-fabric/tributary/topology"
)

func ExampleFatTree() {
	g, err := topology.FatTree(4)
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Fabric(), "has", g.Hosts(), "hosts,", g.Switches(), "switches,", g.Links(), "links")
	edge, _ := g.Lookup("edge-0-0")
	for _, l := range g.Adjacent(edge) {
		fmt.Println(g.LinkName(l))
	}
	// Output:
	// fat-tree:4 has 16 hosts, 20 switches, 48 links
	// h0:1--edge-0-0:1
	// h1:1--edge-0-0:2
	// edge-0-0:3--agg-0-0:1
	// edge-0-0:4--agg-0-1:1
}

func ExampleRead() {
	const file = `
version: 1
hosts: [left, right]
switches: [{name: middle}]
links:
  - between: [left, middle]
  - {between: [rigth, middle], bandwidth: 0}
`
	_, err := topology.Read(strings.NewReader(file), "fabric.yaml")
	fmt.Println(err)
	// Output:
	// fabric.yaml:7: links[1].bandwidth: bandwidth 0 bit/s is not within 1 and 1000000000000000: invalid link
	// fabric.yaml:7: links[1].between[0]: no host or switch is called "rigth": unknown node
}

func ExampleBuilder() {
	b := topology.Builder{Fabric: "pair"}
	s, err := b.AddSwitch("s", topology.DefaultCapability())
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"a", "b"} {
		h, err := b.AddHost(name)
		if err != nil {
			panic(err)
		}
		if _, err := b.Connect(h, 0, s, 0, topology.DefaultLink()); err != nil {
			panic(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	if err := topology.WriteYAML(os.Stdout, g); err != nil {
		panic(err)
	}
	// Output:
	// version: 1
	// name: pair
	// defaults:
	//   link: {bandwidth: 100G, latency: 500ns}
	//   switch: {functions: all, types: all, slots: 4096, children: 64, chunk: 8928}
	// hosts:
	//   - a
	//   - b
	// switches:
	//   - {name: s}
	// links:
	//   - {between: [a, s], ports: [1, 1]}
	//   - {between: [b, s], ports: [1, 2]}
}

func ExampleOverlay_With() {
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		panic(err)
	}
	spine, _ := g.Lookup("spine-1")
	before := topology.NewOverlay(g)
	after, err := before.With(topology.NodeState(spine, false))
	if err != nil {
		panic(err)
	}
	fmt.Println(before.View().NodeUp(spine), after.View().NodeUp(spine), after.Version())
	// Output: true false 1
}
