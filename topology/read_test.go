package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/reduce"
)

func TestReadErrors(t *testing.T) {
	const nodes = "version: 1\nhosts: [h0, h1]\nswitches: [{name: s}]\n"
	for _, test := range []struct {
		name, text string
		want       error
		messages   []string // one for each error, in order
	}{
		{"empty", "", ErrSyntax, []string{"f: neither YAML nor JSON: the file is empty"}},
		{"syntax", "version: 1\nhosts: [h0\nlinks: 3\n", ErrSyntax, []string{"f:2: neither YAML nor JSON: did not find expected"}},
		{"tab", "version: 1\n\thosts: []\n", ErrSyntax, []string{"f:2: neither YAML nor JSON: "}},
		{"JSON syntax", "{\n\"version\": 1,\n\"hosts\": [}\n", ErrSyntax, []string{"f:3: neither YAML nor JSON: "}},
		{"JSON cut short", "{\"version\": 1,\n\"hosts\": [\"h0\"", ErrSyntax, []string{"f:2: neither YAML nor JSON: the document ends too early"}},
		{"JSON and more", "{\"version\": 1}\n{}", ErrSyntax, []string{"f:2: neither YAML nor JSON: something follows the document"}},
		{"not UTF-8", "version: 1\nname: \xff\n", ErrSyntax, []string{"f:2: neither YAML nor JSON: it is not UTF-8: it has the byte 0xff"}},
		{"two documents", "version: 1\n---\nversion: 1\n", ErrSyntax, []string{"f:2: neither YAML nor JSON: a second document"}},
		{"alias", "version: 1\nhosts: &a [h0]\nlinks: *a\n", ErrSyntax, []string{"f:3: neither YAML nor JSON: aliases"}},
		{"deep", "version: 1\nhosts: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), ErrSyntax, []string{"f:2: neither YAML nor JSON: nested too deeply"}},
		{"deep JSON", "{\"hosts\":\n" + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", ErrSyntax, []string{"f:2: neither YAML nor JSON: nested too deeply"}},
		{"a list", "- 1\n", ErrField, []string{"f:1: must be an object with fields, not a list"}},
		{"nothing in it", "version: 1\n", ErrField, []string{"f:1: neither a generator nor hosts and switches"}},
		{"no version", "generator: fat-tree:4\n", ErrField, []string{"f:1: version is missing"}},
		{"version 2", "version: 2\ngenerator: fat-tree:4\n", ErrField, []string{"f:1: version: version 2 of the format is not known: this program reads 1"}},
		{"version in quotes", "version: \"1\"\ngenerator: fat-tree:4\n", ErrField, []string{"f:1: version: must be a whole number, not a string"}},
		{"unknown field", nodes + "routers: []\n", ErrUnknownField, []string{"f:4: routers: unknown field; known here: version, name,"}},
		{
			"unknown fields within", "version: 1\ndefaults: {link: {speed: 1},\n  switch: {colour: red}, x: 1}\nhosts: []\nswitches:\n- name: s\n  slot: 3\n",
			ErrUnknownField, []string{"f:3: defaults.x: ", "f:2: defaults.link.speed: ", "f:3: defaults.switch.colour: ", "f:7: switches[0].slot: "},
		},
		{"field twice", nodes + "hosts: []\n", ErrField, []string{"f:4: hosts: the field is there twice"}},
		{"field twice in JSON", "{\"version\": 1,\n\"hosts\": [],\n\"hosts\": []}", ErrField, []string{"f:3: hosts: the field is there twice"}},
		{"bad fabric name", "version: 1\nname: \"a\\nb\"\nhosts: []\n", ErrName, []string{"f:2: name: the fabric's name must be printable"}},
		{"unknown node", nodes + "links:\n- between: [h0, s]\n- between: [h1, t]\n", ErrUnknownNode, []string{`f:6: links[1].between[1]: no host or switch is called "t"`}},
		{"both unknown", nodes + "links:\n- between: [a, b]\n", ErrUnknownNode, []string{"f:5: links[0].between[0]: ", "f:5: links[0].between[1]: "}},
		{"two hosts", nodes + "links:\n- between: [h0, h1]\n", ErrLink, []string{"f:5: links[0]: connect: both ends are hosts"}},
		{"itself", nodes + "links:\n- between: [s, s]\n", ErrLink, []string{"f:5: links[0]: connect: both ends are the same"}},
		{"one end", nodes + "links:\n- between: [s]\n", ErrField, []string{"f:5: links[0].between: must be a list of two"}},
		{"no ends", nodes + "links:\n- ports: [1, 2]\n", ErrField, []string{"f:5: links[0]: between is missing"}},
		{"a link that is none", nodes + "links: [s]\n", ErrField, []string{"f:4: links[0]: must be an object"}},
		{"links that are none", nodes + "links: 3\n", ErrField, []string{"f:4: links: must be a list, not a number"}},
		{
			"port used twice", nodes + "links:\n- {between: [h0, s], ports: [1, 7]}\n- {between: [h1, s],\n   ports: [1, 7]}\n",
			ErrPortUsed, []string{"f:7: links[1].ports[1]: port 7 of s: a port has two links"},
		},
		{"ports out of range", nodes + "links:\n- {between: [h0, s], ports: [0, 65536]}\n", ErrField, []string{"f:5: links[0].ports[0]: port 0 ", "f:5: links[0].ports[1]: port 65536 "}},
		{"one port", nodes + "links:\n- {between: [h0, s], ports: [1]}\n", ErrField, []string{"f:5: links[0].ports: must be a list of two ports"}},
		{"negative bandwidth", nodes + "links:\n- {between: [h0, s], bandwidth: -1}\n", ErrLink, []string{"f:5: links[0].bandwidth: bandwidth -1 bit/s is not within"}},
		{"no bandwidth", "version: 1\ndefaults: {link: {bandwidth: 0G}}\nhosts: []\n", ErrLink, []string{"f:2: defaults.link.bandwidth: bandwidth 0 "}},
		{"too much bandwidth", nodes + "links:\n- {between: [h0, s], bandwidth: 999999999999999T}\n", ErrLink, []string{"f:5: links[0].bandwidth: "}},
		{"bandwidth in words", nodes + "links:\n- {between: [h0, s], bandwidth: fast}\n", ErrField, []string{"f:5: links[0].bandwidth: must be bit/s"}},
		{"half a bit", nodes + "links:\n- {between: [h0, s], bandwidth: 0.5}\n", ErrField, []string{"f:5: links[0].bandwidth: 0.5 is not a whole number"}},
		{"negative latency", nodes + "links:\n- {between: [h0, s], latency: -5ns}\n", ErrField, []string{"f:5: links[0].latency: must be a duration"}},
		{"latency without unit", nodes + "links:\n- {between: [h0, s], latency: 500}\n", ErrField, []string{"f:5: links[0].latency: must be a duration"}},
		{"a day of latency", nodes + "links:\n- {between: [h0, s], latency: 86400s}\n", ErrLink, []string{"f:5: links[0].latency: "}},
		{"duplicate names", "version: 1\nhosts:\n- a\n- b\n- a\nswitches:\n- name: b\n", ErrDuplicateName, []string{`f:5: hosts[2]: add host: "a"`, `f:7: switches[0].name: add switch: "b"`}},
		{"name with a mark", "version: 1\nhosts: [Zürich]\n", ErrName, []string{`f:2: hosts[0]: add host: "Zürich" may not have 'ü' at 1`}},
		{"bad name", "version: 1\nhosts: [a b]\n", ErrName, []string{`f:2: hosts[0]: add host: "a b" may not have ' ' at 1`}},
		{"number as name", "version: 1\nhosts: [12]\n", ErrField, []string{"f:2: hosts[0]: must be a string, not a number (put it in quotes)"}},
		{"switch without name", "version: 1\nswitches: [{slots: 3}]\n", ErrField, []string{"f:2: switches[0]: name is missing"}},
		{"negative slots", "version: 1\nswitches: [{name: s, slots: -3}]\n", ErrCapability, []string{"f:2: switches[0].slots: -3 is not within"}},
		{"huge chunk", "version: 1\nswitches: [{name: s, chunk: 1e15}]\n", ErrCapability, []string{"f:2: switches[0].chunk: "}},
		{"beyond numbers", "version: 1\nswitches: [{name: s, chunk: 1e300}]\n", ErrField, []string{"f:2: switches[0].chunk: 1e300 is not a whole number below"}},
		{"layer", "version: 1\nswitches: [{name: s, layer: 0}]\n", ErrLayer, []string{"f:2: switches[0].layer: "}},
		{"unknown function", "version: 1\nswitches: [{name: s, functions: [sum, mean]}]\n", ErrField, []string{"f:2: switches[0].functions[1]: "}},
		{"no function", "version: 1\nswitches: [{name: s, functions: [none]}]\n", ErrField, []string{"f:2: switches[0].functions[0]: "}},
		{"function twice", "version: 1\nswitches: [{name: s, functions: [sum, sum]}]\n", ErrField, []string{`f:2: switches[0].functions[1]: "sum" is there twice`}},
		{"functions in words", "version: 1\nswitches: [{name: s, functions: many}]\n", ErrField, []string{"f:2: switches[0].functions: must be all, none, or a list"}},
		{"unknown type", "version: 1\nswitches: [{name: s, types: [int8]}]\n", ErrField, []string{"f:2: switches[0].types[0]: "}},
		{"generator", "version: 1\ngenerator: fat-tree:3\n", ErrSpec, []string{`f:2: generator: fabric "fat-tree:3": `}},
		{"generator and hosts", "version: 1\ngenerator: fat-tree:4\nhosts: [h]\n", ErrField, []string{"f:3: hosts: not beside a generator"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := Read(strings.NewReader(test.text), "f")
			if !errors.Is(err, test.want) || g != nil {
				t.Fatalf("%v; want %v", err, test.want)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(test.messages) {
				t.Fatalf("%d errors, want %d:\n%v", len(lines), len(test.messages), err)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, test.messages[i]) {
					t.Errorf("got  %s\nwant %s", line, test.messages[i])
				}
			}
			var fe *FileError
			if !errors.As(err, &fe) || fe.File != "f" {
				t.Errorf("no FileError: %v", err)
			}
		})
	}
}

func TestReadReportsTwentyErrors(t *testing.T) {
	_, err := Read(strings.NewReader("version: 1\nhosts: ["+strings.Repeat("-,", 50)+"]\n"), "f")
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxFileErrors+1 || !strings.Contains(lines[maxFileErrors], "and 30 more") {
		t.Errorf("%d lines: %v", len(lines), lines[len(lines)-1])
	}
}

func TestReadFileAbsent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent.yaml")
	for _, read := range []func(string) (*Graph, error){ReadFile, Open} {
		if _, err := read(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v", err)
		}
	}
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken), "f"); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(path, []byte("version: 1\ngenerator: leaf-spine:4,3,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, argument := range []string{path, "leaf-spine:4,3,2"} {
		g, err := Open(argument)
		if err != nil || !Equal(g, generated(t, "leaf-spine:4,3,2")) {
			t.Errorf("%s: %v", argument, err)
		}
	}
	if _, err := Open("fat-tree:5"); !errors.Is(err, ErrSpec) {
		t.Errorf("%v", err)
	}
}

