package importer

import (
	"strings"
	"testing"
)

// TestGML has IDs with gaps, labels that are missing, that are there twice or in
// other letters, parallel edges, an edge to itself, places, speeds in all three
// ways, another network's node, and a node without edges.
func TestGML(t *testing.T) {
	importCase{
		text: `# made by hand
Creator "somebody"
graph [
  directed 0
  label "Zoo &amp; Co"
  stats [ nodes 7 ]
  node [ id 3 label "Zürich" Latitude 47.37 Longitude 8.54 Internal 1 ]
  node [
    id 10
    label "Bern"
    Longitude 7.45
    Latitude 46.95
  ]
  node [ id -2 label "Bern" graphics [ x 1.5 ] ]
  node [ id 40 ]
  node [ id 41 label "None" Internal 0 ]
  node [ id 42 label "Party line" hyperedge 1 ]
  node [ id 43 label "Alone" ]
  edge [ source 3 target 10 LinkSpeedRaw 2500000000.0 LinkLabel "2.5 Gbps" ]
  edge [ source 10 target 3 LinkSpeed "10" LinkSpeedUnits "G" ]
  edge [ source 10 target -2 LinkLabel "155 Mbps" ]
  edge [ source -2 target 40 LinkLabel "&lt;10Gbps" ]
  edge [ source 40 target 40 ]
  edge [ source 40 target 41 ]
  edge [ source 42 target 40 ]
]
`,
		fabric: `
switch Zurich
switch Bern-10
switch Bern-2
switch node-40
switch -None
switch -Party-line
host h0-Zurich
host h0-Bern-10
host h0-Bern-2
host h0-node-40
Zurich:1--Bern-10:1 2.5 Gbit/s 474.118µs
Bern-10:2--Zurich:2 10 Gbit/s 474.118µs
Bern-10:3--Bern-2:1 155 Mbit/s 500ns
Bern-2:2--node-40:1 100 Gbit/s 500ns
node-40:2--None:1 100 Gbit/s 500ns
Party-line:1--node-40:3 100 Gbit/s 500ns
h0-Zurich:1--Zurich:3 100 Gbit/s 500ns
h0-Bern-10:1--Bern-10:4 100 Gbit/s 500ns
h0-Bern-2:1--Bern-2:3 100 Gbit/s 500ns
h0-node-40:1--node-40:4 100 Gbit/s 500ns
`,
		report: `
f:16: changed nodes of other networks to switches that only forward: it is of a kind that forwards and does not reduce
f:17: changed links of more than two ends to switches that only forward: it is of a kind that forwards and does not reduce
f:19: assumed 5 µs a kilometre for latencies: both ends have coordinates (2 times)
f:21: assumed 500ns for links: the file gives no latency (5 times)
f:22: assumed 100 Gbit/s for links: the file gives no bandwidth (4 times)
f:7: changed name "Zürich" to Zurich: the name has other signs than letters, digits and . _ - /
f:17: changed name "Party line" to Party-line: the name has other signs than letters, digits and . _ - /
f:8: changed name "Bern" to Bern-10: several nodes have this name
f:14: changed name "Bern" to Bern-2: several nodes have this name
f:15: assumed node-40 for a name: it has no name
f:23: skipped link node-40--node-40: both ends are the same node
f:18: skipped switch Alone: it has no links
f: assumed 1 on each switch for hosts: the file has no hosts (4 times)
`,
	}.run(t, GML)
}

// TestDirectedGML has edges in both directions, and hosts.
func TestDirectedGML(t *testing.T) {
	importCase{
		text: "graph [ directed 1\n node [ id a type \"host\" ]\n node [ id b ]\n node [ id c type \"Server\" label \"c1\" ]\n" +
			" edge [ source a target b ]\n edge [ source b target a ]\n edge [ source a target b ]\n edge [ source c target b ]\n]",
		fabric: `
switch node-b
host node-a
host c1
node-a:1--node-b:1 100 Gbit/s 500ns
node-a:2--node-b:2 100 Gbit/s 500ns
c1:1--node-b:3 100 Gbit/s 500ns
`,
		report: `
f:5: assumed 100 Gbit/s for links: the file gives no bandwidth (3 times)
f:5: assumed 500ns for links: the file gives no latency (3 times)
f:6: skipped edges back: it is there already
f:2: assumed node-a for a name: it has no name
f:3: assumed node-b for a name: it has no name
`,
	}.run(t, GML)
}

