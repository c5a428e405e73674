package importer

import (
	"errors"
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/internal/ground/disjoint"
	"github.com/tributary-fabric/tributary/topology"
)

// draft is a fabric in the making: what a reader found, before names and ports
// are settled.
type draft struct {
	file   string
	cfg    Config
	report Report
	nodes  []node
	byID   map[string]int
	links  []link
	errs   []error
	more   int // errors beyond maxErrors
}

const maxErrors = 20

// node is a node as a file has it.
type node struct {
	id      string // by which the file refers to it; unique
	label   string // what it is called; need not be unique nor a valid name
	line    int
	kind    topology.Kind
	guess   bool // kind is the importer's guess
	plain   bool // a switch that cannot reduce
	anyPort bool // its port numbers are not worth keeping

	name string // settled
}

// link is a link as a file has it.
type link struct {
	ends  [2]int // in draft.nodes
	ports [2]int // 0 and what is above topology.MaxPort: any
	spec  topology.LinkSpec
	line  int
}

func newDraft(file string, f Format, c Config) *draft {
	return &draft{file: file, cfg: c, report: Report{File: file, Format: f, Fabric: c.Fabric, Notes: []Note{}}, byID: map[string]int{}}
}

// fail records what is wrong at a line; 0: in the file.
func (d *draft) fail(line int, err error) {
	if len(d.errs) == maxErrors {
		d.more++
		return
	}
	d.errs = append(d.errs, &topology.FileError{File: d.file, Line: line, Err: err})
}

func (d *draft) failed() error {
	errs := d.errs
	if d.more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more", d.file, d.more))
	}
	return errors.Join(errs...)
}

func (d *draft) note(line int, action Action, what string, why Reason, into string) {
	d.report.note(line, action, what, why, into)
}

// add adds a node, or fails where one has its ID.
func (d *draft) add(n node) (int, bool) {
	if at, ok := d.byID[n.id]; ok {
		d.fail(n.line, fmt.Errorf("%q is there already, on line %d: rename or remove one of them: %w", n.id, d.nodes[at].line, ErrDuplicate))
		return at, false
	}
	if len(d.nodes) == MaxNodes {
		d.fail(n.line, fmt.Errorf("more than %d nodes: %w", MaxNodes, ErrTooLarge))
		return 0, false
	}
	d.byID[n.id] = len(d.nodes)
	d.nodes = append(d.nodes, n)
	return len(d.nodes) - 1, true
}

// full reports whether no node or link can be added any more, or whether too
// much is wrong to go on.
func (d *draft) full() bool {
	return len(d.nodes) >= MaxNodes || len(d.links) >= 4*MaxNodes || d.more > 0
}

// bandwidth returns bit/s as a link's, or fails.
func (d *draft) bandwidth(line int, bits float64) (int64, bool) {
	if bits = math.Round(bits); bits < 1 || bits > math.MaxInt64/2 || math.IsNaN(bits) {
		d.fail(line, fmt.Errorf("bandwidth %g bit/s: it must be above zero: %w", bits, ErrValue))
		return 0, false
	}
	if err := (topology.LinkSpec{Bandwidth: int64(bits)}).Validate(); err != nil {
		d.fail(line, fmt.Errorf("%w: %w", err, ErrValue))
		return 0, false
	}
	return int64(bits), true
}

// assume notes what a link lacks and gets from the equipment.
func (d *draft) assume(line int, why Reason) {
	taken := d.cfg.Equipment.Link.Latency.String()
	if why == NoSpeed {
		taken = bandwidthText(d.cfg.Equipment.Link.Bandwidth)
	}
	d.note(line, Assumed, "links", why, taken)
}

// build settles what the reader left open and makes the graph; nil if something
// is wrong.
func (d *draft) build() *topology.Graph {
	if len(d.errs) > 0 {
		return nil
	}
	if len(d.nodes) == 0 {
		d.fail(0, fmt.Errorf("no node in it: %w", ErrEmpty))
		return nil
	}
	d.settleNames()
	d.settleKinds()
	d.dropLinks()
	d.attachHosts()
	d.settlePorts()
	return d.graph()
}

// settleKinds says which nodes are hosts: by the patterns given, and where a guess
// cannot hold.
func (d *draft) settleKinds() {
	for i := range d.nodes {
		n := &d.nodes[i]
		var kind topology.Kind
		switch {
		case d.cfg.Hosts != nil && d.cfg.Hosts.MatchString(n.name):
			kind = topology.Host
		case d.cfg.Switches != nil && d.cfg.Switches.MatchString(n.name):
			kind = topology.Switch
		default:
			continue
		}
		n.guess = false
		if kind != n.kind {
			n.kind = kind
			d.note(n.line, Changed, n.name, Pattern, "a "+kind.String())
		}
	}
	degree := d.degrees()
	for _, l := range d.links {
		x, y := &d.nodes[l.ends[0]], &d.nodes[l.ends[1]]
		if x == y || x.kind != topology.Host || y.kind != topology.Host {
			continue
		}
		// Of two guessed hosts the one with more links forwards.
		most := max(degree[l.ends[0]], degree[l.ends[1]])
		for _, end := range l.ends {
			if n := &d.nodes[end]; n.guess && degree[end] > 1 && degree[end] == most {
				n.kind = topology.Switch
				d.note(n.line, Changed, n.name, Forwards, "a switch")
			}
		}
	}
}

