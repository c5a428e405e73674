package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hostDiameter returns the links on the longest of the shortest ways between two
// hosts, by breadth-first search from each; -1 where two do not reach each other.
func hostDiameter(g *Graph) int {
	diameter := 0
	for from := range NodeID(g.Hosts()) {
		distance := make([]int, g.Nodes())
		for i := range distance {
			distance[i] = -1
		}
		distance[from] = 0
		for queue := []NodeID{from}; len(queue) > 0; queue = queue[1:] {
			n := queue[0]
			if n != from && g.IsHost(n) {
				continue // hosts do not forward
			}
			for _, l := range g.Adjacent(n) {
				if m := g.Across(l, n); distance[m] < 0 {
					distance[m] = distance[n] + 1
					queue = append(queue, m)
				}
			}
		}
		if least := slices.Min(distance[:g.Hosts()]); least < 0 {
			return -1
		}
		diameter = max(diameter, slices.Max(distance[:g.Hosts()]))
	}
	return diameter
}

// shapeCase is a fabric and what closed forms say of it.
type shapeCase struct {
	graph                  *Graph
	spec                   string
	hosts, switches, links int
	hostDegree             int
	diameter               int // -1: not connected; below that: at most its opposite
	joined                 func(a, b string) int
}

// hostsOf returns how many links host h%d has to a switch, of so many on each.
func hostsOf(perSwitch int, names []string, h string) string {
	var i int
	if _, err := fmt.Sscanf(h, "h%d", &i); err != nil {
		panic(err)
	}
	return names[i/perSwitch]
}

// gridNames returns the switches of a grid in order, by counting in all
// dimensions.
func gridNames(sides []int) []string {
	names := []string{"sw"}
	for _, side := range sides {
		var longer []string
		for _, name := range names {
			for x := range side {
				longer = append(longer, fmt.Sprintf("%s-%d", name, x))
			}
		}
		names = longer
	}
	return names
}

func coordinates(name string) []int {
	var at []int
	for _, field := range strings.Split(name, "-")[1:] {
		var x int
		if _, err := fmt.Sscan(field, &x); err != nil {
			panic(err)
		}
		at = append(at, x)
	}
	return at
}

// apart returns along how many dimensions two switches differ, and by how much
// along the last such.
func apart(a, b string) (dimensions, distance, dimension int) {
	x, y := coordinates(a), coordinates(b)
	for d := range x {
		if x[d] != y[d] {
			dimensions, distance, dimension = dimensions+1, max(x[d]-y[d], y[d]-x[d]), d
		}
	}
	return dimensions, distance, dimension
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func drawGrid(t *rapid.T, ringed bool) shapeCase {
	s := GridShape{
		Hosts: rapid.IntRange(1, 3).Draw(t, "hosts"),
		Sides: rapid.SliceOfN(rapid.IntRange(2, 4), 1, 3).Draw(t, "sides"),
	}
	n, ends, diameter := product(s.Sides...), 0, 2
	for _, side := range s.Sides {
		switch {
		case !ringed:
			ends += n * (side - 1)
			diameter++
		case side == 2:
			ends += n
			diameter++
		default:
			ends += 2 * n
			diameter += side / 2
		}
	}
	c := shapeCase{
		hosts: n * s.Hosts, switches: n, links: n*s.Hosts + ends/2, hostDegree: 1, diameter: diameter,
	}
	names := gridNames(s.Sides)
	c.joined = func(a, b string) int {
		if a[0] == 'h' {
			return yes(hostsOf(s.Hosts, names, a) == b)
		}
		dimensions, distance, d := apart(a, b)
		return yes(dimensions == 1 && (!ringed || distance == 1 || distance == s.Sides[d]-1))
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Sides), " ", ","), "[]")
	if ringed {
		c.graph, c.spec = must(Torus(s)), fmt.Sprintf("torus:%d,%s", s.Hosts, list)
	} else {
		c.graph, c.spec = must(HyperX(s)), fmt.Sprintf("hyperx:%d,%s", s.Hosts, list)
	}
	return c
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