// compiledSchema is the schema in a separate implementation of JSON schema.
var compiledSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		return nil, err
	}
	return compiler.Compile("schema.json")
})

// schemaAccepts validates a document against the schema.
func schemaAccepts(t testing.TB, text []byte) error {
	t.Helper()
	compiled, err := compiledSchema()
	if err != nil {
		t.Fatal(err)
	}
	plain := text
	if text[bytes.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune(" \t\r\n", r) })] != '{' {
		var document any
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		if plain, err = json.Marshal(document); err != nil {
			t.Fatal(err)
		}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

// documentedExamples returns the YAML examples of docs/topology.md: topologies, and
// patches.
func documentedExamples(t testing.TB) (examples, patches [][]byte) {
	t.Helper()
	text, err := os.ReadFile("../docs/topology.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		if bytes.HasPrefix(m[1], []byte("version:")) {
			examples = append(examples, m[1])
		} else {
			patches = append(patches, m[1])
		}
	}
	return examples, patches
}

func TestDocumentedExamples(t *testing.T) {
	want := [][3]int{ // hosts, switches, links
		{16, 20, 48}, {12, 5, 18}, {96, 32, 96 + 32 + 32}, {16, 12, 64 + 32}, {72, 36, 72 + 54 + 36},
		{512, 512, 512 + 3*512}, {144, 36, 144 + 180}, {8, 4, 44}, {4, 4, 8},
	}
	examples, patches := documentedExamples(t)
	if len(examples) != len(want) || len(patches) != 1 {
		t.Fatalf("%d examples, %d patches", len(examples), len(patches))
	}
	g, err := LeafSpine(1, 8, 3)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := g.Patched(patches[0], "docs/topology.md", nil); err != nil || p.Graph.Hosts() != 8 || p.Graph.Switches() != 10 {
		t.Errorf("the patch: %+v, %v", p, err)
	}
	for i, text := range examples {
		g, err := Read(bytes.NewReader(text), "docs/topology.md")
		if err != nil {
			t.Fatal(err)
		}
		checkGraph(t, g)
		if got := [3]int{g.Hosts(), g.Switches(), g.Links()}; got != want[i] {
			t.Errorf("example %d has %v, want %v", i, got, want[i])
		}
		if err := schemaAccepts(t, text); err != nil {
			t.Errorf("example %d: %v", i, err)
		}
	}
	checkByHand(t, examples[len(examples)-1])
}

