package field

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

func TestMembers(t *testing.T) {
	want := []hostlib.Member{{Host: "h0", Addr: "10.0.0.1:7102"}, {Host: "h1", Addr: "[fd00::1]:7102"}}
	var b bytes.Buffer
	if err := WriteMembers(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadMembers(strings.NewReader("# rank host\n\n"+b.String()), "f")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, message := range map[string]string{
		"":                    "f: nobody",
		"h0\n":                "f:1: 1 words",
		"h0 a:1\n#\nh1 b 1":   "f:3: 3 words",
		"# nobody but this\n": "f: nobody",
	} {
		if _, err := ReadMembers(strings.NewReader(text), "f"); !errors.Is(err, ErrMembers) || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSightTree(t *testing.T) {
	g, err := topology.LeafSpine(1, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := Sight{
		Epoch:    2,
		Switches: []rpc.TreeVertex{{Switch: "spine-1", Parent: -1}, {Switch: "leaf-0", Parent: 0}, {Switch: "leaf-1", Parent: 0}},
		Members:  []rpc.TreeLeaf{{Host: "h0", Vertex: 1}, {Host: "h1", Vertex: 2}},
	}
	tree, err := s.Tree(g)
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for l := range tree.Links() {
		links = append(links, g.LinkName(l))
	}
	slices.Sort(links)
	if want := []string{"h0:1--leaf-0:1", "h1:1--leaf-1:1", "leaf-0:3--spine-1:1", "leaf-1:3--spine-1:2"}; !slices.Equal(links, want) {
		t.Errorf("links %v, want %v", links, want)
	}
	s.Switches[2].Switch = "leaf-7"
	if _, err := s.Tree(g); err == nil || !strings.Contains(err.Error(), "leaf-7") {
		t.Errorf("a switch that the fabric lacks: %v", err)
	}
	s.Switches[2].Switch, s.Members[1].Host = "leaf-1", "h0"
	if _, err := s.Tree(g); err == nil {
		t.Error("a tree with a member that is not at its leaf")
	}
}

func TestSeedOf(t *testing.T) {
	if first, again := SeedOf("h0"), SeedOf("h0"); first != again || first == SeedOf("h1") {
		t.Error("seeds do not distinguish nodes, or are not always the same")
	}
}
