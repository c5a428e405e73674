package view

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
	"github.com/tributary-fabric/tributary/internal/whole/picture"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Summary is a group of a list in JSON.
type Summary struct {
	Group    uint32 `json:"group"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Members  int    `json:"members"`
	Watching int    `json:"watching"`
	Epoch    uint32 `json:"epoch"`  // of the active tree; 0: none
	Window   uint32 `json:"window"` // of the active tree, in chunks; 0: none
	Demand   uint32 `json:"demand"` // window that its operations can use; 0: its members have not said

	Bundle *Bundle `json:"bundle,omitempty"` // absent: it is in none
}

// Bundle is which of a communicator's groups a group is, in JSON.
type Bundle struct {
	Name  string `json:"name"` // of the communicator
	Kind  string `json:"kind"` // stripes or parts
	Index int    `json:"index"`
	Count int    `json:"count"`
}

// NewBundle returns a bundle as it is written; nil for none.
func NewBundle(b manager.Bundle) *Bundle {
	if b.Kind == manager.NoBundle {
		return nil
	}
	return &Bundle{b.Name, b.Kind.String(), b.Index, b.Count}
}

// String says it in words, such as "stripe 1 of 4 of job"; "-" for none.
func (b *Bundle) String() string {
	if b == nil {
		return "-"
	}
	return fmt.Sprintf("%s %d of %d of %s", strings.TrimSuffix(b.Kind, "s"), b.Index, b.Count, b.Name)
}

// NewSummary returns a group as it is written.
func NewSummary(s manager.Summary) Summary {
	return Summary{s.Group, s.Name, s.State.String(), s.Members, s.Watching, s.Epoch, s.Window, s.Demand, NewBundle(s.Bundle)}
}

// SummariesText writes a table of groups.
func SummariesText(w io.Writer, all []Summary) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "The manager has no groups.")
		return err
	}
	t := terminal.NewTable(w, 3)
	fmt.Fprintln(t, "GROUP\tNAME\tSTATE\tMEMBERS\tWATCHING\tEPOCH\tWINDOW\tDEMAND\tBUNDLE")
	for _, s := range all {
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%v\n", s.Group, s.Name, s.State, s.Members, s.Watching, s.Epoch, orDash(s.Window), orDash(s.Demand), s.Bundle)
	}
	return t.Flush()
}

// orDash is a number, or "-" for none.
func orDash(n uint32) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// Group is all about a group in JSON.
type Group struct {
	Summary
	Purpose string   `json:"purpose"`
	Missing []uint32 `json:"missing"` // the first ranks that do not watch
	Offload int      `json:"members_over_switches"`
	Hosts   int      `json:"members_over_hosts"`
	Refusal string   `json:"refusal,omitempty"` // why there is no tree, or no replacement
	Trees   []Tree   `json:"trees"`
	History []Change `json:"history"`
	// Mismatches are the links that do not carry what its trees exchange.
	Mismatches []Mismatch `json:"mismatches"`
	// Sisters are the other groups of its bundle.
	Sisters []Summary `json:"sisters,omitempty"`
}

// Tree is a tree of a group in JSON.
type Tree struct {
	Epoch     uint32        `json:"epoch"`
	Stage     string        `json:"stage"`
	Window    uint32        `json:"window"`
	Switches  []Vertex      `json:"switches"` // parents first
	Members   []Leaf        `json:"members"`  // by rank
	Criterion string        `json:"criterion"`
	Because   string        `json:"because"`
	Method    string        `json:"method"`
	Exact     bool          `json:"exact"`
	Cost      Cost          `json:"cost"`
	Forecast  *Forecast     `json:"forecast,omitempty"` // where the bytes are known
	Reason    string        `json:"reason"`
	RunnersUp []Alternative `json:"runners_up"`
}

// Vertex is a switch on a tree.
type Vertex struct {
	Switch string   `json:"switch"`
	Parent string   `json:"parent,omitempty"` // of the root: none
	Links  []string `json:"links,omitempty"`  // to the parent; several where switches only forward

	Pipeline string `json:"pipeline"`      // that reduces there: software, kernel or p4; unknown
	Own      string `json:"own,omitempty"` // what a kernel or p4 reduces by itself; the rest is its agent's CPU's
}

// Leaf is a member on a tree.
type Leaf struct {
	Host   string   `json:"host"`
	Switch string   `json:"switch"`
	Links  []string `json:"links,omitempty"` // to the switch, likewise
	Rail   string   `json:"rail,omitempty"`  // of the host, from which its packets come; where it has reported one at the link
}

// Cost is what a tree takes, by every criterion. Of some alternatives only the
// hops, the depth and the load are known; the rest is 0.
type Cost struct {
	Hops      int     `json:"hops"`
	Depth     int     `json:"depth"`
	Load      int     `json:"load"`
	Latency   float64 `json:"latency_seconds"`
	Bandwidth int64   `json:"bandwidth_bits_per_second"`
	Price     float64 `json:"price"`
	Share     float64 `json:"share"`
	Speed     int64   `json:"speed_bytes_per_second"` // of one child, that its slowest switch reduces
}

func newCost(f pathsel.Figures) Cost {
	return Cost{
		Hops: f.Hops, Depth: f.Depth, Load: f.Use, Latency: f.Latency.Seconds(), Bandwidth: f.Bandwidth, Price: f.Price, Share: f.Share, Speed: f.Speed,
	}
}

// Forecast is how long one operation takes, by the manager's model.
type Forecast struct {
	Switches float64 `json:"switches_seconds"`
	Hosts    float64 `json:"hosts_seconds"`
}

// Alternative is a tree that was not chosen.
type Alternative struct {
	Root   string `json:"root"`
	Method string `json:"method"`
	Cost   Cost   `json:"cost"`
	Lost   string `json:"lost"`
}

// Change is an entry of a group's history.
type Change struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// NewGroup returns what a manager says of a group as it is written.
func NewGroup(e rpc.Explanation) Group {
	g := Group{
		Summary: NewSummary(e.Summary), Purpose: e.Purpose.Words(), Missing: append([]uint32{}, e.Missing...), Offload: e.Offload, Hosts: e.Hosts,
		Trees: []Tree{}, History: []Change{}, Mismatches: newMismatches(e.Mismatches),
	}
	if e.Refusal != nil {
		g.Refusal = e.Refusal.Error()
	}
	for _, s := range e.Sisters {
		g.Sisters = append(g.Sisters, NewSummary(s))
	}
	for _, t := range e.Trees {
		g.Trees = append(g.Trees, newTree(t))
	}
	for _, c := range e.History {
		g.History = append(g.History, Change{c.At.UTC(), c.What})
	}
	return g
}

func newTree(s rpc.TreeState) Tree {
	t := Tree{
		Epoch: s.Epoch, Stage: s.Stage.String(), Window: s.Window, Cost: newCost(s.Figures), Criterion: s.Criterion.String(),
		Because: s.Because, Method: s.Method, Exact: s.Exact, Reason: s.Reason, RunnersUp: []Alternative{},
	}
	if s.Criterion == pathsel.ByFunction {
		t.Criterion = "weights"
	}
	if s.Forecast != (pathsel.Forecast{}) {
		t.Forecast = &Forecast{s.Forecast.Switches.Seconds(), s.Forecast.Hosts.Seconds()}
	}
	for _, v := range s.Switches {
		parent := ""
		if v.Parent >= 0 {
			parent = s.Switches[v.Parent].Switch
		}
		x := Vertex{Switch: v.Switch, Parent: parent, Links: v.Links, Pipeline: v.Reducer.Pipeline.String()}
		if p := v.Reducer.Pipeline; p == topology.P4 || p == topology.Kernel {
			x.Own = v.Reducer.Own.String()
		}
		t.Switches = append(t.Switches, x)
	}
	for _, l := range s.Members {
		t.Members = append(t.Members, Leaf{l.Host, s.Switches[l.Vertex].Switch, l.Links, l.Rail})
	}
	for _, r := range s.RunnersUp {
		t.RunnersUp = append(t.RunnersUp, Alternative{r.Root, r.Method, newCost(r.Figures), r.Lost})
	}
	return t
}

// Text writes the group and its trees for people.
func (g Group) Text(w io.Writer) error {
	g.head(w)
	for _, t := range g.Trees {
		fmt.Fprintf(w, "\nTree of epoch %d, %s, window %d:\n", t.Epoch, t.Stage, t.Window)
		t.reducers(w)
		for i, v := range t.Switches {
			if i == 0 {
				t.branch(w, v, 1)
			}
		}
	}
	return nil
}

func (g Group) head(w io.Writer) {
	fmt.Fprintf(w, "Group %d, %s: %s, %d members, %d of them watch\n", g.Summary.Group, g.Name, g.State, g.Members, g.Watching)
	if g.Window != 0 && g.Demand != 0 {
		fmt.Fprintf(w, "Window: %d chunks, its operations can use %d\n", g.Window, g.Demand)
	}
	if g.Bundle != nil {
		fmt.Fprintf(w, "It is %v\n", g.Bundle)
	}
	for _, s := range g.Sisters {
		fmt.Fprintf(w, "Beside it: group %d, %s: %s, epoch %d, %v\n", s.Group, s.Name, s.State, s.Epoch, s.Bundle)
	}
	if len(g.Missing) > 0 {
		fmt.Fprintf(w, "Not watching: ranks %s\n", strings.Trim(fmt.Sprint(g.Missing), "[]"))
	}
	if g.Offload+g.Hosts > 0 {
		fmt.Fprintf(w, "Running: %d members over switches, %d over hosts\n", g.Offload, g.Hosts)
	}
	if g.Refusal != "" {
		fmt.Fprintf(w, "Refused: %s\n", g.Refusal)
	}
	mismatchesText(w, g.Mismatches)
}

// reducers writes what reduces on the switches: each once.
func (t *Tree) reducers(w io.Writer) {
	var known []string
	on := map[string][]string{}
	for _, v := range t.Switches {
		what := v.Pipeline
		if v.Own != "" {
			what = fmt.Sprintf("%s (%s; the agent's CPU does the rest)", v.Pipeline, v.Own)
		}
		if v.Pipeline != topology.UnknownPipeline.String() {
			if on[what] == nil {
				known = append(known, what)
			}
			on[what] = append(on[what], v.Switch)
		}
	}
	for _, what := range known {
		fmt.Fprintf(w, "    Reduced by %s on %s\n", what, strings.Join(on[what], ", "))
	}
}

// branch writes a switch, its members on a line, and the switches beneath it.
func (t *Tree) branch(w io.Writer, v Vertex, depth int) {
	fmt.Fprintf(w, "%s%s", strings.Repeat("    ", depth), v.Switch)
	if v.Parent == "" {
		fmt.Fprint(w, " (root)")
	}
	var members []string
	for rank, l := range t.Members {
		if l.Switch == v.Switch {
			members = append(members, fmt.Sprintf("%s (%d)", l.Host, rank))
		}
	}
	if len(members) > 0 {
		fmt.Fprint(w, ": ", strings.Join(members, ", "))
	}
	fmt.Fprintln(w)
	for _, child := range t.Switches {
		if child.Parent == v.Switch {
			t.branch(w, child, depth+1)
		}
	}
}

// Explain writes why the group stands as it does, for people.
func (g Group) Explain(w io.Writer) error {
	g.head(w)
	fmt.Fprintf(w, "For: %s\n", g.Purpose)
	for i := range g.Trees {
		g.Trees[i].explain(w)
	}
	if len(g.History) > 0 {
		fmt.Fprintln(w, "\nHistory:")
	}
	for _, c := range g.History {
		fmt.Fprintf(w, "    %s  %s\n", c.At.UTC().Format("2006-01-02 15:04:05.000 UTC"), c.What)
	}
	return nil
}

// explain writes why a tree was chosen, and a table of it and of those that lost.
func (t *Tree) explain(w io.Writer) {
	fmt.Fprintf(w, "\nTree of epoch %d, %s: %s\n", t.Epoch, t.Stage, t.Reason)
	t.reducers(w)
	for _, v := range t.Switches {
		if len(v.Links) > 1 {
			fmt.Fprintf(w, "    %s reaches %s over %s\n", v.Switch, v.Parent, strings.Join(v.Links, ", "))
		}
	}
	for _, l := range t.Members {
		if len(l.Links) > 1 {
			fmt.Fprintf(w, "    %s reaches %s over %s\n", l.Host, l.Switch, strings.Join(l.Links, ", "))
		}
		if l.Rail != "" {
			fmt.Fprintf(w, "    %s reaches %s by its rail %s\n", l.Host, l.Switch, printable.Text(l.Rail))
		}
	}
	table := terminal.NewTable(w, 2)
	fmt.Fprintln(table, "    ROOT\tMETHOD\tHOPS\tDEPTH\tLATENCY\tBANDWIDTH\tSPEED\tUSE\tPRICE\tSHARE\tLOST BY")
	t.Cost.row(table, t.Switches[0].Switch, t.Method, "(chosen)")
	for _, r := range t.RunnersUp {
		r.Cost.row(table, r.Root, r.Method, r.Lost)
	}
	_ = table.Flush() // as fmt.Fprintf to w
	if f := t.Forecast; f != nil {
		fmt.Fprintf(w, "    By the model an operation takes %v over these switches, %v over hosts.\n", span(f.Switches), span(f.Hosts))
	}
}

// row writes a line of the table.
func (c Cost) row(w io.Writer, root, method, lost string) {
	fmt.Fprintf(w, "    %s\t%s\t%d\t%d\t", root, cmp.Or(method, "-"), c.Hops, c.Depth)
	if c.Bandwidth == 0 { // only the first are known
		fmt.Fprintf(w, "-\t-\t-\t%d\t-\t-\t%s\n", c.Load, lost)
		return
	}
	fmt.Fprintf(w, "%v\t%.4g Gbit/s\t%v\t%d\t%.4g\t%.1f %%\t%s\n", span(c.Latency), float64(c.Bandwidth)/1e9, speedText(c.Speed), c.Load, c.Price, 100*c.Share, lost)
}

// speedText writes bytes a second; 0 is that the manager does not report them.
func speedText(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return topology.Speed{Bytes: bytes}.String()
}

// span is a time of the model's: no more of it is certain.
func span(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(10 * time.Nanosecond)
}

// GroupSVG draws a group's trees in the manager's fabric, and beneath them those of
// the other groups of its bundle.
func GroupSVG(w io.Writer, f rpc.Fabric, e rpc.Explanation, sisters ...rpc.Explanation) error {
	fabric, err := Scene(f)
	if err != nil {
		return err
	}
	var scenes []picture.Scene
	for _, of := range append([]rpc.Explanation{e}, sisters...) {
		for _, s := range of.Trees {
			scene := fabric
			scene.Heading = fmt.Sprintf("Tree of epoch %d, %s", s.Epoch, s.Stage)
			if of.Bundle.Kind != manager.NoBundle {
				scene.Heading = fmt.Sprintf("Group %d, %v: tree of epoch %d, %s", of.Group, of.Bundle, s.Epoch, s.Stage)
			}
			if scene.Tree, err = s.In(fabric.View.Graph()); err != nil {
				return fmt.Errorf("%w: %w", ErrFabric, err)
			}
			scenes = append(scenes, scene)
		}
	}
	if len(scenes) == 0 {
		fabric.Heading = "No tree: the group is " + e.State.String()
		scenes = append(scenes, fabric)
	}
	return picture.SVG(w, fmt.Sprintf("Group %d, %s", e.Group, e.Name), scenes...)
}