// checkByHand looks at what the last example says of its nodes and links.
func checkByHand(t *testing.T, text []byte) {
	g, err := Read(bytes.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) NodeID {
		n, ok := g.Lookup(name)
		if !ok {
			t.Fatalf("no node %s", name)
		}
		return n
	}
	red, blue := g.Capability(named("rack-red")), g.Capability(named("rack-blue"))
	if red.Slots != 2048 || red.Children != 16 || red.Functions != AllFunctions() || red.Chunk != DefaultChunk ||
		blue.Functions != FunctionsOf(reduce.Sum, reduce.Max) || blue.Slots != 2048 {
		t.Errorf("capabilities %+v, %+v", red, blue)
	}
	if g.Layer(named("row")) != 3 || g.Layer(named("old")) != 2 || g.Capability(named("old")).CanReduce() || !red.CanReduce() {
		t.Errorf("layers %d, %d; capability of old %+v", g.Layer(named("row")), g.Layer(named("old")), g.Capability(named("old")))
	}
	l, ok := g.LinkAt(named("rack-blue"), 31)
	if !ok || g.Link(l).Bandwidth != 400e9 || g.Link(l).Latency != 1200 || g.LinkName(l) != "rack-blue:31--row:2" {
		t.Errorf("link %s: %+v", g.LinkName(l), g.Link(l))
	}
	if _, ok := g.LinkAt(named("rack-blue"), 7); !ok {
		t.Error("no link at port 7")
	}
}

