// Package generate_test keeps what is made from the P4 program current. It is no
// part of package p4, which would not compile without what it writes.
package generate_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"

	_ "github.com/tributary-fabric/tributary/internal/check/transcript" // the flag -update
)

const root = "../../"

// TestCurrent compares the digests in tributary.sum, which compile.sh writes,
// with the files: whoever changes the program must compile it, and nobody
// changes what the compiler made.
func TestCurrent(t *testing.T) {
	sums, err := os.ReadFile(root + "tributary.sum")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		digest, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("tributary.sum: %q is no digest and file", line)
		}
		listed[file] = digest
	}
	files, err := filepath.Glob(root + "stages/*.p4")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, root+"tributary.p4", root+"bmv2.jq", root+"tributary.json", root+"tributary.p4info.txtpb")
	for _, path := range files {
		file := strings.TrimPrefix(path, root)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); listed[file] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has changed since compile.sh was run", file)
		}
		delete(listed, file)
	}
	for file := range listed {
		t.Errorf("tributary.sum lists %s, which is no part of the program", file)
	}
}

// TestGenerated compares generated.go with what follows from the P4Info and
// from the constants of the program; with -update it writes the file.
func TestGenerated(t *testing.T) {
	const file = root + "generated.go"
	want := generate(t)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not current, run go generate (-want +got):\n%s", file, diff)
	}
}

func generate(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(root + "tributary.p4info.txtpb")
	if err != nil {
		t.Fatal(err)
	}
	info := new(configv1.P4Info)
	if err := prototext.Unmarshal(text, info); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprint(&b, "// Code generated from the P4 program by go generate; DO NOT EDIT.\n\npackage p4\n\n")
	fmt.Fprintf(&b, "// The program's name and version, as its P4Info gives them.\nconst (\nName = %q\nVersion = %q\n)\n\n",
		info.GetPkgInfo().GetName(), info.GetPkgInfo().GetVersion())
	generateIDs(&b, info)
	generateConstants(t, &b)
	generatePairs(t, &b)
	out, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatalf("%v:\n%s", err, b.String())
	}
	return out
}

// generateIDs writes the numbers of all that a control plane writes or reads.
func generateIDs(b *bytes.Buffer, info *configv1.P4Info) {
	named := map[uint32]*configv1.Action{}
	for _, a := range info.GetActions() {
		named[a.GetPreamble().GetId()] = a
	}
	used := map[uint32]bool{}
	fmt.Fprint(b, "// Tables, and the fields of their keys.\nconst (\n")
	for _, table := range info.GetTables() {
		if table.GetIsConstTable() {
			continue
		}
		name := camel(table.GetPreamble().GetAlias())
		fmt.Fprintf(b, "Table%s uint32 = %d\n", name, table.GetPreamble().GetId())
		for _, f := range table.GetMatchFields() {
			parts := strings.Split(f.GetName(), ".")
			fmt.Fprintf(b, "Field%s%s uint32 = %d // %d bits\n", name, camel(parts[len(parts)-1]), f.GetId(), f.GetBitwidth())
		}
		for _, a := range table.GetActionRefs() {
			used[a.GetId()] = a.GetScope() != configv1.ActionRef_DEFAULT_ONLY
		}
	}
	fmt.Fprint(b, ")\n\n// Actions of their entries.\nconst (\n")
	for _, a := range info.GetActions() {
		if id := a.GetPreamble().GetId(); used[id] {
			fmt.Fprintf(b, "Action%s uint32 = %d\n", camel(a.GetPreamble().GetAlias()), id)
		}
	}
	fmt.Fprint(b, ")\n\n// Counters.\nconst (\n")
	for _, c := range info.GetCounters() {
		fmt.Fprintf(b, "Counter%s uint32 = %d // %d cells\n", camel(c.GetPreamble().GetAlias()), c.GetPreamble().GetId(), c.GetSize())
	}
	fmt.Fprint(b, ")\n\n// Fields of the headers of packets from and to the pipeline, of 16 bits each.\nconst (\n")
	for _, h := range info.GetControllerPacketMetadata() {
		for _, f := range h.GetMetadata() {
			fmt.Fprintf(b, "%s%s uint32 = %d\n", camel(h.GetPreamble().GetName()), camel(f.GetName()), f.GetId())
		}
	}
	fmt.Fprint(b, ")\n\n")
}

