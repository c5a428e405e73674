package whatif

import (
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// maxListed bounds the links that a repair lists.
const maxListed = 64

// Report is the answer.
type Report struct {
	Fabric  FabricReport   `json:"fabric"`
	Group   Group          `json:"group"`
	Members int            `json:"members"`
	Refused *RefusalReport `json:"refused,omitempty"`
	Tree    *TreeReport    `json:"tree,omitempty"`
	Stripes []*TreeReport  `json:"stripes,omitempty"`
	Parts   []PartReport   `json:"parts,omitempty"`
	Others  []OtherReport  `json:"others,omitempty"`
	Repairs []RepairReport `json:"repairs,omitempty"`
	After   *TreeReport    `json:"after,omitempty"` // the group's tree, when what is down is
	// StripesApart are the first stripes with no link between switches in common.
	StripesApart int `json:"stripes_apart,omitempty"`

	graph *topology.Graph
	view  topology.View
	plan  *pathsel.Plan
}

// FabricReport is what was planned in.
type FabricReport struct {
	Name     string `json:"name"`
	Hosts    int    `json:"hosts"`
	Switches int    `json:"switches"`
	Links    int    `json:"links"`
}

// Figures are what a tree costs by every criterion.
type Figures struct {
	Hops      int     `json:"hops"`
	Depth     int     `json:"depth"`
	Latency   float64 `json:"latency_seconds"`
	Bandwidth int64   `json:"bandwidth"`
	Use       int     `json:"present_use"`
	Price     float64 `json:"price"`
	Share     float64 `json:"share"`
	Speed     int64   `json:"speed"` // bytes of a child a second that its slowest switch reduces
}

func figures(f pathsel.Figures) Figures {
	return Figures{
		Hops: f.Hops, Depth: f.Depth, Latency: f.Latency.Seconds(), Bandwidth: f.Bandwidth, Use: f.Use, Price: f.Price, Share: f.Share, Speed: f.Speed,
	}
}

// TreeReport is a tree and why it is that one.
type TreeReport struct {
	Root      string        `json:"root"`
	Criterion string        `json:"criterion"`
	Because   string        `json:"because"`
	Method    string        `json:"method"`
	Exact     bool          `json:"exact"`
	Reason    string        `json:"reason"`
	Figures   Figures       `json:"figures"`
	Rivals    []RivalReport `json:"rivals,omitempty"`
	LeftOut   []string      `json:"left_out,omitempty"`
	// By the model, in seconds; absent where the bytes are not known.
	Switches *float64 `json:"switches_seconds,omitempty"`
	Hosts    *float64 `json:"hosts_seconds,omitempty"`
	// The tree, by name: each switch with its parent, each member with its
	// switch, by rank.
	Vertices []VertexReport `json:"vertices"`
	Leaves   []LeafReport   `json:"leaves"`

	text string
}

// VertexReport is a switch on a tree.
type VertexReport struct {
	Switch string         `json:"switch"`
	Parent string         `json:"parent,omitempty"`
	Links  []string       `json:"links,omitempty"` // to the parent
	Speed  topology.Speed `json:"speed"`           // as far as it is known
}

// LeafReport is a member on a tree.
type LeafReport struct {
	Host   string         `json:"host"`
	Switch string         `json:"switch"`
	Link   string         `json:"link"`
	Speed  topology.Speed `json:"speed"` // of the host, likewise
}

// RivalReport is a tree that lost.
type RivalReport struct {
	Root    string  `json:"root"`
	Method  string  `json:"method"`
	Lost    string  `json:"lost_by"`
	Figures Figures `json:"figures"`
}

// PartReport is a part of the group with a root of its own.
type PartReport struct {
	Ranks []int       `json:"ranks"`
	Tree  *TreeReport `json:"tree"`
}

// OtherReport is a group that is there already.
type OtherReport struct {
	Name    string `json:"name"`
	Members int    `json:"members"`
	Root    string `json:"root,omitempty"`
	Hops    int    `json:"hops,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// RefusalReport is why there is no tree.
type RefusalReport struct {
	Why         string         `json:"why"`
	Resource    string         `json:"resource,omitempty"`
	Switch      string         `json:"switch,omitempty"`
	Holders     []HolderReport `json:"holders,omitempty"` // groups with a tree on the switch
	HostsFaster bool           `json:"hosts_faster,omitempty"`
}

// HolderReport is a group that holds something of a switch.
type HolderReport struct {
	Group string `json:"group"`
	Slots int    `json:"slots"`
}

// RepairReport is what became of a tree that broke.
type RepairReport struct {
	Group        string   `json:"group"`
	Before       string   `json:"root_before"`
	Root         string   `json:"root,omitempty"`
	Added        int      `json:"added"`
	Lost         int      `json:"lost"`
	Dropped      int      `json:"dropped"`
	AddedLinks   []string `json:"added_links,omitempty"` // the first of them
	Anew         bool     `json:"anew,omitempty"`        // nothing could be kept
	Against      string   `json:"against_fresh,omitempty"`
	Figures      Figures  `json:"figures"`
	FreshFigures *Figures `json:"fresh_figures,omitempty"`
	LeftOut      []string `json:"left_out,omitempty"` // members that are cut off, and why
	Refused      string   `json:"refused,omitempty"`
}

func newReport(g *topology.Graph) *Report {
	return &Report{
		Fabric: FabricReport{Name: g.Fabric(), Hosts: g.Hosts(), Switches: g.Switches(), Links: g.Links()},
		graph:  g, view: g.View(),
	}
}

// tree reports a plan.
func (d *desk) tree(plan *pathsel.Plan) *TreeReport {
	g := d.Graph
	t := &TreeReport{
		Root: g.Name(plan.Tree.Root()), Criterion: plan.Criterion.String(), Because: plan.Because, Method: plan.Method.String(),
		Exact: plan.Exact, Reason: plan.Reason, Figures: figures(plan.Figures), text: plan.Tree.Text(g),
	}
	if plan.Criterion == pathsel.ByFunction {
		t.Criterion = "weights"
	}
	for _, r := range plan.Rivals {
		t.Rivals = append(t.Rivals, RivalReport{Root: g.Name(r.Root), Method: r.Method.String(), Lost: r.Lost, Figures: figures(r.Figures)})
	}
	for _, o := range plan.LeftOut {
		t.LeftOut = append(t.LeftOut, o.Why)
	}
	if plan.Forecast.Switches > 0 {
		t.Switches, t.Hosts = inSeconds(plan.Forecast.Switches), inSeconds(plan.Forecast.Hosts)
	}
	for i, v := range plan.Tree.Vertices {
		r := VertexReport{Switch: g.Name(v.Switch), Speed: d.view.Capability(v.Switch).Speed}
		if i > 0 {
			r.Parent = g.Name(plan.Tree.Vertices[v.Parent].Switch)
		}
		for _, l := range plan.Tree.Edge(i) {
			r.Links = append(r.Links, g.LinkName(l))
		}
		t.Vertices = append(t.Vertices, r)
	}
	for _, l := range plan.Tree.Leaves {
		t.Leaves = append(t.Leaves, LeafReport{Host: g.Name(l.Host), Switch: g.Name(plan.Tree.Vertices[l.Vertex].Switch), Link: g.LinkName(l.Link), Speed: g.Speed(l.Host)})
	}
	return t
}

func inSeconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