func (d *draft) degrees() []int {
	degree := make([]int, len(d.nodes))
	for _, l := range d.links {
		if l.ends[0] != l.ends[1] {
			degree[l.ends[0]]++
			degree[l.ends[1]]++
		}
	}
	return degree
}

// title names a link for a note.
func (d *draft) title(l link) string {
	return "link " + d.nodes[l.ends[0]].name + "--" + d.nodes[l.ends[1]].name
}

// dropLinks leaves out the links that a fabric cannot have, and then the nodes
// without links.
func (d *draft) dropLinks() {
	kept := d.links[:0]
	for _, l := range d.links {
		switch {
		case l.ends[0] == l.ends[1]:
			d.note(l.line, Skipped, d.title(l), SameNode, "")
		case d.nodes[l.ends[0]].kind == topology.Host && d.nodes[l.ends[1]].kind == topology.Host:
			d.note(l.line, Skipped, d.title(l), TwoHosts, "")
		default:
			kept = append(kept, l)
		}
	}
	d.links = kept
	degree, place, left := d.degrees(), make([]int, len(d.nodes)), d.nodes[:0]
	for i, n := range d.nodes {
		place[i] = len(left)
		if degree[i] == 0 {
			d.note(n.line, Skipped, n.kind.String()+" "+n.name, NoLinks, "")
			continue
		}
		left = append(left, n)
	}
	if len(left) == 0 {
		d.fail(0, fmt.Errorf("none of its %d nodes has a link to a switch%s; if some are switches, say which: %w", len(d.nodes), d.report.leftOut(), ErrEmpty))
	}
	d.nodes = left
	for i := range d.links {
		for end, n := range d.links[i].ends {
			d.links[i].ends[end] = place[n]
		}
	}
}

// attachHosts gives every switch that can reduce its hosts, if there are none.
func (d *draft) attachHosts() {
	for _, n := range d.nodes {
		if n.kind == topology.Host {
			return
		}
	}
	names := make(map[string]bool, len(d.nodes))
	for _, n := range d.nodes {
		names[n.name] = true
	}
	for i, n := range d.nodes[:len(d.nodes):len(d.nodes)] {
		for h := range d.cfg.HostsPerSwitch {
			if n.plain || len(d.nodes) == MaxNodes {
				break
			}
			host := unique(fmt.Sprintf("h%d-%s", h, n.name), names)
			d.links = append(d.links, link{ends: [2]int{len(d.nodes), i}, spec: d.cfg.Equipment.Link, line: n.line})
			d.nodes = append(d.nodes, node{kind: topology.Host, name: host, line: n.line})
			d.note(0, Assumed, "hosts", NoHosts, fmt.Sprintf("%d on each switch", d.cfg.HostsPerSwitch))
		}
	}
}

// settlePorts gives up port numbers that are taken or out of range.
func (d *draft) settlePorts() {
	taken := map[[2]int]bool{}
	for i := range d.links {
		l := &d.links[i]
		for end, n := range l.ends {
			port := &l.ports[end]
			if *port < 1 || *port > topology.MaxPort || d.nodes[n].anyPort {
				*port = 0
				continue
			}
			if at := [2]int{n, *port}; !taken[at] {
				taken[at] = true
				continue
			}
			d.note(l.line, Changed, fmt.Sprintf("port %d of %s", *port, d.nodes[n].name), PortTaken, "a free port")
			*port = 0
		}
	}
}

// graph builds what is settled.
func (d *draft) graph() *topology.Graph {
	if len(d.errs) > 0 {
		return nil
	}
	b := topology.Builder{Fabric: d.report.Fabric}
	refs := make([]topology.Ref, len(d.nodes))
	for i, n := range d.nodes {
		var err error
		if n.kind == topology.Host {
			refs[i], err = b.AddHost(n.name)
		} else {
			c := d.cfg.Equipment.Switch
			if n.plain {
				c = topology.Capability{}
			}
			refs[i], err = b.AddSwitch(n.name, c)
		}
		if err != nil {
			d.fail(n.line, err)
		}
	}
	for _, l := range d.links {
		x, y := topology.Port(l.ports[0]), topology.Port(l.ports[1])
		if _, err := b.Connect(refs[l.ends[0]], x, refs[l.ends[1]], y, l.spec); err != nil {
			d.fail(l.line, err)
		}
	}
	if len(d.errs) > 0 {
		return nil
	}
	g, err := b.Build()
	if err != nil {
		d.failBuild(err)
		return nil
	}
	r := &d.report
	r.Hosts, r.Switches, r.Links, r.Parts = g.Hosts(), g.Switches(), g.Links(), parts(g)
	return g
}

// failBuild gives the errors of Builder.Build their lines.
func (d *draft) failBuild(err error) {
	var at *topology.LinkError
	if !errors.As(err, &at) {
		d.fail(0, err)
		return
	}
	d.fail(d.links[at.Link].line, at.Err)
}

// parts counts the connected pieces of g.
func parts(g *topology.Graph) int {
	sets := disjoint.New(g.Nodes())
	for _, l := range g.AllLinks() {
		sets.Join(int32(l.Ends[0].Node), int32(l.Ends[1].Node))
	}
	return sets.Count()
}
