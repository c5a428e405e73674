package whatif

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

func question(t testing.TB, fabric string, hosts ...string) Config {
	t.Helper()
	g, err := topology.Parse(fabric)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Graph: g, Group: Group{Hosts: hosts, Function: "sum"}}
}

func answer(t testing.TB, c Config) (*Report, string) {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	return r, text.String()
}

func TestPlanOfAGroup(t *testing.T) {
	c := question(t, "fat-tree:4", "h0", "h5", "h15")
	c.Group.Bytes = 1 << 20
	r, text := answer(t, c)
	if r.Tree.Criterion != "load" || !r.Tree.Exact || len(r.Tree.Leaves) != 3 || len(r.Tree.Vertices) != 7 || len(r.Tree.Rivals) != 3 {
		t.Errorf("%+v", r.Tree)
	}
	for _, want := range []string{"fat-tree:4: 16 hosts", "h5 (rank 1)", "by load (default), since", "over the tree by bandwidth", "lost by", "By the model an operation takes"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var svg bytes.Buffer
	if err := r.SVG(&svg); err != nil || !strings.Contains(svg.String(), "</svg>") {
		t.Errorf("%v: %.100s", err, svg.String())
	}
}

// TestDownIsRepaired takes a spine away: the trees of two groups are repaired,
// and both are compared with fresh plans.
func TestDownIsRepaired(t *testing.T) {
	c := question(t, "leaf-spine:2,3,2", "all")
	c.Others = []Group{{Name: "first", Hosts: []string{"h0", "h2"}}, {Name: "second", Hosts: []string{"h1", "h5"}}}
	before, _ := answer(t, c)
	c.Down = []string{before.Tree.Root}
	r, text := answer(t, c)
	names := map[string]bool{}
	for _, x := range r.Repairs {
		names[x.Group] = true
		if x.Before != before.Tree.Root || x.Root == x.Before || x.Refused != "" || x.FreshFigures == nil || x.Figures.Hops != x.FreshFigures.Hops {
			t.Errorf("%+v", x)
		}
	}
	if !names[""] || r.After == nil || r.After.Root == before.Tree.Root || !strings.Contains(text, "as good as a fresh plan") {
		t.Errorf("repairs %+v\n%s", r.Repairs, text)
	}
	c.Down = []string{"leaf-0--spine-0", "leaf-0--spine-1"}
	if r, text = answer(t, c); r.After != nil || !strings.Contains(text, "no tree") {
		t.Errorf("leaf-0 is apart:\n%s", text)
	}
}

// TestSpeedsAreReported plans in a fabric whose nodes have speeds.
func TestSpeedsAreReported(t *testing.T) {
	g, err := topology.Read(strings.NewReader(`version: 1
defaults: {host: {speed: {bytes: 2G}}, switch: {speed: {bytes: 6G, packets: 3M}}}
hosts: [a, b, {name: c, speed: {bytes: 1G}}]
switches: [{name: left}, {name: right}, {name: quick}, {name: slow, speed: {bytes: 500M}}]
links: [{between: [a, left]}, {between: [b, left]}, {between: [c, right]}, {between: [left, slow]}, {between: [right, slow]},
  {between: [left, quick], latency: 1us}, {between: [right, quick], latency: 1us}]
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Graph: g, Group: Group{Hosts: []string{"all"}, Function: "sum", Bytes: 64}}
	r, text := answer(t, c)
	if r.Tree.Root != "quick" || r.Tree.Figures.Speed != 3_072_000_000 || r.Tree.Vertices[0].Speed != (topology.Speed{Bytes: 6e9, Packets: 3e6}) ||
		r.Tree.Leaves[2].Speed.Bytes != 1e9 || r.Tree.Rivals[0].Figures.Speed != 500_000_000 {
		t.Errorf("%+v", r.Tree)
	}
	for _, want := range []string{"lost by a slow switch (500 MB/s, here it is 3.07 GB/s)", "speed", "500 MB/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	before := *r.Tree.Hosts
	c.Group.Hosts = []string{"a", "b"}
	if r, _ := answer(t, c); *r.Tree.Hosts >= before {
		t.Errorf("%v over hosts without the slow one, %v with it", *r.Tree.Hosts, before)
	}
}

func TestRefusalNamesTheHolders(t *testing.T) {
	c := question(t, "leaf-spine:2,2,1", "h0", "h1")
	for i := range 4 {
		c.Others = append(c.Others, Group{Name: fmt.Sprint("greedy-", i), Hosts: []string{"h0", "h1"}, Window: 4096})
	}
	r, text := answer(t, c)
	if r.Refused == nil || r.Refused.Resource != "slots" || r.Refused.Switch != "leaf-0" || len(r.Refused.Holders) != 4 || r.Refused.Holders[0].Slots != 8192 {
		t.Fatalf("%+v", r.Refused)
	}
	if !strings.Contains(text, "group greedy-0 holds 8192 slots of leaf-0") {
		t.Error(text)
	}
	if err := r.SVG(&bytes.Buffer{}); !errors.Is(err, ErrNoPicture) {
		t.Error(err)
	}
}

func TestHostsFasterAndPartial(t *testing.T) {
	c := question(t, "leaf-spine:2,2,1", "all")
	c.Group.Bytes, c.OrHosts, c.Model = 1<<20, true, pathsel.DefaultModel()
	c.Model.SwitchReduce = 1e6
	r, text := answer(t, c)
	if r.Refused == nil || !r.Refused.HostsFaster || r.Tree == nil || *r.Tree.Hosts >= *r.Tree.Switches || !strings.Contains(text, "hosts are faster") {
		t.Errorf("%+v\n%s", r.Refused, text)
	}
	p := question(t, "leaf-spine:2,2,1", "all")
	p.Partial = true
	if r, _ := answer(t, p); r.Tree == nil || len(r.Tree.LeftOut) != 0 {
		t.Errorf("nobody need be left out: %+v", r.Tree)
	}
}

// TestDownAndPartial cuts a leaf off: its hosts are left out, the others keep
// what they have of the tree.
func TestDownAndPartial(t *testing.T) {
	c := question(t, "leaf-spine:2,3,1", "all")
	c.Others = []Group{{Name: "first", Hosts: []string{"h0", "h2", "h4"}}}
	c.Partial, c.Down = true, []string{"leaf-0--spine-0", "h5"}
	r, text := answer(t, c)
	if len(r.Repairs) != 2 || r.After == nil || len(r.After.Leaves) != 3 {
		t.Fatalf("%+v\n%s", r.Repairs, text)
	}
	for i, hosts := range [][]string{{"h0"}, {"h0", "h1", "h5"}} {
		x := r.Repairs[i]
		if x.Refused != "" || x.Added != 0 || x.Anew || len(x.LeftOut) != len(hosts) {
			t.Fatalf("%+v", x)
		}
		for j, host := range hosts {
			if !strings.Contains(x.LeftOut[j], "("+host+")") || !strings.Contains(text, "left out: "+x.LeftOut[j]) {
				t.Errorf("%q, want %s\n%s", x.LeftOut[j], host, text)
			}
		}
	}
}

func TestStripesAndRoots(t *testing.T) {
	c := question(t, "fat-tree:4", "all")
	c.Stripes, c.Roots = 2, 3
	r, text := answer(t, c)
	if len(r.Stripes) != 2 || r.StripesApart != 2 || len(r.Parts) != 3 || !strings.Contains(text, "3 roots; the receiver") {
		t.Errorf("%d stripes, %d parts\n%s", len(r.Stripes), len(r.Parts), text)
	}
}

func TestForwardAndSlim(t *testing.T) {
	c := question(t, "leaf-spine:2,2,2", "all")
	c.Group.Criterion, c.Slim = "load", true
	r, text := answer(t, c)
	links := 0
	for _, v := range r.Tree.Vertices {
		links = max(links, len(v.Links))
	}
	if len(r.Tree.Vertices) != 2 || links != 2 || !strings.Contains(text, "1 switch forwarding in place of reducing") {
		t.Errorf("%+v\n%s", r.Tree, text)
	}
	// Where all can reduce nothing has to forward.
	c.Group.Criterion, c.Slim, c.Forward = "hops", false, true
	if r, _ := answer(t, c); len(r.Tree.Vertices) != 3 {
		t.Errorf("%+v", r.Tree)
	}
}

func TestBadQuestions(t *testing.T) {
	for name, change := range map[string]func(*Config){
		`there is no host "h99"`:                    func(c *Config) { c.Group.Hosts = []string{"h99"} },
		`is not random:N`:                           func(c *Config) { c.Group.Hosts = []string{"random:0"} },
		`no reduction function`:                     func(c *Config) { c.Group.Function = "median" },
		`is not defined on`:                         func(c *Config) { c.Group.Function, c.Group.Type = "band", "float32" },
		`criterion "best"`:                          func(c *Config) { c.Group.Criterion = "best" },
		`no weight such as`:                         func(c *Config) { c.Group.Weights = "hops=many" },
		`is no switch, no host`:                     func(c *Config) { c.Down = []string{"spine-7"} },
		`no link such as`:                           func(c *Config) { c.Down = []string{"leaf-0--leaf-1"} },
		`twice`:                                     nil,
		`-1 chunks, want a power`:                   func(c *Config) { c.Group.Window = -1 },
		`a window of 3 chunks, want a power of two`: func(c *Config) { c.Group.Window = 3 },
	} {
		c := question(t, "leaf-spine:2,2,1", "h0", "h3")
		if change == nil {
			c.Group.Hosts = []string{"h0", "h0"}
			name = "rank 1"
		} else {
			change(&c)
		}
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLinksByName(t *testing.T) {
	c := question(t, "four-switches:1", "all")
	for name, want := range map[string]int{"A--B": 6, "B--A": 6, "A:19--B:19": 1, "B:19--A:19": 1, "A:19--B:20": 0, "h0--A": 1, "A--Z": 0, "A": 0, "A:19--B": 1, "B--A:19": 1, "A:x--B": 0} {
		if got, err := c.linksOf(name); len(got) != want || err != nil {
			t.Errorf("%s: %d links, %v; want %d", name, len(got), err, want)
		}
	}
}

// TestLinksOfNamesWithDashes has nodes as the importer names them, with two
// dashes in their names, and names that can be read in two ways.
func TestLinksOfNamesWithDashes(t *testing.T) {
	var b topology.Builder
	refs := map[string]topology.Ref{}
	for _, name := range []string{"SW--1", "SW--2", "a", "a--b", "b--c", "c"} {
		var err error
		if refs[name], err = b.AddSwitch(name, topology.DefaultCapability()); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range [][2]string{{"SW--1", "SW--2"}, {"SW--1", "SW--2"}, {"a", "b--c"}, {"a--b", "c"}} {
		if _, err := b.Connect(refs[l[0]], 0, refs[l[1]], 0, topology.DefaultEquipment().Link); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Graph: g}
	for name, want := range map[string]int{
		"SW--1--SW--2": 2, "SW--2--SW--1": 2, "SW--1:2--SW--2:2": 1, "SW--2:1--SW--1:1": 1, "SW--1:1--SW--2:2": 0, "SW--1": 0,
		"a:1--b--c:1": 1, "a--b:1--c:1": 1, "b--c--a": 1,
	} {
		if got, err := c.linksOf(name); len(got) != want || err != nil {
			t.Errorf("%s: %d links, %v; want %d", name, len(got), err, want)
		}
	}
	c.Down = []string{"a--b--c"}
	if _, err := c.changes(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), `may mean a:1--b--c:1 or a--b:1--c:1: add the ports`) {
		t.Errorf("%v", err)
	}
	for l := range topology.LinkID(g.Links()) {
		if got, err := c.linksOf(g.LinkName(l)); err != nil || len(got) != 1 || got[0] != l {
			t.Errorf("%s: %v, %v", g.LinkName(l), got, err)
		}
	}
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFiles(t *testing.T) {
	groups, err := ReadGroups(write(t, "groups:\n  - {name: a, hosts: [h0, h1], window: 8}\n  - {name: b, hosts: [all], criterion: load}\n"))
	if err != nil || len(groups) != 2 || groups[0].Window != 8 || groups[1].Criterion != "load" {
		t.Errorf("%+v, %v", groups, err)
	}
	for text, want := range map[string]string{
		"": "the file is empty", "groups:\n  - {name: a}\n": "no hosts", "groups:\n  - {name: a, hosts: [h0], colour: red}\n": "colour",
		"groups:\n  - {name: a, hosts: [h0]}\n  - {name: a, hosts: [h1]}\n": "another has",
	} {
		if _, err := ReadGroups(write(t, text)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	m := pathsel.DefaultModel()
	m.HostMessage, m.HostReduce = 42*time.Microsecond, 1.5e9
	var text bytes.Buffer
	if err := settings.WriteModel(&text, m); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadModel(write(t, text.String())); got != m || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, m)
	}
	costs := *pathsel.DefaultCosts()
	costs.Processors, costs.Links = 2, pathsel.Links{Rate: 200e6, Uplink: 50e6, Leaf: 4}
	costs.Rates[pathsel.OfScan][pathsel.ByMessages] = pathsel.Rates{pathsel.Step: time.Millisecond, pathsel.Link: 1234567}
	text.Reset()
	if err := settings.WriteModel(&text, pathsel.Model{HostMessage: m.HostMessage, SwitchReduce: 1, HostReduce: 1, Bandwidth: 1, Costs: &costs}); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadModel(write(t, text.String())); err != nil || *got.Costs != costs {
		t.Errorf("%+v, %v; want %+v", got.Costs, err, costs)
	}
	if got, err := ReadModel(write(t, "costs: {processors: 2, links: {rate: 200000000, uplink: 50000000, leaf: 4}, scan: {messages: {step: 1ms, link: 1234567ns}}}\n")); err != nil || *got.Costs != costs {
		t.Errorf("of one collective: %+v, %v; want %+v", got.Costs, err, costs)
	}
	for _, wrong := range []string{"costs: {scan: {messages: {steps: 1ms}}}\n", "costs: {scans: {}}\n", "costs: {processors: -1}\n", "costs: {links: {rate: -1}}\n", "costs: {links: {rate: 200mbit}}\n", "costs: {scan: {messages: {step: -1ms}}}\n"} {
		if _, err := ReadModel(write(t, wrong)); err == nil {
			t.Errorf("%s is read", wrong)
		}
	}
	if _, err := ReadModel(write(t, "bandwidth: 0\n")); !errors.Is(err, pathsel.ErrModel) {
		t.Errorf("no bandwidth: %v", err)
	}
}

func TestFitFile(t *testing.T) {
	rows := "rows:\n" +
		"  - {transport: switches, members: 8, depth: 2, children: 4, bytes: 1000, took: 60us}\n" +
		"  - {transport: switches, members: 8, depth: 2, children: 4, bytes: 10000000, took: 12ms}\n" +
		"  - {transport: hosts, members: 8, depth: 2, bytes: 1000, took: 200us}\n" +
		"  - {transport: hosts, members: 8, depth: 2, bytes: 10000000, took: 30ms}\n"
	f, err := FitFile(write(t, rows), pathsel.DefaultModel())
	if err != nil || f.Rows != 4 || f.Worst > 0.2 || f.Mean > f.Worst || math.IsNaN(f.Mean) {
		t.Errorf("%+v, %v", f, err)
	}
	known := strings.NewReplacer("took: 12ms", "took: 9ms, speed: 5000000000", "took: 30ms", "took: 30ms, speed: 3000000000",
		"bytes: 1000, took: 60us", "bytes: 1000, took: 60us, speed: 5000000000", "bytes: 1000, took: 200us", "bytes: 1000, took: 200us, speed: 3000000000")
	base := pathsel.DefaultModel()
	if g, err := FitFile(write(t, known.Replace(rows)), base); err != nil || math.Abs(g.SwitchReduce/base.SwitchReduce-1) > 1e-9 || math.Abs(g.HostReduce/base.HostReduce-1) > 1e-9 || g.HostMessage == base.HostMessage {
		t.Errorf("with known speeds: %+v, %v", g, err)
	}
	for _, bad := range []string{"rows: []\n", "rows:\n  - {transport: hosts, members: 4, bytes: 1, took: 1s, speed: -1}\n", "rows:\n  - {transport: air, took: 1s}\n", "rows:\n  - {transport: hosts, members: 4, took: 0s}\n"} {
		if _, err := FitFile(write(t, bad), pathsel.DefaultModel()); err == nil {
			t.Errorf("%q was fitted", bad)
		}
	}
}

// FuzzReadGroups: whatever a file of groups holds, it is read or refused, and
// planning for what was read ends with a report or a refusal.
func FuzzReadGroups(f *testing.F) {
	f.Add("groups:\n  - {name: a, hosts: [h0, h1], window: 8}\n")
	f.Add("groups:\n  - {name: a, hosts: [all], criterion: load, bytes: 100}\n  - {name: b, hosts: [\"random:2:9\"], function: barrier}\n")
	f.Add("groups: {}")
	f.Add("rows: []\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		groups, err := ReadGroups(write(t, text))
		if err != nil {
			return
		}
		c := question(t, "leaf-spine:2,2,1", "h0", "h3")
		c.Others = groups[:min(len(groups), 8)]
		if r, err := Run(c); err == nil && r.Tree == nil && r.Refused == nil {
			t.Fatal("neither a tree nor a refusal")
		}
	})
}
