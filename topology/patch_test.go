package topology

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func patched(t *testing.T, g *Graph, text string) *Patch {
	t.Helper()
	p, err := g.Patched([]byte(text), "patch.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPatch(t *testing.T) {
	g := generated(t, "leaf-spine:2,2,1")
	p := patched(t, g, `
name: lab
rename: {spine-0: top}
remove: {hosts: [h1], links: ["h3:1"]}
hosts: [h9, {name: h0, speed: {bytes: 2G}}]
switches:
  - {name: spine-1, slots: 64}
  - {name: leaf-1, children: 3}
links:
  - {between: [leaf-0, spine-1]}
  - {between: [h3, leaf-0], ports: [1, 9], bandwidth: 10G}
  - {between: [top, leaf-1], ports: [2, 3], latency: 2us, addresses: [10.0.0.1, 10.0.0.2]}
  - {between: [h9, leaf-1], ports: [1, 2]}
agents: {spine-1: "127.0.0.1:7001", top: ""}
down: [h9, "leaf-1:3--top:2"]
up: ["h0:1--leaf-0:1"]
`)
	var got []string
	for _, d := range Compare(g, p.Graph) {
		got = append(got, d.String())
	}
	want := []string{
		`fabric "lab" changed from "leaf-spine:2,2,1" to "lab"`,
		"host h0 changed from speed not known to speed 2 GB/s",
		"host h1 removed",
		"switch spine-0 removed",
		"switch leaf-1 changed from children 64 to children 3",
		"host h9 added",
		"switch top added",
		"switch spine-1 added",
		"link leaf-0:2 moved from h1:1 to spine-1:1", // it is the lowest port that is free
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("no %q", line)
		}
	}
	if l, ok := p.Graph.LookupLink("leaf-1:3--top:2"); !ok || p.Graph.Link(l).Latency != 2000 || p.Graph.Link(l).Bandwidth != DefaultBandwidth {
		t.Errorf("%v of %s", ok, strings.Join(got, "\n"))
	} else if leaf, _ := p.Graph.Lookup("leaf-1"); p.Graph.AddressAt(l, leaf).String() != "10.0.0.2" {
		t.Errorf("leaf-1 has %v", p.Graph.AddressAt(l, leaf))
	}
	if l, ok := p.Graph.LookupLink("h3:1--leaf-0:9"); !ok || p.Graph.Link(l).Bandwidth != 10e9 {
		t.Errorf("h3 is not moved")
	}
	if !maps.Equal(p.Agents, map[string]string{"spine-1": "127.0.0.1:7001", "top": ""}) || !maps.Equal(p.Renamed, map[string]string{"spine-0": "top"}) ||
		!slices.Equal(p.Up, []string{"h0:1--leaf-0:1"}) || len(p.Down) != 2 || p.Down[0] != "h9" {
		t.Errorf("%+v", p)
	}
}

// TestPatchSwapsNames: a node that is renamed twice has its last name.
func TestPatchSwapsNames(t *testing.T) {
	p := patched(t, generated(t, "leaf-spine:2,2,1"), "rename: {h0: other, h1: h0, other: h1}")
	if want := map[string]string{"h0": "h1", "h1": "h0"}; !maps.Equal(p.Renamed, want) {
		t.Errorf("renamed %v", p.Renamed)
	}
}

