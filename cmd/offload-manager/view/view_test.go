package view_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/picture"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// fabric is two hosts beneath a switch, which has two links to another one.
func fabric() rpc.Fabric {
	spec := topology.LinkSpec{Bandwidth: 100e9, Latency: 500 * time.Nanosecond}
	cable := func(a string, p topology.Port, b string, q topology.Port, trees int) rpc.FabricLink {
		return rpc.FabricLink{A: rpc.FabricEnd{Node: a, Port: p}, B: rpc.FabricEnd{Node: b, Port: q}, Up: true, Carries: spec, Trees: trees}
	}
	c := topology.DefaultCapability()
	quick := c
	quick.Speed = topology.Speed{Bytes: 6.5e9, Packets: topology.NoSpeed}
	misplaced := cable("leaf", 4, "spine", 2, 1)
	misplaced.Mismatches = mismatches()
	return rpc.Fabric{
		Name: "small", Hosts: 2, Switches: 2, Links: 4,
		Nodes: []rpc.FabricNode{
			{Name: "h0", Up: true, Speed: topology.Speed{Bytes: 4e9, Packets: 2e6}},
			{Name: "h1", Why: "membership: died"},
			{Name: "leaf", Up: true, Switch: &rpc.SwitchState{Capability: quick, Connected: true, Trees: 1, SlotsUsed: 16, CPU: 0.375, AgentVersion: "v1.2.3"}},
			{Name: "spine", Up: true, Switch: &rpc.SwitchState{Capability: c, Draining: true, Unusable: "the target is wedged; restart it"}},
		},
		Cables: []rpc.FabricLink{cable("h0", 1, "leaf", 1, 1), cable("h1", 1, "leaf", 2, 1), cable("leaf", 3, "spine", 1, 0), misplaced},
		Alarms: []rpc.Alarm{
			{Kind: "disagree", Places: []rpc.AlarmPlace{{Node: "leaf", Port: "eth7"}, {Node: "spine", Port: "eth9"}},
				What: "leaf eth7 hears spine eth9, which hears h1 eth0", Since: time.Date(2030, 1, 2, 3, 4, 8, 0, time.UTC)},
			{Kind: "unreachable", Places: []rpc.AlarmPlace{{Port: "10.0.0.9:7410"}}, What: "connection refused", Since: time.Date(2030, 1, 2, 3, 4, 9, 0, time.UTC)},
		},
	}
}

func mismatches() []rpc.LinkMismatch {
	return []rpc.LinkMismatch{{
		Link: "leaf:4--spine:2", Switch: "leaf", Interface: "eth4", Sent: true, Expected: 98000, Seen: 60,
		Trees: []rpc.TreeShare{{Group: 3, Epoch: 4, Bytes: 98000}}, Since: time.Date(2030, 1, 2, 3, 4, 6, 0, time.UTC),
	}}
}

func explanation() rpc.Explanation {
	return rpc.Explanation{
		Summary: manager.Summary{Group: 3, Name: "job", Members: 2, Watching: 1, State: manager.Active, Epoch: 4,
			Bundle: manager.Bundle{Name: "job", Kind: manager.Stripes, Index: 1, Count: 2}},
		Sisters: []manager.Summary{{Group: 2, Name: "job", Members: 2, State: manager.Planning, Bundle: manager.Bundle{Name: "job", Kind: manager.Stripes, Count: 2}}},
		Purpose: pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 4096, Criterion: pathsel.LeastLatency},
		Missing: []uint32{1}, Refusal: errors.New("no slots"), Offload: 1, Hosts: 1,
		Trees: []rpc.TreeState{{
			Epoch: 4, Stage: manager.TreeActive, Window: 8, Reason: "root spine: by latency",
			Figures: pathsel.Figures{Hops: 3, Depth: 2, Latency: 5 * time.Microsecond, Bandwidth: 50e9, Use: 1, Price: 0.75, Share: 0.125, Speed: 6.5e9},
			Switches: []rpc.TreeVertex{
				{Switch: "spine", Parent: -1, Reducer: topology.SoftwareReducer()}, {Switch: "leaf", Parent: 0, Links: []string{"leaf:4--spine:2"}, Reducer: p4Reducer()},
			},
			Members: []rpc.TreeLeaf{
				{Host: "h0", Vertex: 1, Links: []string{"h0:1--leaf:1"}, Rail: "eth0 (10.0.0.1)"}, {Host: "h1", Vertex: 1, Links: []string{"h1:1--leaf:2"}},
			},
			Criterion: pathsel.LeastLatency, Because: "it was given", Method: "levels", Exact: true,
			Forecast: pathsel.Forecast{Switches: 30 * time.Microsecond, Hosts: 50 * time.Microsecond},
			RunnersUp: []rpc.Alternative{
				{Root: "leaf", Method: "steiner", Figures: pathsel.Figures{Hops: 3, Depth: 2, Latency: 6 * time.Microsecond, Bandwidth: 50e9}, Lost: "1µs of latency"},
				{Root: "spine-1", Method: "shortest paths", Figures: pathsel.Figures{Hops: 4, Depth: 2, Use: 3}, Lost: "1 hop"},
			},
		}, {
			Epoch: 6, Stage: manager.TreePlanned, Window: 8, Reason: "root spine: over a switch that forwards",
			Figures:  pathsel.Figures{Hops: 4, Depth: 2, Latency: 3 * time.Microsecond, Bandwidth: 25e9},
			Switches: []rpc.TreeVertex{{Switch: "spine", Parent: -1}},
			Members: []rpc.TreeLeaf{
				{Host: "h0", Links: []string{"h0:1--leaf:1", "leaf:3--spine:1"}}, {Host: "h1", Links: []string{"h1:1--leaf:2", "leaf:3--spine:1"}},
			},
			Because: "weights were given", Method: "steiner",
		}},
		History:    []rpc.Change{{At: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), What: "created"}},
		Mismatches: mismatches(),
	}
}