// TestSchemaRefuses checks that the schema itself refuses what it can see.
func TestSchemaRefuses(t *testing.T) {
	for _, text := range []string{
		"version: 2\nhosts: []", "generator: fat-tree:4", "version: 1", "version: 1\ngenerator: torus:4",
		"version: 1\ngenerator: fat-tree:4\nhosts: []", "version: 1\nhosts: [a b]", "version: 1\nhosts: []\nx: 1",
		"version: 1\nswitches: [{slots: 1}]", "version: 1\nswitches: [{name: s, slots: -1}]", "version: 1\nswitches: [{name: s, functions: [mean]}]",
		"version: 1\nhosts: []\nlinks: [{between: [a]}]", "version: 1\nhosts: []\nlinks: [{between: [a, b], ports: [0, 1]}]",
		"version: 1\nhosts: []\nlinks: [{between: [a, b], bandwidth: -1}]", "version: 1\nhosts: []\nlinks: [{between: [a, b], latency: 5}]",
		"version: 1\nhosts: [{speed: {bytes: 1}}]", "version: 1\nhosts: [{name: h, speed: 3}]", "version: 1\nswitches: [{name: s, speed: {bits: 1}}]",
		"version: 1\nswitches: [{name: s, speed: {bytes: -1}}]", "version: 1\nswitches: [{name: s, speed: {packets: 1.5}}]",
		"version: 1\nswitches: [{name: s, speed: {packets: 1P}}]", "version: 1\ndefaults: {host: {slots: 1}}\nhosts: []",
		"version: 1\nswitches: [{name: s, speed: {bytes: 1000000000000001}}]",
	} {
		if err := schemaAccepts(t, []byte(text)); err == nil {
			t.Errorf("the schema accepts %q", text)
		}
		if _, err := Read(strings.NewReader(text), "f"); err == nil {
			t.Errorf("Read accepts %q", text)
		}
	}
}