func drawDragonfly(t *rapid.T) shapeCase {
	s := DragonflyShape{
		Hosts: rapid.IntRange(1, 2).Draw(t, "hosts"), Switches: rapid.IntRange(1, 4).Draw(t, "switches"), Global: rapid.IntRange(0, 2).Draw(t, "global"),
	}
	s.Groups = rapid.IntRange(1, s.Switches*s.Global+1).Draw(t, "groups")
	n := s.Switches * s.Groups
	pair := 0
	if s.Groups > 1 {
		pair = s.Switches * s.Global / (s.Groups - 1)
	}
	return shapeCase{
		graph: must(Dragonfly(s)), spec: fmt.Sprintf("dragonfly:%d,%d,%d,%d", s.Hosts, s.Switches, s.Global, s.Groups),
		hosts: n * s.Hosts, switches: n, hostDegree: 1, diameter: -5,
		links: n*s.Hosts + s.Groups*s.Switches*(s.Switches-1)/2 + pair*s.Groups*(s.Groups-1)/2,
		joined: func(a, b string) int {
			if a[0] == 'h' {
				return yes(hostsOf(s.Hosts, gridNames([]int{s.Groups, s.Switches}), a) == b)
			}
			x, y := coordinates(a), coordinates(b)
			if x[0] == y[0] {
				return yes(x[1] != y[1])
			}
			// Of each group, port q of those to others leads to the (q mod (g-1))-th other.
			links := 0
			for q := range pair * (s.Groups - 1) {
				to := q % (s.Groups - 1)
				if to >= x[0] {
					to++
				}
				from := x[0]
				if from > to {
					from--
				}
				back := q/(s.Groups-1)*(s.Groups-1) + from
				links += yes(q/s.Global == x[1] && to == y[0] && back/s.Global == y[1])
			}
			return links
		},
	}
}

func drawClos(t *rapid.T) shapeCase {
	s := ClosShape{
		Hosts: rapid.IntRange(1, 3).Draw(t, "hosts"), Leaves: rapid.IntRange(1, 3).Draw(t, "leaves"), Aggs: rapid.IntRange(1, 3).Draw(t, "aggs"),
		Cores: rapid.IntRange(1, 3).Draw(t, "cores"), Pods: rapid.IntRange(1, 3).Draw(t, "pods"),
	}
	hosts := s.Hosts * s.Leaves * s.Pods
	diameter := 6
	switch {
	case hosts == 1:
		diameter = 0
	case s.Leaves*s.Pods == 1:
		diameter = 2
	case s.Pods == 1:
		diameter = 4
	}
	return shapeCase{
		graph: must(Clos(s)), spec: fmt.Sprintf("clos:%d,%d,%d,%d,%d", s.Hosts, s.Leaves, s.Aggs, s.Cores, s.Pods),
		hosts: hosts, switches: (s.Leaves+s.Aggs)*s.Pods + s.Aggs*s.Cores, hostDegree: 1, diameter: diameter,
		links: hosts + s.Leaves*s.Aggs*s.Pods + s.Aggs*s.Cores*s.Pods,
		joined: func(a, b string) int {
			kinds := kindOf(a) + kindOf(b)
			switch {
			case kinds == "hleaf":
				return yes(strings.Replace(hostsOf(s.Hosts, gridNames([]int{s.Pods, s.Leaves}), a), "sw", "leaf", 1) == b)
			case kinds == "leafagg" || kinds == "aggleaf":
				return yes(coordinates(a)[0] == coordinates(b)[0])
			case kinds == "aggcore":
				return yes(coordinates(a)[1] == coordinates(b)[0])
			case kinds == "coreagg":
				return yes(coordinates(b)[1] == coordinates(a)[0])
			}
			return 0
		},
	}
}

// kindOf returns a name up to its first number.
func kindOf(name string) string { return strings.TrimRight(name, "-0123456789") }

