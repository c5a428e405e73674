package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/whole/picture"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func plan(view topology.View, r pathsel.Request) (pathsel.Plan, error) {
	p, err := pathsel.NewPlanner(view.Graph(), pathsel.Config{})
	if err != nil {
		return pathsel.Plan{}, err
	}
	return p.Plan(view, nil, r)
}

// request is one for a tree over all hosts of g but those left out.
func request(g *topology.Graph, without ...string) pathsel.Request {
	r := pathsel.Request{
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Float32), Slots: 128, ChunkBytes: 1432,
	}
	for n := range topology.NodeID(g.Hosts()) {
		if !slices.Contains(without, g.Name(n)) {
			r.Members = append(r.Members, n)
		}
	}
	return r
}

func chosen(t testing.TB, view topology.View, without ...string) pathsel.Tree {
	t.Helper()
	c, err := plan(view, request(view.Graph(), without...))
	if err != nil {
		t.Fatal(err)
	}
	return c.Tree
}

func parsed(t testing.TB, spec string) *topology.Graph {
	t.Helper()
	g, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func drawn(t testing.TB, title string, scenes ...picture.Scene) string {
	t.Helper()
	var b bytes.Buffer
	if err := picture.SVG(&b, title, scenes...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// element is a group of the SVG that stands for something.
type element struct {
	class  string
	text   string
	shapes int
}

// elements parses an SVG and returns its groups by id.
func elements(t testing.TB, svg string) map[string]element {
	t.Helper()
	type group struct {
		ID     string `xml:"id,attr"`
		Class  string `xml:"class,attr"`
		Inner  string `xml:",innerxml"`
		Groups []struct {
			ID    string `xml:"id,attr"`
			Class string `xml:"class,attr"`
			Inner string `xml:",innerxml"`
		} `xml:"g"`
	}
	var doc struct {
		XMLName xml.Name `xml:"svg"`
		Graph   group    `xml:"g"`
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("not well-formed: %v", err)
	}
	if rest := strings.TrimSpace(svg[d.InputOffset():]); rest != "" {
		t.Fatalf("%q after the document", rest)
	}
	all := map[string]element{}
	for _, g := range doc.Graph.Groups {
		if _, twice := all[g.ID]; twice {
			t.Fatalf("id %q stands twice", g.ID)
		}
		all[g.ID] = element{g.Class, words(t, g.Inner), strings.Count(g.Inner, "<rect") + strings.Count(g.Inner, "<path")}
	}
	return all
}

// words returns the texts of an element, joined by spaces.
func words(t testing.TB, inner string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader("<g xmlns:xlink='x'>" + inner + "</g>"))
	var list []string
	for inText := false; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(list, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				list = append(list, string(token))
			}
		}
	}
}

// checkScene holds all elements of a scene against the fabric and the tree.
func checkScene(t *testing.T, all map[string]element, number int, s picture.Scene) {
	t.Helper()
	g := s.View.Graph()
	tree, onTree := map[topology.LinkID]bool{}, map[topology.NodeID]string{}
	for l := range s.Tree.Links() {
		tree[l] = true
	}
	for i, v := range s.Tree.Vertices {
		onTree[v.Switch] = "node switch reduces"
		if i == 0 {
			onTree[v.Switch] = "node switch reduces root"
		}
	}
	for _, l := range s.Tree.Leaves {
		onTree[l.Host] = "node host member"
	}
	count := 0
	for n := range topology.NodeID(g.Nodes()) {
		e, ok := all[fmt.Sprintf("s%d-%s", number, g.Name(n))]
		want, label := onTree[n], g.Name(n)
		switch {
		case !s.View.NodeUp(n) && g.IsSwitch(n):
			want, label = "node switch down", label+" failed"
		case want == "" && g.IsSwitch(n) && len(s.Tree.Vertices) == 0:
			want = "node switch able"
		case want == "" && g.IsSwitch(n):
			want = "node switch forwards"
		case want == "" && slices.Contains(s.Members, n):
			want = "node host member"
		case want == "":
			want = "node host bystander"
		case n == s.Tree.Root():
			label += " root"
			if e.shapes != 2 {
				t.Errorf("the root has %d borders, want 2", e.shapes)
			}
		}
		if !ok || e.class != want || e.text != label {
			t.Errorf("scene %d, %s: class %q with text %q, want %q with %q", number, g.Name(n), e.class, e.text, want, label)
		}
		count++
	}
	for l := range topology.LinkID(g.Links()) {
		want := "edge forwarding"
		switch {
		case tree[l]:
			want = "edge tree"
		case !s.View.Usable(l):
			want = "edge down"
		}
		e, ok := all[fmt.Sprintf("s%d-link-%d", number, l)]
		if !ok || e.class != want || e.shapes != 1 {
			t.Errorf("scene %d, %s: %+v, want class %q and a path", number, g.LinkName(l), e, want)
		}
		count++
	}
	found := 0
	for id := range all {
		if strings.HasPrefix(id, fmt.Sprintf("s%d-", number)) {
			found++
		}
	}
	if found != count {
		t.Errorf("scene %d has %d elements, want %d", number, found, count)
	}
}

