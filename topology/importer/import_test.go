package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tributary-fabric/tributary/topology"
)

// show writes a fabric: a line each switch (with a minus if it cannot reduce),
// host and link.
func show(g *topology.Graph) string {
	var b strings.Builder
	for i := range g.Switches() {
		n, sign := g.Switch(i), ""
		if !g.Capability(n).CanReduce() {
			sign = "-"
		}
		fmt.Fprintf(&b, "switch %s%s\n", sign, g.Name(n))
	}
	for h := range topology.NodeID(g.Hosts()) {
		fmt.Fprintf(&b, "host %s\n", g.Name(h))
	}
	for l, link := range g.AllLinks() {
		fmt.Fprintf(&b, "%s %s %v\n", g.LinkName(l), bandwidthText(link.Bandwidth), link.Latency)
	}
	return b.String()
}

// format is how a test's file is read; DefaultConfig where there is no config.
type importCase struct {
	text   string
	config func(*Config)
	fabric string // as show writes it
	report string // its text without the first line; the file is "f"
}

func (c importCase) run(t *testing.T, f Format) {
	t.Helper()
	config := DefaultConfig()
	if c.config != nil {
		c.config(&config)
	}
	g, report, err := Import(strings.NewReader(c.text), "f", f, config)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(g), strings.TrimLeft(c.fabric, "\n"); got != want {
		t.Errorf("fabric\n%s\nwant\n%s", got, want)
	}
	var text bytes.Buffer
	if err := report.Text(&text); err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(text.String(), "\n")
	if want := strings.TrimLeft(c.report, "\n"); notes != want {
		t.Errorf("report\n%s\nwant\n%s", notes, want)
	}
	if found, err := Detect([]byte(c.text)); err != nil || found != f {
		t.Errorf("detected %q, %v", found, err)
	}
	checkImported(t, g, report)
}

// checkImported holds what every import must: the graph survives writing, and
// the report's numbers are the graph's.
func checkImported(t testing.TB, g *topology.Graph, r *Report) {
	t.Helper()
	var b bytes.Buffer
	if err := topology.WriteYAML(&b, g); err != nil {
		t.Fatal(err)
	}
	back, err := topology.Read(&b, "f")
	if err != nil || !topology.Equal(g, back) {
		t.Fatalf("another fabric came back: %v", err)
	}
	if r.Hosts != g.Hosts() || r.Switches != g.Switches() || r.Links != g.Links() || r.Fabric != g.Fabric() || r.Parts < 1 {
		t.Fatalf("report %+v of %d hosts, %d switches, %d links", r, g.Hosts(), g.Switches(), g.Links())
	}
	for _, n := range r.Notes {
		if n.Count < 1 || n.What == "" || n.Why == "" || (n.Action != Skipped && n.Action != Changed && n.Action != Assumed) {
			t.Fatalf("note %+v", n)
		}
	}
}

// errorCase is a file that cannot be imported.
type errorCase struct {
	name, text string
	want       error
	message    string // how the first begins
}

func (c errorCase) run(t *testing.T, f Format) {
	t.Helper()
	g, report, err := Import(strings.NewReader(c.text), "f", f, DefaultConfig())
	if !errors.Is(err, c.want) || g != nil || report != nil {
		t.Fatalf("%v; want %v", err, c.want)
	}
	if !strings.HasPrefix(err.Error(), c.message) {
		t.Errorf("got  %v\nwant %s", err, c.message)
	}
	var at *topology.FileError
	if !errors.As(err, &at) || at.File != "f" {
		t.Errorf("no place in %v", err)
	}
}

const smallSlurm = "SwitchName=s Nodes=n[0-1]\n"