func drawRail(t *rapid.T) shapeCase {
	s := RailShape{
		Hosts: rapid.IntRange(1, 4).Draw(t, "hosts"), Rails: rapid.IntRange(1, 4).Draw(t, "rails"), Pods: rapid.IntRange(1, 3).Draw(t, "pods"),
	}
	s.Spines = rapid.IntRange(yes(s.Pods > 1), 3).Draw(t, "spines")
	hosts, leaves := s.Hosts*s.Pods, s.Rails*s.Pods
	diameter := 2
	switch {
	case hosts == 1:
		diameter = 0
	case s.Pods > 1:
		diameter = 4
	}
	return shapeCase{
		graph: must(Rail(s)), spec: fmt.Sprintf("rail:%d,%d,%d,%d", s.Hosts, s.Rails, s.Pods, s.Spines),
		hosts: hosts, switches: leaves + s.Spines, links: hosts*s.Rails + leaves*s.Spines, hostDegree: s.Rails, diameter: diameter,
		joined: func(a, b string) int {
			switch kindOf(a) + kindOf(b) {
			case "hleaf":
				pod := coordinates("x-" + a[1:])[0] / s.Hosts
				return yes(coordinates(b)[0] == pod)
			case "leafspine", "spineleaf":
				return 1
			}
			return 0
		},
	}
}

// TestShapes holds every generator against closed forms, and every pair of nodes
// against the definition of the fabric in words of names.
func TestShapes(t *testing.T) {
	for name, draw := range map[string]func(*rapid.T) shapeCase{
		"torus":  func(t *rapid.T) shapeCase { return drawGrid(t, true) },
		"hyperx": func(t *rapid.T) shapeCase { return drawGrid(t, false) },
		"clos":   drawClos, "rail": drawRail, "dragonfly": drawDragonfly,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { checkShape(t, rt, draw(rt)) })
		})
	}
}

func checkShape(t *testing.T, rt *rapid.T, c shapeCase) {
	g := c.graph
	checkGraph(t, g)
	if g.Hosts() != c.hosts || g.Switches() != c.switches || g.Links() != c.links || g.Fabric() != c.spec {
		rt.Fatalf("%s: %d hosts, %d switches, %d links; want %s with %d, %d, %d",
			g.Fabric(), g.Hosts(), g.Switches(), g.Links(), c.spec, c.hosts, c.switches, c.links)
	}
	if back, err := Parse(c.spec); err != nil || !Equal(back, g) {
		rt.Fatalf("Parse(%q): %v", c.spec, err)
	}
	if got := hostDiameter(g); got != c.diameter && !(c.diameter < -1 && got >= 0 && got <= -c.diameter) {
		rt.Fatalf("%s: diameter %d, want %d", c.spec, got, c.diameter)
	}
	if !slices.Equal(g.layers, g.layersFromHosts()) {
		rt.Fatalf("%s: layers %v, by distance %v", c.spec, g.layers, g.layersFromHosts())
	}
	links := map[[2]NodeID]int{}
	for _, link := range g.AllLinks() {
		links[[2]NodeID{link.Ends[0].Node, link.Ends[1].Node}]++
		links[[2]NodeID{link.Ends[1].Node, link.Ends[0].Node}]++
	}
	for a := range NodeID(g.Nodes()) {
		if g.IsHost(a) && g.Degree(a) != c.hostDegree {
			rt.Fatalf("%s has %d links", g.Name(a), g.Degree(a))
		}
		for b := max(a+1, NodeID(g.Hosts())); int(b) < g.Nodes(); b++ {
			if want := c.joined(g.Name(a), g.Name(b)); links[[2]NodeID{a, b}] != want {
				rt.Fatalf("%s: %d links between %s and %s, want %d", c.spec, links[[2]NodeID{a, b}], g.Name(a), g.Name(b), want)
			}
		}
	}
}

