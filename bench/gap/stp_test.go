package gap

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadSTP(t *testing.T) {
	f, err := os.Open("testdata/ring.stp")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := readSTP(f)
	if err != nil {
		t.Fatal(err)
	}
	if in.name != "a ring of five" || in.problem.Graph.Nodes() != 5 {
		t.Errorf("%q of %d nodes", in.name, in.problem.Graph.Nodes())
	}
	if d := cmp.Diff([][2]int32{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 4}}, in.problem.Graph.Ends()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{1, 2, 3.5, 0, 5}, in.problem.Cost); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int32{2, 0, 3}, in.problem.Terminals); d != "" {
		t.Error(d)
	}
}

// file returns a file of the given Graph and Terminals lines.
func file(graph, terminals string) string {
	return "33D32945 STP File, STP Format Version 1.0\nSECTION Graph\n" + graph +
		"\nEND\nSECTION Terminals\n" + terminals + "\nEND\nEOF\n"
}

func TestMalformedSTP(t *testing.T) {
	good := file("Nodes 2\nEdges 1\nE 1 2 3", "Terminals 1\nT 1")
	if _, err := readSTP(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, says string }{
		"empty":               {"", "no number of nodes"},
		"another format":      {"graph { a -- b }\n", "line 1"},
		"a section cut off":   {strings.TrimSuffix(good, "END\nEOF\n"), "does not end"},
		"a line outside":      {strings.Replace(good, "EOF", "T 2\nEOF", 1), "outside"},
		"an edge too few":     {strings.Replace(good, "Edges 1", "Edges 2", 1), "announced were 2"},
		"a terminal too many": {strings.Replace(good, "Terminals 1\n", "Terminals 0\n", 1), "announced were 0"},
		"no terminal":         {file("Nodes 2", ""), "no terminal"},
		"a terminal twice":    {file("Nodes 2", "T 1\nT 1"), "twice"},
		"a node from 0":       {file("Nodes 2\nE 0 1 1", "T 1"), "line 4"},
		"a node too far":      {file("Nodes 2\nE 1 3 1", "T 1"), "1 to 2"},
		"nodes come late":     {file("E 1 2 1\nNodes 2", "T 1"), "before the number"},
		"nodes twice":         {file("Nodes 2\nNodes 3", "T 1"), "twice"},
		"too many nodes":      {file("Nodes 99999999", "T 1"), "not a number"},
		"a negative cost":     {file("Nodes 2\nE 1 2 -1", "T 1"), "no cost"},
		"a cost of no number": {file("Nodes 2\nE 1 2 NaN", "T 1"), "no cost"},
		"no cost":             {file("Nodes 2\nE 1 2", "T 1"), "two nodes and a cost"},
		"a loop":              {file("Nodes 2\nE 1 1 1", "T 1"), "itself"},
		"directed arcs":       {file("Nodes 2\nA 1 2 1", "T 1"), "undirected"},
		"a root":              {file("Nodes 2\nE 1 2 1", "RootP 1"), "without root"},
		"a degree section":    {strings.Replace(good, "EOF", "SECTION MaximumDegrees\nMD 1\nEND\nEOF", 1), "not known"},
		"a long line":         {file("Nodes 2\n"+strings.Repeat("E", maxLine), "T 1"), "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readSTP(strings.NewReader(c.text))
			if !errors.Is(err, errFormat) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
}

func FuzzReadSTP(f *testing.F) {
	ring, err := os.ReadFile("testdata/ring.stp")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ring)
	f.Add([]byte(file("Nodes 2\nEdges 1\nE 1 2 1e300", "T 2")))
	f.Add([]byte(file("Nodes 70000", "T 1")))
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := readSTP(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, errFormat) {
				t.Fatal(err)
			}
			return
		}
		if err := in.problem.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
