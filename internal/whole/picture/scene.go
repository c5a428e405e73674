package picture

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// MaxNodes is the most nodes of a fabric that is drawn whole, and of a tree.
// MaxBoxes is the most boxes for a larger one, whose boxes stand for many.
const (
	MaxNodes  = 300
	MaxBoxes  = 80
	MaxAlarms = 12 // that are written out
)

// Scene is a fabric at one moment, and a collection tree in it.
type Scene struct {
	Heading string            // above the drawing; may be empty
	View    topology.View     // what is down in it is drawn so
	Members []topology.NodeID // hosts of the group; those of the tree need not be among them
	Tree    pathsel.Tree      // without vertices: no tree

	Switches map[topology.NodeID]Standing // of those that a manager knows about; may be nil
	Alarms   []Alarm                      // that hold
}

// Alarm is something wrong in the fabric, such as a cable at the wrong port.
type Alarm struct {
	At   []string // nodes' names; each that is drawn has a mark
	Text string
}

// Standing is how a switch stands with the manager.
type Standing struct {
	Absent   bool // the manager has no connection to its agent
	Unusable bool // its agent can reserve nothing at present
	Draining bool
	Trees    int // that it carries, of all groups
}

// words says what is special about a switch, for its label; empty: nothing.
func (s Standing) words() string {
	var list []string
	if s.Absent {
		list = append(list, "no agent")
	} else if s.Unusable {
		list = append(list, "unusable")
	}
	if s.Draining {
		list = append(list, "draining")
	}
	return strings.Join(list, ", ")
}

// ErrScene is wrapped by every error about what there is to draw.
var ErrScene = errors.New("picture: invalid scene")

// validate reports a tree that is not one of the fabric. A node or link of it
// may be down: that is a tree that has just been lost.
func (s *Scene) validate() error {
	g := s.View.Graph()
	if g == nil || g.Nodes() == 0 {
		return fmt.Errorf("%w: no fabric", ErrScene)
	}
	for _, m := range s.Members {
		if !g.IsHost(m) {
			return fmt.Errorf("%w: member %s is not a host", ErrScene, g.Name(m))
		}
	}
	if len(s.Tree.Vertices) == 0 {
		return nil
	}
	if err := s.Tree.Validate(g.View()); err != nil {
		return fmt.Errorf("%w: %w", ErrScene, err)
	}
	return nil
}

// role is how a node takes part.
type role uint8

const (
	bystander role = iota // a host that is no member
	member
	crowd     // a box for several members
	forwarder // a switch that cannot reduce, or is not on the tree
	able      // in a scene without a tree: a switch that can reduce
	busy      // in a scene without a tree: a switch that carries trees
	drained
	unready // its agent is absent or unusable
	reducer
	root
	broken // down, whatever it was
)

// course is how a link takes part.
type course uint8

const (
	idle course = iota
	used        // by the tree
	dead
)

// box is a node to draw.
type box struct {
	node   topology.NodeID // of a crowd: its switch
	name   string          // unique in the scene
	tip    string          // what is shown of it beside
	label  string
	role   role
	down   bool
	isHost bool // or a crowd of them
	layer  int  // as in topology
	lift   int  // rows above the lowest of its layer
	leaf   int  // of a host: index of the box that it stands beneath; -1 for none
	at     point
	w, h   float64
}

// wire is a link to draw, between two boxes.
type wire struct {
	link   topology.LinkID // NoLink for the one of a crowd
	lower  int             // index of the lower box
	upper  int
	course course
	path   []point // Bézier: a start, and three points for each piece
}

// sheet is a scene as it is drawn.
type sheet struct {
	scene *Scene
	boxes []box
	wires []wire
	note  string
	size  point // of the drawing, whose lowest left corner is (0, 0)

	byNode map[topology.NodeID]int // of boxes, crowds excepted
}

