package importer

import "testing"

// TestContainerlab has both forms of links, kinds by node, group and default,
// anchors and merges, links out of the lab, and Linux nodes that forward.
func TestContainerlab(t *testing.T) {
	importCase{
		text: `
name: "a lab"
x-common: &server
  kind: linux
  image: alpine:3
x-more: &more
  leaf1:
mgmt: {network: m}
topology:
  defaults: {kind: some_nos}
  kinds:
    linux: {image: debian}
  groups:
    spines: {kind: other_nos}
  nodes:
    spine1: {group: spines}
    <<: *more
    leaf2: {kind: linux, image: "quay.io/frr:9"}
    br0: {kind: bridge}
    srv1: *server
    srv2: {<<: *server, env: {A: b}}
    mid: {kind: linux}
    far: {kind: linux}
    probe: {kind: linux, image: prometheus}
    root: {kind: host}
  links:
    - endpoints: ["spine1:e1-1", "leaf1:ethernet-1/49"]
    - endpoints: ["spine1:e1-2", "leaf2:eth49"]
    - {endpoints: ["spine1:e2-2", "leaf2:eth50"]}
    - type: veth
      endpoints:
        - {node: srv1, interface: eth1}
        - {node: leaf1, interface: swp}
      mtu: 9000
    - endpoints: ["srv2:eth1", "leaf2:eth1"]
    - endpoints: ["srv2:eth2", "br0:p70000"]
    - endpoints: ["mid:eth1", "leaf1:eth7"]
    - endpoints: ["mid:eth2", "far:eth1"]
    - endpoints: ["leaf1:eth9", "host:leaf1-eth9"]
    - endpoints: ["leaf1:eth10", "root:x:y"]
    - endpoints: ["leaf1:a", "leaf1:b"]
    - type: mgmt-net
      endpoint: {node: srv1, interface: eth5}
`[1:],
		fabric: `
switch spine1
switch leaf1
switch leaf2
switch -br0
switch mid
host srv1
host srv2
host far
spine1:1--leaf1:49 100 Gbit/s 500ns
spine1:2--leaf2:49 100 Gbit/s 500ns
spine1:3--leaf2:50 100 Gbit/s 500ns
srv1:1--leaf1:1 100 Gbit/s 500ns
srv2:1--leaf2:1 100 Gbit/s 500ns
srv2:2--br0:1 100 Gbit/s 500ns
mid:1--leaf1:7 100 Gbit/s 500ns
mid:2--far:1 100 Gbit/s 500ns
`,
		report: `
f:18: changed bridge br0 to a switch that only forwards: it is of a kind that forwards and does not reduce
f:24: skipped node root: not a part of the fabric
f:25: assumed 100 Gbit/s for links: the file gives no bandwidth
f:25: assumed 500ns for links: the file gives no latency
f:38: skipped link to host: not a part of the fabric
f:39: skipped link to root: not a part of the fabric
f:41: skipped link of type mgmt-net: not a part of the fabric
f:21: changed mid to a switch: hosts have links to it, and hosts do not forward
f:40: skipped link leaf1--leaf1: both ends are the same node
f:23: skipped host probe: it has no links
f:28: changed port 2 of spine1 to a free port: another link has the port
`,
	}.run(t, Containerlab)
}

func TestContainerlabErrors(t *testing.T) {
	const head = "topology:\n  nodes: {a: {kind: x}, b: {kind: x}}\n  links:\n"
	for _, test := range []errorCase{
		{"dangling", head + "  - endpoints: [\"a:e1\", \"c:e1\"]\n", ErrReference, `f:4: a link to "c", which is not among the nodes: add it`},
		{"no node", head + "  - endpoints: [{interface: e1}, \"a:e1\"]\n", ErrReference, `f:4: a link to ""`},
		{"one end", head + "  - endpoints: [\"a:e1\"]\n", ErrSyntax, "f:4: a link without two endpoints: write endpoints"},
		{"no ends", head + "  - {}\n", ErrSyntax, "f:4: a link without two endpoints"},
		{"twice", "topology:\n  nodes:\n    a: {kind: x}\n    a: {kind: y}\n  links: []\n", ErrDuplicate, `f:4: "a" is there already, on line 3`},
		{"not YAML", "topology: [\n", ErrSyntax, "f:2: the file cannot be read: did not find expected"},
		{"no nodes", "topology: {}\n", ErrEmpty, "f: no node in it"},
		{"no topology", "name: x\ntopology: 3\n", ErrFormat, "f:1: no topology with nodes and links"},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, Containerlab) })
	}
}

