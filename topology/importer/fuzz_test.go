package importer

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// fuzzFormat reads anything as a format: it gives a valid fabric and a report of
// it, the same each time, or errors that all name the file.
func fuzzFormat(f *testing.F, format Format, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, report, err := Import(bytes.NewReader(text), "f", format, DefaultConfig())
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("an error without a place: %q", line)
				}
			}
			return
		}
		if g.Nodes() > 5000 {
			t.Skip("a few bytes can stand for many hosts")
		}
		checkImported(t, g, report)
		again, _, err := Import(bytes.NewReader(text), "f", format, DefaultConfig())
		if err != nil || !topology.Equal(g, again) {
			t.Fatalf("another fabric the second time: %v", err)
		}
	})
}

func FuzzIBNetDiscover(f *testing.F) {
	g, err := topology.Parse("leaf-spine:2,2,1")
	if err != nil {
		f.Fatal(err)
	}
	fuzzFormat(f, IBNetDiscover, dumped(f, g),
		"Switch 2 \"S-1\" # \"MF0;a:b\"\n[1][ext 3]\t\"R-2\"[1]\t# \"r\" lid 3 4xEDR\n[2]\t\"H-3\"[1](3) # \"x Aggregation Node\" lid 4 1xSDR\n")
}

func FuzzSlurm(f *testing.F) {
	fuzzFormat(f, Slurm, "SwitchName=s[0] Nodes=n[00-03],m LinkSpeed=3 # c\nSwitchName=t Switches=s[0] \\\nOther=1\nBlockName=b\n",
		"SwitchName=a Switches=b\nSwitchName=b Switches=a\n")
}

func FuzzContainerlab(f *testing.F) {
	fuzzFormat(f, Containerlab, "name: x\ntopology:\n  defaults: {kind: k}\n  groups: {g: {kind: bridge}}\n  nodes: {a: &a {kind: linux}, b: *a, c: {<<: *a, group: g}, d: }\n"+
		"  links:\n  - endpoints: [a:eth1, c:e1-1]\n  - {type: veth, endpoints: [{node: b, interface: x}, {node: d}]}\n  - {type: host}\n")
}

func FuzzTutorial(f *testing.F) {
	fuzzFormat(f, P4Tutorial, `{"hosts": {"h1": {}}, "switches": {"s1": {}, "s2": {}}, "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", "5ms", 0.5], ["s1", "s2", 0]]}`,
		`{"hosts": ["h1"], "switches": {"s1": {}}, "links": [["s1", "h1", null, null]]}`)
}

func FuzzGML(f *testing.F) {
	fuzzFormat(f, GML, "# c\ngraph [ directed 1 label \"a &amp; b\" node [ id 1 label \"x\" Latitude 1 Longitude 2 ] node [ id 2 Latitude 3 Longitude 4 type host ]\n"+
		"edge [ source 1 target 2 LinkSpeedRaw 1e9 ] edge [ source 2 target 1 LinkLabel \"3 Gbps\" ] ]")
}

func FuzzGraphML(f *testing.F) {
	fuzzFormat(f, GraphML, `<graphml><key id="k" for="edge" attr.name="LinkSpeedRaw"><default>1e9</default></key><graph edgedefault="directed">`+
		`<node id="a"/><node id="b"><data key="l">x</data></node><edge source="a" target="b" sourceport="1"/><edge source="b" target="a"/><hyperedge/></graph></graphml>`)
}

// FuzzDetect finds a format, or says why not.
func FuzzDetect(f *testing.F) {
	f.Add([]byte("graph [ ]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		format, err := Detect(text)
		if (err == nil) != (readers[format] != nil) {
			t.Fatalf("%q, %v", format, err)
		}
	})
}