// TestKnownFabrics looks at instances whose numbers are published or plain.
func TestKnownFabrics(t *testing.T) {
	for _, test := range []struct {
		spec                   string
		hosts, switches, links int
		diameter               int // between hosts, in links
		names                  []string
	}{
		// Kim et al., ISCA 2008, figure 5: p = h = 2, a = 4, N = 72.
		{"dragonfly:2,4,2,9", 72, 36, 72 + 9*6 + 36, 5, []string{"h71:1--sw-8-3:2", "sw-0-0:3--sw-0-1:3", "sw-0-0:6--sw-1-0:6", "sw-0-3:7--sw-8-0:6"}},
		{"dragonfly:1,1,0,1", 1, 1, 1, 0, nil},
		{"torus:1,4,4,4", 64, 64, 64 + 3*64, 8, []string{"sw-0-0-0:6--sw-0-0-1:7", "sw-3-0-0:2--sw-0-0-0:3"}},
		{"torus:2,2,3", 12, 6, 12 + 3 + 6, 4, []string{"sw-0-0:3--sw-1-0:3", "sw-0-2:5--sw-0-0:6"}},
		{"hyperx:4,2,2,2", 32, 8, 32 + 12, 5, nil}, // a hypercube
		{"hyperx:1,5", 5, 5, 5 + 10, 3, []string{"sw-0:2--sw-1:2", "sw-3:5--sw-4:5"}},
		{"clos:2,2,2,2,4", 16, 20, 48, 6, []string{"h0:1--leaf-0-0:1", "leaf-0-0:3--agg-0-0:1", "agg-2-1:3--core-1-0:3"}}, // fat-tree:4
		{"clos:3,2,1,0,1", 6, 3, 8, 4, nil},
		{"rail:32,8,4,8", 128, 40, 128*8 + 32*8, 4, []string{"h0:1--leaf-0-0:1", "h127:8--leaf-3-7:32", "leaf-3-7:40--spine-7:32"}},
		{"rail:4,2,1,0", 4, 2, 8, 2, nil},
	} {
		g := generated(t, test.spec)
		checkGraph(t, g)
		if g.Hosts() != test.hosts || g.Switches() != test.switches || g.Links() != test.links || hostDiameter(g) != test.diameter {
			t.Errorf("%s: %d hosts, %d switches, %d links, diameter %d", test.spec, g.Hosts(), g.Switches(), g.Links(), hostDiameter(g))
		}
		names := map[string]bool{}
		for l := range g.AllLinks() {
			names[g.LinkName(l)] = true
		}
		for _, name := range test.names {
			if !names[name] {
				t.Errorf("%s: no link %s", test.spec, name)
			}
		}
	}
}

// TestClosIsAFatTree compares a Clos without oversubscription, all of whose
// switches have as many ports, with the fat-tree of them.
func TestClosIsAFatTree(t *testing.T) {
	const half = 3
	shape := ClosShape{Hosts: half, Leaves: half, Aggs: half, Cores: half, Pods: 2 * half}
	clos, tree := must(Clos(shape)), must(FatTree(2*half))
	if leaf, agg := shape.Oversubscription(); leaf != 1 || agg != 1 {
		t.Errorf("oversubscription %v, %v", leaf, agg)
	}
	if leaf, agg := (ClosShape{Hosts: 6, Aggs: 2, Leaves: 4, Cores: 8}).Oversubscription(); leaf != 3 || agg != 0.5 {
		t.Errorf("oversubscription %v, %v", leaf, agg)
	}
	if clos.Nodes() != tree.Nodes() || clos.Links() != tree.Links() || !slices.Equal(clos.ends, tree.ends) || !slices.Equal(clos.ports, tree.ports) {
		t.Error("the same fabric twice is not the same")
	}
}