// compose decides what of a scene is drawn, and how it takes part.
func compose(scene *Scene) *sheet {
	s := &sheet{scene: scene, byNode: map[topology.NodeID]int{}}
	g, t := scene.View.Graph(), scene.Tree
	switch {
	case g.Nodes() <= MaxNodes:
		s.addFabric()
	case len(t.Vertices) == 0:
		s.addOutline()
	case len(t.Vertices)+len(t.Leaves) <= MaxNodes:
		s.addTree(0)
		s.note = s.missing("")
	default:
		s.addTree(s.cut())
		s.note = s.missing("with one box for all that is beneath a switch of its last row, ")
	}
	s.standHosts()
	return s
}

// missing says what of the fabric is not drawn.
func (s *sheet) missing(how string) string {
	g, t := s.scene.View.Graph(), s.scene.Tree
	return fmt.Sprintf("The fabric is too large to be drawn whole. Only the tree is drawn, %swithout the fabric's %d other hosts and %d other switches.",
		how, g.Hosts()-len(t.Leaves), g.Switches()-len(t.Vertices))
}

// addFabric draws all nodes and links.
func (s *sheet) addFabric() {
	g, t := s.scene.View.Graph(), s.scene.Tree
	roles := map[topology.NodeID]role{}
	for _, m := range s.scene.Members {
		roles[m] = member
	}
	tree := map[topology.LinkID]bool{}
	for i, v := range t.Vertices {
		roles[v.Switch] = reducer
		if i == 0 {
			roles[v.Switch] = root
		}
	}
	for _, l := range t.Leaves {
		roles[l.Host] = member
	}
	for l := range t.Links() {
		tree[l] = true
	}
	for n := range topology.NodeID(g.Nodes()) {
		s.addNode(n, roles[n])
	}
	for id, l := range g.AllLinks() {
		s.addLink(id, l.Ends[0].Node, l.Ends[1].Node, tree[id])
	}
}

// depths returns how far each of the tree's switches is from the root.
func (s *sheet) depths() []int {
	d := make([]int, len(s.scene.Tree.Vertices))
	for i, v := range s.scene.Tree.Vertices {
		if i > 0 {
			d[i] = d[v.Parent] + 1
		}
	}
	return d
}

// cut returns how many rows of switches of a large tree are drawn: as many as
// give MaxBoxes boxes, but one at least.
func (s *sheet) cut() int {
	var rows []int // switches by depth
	for _, d := range s.depths() {
		for len(rows) <= d {
			rows = append(rows, 0)
		}
		rows[d]++
	}
	n, sum := 1, 1
	for n < len(rows) && sum+2*rows[n] <= MaxBoxes {
		sum += rows[n]
		n++
	}
	return n
}

// addTree draws the tree alone: so many rows of its switches, and what is
// beneath each switch of the last of them as a crowd. Members on switches of
// the other rows are drawn one by one, and everything where rows is 0.
func (s *sheet) addTree(rows int) {
	t, depths := s.scene.Tree, s.depths()
	shown := make([]int, len(t.Vertices)) // the last vertex that is drawn on the way to each
	crowds := make([]struct{ switches, members int }, len(t.Vertices))
	for i, v := range t.Vertices {
		switch {
		case i == 0:
			s.addNode(v.Switch, root)
		case rows == 0 || depths[i] < rows:
			shown[i] = i
			s.addNode(v.Switch, reducer)
			s.addLink(v.Up, v.Switch, t.Vertices[v.Parent].Switch, true)
		default:
			shown[i] = shown[v.Parent]
			crowds[shown[i]].switches++
		}
	}
	for _, l := range t.Leaves {
		if at := shown[l.Vertex]; depths[at] == rows-1 {
			crowds[at].members++
		} else {
			s.addNode(l.Host, member)
			s.addLink(l.Link, l.Host, t.Vertices[l.Vertex].Switch, true)
		}
	}
	for i, c := range crowds {
		if c.members > 0 {
			s.addCrowd(t.Vertices[i].Switch, c.switches, c.members)
		}
	}
}

