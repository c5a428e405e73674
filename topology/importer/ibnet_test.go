package importer

import (
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// TestIBNetDiscover has hosts of one and of two adapters, switches of one name,
// a managed one, a switch's reduction unit, a router, parallel links, GUIDs in
// several spellings, speeds that differ, that are new or not there, a switch
// behind the horizon, a link that only one end reports of, and warnings between.
func TestIBNetDiscover(t *testing.T) {
	importCase{
		text: `ibwarn: [4711] mad_rpc: timed out
#
# Topology file: generated on Mon Jan  5 10:00:00 2026
#
Non-Chassis Nodes

vendid=0x2c9
switchguid=0xaa01(aa01)
Switch	36 "S-000000000000aa01"		# "MF0;leaf1:MODEL/U1" enhanced port 0 lid 7 lmc 0
[1]	"H-000000000000cc01"[1](cc01) 		# "alpha HCA-1" lid 9 4xHDR
[2]	"H-000000000000cc02"[1](cc02) 		# "alpha HCA-2" lid 10 2xNDR
[3]	"H-0xcc03"[2](0xcc04) 		# "beta mlx5_0" lid 11 4xEDR
[20]	"S-000000000000aa02"[20]		# "Big Switch" lid 3 4xHDR
[21][ext 1]	"S-000000000000aa02"[21][ext 9]		# "Big Switch" lid 3 4xHDR
[22]	"S-000000000000aa03"[1]		# "Big Switch" lid 4 4xEDR
[23]	"R-000000000000dd01"[1](dd01)		# "edge router" lid 5 4xEDR
[24]	"S-000000000000aa04"[1]		# "far away" lid 6
[25]	"H-000000000000cc09"[1](cc09)		# "gamma" lid 6 4xSOON
[26]	"H-000000000000cc0a"[1](cc0a)		# "localhost HCA-1" lid 6 4xEDR
[27]	"H-000000000000cc0b"[1](cc0b)		# "localhost HCA-1" lid 6 4xEDR
[41]	"H-000000000000aa09"[1](aa09) 		# "Mellanox Technologies Aggregation Node" lid 14 4xHDR

vendid=0x2c9
Switch	36 "S-000000000000aa02"		# "Big Switch" base port 0 lid 3 lmc 0
[20]	"S-000000000000aa01"[20]		# "MF0;leaf1:MODEL/U1" lid 7 4xEDR
[21]	"S-000000000000aa01"[21]		# "MF0;leaf1:MODEL/U1" lid 7 4xHDR
[21]	"S-000000000000aa01"[21]		# "MF0;leaf1:MODEL/U1" lid 7 4xHDR
[22]	"S-000000000000aa01"[21]		# "MF0;leaf1:MODEL/U1" lid 7 4xHDR

Switch	36 "S-000000000000aa03"		# "Big Switch" base port 0 lid 4 lmc 0

Ca	1 "H-000000000000cc01"		# "alpha HCA-1"
[1](cc01) 	"S-000000000000aa01"[1]		# lid 9 lmc 0 "MF0;leaf1:MODEL/U1" lid 7 4xHDR

Ca	1 "H-000000000000cc02"		# "alpha HCA-2"
[1](cc02) 	"S-000000000000aa01"[2]		# lid 10 lmc 0 "MF0;leaf1:MODEL/U1" lid 7 2xNDR

Ca	2 "H-000000000000cc03"		# "beta mlx5_0"
[2](cc04) 	"S-000000000000aa01"[3]		# lid 11 lmc 0 "MF0;leaf1:MODEL/U1" lid 7 4xEDR

Ca	1 "H-000000000000aa09"		# "Mellanox Technologies Aggregation Node"
[1](aa09) 	"S-000000000000aa01"[41]		# lid 14 lmc 0 "MF0;leaf1:MODEL/U1" lid 7 4xHDR

Rt	2 "R-000000000000dd01"		# "edge router"
[1](dd01) 	"S-000000000000aa01"[23]		# lid 5 lmc 0 "MF0;leaf1:MODEL/U1" lid 7 4xEDR
`,
		fabric: `
switch leaf1
switch Big-Switch-aa02
switch Big-Switch-aa03
switch -edge-router
switch far-away
host alpha
host beta
host gamma
host localhost-cc0a
host localhost-cc0b
leaf1:1--alpha:1 200 Gbit/s 500ns
leaf1:2--alpha:2 200 Gbit/s 500ns
leaf1:3--beta:2 100 Gbit/s 500ns
leaf1:20--Big-Switch-aa02:20 100 Gbit/s 500ns
leaf1:21--Big-Switch-aa02:21 200 Gbit/s 500ns
leaf1:22--Big-Switch-aa03:1 100 Gbit/s 500ns
leaf1:23--edge-router:1 100 Gbit/s 500ns
leaf1:24--far-away:1 100 Gbit/s 500ns
leaf1:25--gamma:1 100 Gbit/s 500ns
leaf1:26--localhost-cc0a:1 100 Gbit/s 500ns
leaf1:27--localhost-cc0b:1 100 Gbit/s 500ns
`,
		report: `
f:1: skipped line "ibwarn:": not known in this format
f:10: assumed 500ns for links: the file gives no latency (19 times)
f:16: changed router "edge router" to a switch that only forwards: it is of a kind that forwards and does not reduce
f:17: assumed 100 Gbit/s for links: the file gives no bandwidth
f:18: assumed 100 Gbit/s for speed 4xSOON: not known in this format
f:21: skipped "Mellanox Technologies Aggregation Node": not a part of the fabric
f:25: changed speed of port 20 of Big Switch to port 20 of leaf1 to 100 Gbit/s: its ends report two speeds
f:27: skipped port 21 of Big Switch to port 21 of leaf1: it is there already
f:28: skipped port 22 of Big Switch to port 21 of leaf1: another line says otherwise
f:15: assumed the link of the other end for port 1 of Big Switch: only one end reports it
f:17: assumed a switch for "far away": nothing describes it but a link to it
f:18: assumed a host for "gamma": nothing describes it but a link to it
f:19: assumed a host for "localhost": nothing describes it but a link to it (2 times)
f:16: changed name "edge router" to edge-router: the name has other signs than letters, digits and . _ - /
f:17: changed name "far away" to far-away: the name has other signs than letters, digits and . _ - /
f:13: changed name "Big Switch" to Big-Switch-aa02: several nodes have this name
f:15: changed name "Big Switch" to Big-Switch-aa03: several nodes have this name
f:19: changed name "localhost" to localhost-cc0a: several nodes have this name
f:20: changed name "localhost" to localhost-cc0b: several nodes have this name
`,
	}.run(t, IBNetDiscover)
}

func TestIBNetDiscoverErrors(t *testing.T) {
	const leaf = "Switch\t36 \"S-01\"\t# \"leaf\" base port 0\n"
	for _, test := range []errorCase{
		{"two blocks", leaf + "[1]\t\"H-02\"[1](02)\t# \"h\" lid 1 4xEDR\n" + leaf, ErrDuplicate, "f:3: a second block of S-01: remove one of them"},
		{"a port first", "[1]\t\"H-02\"[1](02)\t# \"h\" lid 1 4xEDR\n" + leaf, ErrSyntax, "f:1: a port before any node"},
		{"a broken port", leaf + "[1]\t\"H-02\n", ErrSyntax, `f:2: "[1]\t\"H-02" is neither a node nor a port`},
		{"a broken node", leaf + "Switch 36 S-02\n", ErrSyntax, `f:2: "Switch 36 S-02" is neither`},
		{"a huge port", leaf + "[99999999999999999999]\t\"H-02\"[1](02)\t# \"h\" lid 1 4xEDR\n", ErrValue, "f:2: port 99999999999999999999 or 1 is no number"},
		{"no lanes", leaf + "[1]\t\"H-02\"[1](02)\t# \"h\" lid 1 0xEDR\n", ErrValue, "f:2: bandwidth 0 bit/s: it must be above zero"},
		{"back to back", "Ca\t1 \"H-01\"\t# \"a HCA-1\"\n[1](1)\t\"H-02\"[1](2)\t# lid 1 lmc 0 \"b HCA-1\" lid 2 4xEDR\n", ErrEmpty, "f: none of its "},
		{"no cables", leaf + "Ca\t1 \"H-02\"\t# \"h HCA-1\"\n", ErrEmpty, "f: none of its "},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, IBNetDiscover) })
	}
}