// TestTutorial has hosts by name, ends with and without ports in either order,
// latencies and bandwidths as numbers, as texts, and not at all.
func TestTutorial(t *testing.T) {
	importCase{
		text: `{
	"hosts": {
		"h1": {"ip": "10.0.1.1/24", "commands": ["route add default gw 10.0.1.10 dev eth0"]},
		"h2": {}, "h3": {}
	},
	"switches": {"s1": {"runtime_json": "s1.json"}, "s2-p1": {}, "s3": {}},
	"links": [
		["h1", "s1-p1"],
		["s1-p2", "h2", "5ms", 0.5],
		["s2-p1", "h3"],
		["s1-p3", "s2-p1-p2", "0", "10"],
		["s1-eth4", "s3-p1", 2, null],
		["s1-p3", "s3-p2", null, 100]
	]
}`,
		fabric: `
switch s1
switch s2-p1
switch s3
host h1
host h2
host h3
h1:1--s1:1 100 Gbit/s 500ns
s1:2--h2:1 500 kbit/s 5ms
s2-p1:1--h3:1 100 Gbit/s 500ns
s1:3--s2-p1:2 10 Mbit/s 0s
s1:4--s3:1 100 Gbit/s 2ms
s1:5--s3:2 100 Mbit/s 500ns
`,
		report: `
f:8: assumed 500ns for links: the file gives no latency (3 times)
f:8: assumed 100 Gbit/s for links: the file gives no bandwidth (3 times)
f:13: changed port 3 of s1 to a free port: another link has the port
`,
	}.run(t, P4Tutorial)
}

// TestOldTutorial has hosts as a list, as the first tutorials did.
func TestOldTutorial(t *testing.T) {
	importCase{
		text: `{"hosts": ["h1", "h2"], "switches": {"s1": {}}, "links": [["h1", "s1"], ["h2", "s1"], ["s1", "s1"], ["h1", "h2"]]}`,
		fabric: `
switch s1
host h1
host h2
h1:1--s1:1 100 Gbit/s 500ns
h2:1--s1:2 100 Gbit/s 500ns
`,
		report: `
f:1: assumed 500ns for links: the file gives no latency (4 times)
f:1: assumed 100 Gbit/s for links: the file gives no bandwidth (4 times)
f:1: skipped link s1--s1: both ends are the same node
f:1: skipped link h1--h2: both ends are hosts
`,
	}.run(t, P4Tutorial)
}

func TestTutorialErrors(t *testing.T) {
	const head = "{\"hosts\": {\"h1\": {}}, \"switches\": {\"s1\": {}},\n\"links\": [\n"
	for _, test := range []errorCase{
		{"dangling", head + `["h1", "s2-p1"]]}`, ErrReference, `f:3: a link to "s2-p1", which is neither a host nor a port of a switch`},
		{"zero bandwidth", head + `["h1", "s1-p1", 0, 0]]}`, ErrValue, "f:3: bandwidth 0 bit/s: it must be above zero"},
		{"negative bandwidth", head + `["h1", "s1-p1", 0, -5]]}`, ErrValue, "f:3: bandwidth -5e+06 bit/s: it must be above zero"},
		{"huge bandwidth", head + `["h1", "s1-p1", 0, 1e300]]}`, ErrValue, "f:3: bandwidth 1e+306 bit/s"},
		{"no number", head + `["h1", "s1-p1", 0, "fast"]]}`, ErrValue, `f:3: bandwidth "fast" is no number of Mbit/s`},
		{"negative latency", head + `["h1", "s1-p1", -1]]}`, ErrValue, `f:3: latency "-1": it is a number of milliseconds`},
		{"no latency", head + `["h1", "s1-p1", "soon"]]}`, ErrValue, `f:3: latency "soon"`},
		{"years", head + `["h1", "s1-p1", 1e300]]}`, ErrValue, `f:3: latency "1e300"`},
		{"one end", head + `["h1"]]}`, ErrSyntax, "f:3: a link is a list of two ends"},
		{"an object", head + `{"a": 1}]}`, ErrSyntax, "f:3: a link is a list of two ends, a latency and a bandwidth, and not an object"},
		{"no links", `{"hosts": {"h1": {}}}`, ErrSyntax, "f:1: no list of links"},
		{"the same name", `{"hosts": {"x": {}}, "switches": {"x": {}}, "links": []}`, ErrDuplicate, `f:1: "x" is there already, on line 1`},
		{"cut short", head, ErrSyntax, "f:2: the file cannot be read: the document ends too early"},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, P4Tutorial) })
	}
}