// TestSchemaNamesAll holds the schema's lists against package reduce.
func TestSchemaNamesAll(t *testing.T) {
	for _, name := range append(names(AllFunctions().List()), names(AllTypes().List())...) {
		field := "functions"
		if _, err := reduce.ParseType(name); err == nil {
			field = "types"
		}
		text := "version: 1\nswitches: [{name: s, " + field + ": [" + name + "]}]"
		if err := schemaAccepts(t, []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Read(strings.NewReader(text), "f"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func write(t testing.TB, g *Graph) (asYAML, asJSON []byte) {
	t.Helper()
	var y, j bytes.Buffer
	if err := errors.Join(WriteYAML(&y, g), WriteJSON(&j, g)); err != nil {
		t.Fatal(err)
	}
	return y.Bytes(), j.Bytes()
}

func checkRoundTrip(t testing.TB, g *Graph) {
	t.Helper()
	asYAML, asJSON := write(t, g)
	for _, text := range [][]byte{asYAML, asJSON} {
		back, err := Read(bytes.NewReader(text), "f")
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !Equal(g, back) {
			t.Fatalf("another graph came back from\n%s", text)
		}
	}
}

func TestWriteThenRead(t *testing.T) {
	for _, spec := range []string{"fat-tree:4", "leaf-spine:2,3,2", "four-switches"} {
		g := generated(t, spec)
		checkRoundTrip(t, g)
		asYAML, asJSON := write(t, g)
		if err := errors.Join(schemaAccepts(t, asYAML), schemaAccepts(t, asJSON)); err != nil {
			t.Error(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) { checkRoundTrip(t, drawGraph(rt)) })
}

func TestWriteErrors(t *testing.T) {
	g := generated(t, "fat-tree:4")
	for _, write := range []func(*failingWriter) error{
		func(w *failingWriter) error { return WriteYAML(w, g) },
		func(w *failingWriter) error { return WriteJSON(w, g) },
	} {
		if err := write(&failingWriter{}); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

type failingWriter struct{}

func (*failingWriter) Write([]byte) (int, error) { return 0, fs.ErrClosed }

func TestEqual(t *testing.T) {
	read := func(text string) *Graph {
		g, err := Read(strings.NewReader("version: 1\n"+text), "f")
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	const base = "hosts: [h]\nswitches: [{name: s}]\nlinks: [{between: [h, s]}]\n"
	g := read(base)
	for _, other := range []string{
		base + "name: x", strings.NewReplacer("h]", "i]", "[h,", "[i,").Replace(base), strings.ReplaceAll(base, "hosts: [h]", "hosts: [{name: h, speed: {bytes: 1}}]"),
		strings.ReplaceAll(base, "name: s", "name: s, speed: {packets: 0}"), strings.ReplaceAll(base, "[h, s]", "[s, h]"),
		strings.ReplaceAll(base, "name: s", "name: s, slots: 1"), strings.ReplaceAll(base, "name: s", "name: s, layer: 2"),
		"hosts: [h]\nswitches: [{name: s}]", strings.ReplaceAll(base, "s]", "s], latency: 1ns"), strings.ReplaceAll(base, "s]", "s], ports: [1, 2]"),
	} {
		if Equal(g, read(other)) {
			t.Errorf("equal:\n%s", other)
		}
	}
	if !Equal(g, read(base)) {
		t.Error("a graph does not equal itself")
	}
}

// FuzzRead reads anything: it gives a valid graph that survives writing, or
// errors that all name the file; and what it takes, the schema takes.
func FuzzRead(f *testing.F) {
	examples, _ := documentedExamples(f)
	for _, text := range examples {
		f.Add(text)
	}
	_, asJSON := write(f, generated(f, "leaf-spine:1,2,1"))
	f.Add(asJSON)
	f.Add([]byte("version: 1\nhosts: [a, a, 3]\nlinks: [{between: [a, b], ports: [0x1, 1e0], bandwidth: 2.5 Gbit/s}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte("fat-tree:")) || bytes.Contains(text, []byte("leaf-spine:")) {
			t.Skip("a few bytes can ask for millions of hosts")
		}
		g, err := Read(bytes.NewReader(text), "f")
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("an error without a place: %q", line)
				}
			}
			return
		}
		checkGraph(t, g)
		checkRoundTrip(t, g)
		if err := schemaAccepts(t, text); err != nil {
			t.Fatalf("the schema refuses what Read takes: %v", err)
		}
	})
}