func TestEveryNodeAndExactlyTheTreesLinks(t *testing.T) {
	for _, spec := range []string{"fat-tree:4", "leaf-spine:4,2,2", "leaf-spine:20,1,0", "four-switches", "leaf-spine:7,3,2"} {
		t.Run(spec, func(t *testing.T) {
			g := parsed(t, spec)
			before := picture.Scene{Heading: "before", View: g.View(), Tree: chosen(t, g.View(), "h1")}
			failed, err := topology.NewOverlay(g).With(topology.NodeState(before.Tree.Root(), false), topology.LinkState(0, false))
			if err != nil {
				t.Fatal(err)
			}
			after := picture.Scene{View: failed.View(), Members: request(g, "h1").Members}
			if c, err := plan(failed.View(), request(g, "h0", "h1")); err == nil {
				after.Tree = c.Tree
			} else if !errors.Is(err, pathsel.ErrNoTree) {
				t.Fatal(err)
			}
			all := elements(t, drawn(t, "The title", before, after))
			checkScene(t, all, 1, before)
			checkScene(t, all, 2, after)
		})
	}
}

// Hosts with several links or none, islands, parallel links, links within a
// layer: whatever a file may describe is drawn in full.
func TestAnyFabricCanBeDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		var b topology.Builder
		var switches []topology.Ref
		for i := range 1 + r.IntN(12) {
			s, err := b.AddSwitch(fmt.Sprint("s", i), topology.DefaultCapability())
			if err != nil {
				t.Fatal(err)
			}
			switches = append(switches, s)
		}
		link := func(x, y topology.Ref) {
			if x == y {
				return
			}
			if _, err := b.Connect(x, 0, y, 0, topology.DefaultLink()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1 + r.IntN(40) {
			h, err := b.AddHost(fmt.Sprint("host-", i))
			if err != nil {
				t.Fatal(err)
			}
			for range r.IntN(4) {
				link(h, switches[r.IntN(len(switches))])
			}
		}
		for range r.IntN(30) {
			link(switches[r.IntN(len(switches))], switches[r.IntN(len(switches))])
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		scene := picture.Scene{View: g.View(), Members: request(g).Members[:1]}
		for n := range g.Hosts() { // as many members as one tree can have
			try := request(g)
			try.Members = try.Members[n:]
			if c, err := plan(g.View(), try); err == nil {
				scene.Tree = c.Tree
				break
			}
		}
		svg := drawn(t, "any", scene)
		if strings.Contains(svg, "nan") || strings.Contains(svg, "inf") {
			t.Fatal("something has no place")
		}
		checkScene(t, elements(t, svg), 1, scene)
	}
}

func TestSaysWhatAStrangerMustKnow(t *testing.T) {
	g := parsed(t, "leaf-spine:2,2,2")
	svg := drawn(t, `A & B <"group"> \N`, picture.Scene{Heading: "the first moment", View: g.View(), Tree: chosen(t, g.View())})
	text := ""
	for _, e := range elements(t, svg) {
		text += e.text + "\n"
	}
	for _, want := range []string{
		`A & B <"group"> \N`, "the first moment", "root switch", "switch on the tree", "other switch", "member of the group",
		"link of the collection tree", "link that the tree does not use",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	for _, absent := range []string{"failed", "no member", "is down", "too large"} {
		if strings.Contains(text, absent) {
			t.Errorf("%q is said of what is not there", absent)
		}
	}
}

// TestLegendWithoutATree says nothing of trees.
func TestLegendWithoutATree(t *testing.T) {
	g, err := topology.Read(strings.NewReader("version: 1\nhosts: [h]\nswitches: [{name: s, slots: 0}]\nlinks: [{between: [h, s]}]\n"), "x")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := picture.SVG(&out, "Fabric", picture.Scene{View: g.View()}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "the tree") || !strings.Contains(out.String(), ">link<") {
		t.Errorf("%s", out.String())
	}
}

func TestSameScenesSameBytes(t *testing.T) {
	g := parsed(t, "fat-tree:4")
	scene := picture.Scene{View: g.View(), Tree: chosen(t, g.View())}
	first := drawn(t, "title", scene)
	for range 3 {
		if drawn(t, "title", scene) != first {
			t.Fatal("the same scene was drawn otherwise")
		}
	}
}

func TestLargeFabricsShowTheTreeAlone(t *testing.T) {
	for _, c := range []struct {
		spec    string
		members int // the first ones; 0: all
		boxes   int // of the scene
		links   int
		says    string
	}{
		{"fat-tree:16", 20, 20 + 3 + 1, 20 + 3, "without the fabric's 1004 other hosts and 316 other switches"},
		{"fat-tree:16", 0, 1 + 16 + 16, 16 + 16, "8 switches with 64 members"},
		{"leaf-spine:300,2,1", 0, 3 + 2, 2 + 2, "300 members"},
		{"leaf-spine:400,1,0", 0, 2, 1, "400 members"},
	} {
		t.Run(fmt.Sprint(c.spec, " ", c.members), func(t *testing.T) {
			e := topology.DefaultEquipment()
			e.Switch.Children = 1000
			g, err := e.Parse(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			r := request(g)
			if c.members > 0 {
				r.Members = r.Members[:c.members]
			}
			choice, err := plan(g.View(), r)
			if err != nil {
				t.Fatal(err)
			}
			boxes, links, text := 0, 0, ""
			for id, e := range elements(t, drawn(t, "large", picture.Scene{View: g.View(), Tree: choice.Tree})) {
				text += e.text + "\n"
				switch {
				case strings.HasPrefix(id, "s1-link"):
					links++
					if e.class != "edge tree" {
						t.Errorf("%s has class %q", id, e.class)
					}
				case strings.HasPrefix(id, "s1-"):
					boxes++
				}
			}
			if boxes != c.boxes || links != c.links {
				t.Errorf("%d boxes and %d links, want %d and %d", boxes, links, c.boxes, c.links)
			}
			if !strings.Contains(text, c.says) || !strings.Contains(text, "too large to be drawn whole") {
				t.Errorf("nothing says %q, and that the fabric is too large", c.says)
			}
		})
	}
}

// A large fabric without a tree is drawn with boxes for what is alike.
func TestLargeFabricsInOutline(t *testing.T) {
	for _, c := range []struct {
		spec         string
		boxes, links int
		says         []string
	}{
		{"leaf-spine:20,40,4", 40 + 4 + 40, 40*4 + 40, []string{"20 hosts h0 to h19", "spine-3", "All hosts of a switch are drawn as one box"}},
		{"fat-tree:16", 1 + 16*3, 16 * 3, []string{"64 switches core-0 to core-63", "8 switches", "64 hosts", "in each part that only the highest layer joins"}},
		{"leaf-spine:1,400,4", 3, 2, []string{"4 switches spine-0 to spine-3", "400 switches leaf-0 to leaf-399", "400 hosts h0 to h399"}},
		{"torus:1,20,20", 2, 1, []string{"400 switches", "400 hosts"}},
		{"fat-tree:64", 4, 3, []string{"1024 switches core-0 to core-1023", "65536 hosts h0 to h65535"}},
	} {
		t.Run(c.spec, func(t *testing.T) {
			e := topology.DefaultEquipment()
			e.Switch.Children = 1000
			g, err := e.Parse(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			outlined(t, picture.Scene{View: g.View()}, c.boxes, c.links, c.says...)
		})
	}
}

// What is not as the others are has boxes of its own.
func TestOutlineShowsWhatIsNotAsItShouldBe(t *testing.T) {
	g := parsed(t, "leaf-spine:1,400,4")
	node := func(name string) topology.NodeID {
		n, ok := g.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		return n
	}
	failed, err := topology.NewOverlay(g).With(
		topology.NodeState(node("leaf-7"), false), topology.NodeState(node("h3"), false), topology.NodeState(node("h9"), false))
	if err != nil {
		t.Fatal(err)
	}
	scene := picture.Scene{View: failed.View(), Switches: map[topology.NodeID]picture.Standing{
		node("leaf-1"): {Draining: true}, node("leaf-2"): {Draining: true}, node("spine-2"): {Absent: true}, node("leaf-9"): {Trees: 3},
	}}
	outlined(t, scene, 2+4+2, 2*4+3+2, "398 hosts", "2 hosts, failed h3, h9", "leaf-7 failed", "2 switches, draining leaf-1, leaf-2", "spine-2 no agent", "leaf-9")
}

// outlined draws a scene, which has so many boxes and links, no two of one id, and
// says so much.
func outlined(t *testing.T, scene picture.Scene, boxes, links int, says ...string) {
	t.Helper()
	text := ""
	for id, e := range elements(t, drawn(t, "large", scene)) {
		text += strings.Join(strings.Fields(e.text), " ") + "\n"
		switch {
		case strings.HasPrefix(id, "s1-link"):
			links--
		case strings.HasPrefix(id, "s1-"):
			boxes--
		}
	}
	if boxes != 0 || links != 0 {
		t.Errorf("%d boxes and %d links are missing", boxes, links)
	}
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in\n%s", want, text)
		}
	}
}

func TestRefusesWhatCannotBeDrawn(t *testing.T) {
	g, other := parsed(t, "leaf-spine:2,2,2"), parsed(t, "four-switches")
	for name, scenes := range map[string][]picture.Scene{
		"no scene":             nil,
		"no fabric":            {{}},
		"another fabric's":     {{View: g.View(), Tree: chosen(t, other.View())}},
		"a switch as a member": {{View: g.View(), Members: []topology.NodeID{g.Switch(0)}}},
	} {
		if err := picture.SVG(io.Discard, "title", scenes...); !errors.Is(err, picture.ErrScene) {
			t.Errorf("%s: %v, want %v", name, err, picture.ErrScene)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestReportsThatItCannotWrite(t *testing.T) {
	g := parsed(t, "leaf-spine:2,2,2")
	if err := picture.SVG(full{}, "title", picture.Scene{View: g.View()}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v, want %v", err, io.ErrShortWrite)
	}
}