var constant = regexp.MustCompile(`(?m)^const (int|bit<8>) (\w+) = (\d+);[ \t]*(?://[ \t]*(.*))?$`)

// generateConstants writes the limits and the outcomes.
func generateConstants(t *testing.T, b *bytes.Buffer) {
	t.Helper()
	fmt.Fprint(b, "// Limits, as stages/limits.p4 explains them.\nconst (\n")
	for _, c := range constantsIn(t, "stages/limits.p4") {
		fmt.Fprintf(b, "%s = %s%s\n", camel(c.name), c.value, c.comment)
	}
	fmt.Fprint(b, ")\n\n// Numbers of counters, as stages/outcomes.p4 explains them.\nconst (\n")
	all := constantsIn(t, "stages/outcomes.p4")
	for _, c := range all {
		if c.kind == "int" {
			fmt.Fprintf(b, "%s = %s%s\n", camel(c.name), c.value, c.comment)
		}
	}
	fmt.Fprint(b, ")\n\n// The outcomes.\nconst (\n")
	var outcomes, discards []parsed
	for _, c := range all {
		switch {
		case c.kind == "int":
		case strings.HasPrefix(c.name, "DISCARD_"):
			discards = append(discards, c)
		default:
			outcomes = append(outcomes, c)
			fmt.Fprintf(b, "%s Outcome = %s%s\n", camel(c.name), c.value, c.comment)
		}
	}
	fmt.Fprint(b, ")\n\n// The discards.\nconst (\n")
	for _, c := range discards {
		fmt.Fprintf(b, "%s Discard = %s%s\n", camel(c.name), c.value, c.comment)
	}
	fmt.Fprint(b, ")\n\nvar outcomeNames = [Outcomes]string{\n")
	for _, c := range outcomes {
		fmt.Fprintf(b, "%s: %q,\n", camel(c.name), words(c.name))
	}
	fmt.Fprint(b, "}\n\nvar discardNames = [Discards]string{\n")
	for _, c := range discards {
		fmt.Fprintf(b, "%s: %q,\n", camel(c.name), words(strings.TrimPrefix(c.name, "DISCARD_")))
	}
	fmt.Fprint(b, "}\n")
}

// parsed is a constant of a P4 file.
type parsed struct{ kind, name, value, comment string }

func constantsIn(t *testing.T, file string) []parsed {
	t.Helper()
	text, err := os.ReadFile(root + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []parsed
	for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
		c := parsed{kind: m[1], name: m[2], value: m[3]}
		if m[4] != "" {
			c.comment = " // " + m[4]
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		t.Fatalf("%s: no constants", file)
	}
	slices.SortStableFunc(all, func(a, b parsed) int { return cmp.Compare(b.kind, a.kind) })
	return all
}

// camel turns one.name, one_name and ONE_NAME into OneName.
func camel(name string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '.' || r == '_' }) {
		if part == "cpu" || part == "ttl" || part == "udp" {
			b.WriteString(strings.ToUpper(part))
			continue
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func words(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// pair is a row of the table of functions and types: their numbers, and the action.
var pair = regexp.MustCompile(`(?m)^ +\((\d+), (\d+)\): (\w+)\(`)

// generatePairs writes which functions the program reduces by itself, by type: those
// that the table of stages/soundness.p4 does not leave to the agent.
func generatePairs(t *testing.T, b *bytes.Buffer) {
	t.Helper()
	text, err := os.ReadFile(root + "stages/soundness.p4")
	if err != nil {
		t.Fatal(err)
	}
	var own []uint32
	rows := pair.FindAllSubmatch(text, -1)
	for _, row := range rows {
		function, err1 := strconv.Atoi(string(row[1]))
		element, err2 := strconv.Atoi(string(row[2]))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		own = append(own, make([]uint32, max(0, element+1-len(own)))...)
		if action := string(row[3]); action == "pair" || action == "steps" {
			own[element] |= 1 << function
		}
	}
	fmt.Fprint(b, "\n// own are the functions that the program reduces by itself, by element type, as\n// stages/soundness.p4 has them: a bit a function.\nvar own = [...]uint32{\n")
	for element, functions := range own {
		fmt.Fprintf(b, "%d: %#x,\n", element, functions)
	}
	fmt.Fprint(b, "}\n")
}