func changes() []rpc.MapChange {
	at := time.Date(2030, 1, 2, 3, 4, 7, 0, time.UTC)
	return []rpc.MapChange{
		{At: at, Version: 3, Cause: "operator alice has edited the topology", What: []string{"switch spine-2 added"}, More: 1},
		{At: at.Add(time.Second), Version: 4, What: []string{"h0 is down by membership: died"}},
	}
}

func TestText(t *testing.T) {
	var got bytes.Buffer
	f, g := view.NewFabric(fabric()), view.NewGroup(explanation())
	err := errors.Join(f.Text(&got), view.SummariesText(&got, append(g.Sisters, g.Summary, view.Summary{Group: 4, Name: "alone", State: "waiting"})), view.SummariesText(&got, nil), g.Text(&got), g.Explain(&got))
	if err != nil {
		t.Fatal(err)
	}
	difference := view.NewDifference(rpc.TopologyDifference{Version: 2, What: []string{"host h9 added"}, More: 3})
	if err := errors.Join(difference.Text(&got, "Changed"), view.NewDifference(rpc.TopologyDifference{}).Text(&got, "Changed"),
		view.MapChangesText(&got, view.NewMapChanges(changes())), view.MapChangesText(&got, nil)); err != nil {
		t.Fatal(err)
	}
	compare(t, "testdata/text.txt", got.String())
}

func TestJSON(t *testing.T) {
	var got bytes.Buffer
	if err := errors.Join(view.JSON(&got, view.NewFabric(fabric())), view.JSON(&got, view.NewGroup(explanation())),
		view.JSON(&got, view.NewDifference(rpc.TopologyDifference{Version: 1})), view.JSON(&got, view.NewMapChanges(changes()))); err != nil {
		t.Fatal(err)
	}
	compare(t, "testdata/json.txt", got.String())
}

// compare compares with a file; UPDATE=1 in the environment writes it.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is\n%s\nand not as in %s", got, path)
	}
}

func TestSVG(t *testing.T) {
	var got bytes.Buffer
	if err := view.GroupSVG(&got, fabric(), explanation()); err != nil {
		t.Fatal(err)
	}
	// Of the two links between the switches, the one that the tree is said to take.
	link := got.String()[strings.Index(got.String(), `id="s1-link-3"`):]
	if end := strings.Index(link, ">"); !strings.Contains(link[:end], "edge tree") {
		t.Errorf("the tree's link is drawn as %s", link[:end])
	}
	sister := explanation()
	sister.Group, sister.Bundle.Index, sister.Trees = 2, 0, sister.Trees[:1]
	got.Reset()
	if err := view.GroupSVG(&got, fabric(), explanation(), sister); err != nil ||
		!strings.Contains(got.String(), "Group 3, stripe 1 of 2 of job: tree of epoch 4, active") || !strings.Contains(got.String(), "Group 2, stripe 0 of 2 of job") {
		t.Errorf("with its sister: %v", err)
	}
	waiting := explanation()
	waiting.Trees, waiting.State = nil, manager.Waiting
	got.Reset()
	if err := view.GroupSVG(&got, fabric(), waiting); err != nil || !strings.Contains(got.String(), "No tree: the group is waiting") {
		t.Errorf("without a tree: %v", err)
	}
	got.Reset()
	if err := view.FabricSVG(&got, fabric()); err != nil || !strings.Contains(got.String(), "failed") {
		t.Errorf("the fabric: %v", err)
	}
	alarm := "ALARM: disagree: leaf eth7 and spine eth9: leaf eth7 hears spine eth9, which hears h1 eth0"
	if text := got.String(); strings.Count(text, ">alarm</text>") != 2 || strings.Count(text, alarm) != 3 || !strings.Contains(text, "ALARM: unreachable: 10.0.0.9:7410") {
		t.Errorf("the fabric's alarms are in %s", text)
	}
	many := fabric()
	many.Alarms = slices.Repeat(many.Alarms, picture.MaxAlarms)
	got.Reset()
	if err := view.FabricSVG(&got, many); err != nil || !strings.Contains(got.String(), "and 12 more alarms") {
		t.Errorf("many alarms: %v", err)
	}
}