func TestGMLErrors(t *testing.T) {
	for _, test := range []errorCase{
		{"dangling", "graph [\n node [ id 1 ]\n edge [ source 1 target 2 ]\n]", ErrReference, `f:3: an edge to node "2", which is not there`},
		{"no source", "graph [\n node [ id 1 ]\n edge [ target 1 ]\n]", ErrReference, `f:3: an edge to node ""`},
		{"the same id", "graph [\n node [ id 1 ]\n node [ id 1 ]\n]", ErrDuplicate, `f:3: "1" is there already, on line 2`},
		{"no id", "graph [\n node [ label \"a\" ]\n]", ErrSyntax, "f:2: a node without an id"},
		{"no speed", "graph [\n node [ id 1 ]\n node [ id 2 ]\n edge [ source 1 target 2 LinkSpeedRaw 0 ]\n]", ErrValue, "f:4: bandwidth 0 bit/s: it must be above zero"},
		{"negative speed", "graph [\n node [ id 1 ]\n node [ id 2 ]\n edge [ source 1 target 2 LinkSpeed -3 LinkSpeedUnits G ]\n]", ErrValue, "f:4: bandwidth -3e+09 bit/s"},
		{"not a number", "graph [\n node [ id 1 ]\n node [ id 2 ]\n edge [ source 1 target 2 LinkSpeedRaw NaN ]\n]", ErrValue, "f:4: bandwidth NaN bit/s"},
		{"no end", "graph [\n node [ id 1\n", ErrSyntax, "f:3: the file ends within a list: a ] is missing"},
		{"no end of a text", "graph [\n node [ label \"a ]\n", ErrSyntax, "f:2: a text in quotes has no end"},
		{"a bracket too many", "graph [ ] ]", ErrSyntax, "f:1: ] where the name of a value should be"},
		{"no value", "graph [ directed ]", ErrSyntax, `f:1: "directed" has no value`},
		{"too deep", "graph [" + strings.Repeat(" a [", 20), ErrSyntax, "f:1: lists are nested deeper than 16"},
		{"no nodes", "graph [ ]", ErrEmpty, "f: no node in it"},
		{"no graph", "graph\n 3", ErrFormat, "f: no graph [ ... ] in it"},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, GML) })
	}
}

// TestGraphML has keys with defaults, ports, a hyperedge and a graph in a node.
func TestGraphML(t *testing.T) {
	importCase{
		text: `<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d1"/>
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d2"><default>1e9</default></key>
  <key attr.name="Network" attr.type="string" for="graph" id="d3"/>
  <key attr.name="type" for="node" id="d4"><default>router</default></key>
  <graph edgedefault="undirected">
    <data key="d3">Net</data>
    <node id="n0"><data key="d1">left</data></node>
    <node id="n1"><data key="d1">right</data><data key="d9">?</data><graph id="in"><node id="x"/></graph></node>
    <node id="n2"><data key="d4">host</data></node>
    <!-- edges -->
    <edge source="n0" target="n1" sourceport="eth3" targetport="4"><data key="d2">40000000000.0</data></edge>
    <edge source="n0" target="n1" sourceport="eth3"/>
    <edge source="n2" target="n1"/>
    <hyperedge><endpoint node="n0"/><endpoint node="n1"/></hyperedge>
  </graph>
</graphml>
`,
		fabric: `
switch left
switch right
host node-n2
left:3--right:4 40 Gbit/s 500ns
left:1--right:1 1 Gbit/s 500ns
node-n2:1--right:2 1 Gbit/s 500ns
`,
		report: `
f:10: skipped a graph within a node: not known in this format
f:16: skipped hyperedge: not known in this format
f:13: assumed 500ns for links: the file gives no latency (3 times)
f:11: assumed node-n2 for a name: it has no name
f:14: changed port 3 of left to a free port: another link has the port
`,
	}.run(t, GraphML)
}

func TestGraphMLErrors(t *testing.T) {
	for _, test := range []errorCase{
		{"dangling", "<graphml><graph>\n<node id=\"a\"/>\n<edge source=\"a\" target=\"b\"/></graph></graphml>", ErrReference, `f:3: an edge to node "b"`},
		{"not closed", "<graphml><graph>\n<node id=\"a\">", ErrSyntax, "f:2: the file cannot be read: XML syntax error on line 2"},
		{"another encoding", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<graphml/>", ErrSyntax, "f:1: the file cannot be read: xml: encoding \"ISO-8859-1\""},
		{"no graph", "<graphml></graphml>", ErrFormat, "f: no <graph> in it"},
		{"no id", "<graphml><graph>\n<node/></graph></graphml>", ErrSyntax, "f:2: a node without an id"},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, GraphML) })
	}
}