func TestPatchErrors(t *testing.T) {
	g := generated(t, "leaf-spine:2,2,1")
	for text, want := range map[string]struct {
		at string
		is error
	}{
		"hosts: [h0]\nswitches: [{name: h0}]":                     {"patch.yaml:2: switches[0].name: ", ErrDuplicateName},
		"hosts: [leaf-0]":                                         {"patch.yaml:1: hosts[0]: ", ErrDuplicateName},
		"remove: {hosts: [h9]}":                                   {"patch.yaml:1: remove.hosts[0]: ", ErrUnknownNode},
		"remove: {switches: [h0]}":                                {"patch.yaml:1: remove.switches[0]: ", ErrUnknownNode},
		"remove:\n  links: [\"h0:2\"]":                            {"patch.yaml:2: remove.links[0]: ", ErrUnknownNode},
		"links:\n- {between: [h0, leaf-1], ports: [1, 9]}":        {"patch.yaml:2: links[0]: link h0:1--leaf-1:9: ", ErrPortUsed},
		"links:\n- {between: [h0, h1]}":                           {"patch.yaml:2: links[0]: ", ErrLink},
		"links:\n- {between: [h0, gone]}":                         {"patch.yaml:2: links[0].between[1]: ", ErrUnknownNode},
		"links:\n- {between: [h0, leaf-0], ports: [1, 1], x: 1}":  {"patch.yaml:2: links[0].x: ", ErrUnknownField},
		"rename: {h0: h1}":                                        {"patch.yaml:1: rename.h0: ", ErrDuplicateName},
		"rename: {h9: h1}":                                        {"patch.yaml:1: rename.h9: ", ErrUnknownNode},
		"rename: {h0: \"a b\"}":                                   {"patch.yaml:1: rename.h0: ", ErrName},
		"rename: [h0]":                                            {"patch.yaml:1: rename: ", ErrField},
		"agents: {h0: \"1.2.3.4:5\"}":                             {"patch.yaml:1: agents.h0: ", ErrUnknownNode},
		"down: [h0, h9]":                                          {"patch.yaml:1: down[1]: ", ErrUnknownNode},
		"up: [\"h0:1--leaf-1:1\"]":                                {"patch.yaml:1: up[0]: ", ErrUnknownNode},
		"version: 2":                                              {"patch.yaml:1: version: ", ErrField},
		"generator: fat-tree:4":                                   {"patch.yaml:1: generator: ", ErrUnknownField},
		"hosts: {":                                                {"patch.yaml:", ErrSyntax},
		"switches: [{name: leaf-0, slots: -1}]":                   {"patch.yaml:1: switches[0].slots: ", ErrCapability},
		"switches: [{name: leaf-0, layer: 999}]":                  {"patch.yaml:1: switches[0].layer: ", ErrLayer},
		"links:\n- {between: [h0, leaf-0], addresses: [1.1.1.1]}": {"patch.yaml:2: links[0].addresses: ", ErrField},
	} {
		p, err := g.Patched([]byte(text), "patch.yaml", nil)
		if err == nil || p != nil || !errors.Is(err, want.is) || !strings.HasPrefix(err.Error(), want.at) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestPatchTo writes the way from one drawing to another as a patch, and expects the
// other.
func TestPatchTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := &drawing{cables: map[string]cable{}}
		was.edit(t)
		is := was.clone()
		is.edit(t)
		from, to := was.build(t), is.build(t)
		var text bytes.Buffer
		gone := func(before, after []string) []string {
			return slices.DeleteFunc(slices.Clone(before), func(x string) bool { return slices.Contains(after, x) })
		}
		fmt.Fprintf(&text, "{\"remove\": {\"hosts\": %s, \"switches\": %s, \"links\": %s},\n", listed(gone(was.hosts, is.hosts)), listed(gone(was.switches, is.switches)),
			listed(gone(slices.Sorted(maps.Keys(was.cables)), slices.Sorted(maps.Keys(is.cables)))))
		var switches, links []string
		for _, s := range gone(is.switches, was.switches) {
			switches = append(switches, fmt.Sprintf("{\"name\": %q}", s))
		}
		for _, name := range slices.Sorted(maps.Keys(is.cables)) {
			c := is.cables[name]
			line := fmt.Sprintf("{\"between\": [%q, %q], \"ports\": [%d, %d], \"latency\": \"%dns\"", c.ends[0], c.ends[1], c.port[0], c.port[1], c.spec.Latency)
			if c.addr[0].IsValid() {
				line += fmt.Sprintf(", \"addresses\": [%q, %q]", c.addr[0], c.addr[1])
			}
			if old, there := was.cables[name]; there && old.addr[0].IsValid() && !c.addr[0].IsValid() {
				return // a patch cannot take addresses away, but with the link
			}
			links = append(links, line+"}")
		}
		fmt.Fprintf(&text, "\"hosts\": %s, \"switches\": [%s], \"links\": [%s]}", listed(gone(is.hosts, was.hosts)), strings.Join(switches, ","), strings.Join(links, ","))
		p, err := from.Patched(text.Bytes(), "patch", nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		if d := Compare(p.Graph, to); len(d) > 0 {
			t.Fatalf("%v\n%s", d, text.String())
		}
	})
}

func listed(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf("%q", name)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte("remove: {hosts: [h1]}\nhosts: [h9]\nlinks: [{between: [h9, leaf-0]}]"))
	f.Add([]byte("rename: {h0: x}\nup: [x]\nagents: {leaf-0: \"1:2\"}"))
	g := generated(f, "leaf-spine:2,2,1")
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := g.Patched(data, "patch", nil)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteYAML(&b, p.Graph); err != nil {
			t.Fatal(err)
		}
		if again, err := Read(&b, "again"); err != nil || !Equal(again, p.Graph) {
			t.Fatalf("%v", err)
		}
	})
}