func TestDetect(t *testing.T) {
	for _, test := range []struct {
		text string
		want Format
		err  error
	}{
		{"#\n# Topology file: generated on Monday\n#\nCa\t1 \"H-1\"\t# \"n1 HCA-1\"\n", IBNetDiscover, nil},
		{"# no switches here\n  switchname = s0\n", Slurm, nil},
		{"name: lab\ntopology:\n  nodes: {}\n", Containerlab, nil},
		{" {\"hosts\": {}, \"links\": []}", P4Tutorial, nil},
		{"Creator \"somebody\"\ngraph\n[\n", GML, nil},
		{"<?xml version=\"1.0\"?>\n<!-- a comment -->\n<graphml xmlns=\"x\">", GraphML, nil},
		{"", "", ErrEmpty},
		{" \n\t", "", ErrEmpty},
		{"version: 1\ngenerator: fat-tree:4\n", "", ErrFormat},
		{"{\"version\": 1, \"hosts\": []}", "", ErrFormat},
		{"nothing of the kind", "", ErrFormat},
		{"\x00\x01\x02", "", ErrFormat},
	} {
		if got, err := Detect([]byte(test.text)); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("Detect(%q) = %q, %v", test.text, got, err)
		}
	}
}

func TestWrongFormat(t *testing.T) {
	for _, test := range []struct {
		format  Format
		text    string
		want    error
		message string
	}{
		{IBNetDiscover, smallSlurm, ErrFormat, "f: it looks like slurm and not like ibnetdiscover: "},
		{Slurm, "graph [ node [ id 0 ] ]", ErrFormat, "f: it looks like gml and not like slurm: "},
		{GraphML, "<html></html>", ErrFormat, "f: no <graph> in it: "},
		{Containerlab, "nodes: {}\n", ErrFormat, "f:1: no topology with nodes"},
		{GML, "node [ id 0 ]", ErrFormat, "f: no graph [ ... ] in it"},
		{"csv", "a,b\n", ErrFormat, "f: format \"csv\": none of ibnetdiscover, "},
		{"", "a,b\n", ErrFormat, "f: detect the format: it looks like none of"},
		{"", "", ErrEmpty, "f: the file is empty: there is nothing to import"},
		{Slurm, "", ErrEmpty, "f: the file is empty: there is nothing to import"},
		{Slurm, "# all comment\n", ErrEmpty, "f: no node in it: there is nothing to import"},
	} {
		errorCase{text: test.text, want: test.want, message: test.message}.run(t, test.format)
	}
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"negative hosts": func(c *Config) { c.HostsPerSwitch = -1 },
		"too many hosts": func(c *Config) { c.HostsPerSwitch = MaxAttached + 1 },
		"no bandwidth":   func(c *Config) { c.Equipment.Link.Bandwidth = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, _, err := Import(strings.NewReader(smallSlurm), "f", Slurm, c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	importCase{
		text: "SwitchName=s Nodes=n[0-1],gw\n",
		config: func(c *Config) {
			c.Fabric = "named"
			c.Hosts, c.Switches = regexp.MustCompile("^n"), regexp.MustCompile("^gw$")
		},
		fabric: `
switch s
switch gw
host n0
host n1
n0:1--s:1 100 Gbit/s 500ns
n1:1--s:2 100 Gbit/s 500ns
gw:1--s:3 100 Gbit/s 500ns
`,
		report: `
f: assumed one link between a switch and each of what is below it for cables: the file gives the hierarchy, not the cables
f: assumed 100 Gbit/s for links: the file gives no bandwidth
f: assumed 500ns for links: the file gives no latency
f:1: changed gw to a switch: its name matches the pattern given
`,
	}.run(t, Slurm)
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topology.conf")
	if _, _, err := Open("slurm:" + path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, []byte(smallSlurm), 0o600); err != nil {
		t.Fatal(err)
	}
	for argument, imported := range map[string]bool{"slurm:" + path: true, "leaf-spine:2,1,0": false} {
		g, report, err := Open(argument)
		if err != nil || g.Hosts() != 2 || g.Switches() != 1 || (report != nil) != imported {
			t.Errorf("%s: %+v, %v", argument, report, err)
		}
	}
	if _, _, err := Open("gml:" + path); !errors.Is(err, ErrFormat) {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken")
	if _, _, err := Import(iotest.ErrReader(broken), "f", Slurm, DefaultConfig()); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// TestLongLines gives every format a line of 10 MB: those that go by lines report
// where, the others read it.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	for format, text := range map[Format]string{
		IBNetDiscover: "Switch 2 \"S-1\" # \"" + long + "\"\n",
		Slurm:         "SwitchName=s Nodes=" + long + "\n",
		GML:           "graph [ node [ id 0 label \"" + long + "\" ] ]",
	} {
		errorCase{text: text, want: ErrTooLarge, message: "f:1: a "}.run(t, format)
	}
	for format, text := range map[Format]string{
		Containerlab: "topology: {nodes: {a: {kind: x, image: " + long + "}, b: {kind: x}}, links: [{endpoints: [a:1, b:1]}]}\n",
		P4Tutorial:   `{"hosts": {"h1": {"ip": "` + long + `"}}, "switches": {"s1": {}}, "links": [["h1", "s1-p1"]]}`,
		GraphML:      `<graphml><graph><node id="a"/><node id="b"><desc>` + long + `</desc></node><edge source="a" target="b"/></graph></graphml>`,
	} {
		g, report, err := Import(strings.NewReader(text), "f", format, DefaultConfig())
		if err != nil {
			t.Fatalf("%s: %.200v", format, err)
		}
		checkImported(t, g, report)
	}
}

// TestMoreErrors reports 20 errors and counts the rest, and so with notes.
func TestMoreErrors(t *testing.T) {
	_, _, err := Import(strings.NewReader(strings.Repeat("SwitchName=s Nodes\n", 30)), "f", Slurm, DefaultConfig())
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxErrors+1 || !strings.Contains(lines[maxErrors], "and ") {
		t.Errorf("%d lines: %v", len(lines), lines[len(lines)-1])
	}
	var b strings.Builder
	for i := range MaxNotes + 50 {
		fmt.Fprintf(&b, "SwitchName=s%d Nodes=n%d key%d=1\n", i, i, i)
	}
	_, report, err := Import(strings.NewReader(b.String()), "f", Slurm, DefaultConfig())
	if err != nil || len(report.Notes) != MaxNotes || report.More != 53 || report.Parts != MaxNotes+50 {
		t.Errorf("%v; %d notes and %d more, %d parts", err, len(report.Notes), report.More, report.Parts)
	}
	var text bytes.Buffer
	if err := report.Text(&text); err != nil || !strings.HasSuffix(text.String(), "f: and 53 more\n") {
		t.Errorf("%v", err)
	}
	if !strings.HasPrefix(text.String(), "f: slurm: 1050 hosts, 1050 switches, 1050 links, in 1050 parts that no link joins\n") {
		t.Errorf("%.200s", text.String())
	}
}

// TestDocumented imports the examples of docs/topology.md, which are marked by
// their formats.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/topology.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[Format][3]int{ // hosts, switches, links
		IBNetDiscover: {2, 1, 3}, Slurm: {32, 3, 34}, Containerlab: {2, 1, 2}, P4Tutorial: {2, 1, 2}, GML: {2, 2, 3}, GraphML: {2, 2, 3},
	}
	for _, f := range Formats() {
		m := regexp.MustCompile("(?s)```" + string(f) + "\n(.*?)```").FindSubmatch(text)
		if m == nil {
			t.Errorf("no example of %s", f)
			continue
		}
		for _, format := range []Format{f, ""} {
			g, report, err := Import(bytes.NewReader(m[1]), "topology.conf", format, DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			checkImported(t, g, report)
			if got := [3]int{g.Hosts(), g.Switches(), g.Links()}; got != want[f] || report.Format != f {
				t.Errorf("%s: %v, want %v", report.Format, got, want[f])
			}
			var notes bytes.Buffer
			if err := report.Text(&notes); err != nil || f == Slurm && !bytes.Contains(text, notes.Bytes()) {
				t.Errorf("%v; the report is not the documented one:\n%s", err, notes.String())
			}
		}
	}
}