// addCrowd draws one box for the switches and members beneath a switch.
func (s *sheet) addCrowd(above topology.NodeID, switches, members int) {
	label := strconv.Itoa(members) + " members"
	if switches > 0 {
		label = strconv.Itoa(switches) + " switches with\n" + label
	}
	s.boxes = append(s.boxes, box{
		node: above, name: "beneath " + s.scene.View.Graph().Name(above), label: label, role: crowd, isHost: true, leaf: s.byNode[above],
	})
	s.wires = append(s.wires, wire{link: topology.NoLink, lower: len(s.boxes) - 1, upper: s.byNode[above], course: used})
}

func (s *sheet) addNode(n topology.NodeID, r role) {
	g := s.scene.View.Graph()
	b := box{
		node: n, name: g.Name(n), tip: s.tip(n), label: g.Name(n), role: r, isHost: g.IsHost(n), layer: g.Layer(n), leaf: -1,
		down: !s.scene.View.NodeUp(n),
	}
	if g.IsSwitch(n) && r == bystander {
		b.role = s.besideTree(n)
	}
	switch words := s.standing(n).words(); {
	case b.down:
		b.role = broken
		b.label += "\nfailed"
	case r == root && words != "":
		b.label += "\nroot, " + words
	case r == root:
		b.label += "\nroot"
	case words != "":
		b.label += "\n" + words
	}
	for i, a := range s.scene.Alarms {
		if !slices.Contains(a.At, b.name) {
			continue
		}
		if !slices.ContainsFunc(s.scene.Alarms[:i], func(a Alarm) bool { return slices.Contains(a.At, b.name) }) {
			b.label += "\nalarm"
		}
		b.tip += "\nALARM: " + a.Text
	}
	s.byNode[n] = len(s.boxes)
	s.boxes = append(s.boxes, b)
}

// tip says of a node, beside its name, what is known of its speed.
func (s *sheet) tip(n topology.NodeID) string {
	g := s.scene.View.Graph()
	speed := g.Speed(n)
	if g.IsSwitch(n) {
		speed = s.scene.View.Capability(n).Speed
	}
	if !speed.Known() {
		return g.Name(n)
	}
	return fmt.Sprintf("%s reduces %v", g.Name(n), speed)
}

// standing returns how a switch stands. One that can reduce on no tree needs no
// agent, and is not drained.
func (s *sheet) standing(n topology.NodeID) Standing {
	if !s.scene.View.Capability(n).CanReduce() {
		return Standing{}
	}
	return s.scene.Switches[n]
}

// besideTree returns the role of a switch that is not on the scene's tree.
func (s *sheet) besideTree(n topology.NodeID) role {
	is := s.standing(n)
	switch {
	case is.Absent || is.Unusable:
		return unready
	case is.Draining:
		return drained
	case len(s.scene.Tree.Vertices) > 0 || !s.scene.View.Capability(n).CanReduce():
		return forwarder
	case is.Trees > 0:
		return busy
	}
	return able
}

func (s *sheet) addLink(id topology.LinkID, a, b topology.NodeID, tree bool) {
	w := wire{link: id, lower: s.byNode[a], upper: s.byNode[b]}
	switch {
	case tree:
		w.course = used
	case !s.scene.View.Usable(id):
		w.course = dead
	}
	s.wires = append(s.wires, w)
}

// standHosts says beneath which switch every host is drawn: its own on the
// tree, else the first that it is linked to.
func (s *sheet) standHosts() {
	for pass := range 2 {
		for _, w := range s.wires {
			if pass == 0 && w.course != used {
				continue
			}
			for _, end := range [][2]int{{w.lower, w.upper}, {w.upper, w.lower}} {
				if h := &s.boxes[end[0]]; h.isHost && h.leaf < 0 {
					h.leaf = end[1]
				}
			}
		}
	}
}

// hostsOf returns the hosts, or crowds, that stand beneath each box.
func (s *sheet) hostsOf() map[int][]int {
	m := map[int][]int{}
	for i, b := range s.boxes {
		if b.isHost {
			m[b.leaf] = append(m[b.leaf], i)
		}
	}
	for _, list := range m {
		slices.Sort(list)
	}
	return m
}