// dumped writes g as ibnetdiscover would.
func dumped(t testing.TB, g *topology.Graph) string {
	t.Helper()
	var b strings.Builder
	if err := writeDump(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkSame holds an imported fabric against the one that was dumped: the same
// names, and between the same ports the same links. Hosts of several adapters
// have their ports numbered anew.
func checkSame(t testing.TB, want, got *topology.Graph) {
	t.Helper()
	if got.Hosts() != want.Hosts() || got.Switches() != want.Switches() || got.Links() != want.Links() {
		t.Fatalf("%d hosts, %d switches, %d links; want %d, %d, %d",
			got.Hosts(), got.Switches(), got.Links(), want.Hosts(), want.Switches(), want.Links())
	}
	for l, link := range want.AllLinks() {
		at, there := link.Ends[1], link.Ends[0]
		if want.IsHost(at.Node) {
			at, there = there, at
		}
		n, ok := got.Lookup(want.Name(at.Node))
		if !ok {
			t.Fatalf("no node %s", want.Name(at.Node))
		}
		same, ok := got.LinkAt(n, at.Port)
		if !ok || got.Name(got.Across(same, n)) != want.Name(there.Node) || got.Link(same).Bandwidth != link.Bandwidth {
			t.Fatalf("%s became %s", want.LinkName(l), got.LinkName(same))
		}
	}
}

// TestDumps imports dumps of generated fabrics, of up to several hundred
// devices, and dumps from which every tenth block and line is gone.
func TestDumps(t *testing.T) {
	for _, spec := range []string{"fat-tree:12", "rail:16,4,3,4", "dragonfly:2,4,2,9", "torus:1,4,4,3", "four-switches", "leaf-spine:3,2,4"} {
		want, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		text := dumped(t, want)
		got, report, err := Import(strings.NewReader(text), "f", "", DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		checkImported(t, got, report)
		checkSame(t, want, got)
		checkPlan(t, got)
		if report.Parts != 1 || len(report.Notes) != 1 || report.Count(Assumed, NoLatency) != 2*want.Links() {
			t.Errorf("%s: %+v", spec, report)
		}
		got, report, err = Import(strings.NewReader(withHoles(text)), "f", IBNetDiscover, DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, want, got)
		if report.Count(Assumed, OneSided)+report.Count(Assumed, NotDescribed) == 0 {
			t.Errorf("%s: nothing notified of what is gone", spec)
		}
	}
}

// checkPlan plans a tree for a group of all hosts.
func checkPlan(t testing.TB, g *topology.Graph) {
	t.Helper()
	req := pathsel.Request{Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32), Slots: 1}
	for h := range topology.NodeID(g.Hosts()) {
		req.Members = append(req.Members, h)
	}
	planner, err := pathsel.NewPlanner(g, pathsel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Plan(g.View(), nil, req)
	if err != nil {
		t.Fatalf("no plan for %d hosts: %v", g.Hosts(), err)
	}
	if err := plan.Tree.Validate(g.View()); err != nil {
		t.Fatal(err)
	}
}

// withHoles takes every tenth block of an adapter away, and in the others of
// switches every tenth line, but nothing that the other end does not report.
func withHoles(text string) string {
	blocks := strings.SplitAfter(text, "\n\n")
	var kept []string
	gone := map[string]bool{}
	for i, block := range blocks {
		if i%10 == 9 && strings.Contains(block, "\nCa\t") {
			continue
		}
		lines := strings.SplitAfter(block, "\n")
		for j, line := range lines {
			if j%10 == 9 && strings.Contains(line, "\"S-") && strings.Contains(block, "\nSwitch") {
				here, _, _ := strings.Cut(strings.SplitN(block, "\"", 2)[1], "\"")
				there, _, _ := strings.Cut(strings.SplitN(line, "\"", 2)[1], "\"")
				if !gone[here] && !gone[there] {
					gone[here], gone[there] = true, true
					lines[j] = ""
				}
			}
		}
		kept = append(kept, strings.Join(lines, ""))
	}
	return strings.Join(kept, "")
}