func TestShapeErrors(t *testing.T) {
	bad := DefaultEquipment()
	bad.Link.Latency = -1
	grid := func(hosts int, sides ...int) GridShape { return GridShape{Hosts: hosts, Sides: sides} }
	for name, shape := range map[string]interface{ Validate() error }{
		"no hosts on a clos":     ClosShape{0, 1, 1, 1, 1},
		"no leaves":              ClosShape{1, 0, 1, 1, 1},
		"no aggs":                ClosShape{1, 1, 0, 1, 1},
		"no cores":               ClosShape{1, 1, 1, 0, 2},
		"negative cores":         ClosShape{1, 1, 1, -1, 1},
		"no pods":                ClosShape{1, 1, 1, 1, 0},
		"too many leaf ports":    ClosShape{MaxPort, 1, 1, 1, 1},
		"too many hosts":         ClosShape{1 << 15, 1 << 15, 1, 1, 1 << 15},
		"overflowing":            ClosShape{1 << 29, 1 << 29, 1 << 29, 1 << 29, 1 << 29},
		"no rails":               RailShape{1, 0, 1, 1},
		"no hosts in a pod":      RailShape{0, 1, 1, 1},
		"pods without spines":    RailShape{1, 1, 2, 0},
		"too many leaves":        RailShape{1, 300, 300, 1},
		"no switches in a group": DragonflyShape{1, 0, 1, 1},
		"no groups":              DragonflyShape{1, 1, 1, 0},
		"too many groups":        DragonflyShape{1, 4, 2, 10},
		"huge groups":            DragonflyShape{1, 1 << 29, 1 << 29, 1 << 29},
		"no hosts on a grid":     grid(0, 3),
		"no dimensions":          grid(1),
		"a flat side":            grid(1, 3, 1),
		"17 dimensions":          grid(1, slices.Repeat([]int{2}, 17)...),
		"a huge grid":            grid(1, 1<<29, 1<<29, 1<<29),
		"too many ports":         grid(1<<16, 2),
	} {
		if err := shape.Validate(); !errors.Is(err, ErrShape) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, build := range map[string]func(Equipment) (*Graph, error){
		"clos":      func(e Equipment) (*Graph, error) { return e.Clos(ClosShape{1, 1, 1, 1, 1}) },
		"rail":      func(e Equipment) (*Graph, error) { return e.Rail(RailShape{1, 1, 1, 1}) },
		"dragonfly": func(e Equipment) (*Graph, error) { return e.Dragonfly(DragonflyShape{1, 1, 1, 1}) },
		"torus":     func(e Equipment) (*Graph, error) { return e.Torus(grid(1, 2)) },
		"hyperx":    func(e Equipment) (*Graph, error) { return e.HyperX(grid(1, 2)) },
	} {
		if _, err := build(bad); !errors.Is(err, ErrLink) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s with bad links: %v", name, err)
		}
	}
	for _, spec := range []string{"clos:1,2,3,4", "rail:1,2,3", "dragonfly:1", "torus:4", "hyperx:4", "torus:1,2,", "hyperx:1,1", "dragonfly:0,1,1,1"} {
		if g, err := Parse(spec); !errors.Is(err, ErrSpec) || g != nil {
			t.Errorf("Parse(%q): %v", spec, err)
		}
	}
}

// TestSpecsNamesAll holds the help and the schema against what Parse takes.
func TestSpecsNamesAll(t *testing.T) {
	for _, spec := range []string{"fat-tree:2", "leaf-spine:1,1,1", "clos:1,1,1,1,1", "rail:1,1,1,1", "dragonfly:1,1,1,1", "torus:1,2", "hyperx:1,2,2", "four-switches"} {
		name, _, _ := strings.Cut(spec, ":")
		if !strings.Contains("\n"+Specs, "\n"+name) || !isSpec(spec) {
			t.Errorf("the help does not have %s", name)
		}
		if err := schemaAccepts(t, []byte("version: 1\ngenerator: "+spec+"\n")); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		generated(t, spec)
	}
	if lines := strings.Count(Specs, "\n") + 1; lines != len(generators) {
		t.Errorf("%d lines of help for %d generators", lines, len(generators))
	}
}
