package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// file returns the text of a file of testdata.
func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestIrregularDump has cables beside each other on ports that differ, hosts
// with two adapters at different switches, ends that report two speeds, an
// adapter that no block describes, and a switch's own unit.
func TestIrregularDump(t *testing.T) {
	importCase{text: file(t, "irregular.ibnetdiscover"), fabric: `
switch edge1
switch core1
switch edge2
switch Infiniscale-IV-Mellanox-Technologies
host n01
host n02
host n03
host login-1
host oss1
host oss2
edge1:1--n01:1 200 Gbit/s 500ns
edge1:2--n02:1 200 Gbit/s 500ns
edge1:7--n03:1 100 Gbit/s 500ns
edge1:33--core1:3 200 Gbit/s 500ns
edge1:34--core1:4 200 Gbit/s 500ns
edge1:35--edge2:35 200 Gbit/s 500ns
edge1:36--core1:21 200 Gbit/s 500ns
edge1:38--edge2:29 100 Gbit/s 500ns
edge2:1--n01:2 200 Gbit/s 500ns
edge2:12--login-1:1 100 Gbit/s 500ns
edge2:33--core1:17 200 Gbit/s 500ns
edge2:39--Infiniscale-IV-Mellanox-Technologies:24 32 Gbit/s 500ns
edge2:40--core1:18 100 Gbit/s 500ns
core1:38--Infiniscale-IV-Mellanox-Technologies:21 16 Gbit/s 500ns
core1:40--Infiniscale-IV-Mellanox-Technologies:20 32 Gbit/s 500ns
Infiniscale-IV-Mellanox-Technologies:4--oss1:1 32 Gbit/s 500ns
Infiniscale-IV-Mellanox-Technologies:6--oss2:1 16 Gbit/s 500ns
Infiniscale-IV-Mellanox-Technologies:9--n03:2 32 Gbit/s 500ns
`, report: `
f:11: assumed 500ns for links: the file gives no latency (35 times)
f:45: skipped "Mellanox Technologies Aggregation Node": not a part of the fabric
f:56: changed speed of port 21 of Infiniscale-IV Mellanox Technologies to port 38 of core1 to 16 Gbit/s: its ends report two speeds
f:53: assumed a host for "oss2": nothing describes it but a link to it
f:30: changed name "Infiniscale-IV Mellanox Technologies" to Infiniscale-IV-Mellanox-Technologies: the name has other signs than letters, digits and . _ - /
`}.run(t, IBNetDiscover)
}

// TestContinuedLines has lines that go on within lists, ranges and names, with
// blanks before and behind, and after a comment.
func TestContinuedLines(t *testing.T) {
	importCase{text: file(t, "continued.conf"), fabric: `
switch isl1leaf1
switch isl1leaf2
switch isl2leaf1
switch service
switch spine1
switch spine2
host c1-001
host c1-002
host c1-008
host c1-009
host c1-fat1
host c1-fat2
host c1-013
host c1-014
host c2-001
host c2-002
host c2-007
host c2-008
host login1
host login2
host admin
c1-001:1--isl1leaf1:1 100 Gbit/s 500ns
c1-002:1--isl1leaf1:2 100 Gbit/s 500ns
c1-008:1--isl1leaf1:3 100 Gbit/s 500ns
c1-009:1--isl1leaf1:4 100 Gbit/s 500ns
c1-fat1:1--isl1leaf1:5 100 Gbit/s 500ns
c1-fat2:1--isl1leaf1:6 100 Gbit/s 500ns
c1-013:1--isl1leaf2:1 100 Gbit/s 500ns
c1-014:1--isl1leaf2:2 100 Gbit/s 500ns
c2-001:1--isl2leaf1:1 100 Gbit/s 500ns
c2-002:1--isl2leaf1:2 100 Gbit/s 500ns
c2-007:1--isl2leaf1:3 100 Gbit/s 500ns
c2-008:1--isl2leaf1:4 100 Gbit/s 500ns
login1:1--service:1 100 Gbit/s 500ns
login2:1--service:2 100 Gbit/s 500ns
admin:1--service:3 100 Gbit/s 500ns
isl1leaf1:7--spine1:1 100 Gbit/s 500ns
isl1leaf2:3--spine1:2 100 Gbit/s 500ns
isl2leaf1:5--spine1:3 100 Gbit/s 500ns
service:4--spine1:4 100 Gbit/s 500ns
isl1leaf1:8--spine2:1 100 Gbit/s 500ns
isl1leaf2:4--spine2:2 100 Gbit/s 500ns
isl2leaf1:6--spine2:3 100 Gbit/s 500ns
`, report: `
f:8: skipped LinkSpeed: nothing in a fabric depends on it
f: assumed one link between a switch and each of what is below it for cables: the file gives the hierarchy, not the cables
f: assumed 100 Gbit/s for links: the file gives no bandwidth
f: assumed 500ns for links: the file gives no latency
`}.run(t, Slurm)
}

