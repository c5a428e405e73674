package importer_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/tributary-fabric/tributary/topology"
	"github.com/tributary-fabric/tributary/topology/importer"
)

func ExampleImport() {
	const file = `
SwitchName=leaf0 Nodes=n[0-1] LinkSpeed=100
SwitchName=leaf1 Nodes=n[2-3]
SwitchName=root Switches=leaf[0-1]
`
	g, report, err := importer.Import(strings.NewReader(file), "topology.conf", importer.Slurm, importer.DefaultConfig())
	if err != nil {
		panic(err)
	}
	if err := report.Text(os.Stdout); err != nil {
		panic(err)
	}
	leaf, _ := g.Lookup("leaf0")
	for _, l := range g.Adjacent(leaf) {
		fmt.Println(g.LinkName(l))
	}
	// Output:
	// topology.conf: slurm: 4 hosts, 3 switches, 6 links
	// topology.conf:2: skipped LinkSpeed: nothing in a fabric depends on it
	// topology.conf: assumed one link between a switch and each of what is below it for cables: the file gives the hierarchy, not the cables
	// topology.conf: assumed 100 Gbit/s for links: the file gives no bandwidth
	// topology.conf: assumed 500ns for links: the file gives no latency
	// n0:1--leaf0:1
	// n1:1--leaf0:2
	// leaf0:3--root:1
}

func ExampleImport_errors() {
	const file = `{"hosts": {"h1": {}}, "switches": {"s1": {}},
 "links": [
  ["h1", "s1-p1", "1ms", 0],
  ["h2", "s1-p2"]
 ]}`
	_, _, err := importer.Import(strings.NewReader(file), "topology.json", "", importer.DefaultConfig())
	fmt.Println(err)
	// Output:
	// topology.json:3: bandwidth 0 bit/s: it must be above zero: a value out of range
	// topology.json:4: a link to "h2", which is neither a host nor a port of a switch: add it there, or remove the link: something that the file names is not there
}

func ExampleDetect() {
	format, err := importer.Detect([]byte("graph [\n  node [ id 0 ]\n]\n"))
	fmt.Println(format, err)
	// Output: gml <nil>
}

func ExampleConfig() {
	c := importer.DefaultConfig()
	c.Fabric = "backbone"
	c.Equipment.Link = topology.LinkSpec{Bandwidth: 10e9, Latency: 0}
	c.HostsPerSwitch = 2
	const file = "graph [ node [ id 1 label \"Bern\" ] node [ id 2 label \"Basel\" ] edge [ source 1 target 2 ] ]"
	g, report, err := importer.Import(strings.NewReader(file), "net.gml", importer.GML, c)
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Fabric(), "has", g.Hosts(), "hosts;", report.Count(importer.Assumed, importer.NoSpeed), "link without a speed")
	// Output: backbone has 4 hosts; 1 link without a speed
}
