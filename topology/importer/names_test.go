package importer

import (
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

func TestValidName(t *testing.T) {
	for label, want := range map[string]string{
		"leaf-1/a.b_c":           "leaf-1/a.b_c",
		"  São Paulo (2) ":       "Sao-Paulo-2",
		"Łódź":                   "Lodz",
		"Straße":                 "Strasse",
		"东京":                     "",
		"_-x":                    "x",
		"a\x00\xffb":             "a-b",
		strings.Repeat("é", 300): strings.Repeat("e", maxName),
	} {
		if got := validName(label); got != want {
			t.Errorf("validName(%q) = %q, want %q", label, got, want)
		}
	}
	for text, want := range map[string]string{"a\n\x00b  é": "a b  é", strings.Repeat("é", 300): strings.Repeat("é", maxName/2), "\xff": ""} {
		if got := fabricName(text); strings.TrimSpace(got) != want {
			t.Errorf("fabricName(%q) = %q", text, got)
		}
	}
}

// TestNamesAreUnique has names that stand as they are, and others that would
// become the same.
func TestNamesAreUnique(t *testing.T) {
	d := newDraft("f", GML, DefaultConfig())
	var want []string
	for _, n := range []struct{ id, label, name string }{
		{"1", "a", "a-1"}, {"2", "a", "a-2-2"}, {"3", "a-2", "a-2"}, {"4", "", "node-4"}, {"5", "?", "node-5"}, {"6", "é", "e"}, {"?", "a", "a"}, {"!", "", "node"},
	} {
		d.add(node{id: n.id, label: n.label, kind: topology.Switch})
		want = append(want, n.name)
	}
	d.settleNames()
	var got []string
	for _, n := range d.nodes {
		got = append(got, n.name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}