// TestStitchedLab has links whose ends are stitched, in both forms.
func TestStitchedLab(t *testing.T) {
	importCase{text: file(t, "stitched.clab.yml"), fabric: `
switch pe1
switch pe2
switch p1
switch -inet
host ce1
host ce2
pe1:1--p1:3 100 Gbit/s 500ns
pe2:1--p1:4 100 Gbit/s 500ns
pe1:2--pe2:2 100 Gbit/s 500ns
ce1:1--pe1:5 100 Gbit/s 500ns
ce2:1--pe2:5 100 Gbit/s 500ns
p1:9--inet:1 100 Gbit/s 500ns
`, report: `
f:17: changed bridge inet to a switch that only forwards: it is of a kind that forwards and does not reduce
f:18: assumed 100 Gbit/s for links: the file gives no bandwidth
f:18: assumed 500ns for links: the file gives no latency
f:36: skipped link of type vxlan-stitch: not a part of the fabric
`}.run(t, Containerlab)
}

// TestUnitsInLabels has bandwidths among other words, and labels that give none.
func TestUnitsInLabels(t *testing.T) {
	importCase{text: file(t, "labels.gml"), fabric: `
switch Aarhus
switch Odense
switch Kobenhavn
switch Esbjerg
switch -Exchange-NetIX
host h0-Aarhus
host h0-Odense
host h0-Kobenhavn
host h0-Esbjerg
Aarhus:1--Odense:1 45 Mbit/s 427.113µs
Odense:2--Kobenhavn:1 2.5 Gbit/s 702.931µs
Aarhus:2--Kobenhavn:2 20 Gbit/s 781.306µs
Kobenhavn:3--Aarhus:3 10 Gbit/s 781.306µs
Aarhus:4--Esbjerg:1 100 Gbit/s 500ns
Odense:3--Esbjerg:2 100 Gbit/s 500ns
Kobenhavn:4--Esbjerg:3 100 Gbit/s 500ns
Kobenhavn:5--Exchange-NetIX:1 1 Gbit/s 500ns
h0-Aarhus:1--Aarhus:5 100 Gbit/s 500ns
h0-Odense:1--Odense:4 100 Gbit/s 500ns
h0-Kobenhavn:1--Kobenhavn:6 100 Gbit/s 500ns
h0-Esbjerg:1--Esbjerg:4 100 Gbit/s 500ns
`, report: `
f:9: changed nodes of other networks to switches that only forward: it is of a kind that forwards and does not reduce
f:10: assumed 5 µs a kilometre for latencies: both ends have coordinates (4 times)
f:14: assumed 100 Gbit/s for links: the file gives no bandwidth (3 times)
f:14: assumed 500ns for links: the file gives no latency (4 times)
f:7: changed name "København" to Kobenhavn: the name has other signs than letters, digits and . _ - /
f:9: changed name "Exchange (NetIX)" to Exchange-NetIX: the name has other signs than letters, digits and . _ - /
f: assumed 1 on each switch for hosts: the file has no hosts (4 times)
`}.run(t, GML)
}

