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

func ExampleParse() {
	for _, spec := range []string{"fat-tree:160", "clos:12,4,4,4,2", "rail:32,8,4,8", "dragonfly:2,4,2,9", "torus:1,8,8,8", "hyperx:4,6,6"} {
		g, err := topology.Parse(spec)
		if err != nil {
			panic(err)
		}
		last := topology.NodeID(g.Nodes() - 1)
		fmt.Println(spec, "has", g.Hosts(), "hosts and", g.Links(), "links; its last switch is", g.Name(last))
	}
	// Output:
	// fat-tree:160 has 1024000 hosts and 3072000 links; its last switch is edge-159-79
	// clos:12,4,4,4,2 has 96 hosts and 160 links; its last switch is leaf-1-3
	// rail:32,8,4,8 has 128 hosts and 1280 links; its last switch is leaf-3-7
	// dragonfly:2,4,2,9 has 72 hosts and 162 links; its last switch is sw-8-3
	// torus:1,8,8,8 has 512 hosts and 2048 links; its last switch is sw-7-7-7
	// hyperx:4,6,6 has 144 hosts and 324 links; its last switch is sw-5-5
}

func ExampleClosShape_Oversubscription() {
	leaf, agg := topology.ClosShape{Hosts: 12, Leaves: 4, Aggs: 4, Cores: 4, Pods: 2}.Oversubscription()
	fmt.Printf("leaves %v:1, aggregation switches %v:1\n", leaf, agg)
	// Output: leaves 3:1, aggregation switches 1:1
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
	//   switch: {functions: all, types: all, slots: 32768, children: 64, chunk: 8928}
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

func ExampleOverlay_Apply() {
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		panic(err)
	}
	spine, _ := g.Lookup("spine-1")
	after, delta, err := topology.NewOverlay(g).Apply(topology.NodeState(spine, false), topology.LinkUtilization(0, 0.5))
	if err != nil {
		panic(err)
	}
	fmt.Println("version", after.Version())
	for _, n := range delta.NodesDown {
		fmt.Println(g.Name(n), "is down")
	}
	for _, l := range delta.LinkUse {
		fmt.Println(g.LinkName(l), "is busy to", after.View().LinkUtilization(l))
	}
	// Output:
	// version 1
	// spine-1 is down
	// h0:1--leaf-0:1 is busy to 0.5
}