// The picture of a fabric says of each switch whether it reduces, could, or only
// forwards, and whether its agent is there and it is drained.
func TestFabricSVGShowsHowSwitchesStand(t *testing.T) {
	able, none := topology.DefaultCapability(), topology.Capability{}
	f := rpc.Fabric{Name: "states", Nodes: []rpc.FabricNode{
		{Name: "busy", Up: true, Switch: &rpc.SwitchState{Capability: able, Connected: true, Trees: 2}},
		{Name: "idle", Up: true, Switch: &rpc.SwitchState{Capability: able, Connected: true}},
		{Name: "plain", Up: true, Switch: &rpc.SwitchState{Capability: none}},
		{Name: "gone", Up: true, Switch: &rpc.SwitchState{Capability: able}},
		{Name: "wedged", Up: true, Switch: &rpc.SwitchState{Capability: able, Connected: true, Unusable: "restart it"}},
		{Name: "leaving", Up: true, Switch: &rpc.SwitchState{Capability: able, Connected: true, Draining: true, Trees: 1}},
		{Name: "both", Up: true, Switch: &rpc.SwitchState{Capability: able, Draining: true}},
		{Name: "dead", Switch: &rpc.SwitchState{Capability: able, Draining: true}},
	}}
	var b bytes.Buffer
	if err := view.FabricSVG(&b, f); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ class, label string }{
		"busy": {"switch busy", ""}, "idle": {"switch able", ""}, "plain": {"switch forwards", ""}, "gone": {"switch unready", "no agent"},
		"wedged": {"switch unready", "unusable"}, "leaving": {"switch draining", "draining"}, "both": {"switch unready", "no agent, draining"},
		"dead": {"switch down", "failed"},
	} {
		_, node, found := strings.Cut(b.String(), `<g id="s1-`+name+`" class="node `+want.class+`"`)
		node, _, _ = strings.Cut(node, "</g>")
		_, labels, _ := strings.Cut(node, ">"+name+"</text>") // the lines below its name
		if !found || want.label == "" && strings.Contains(labels, "<text") || want.label != "" && !strings.Contains(labels, ">"+want.label+"</text>") {
			t.Errorf("%s: found %t of class %q, want %q below its name in %q", name, found, want.class, want.label, node)
		}
	}
	for _, says := range []string{"other switch: only forwards", "switch that can reduce", "switch that reduces", "agent cannot serve", "is drained"} {
		if strings.Count(b.String(), says) == 0 {
			t.Errorf("the legend does not say %q", says)
		}
	}
	g, err := view.Scene(fabric())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := explanation().Trees[0].In(g.View.Graph())
	if err != nil {
		t.Fatal(err)
	}
	g.Tree = tree
	b.Reset()
	if err := picture.SVG(&b, "a tree", g); err != nil || !strings.Contains(b.String(), ">root, no agent, draining</text>") {
		t.Errorf("the root of a tree that is to move: %v", err)
	}
}

func TestFabricThatIsNone(t *testing.T) {
	for name, spoil := range map[string]func(*rpc.Fabric){
		"a link to nowhere": func(f *rpc.Fabric) { f.Cables[0].B.Node = "nobody" },
		"a name twice":      func(f *rpc.Fabric) { f.Nodes[1].Name = "h0" },
		"a port twice":      func(f *rpc.Fabric) { f.Cables[3].A.Port = 3 },
	} {
		f := fabric()
		spoil(&f)
		if _, err := view.Scene(f); !errors.Is(err, view.ErrFabric) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e := explanation()
	e.Trees[0].Members[0].Host = "nobody"
	if err := view.GroupSVG(new(bytes.Buffer), fabric(), e); !errors.Is(err, view.ErrFabric) {
		t.Errorf("a member that is nowhere: %v", err)
	}
}

// p4Reducer returns one of a pipeline that leaves something to its agent.
func p4Reducer() topology.Reducer {
	r := topology.Reducer{Pipeline: topology.P4}
	r.Own[reduce.Int32], r.Own[reduce.Int64] = topology.FunctionsOf(reduce.Sum, reduce.Min), topology.FunctionsOf(reduce.Sum, reduce.Min)
	return r
}

// TestSpeedInPictures finds speeds where a drawing's nodes are pointed at.
func TestSpeedInPictures(t *testing.T) {
	var got bytes.Buffer
	f := fabric()
	f.Alarms = nil
	if err := view.FabricSVG(&got, f); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>leaf reduces 6.5 GB/s, 0 packets/s</title>", "<title>spine</title>"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %q in the drawing", want)
		}
	}
}