func TestLabelled(t *testing.T) {
	for text, want := range map[string]float64{
		"10 Gbps": 10e9, "2.5Gbps": 2.5e9, "100 Mb/s": 100e6, "10G": 10e9, "512 kbits": 512e3,
		"45 Mbps DS-3": 45e6, "DS-3 45 Mbps": 45e6, "T3 (45 Mbps)": 45e6, "OC-48, 2.5 Gbit/s; leased": 2.5e9,
		"2x10Gbps": 20e9, "MPLS 4 x 10 Gbps": 40e9, "2 × 1 Gbit/s": 2e9,
		"": 0, "fast": 0, "DS-3": 0, "10 Gigabit Ethernet": 0, "10-100 Mbps": 0, "10 - 100 Mbps": 0, "<10Gbps": 0, "< 10 Gbps": 0,
		"34 Mbps or 45 Mbps": 0, "1G/10 Gbps": 0, "10 Gbpsx": 0, "STM-1 10G": 0, "99999 x 1 Gbps": 1e9,
	} {
		got, ok := labelled(text)
		if ok != (want != 0) || ok && got != want {
			t.Errorf("%q: %g, %v; want %g", text, got, ok, want)
		}
	}
}

// TestNotUTF8 wants the line of what cannot be read.
func TestNotUTF8(t *testing.T) {
	const lab = "name: x\ntopology:\n  nodes:\n    a: {kind: x, image: \"%s\"}\n"
	errorCase{text: fmt.Sprintf(lab, "\xfc"), want: ErrSyntax, message: "f:4: the file cannot be read: it is not UTF-8: it has the byte 0xfc"}.run(t, Containerlab)
	errorCase{text: fmt.Sprintf(lab, "\x1b[31m"), want: ErrSyntax, message: "f:4: the file cannot be read: control characters, such as 0x1b here,"}.run(t, Containerlab)
	errorCase{text: "{\"hosts\": {}, \"switches\": {},\n\"links\": [[\"\xfc\"]]}", want: ErrSyntax, message: "f:2: the file cannot be read: it is not UTF-8"}.run(t, P4Tutorial)
}

// TestNothingReachesTheTerminal has what a terminal acts upon in every place of
// a file, and wants none of it in errors and reports.
func TestNothingReachesTheTerminal(t *testing.T) {
	files := map[Format]string{
		IBNetDiscover: file(t, "irregular.ibnetdiscover"), Slurm: file(t, "continued.conf"),
		Containerlab: file(t, "stitched.clab.yml"), GML: file(t, "labels.gml"),
		P4Tutorial: `{"hosts": ["h1"], "switches": {"s1": {}}, "links": [["h1", "s1-p1", "0", 10]]}`,
		GraphML:    `<graphml><graph><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>`,
	}
	for format, text := range files {
		for at := 0; at < len(text); at += 1 + len(text)/60 {
			for _, act := range []string{"\x1b[2J", "\x07", "\u009b1m", "\u202e"} {
				_, report, err := Import(strings.NewReader(text[:at]+act+text[at:]), "f", format, DefaultConfig())
				var reported strings.Builder
				if err != nil {
					reported.WriteString(err.Error())
				} else if err := report.Text(&reported); err != nil {
					t.Fatal(err)
				}
				if i := strings.IndexFunc(reported.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
					t.Fatalf("%s with %q at %d: %q", format, act, at, reported.String())
				}
			}
		}
	}
}

// A file all of whose links are left out says that.
func TestAllLinksLeftOut(t *testing.T) {
	text := "topology:\n  nodes: {a: {kind: x}, b: {kind: x}}\n  links:\n  - {type: vxlan-stitch, endpoint: {node: a, interface: e1}}\n"
	_, _, err := Import(strings.NewReader(text), "f", Containerlab, DefaultConfig())
	if !errors.Is(err, ErrEmpty) || !strings.Contains(err.Error(), "f:4: skipped link of type vxlan-stitch") {
		t.Errorf("%v", err)
	}
}
