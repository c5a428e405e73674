package managerd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

func yaml(t *testing.T, g *topology.Graph) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := topology.WriteYAML(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestOperatorChangesTheTopology sets, edits and compares it, has a tree follow, and
// restarts the manager in between: what the operator did last counts.
func TestOperatorChangesTheTopology(t *testing.T) {
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) { c.Store = new(managerd.Memory) })
	g := f.newGroup(f.spec("job"))
	offers := g.offers(0)
	g.allreduce(offers, 0)
	root := g.root(offers[0].Epoch)
	spare := map[string]string{"spine-0": "spine-1", "spine-1": "spine-0"}[root]

	// A dry run changes nothing, a real one moves the tree, and the old version is taken.
	patch := rpc.TopologyFile{Name: "patch.yaml", Content: []byte("remove: {switches: [" + root + "]}\nhosts: [h9]"), DryRun: true}
	dry, err := f.client.EditTopology(testContext(t), patch)
	if err != nil || dry.Version != 0 || !slices.Contains(dry.What, "switch "+root+" removed") || !slices.Contains(dry.What, "agent of "+root+" removed") {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	patch.DryRun = false
	done, err := f.client.EditTopology(testContext(t), patch)
	if err != nil || done.Version != 1 || !slices.Equal(done.What, dry.What) {
		t.Fatalf("edit: %+v, %v", done, err)
	}
	if why := g.members[0].withdrawal(offers[0].Epoch).Why; !strings.Contains(why, root+": it is not in the fabric any more: an operator has edited the topology") {
		t.Errorf("withdrawn because %s", why)
	}
	later := g.offers(offers[0].Epoch)
	g.allreduce(later, 0)
	if again, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte("hosts: [h9]")}); err != nil || again.Version != 1 || len(again.What) > 0 {
		t.Errorf("an edit of nothing: %+v, %v", again, err)
	}
	if _, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte("hosts: [h8]"), Version: 7}); !errors.Is(err, rpc.ErrVersion) {
		t.Errorf("an edit of another version: %v", err)
	}
	if _, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p.yaml", Content: []byte("hosts: [h8]\nlinks:\n- {between: [h8, nobody]}")}); !errors.Is(err, rpc.ErrTopology) ||
		!strings.Contains(err.Error(), "p.yaml:3: links[0].between[1]: ") {
		t.Errorf("an edit that cannot be: %v", err)
	}
	if _, err := f.client.SetTopology(testContext(t), rpc.TopologyFile{Name: "t", Content: yaml(t, f.graph), Agents: map[string]string{"leaf-7": "127.0.0.1:1"}}); !errors.Is(err, rpc.ErrTopology) {
		t.Errorf("an agent of nobody: %v", err)
	}

	// After a restart it is as the operator left it, not as the configuration has it.
	f.manager.Close()
	f.startManager()
	for _, m := range g.members {
		m.watch(later[0].Epoch)
	}
	if o := f.manager.Operator(); o.Version != 1 || o.Agents[root] != "" || o.Agents[spare] == "" {
		t.Fatalf("after a restart: %+v", o)
	}
	last := g.offers(0)
	if last[0].Epoch != later[0].Epoch {
		t.Errorf("epoch %d, it was %d", last[0].Epoch, later[0].Epoch)
	}
	g.allreduce(last, 1)

	// All of it as a file, with the root back, for the version that is there.
	file, err := f.client.TopologyFile(testContext(t), false)
	if err != nil || file.Version != 1 || bytes.Contains(file.Content, []byte(root)) || file.Agents["leaf-0"] != f.cfg.Agents["leaf-0"] {
		t.Fatalf("%s, %+v, %v", file.Content, file.Agents, err)
	}
	set := rpc.TopologyFile{Name: "t.yaml", Content: yaml(t, f.graph), Version: 1, Agents: map[string]string{root: f.cfg.Agents[root]}}
	diff, err := f.client.DiffTopology(testContext(t), set)
	if err != nil || !slices.Contains(diff.What, "switch "+root+" added") || !slices.Contains(diff.What, "host h9 removed") {
		t.Errorf("diff: %+v, %v", diff, err)
	}
	if done, err = f.client.SetTopology(testContext(t), set); err != nil || done.Version != 2 || !slices.Equal(done.What, diff.What) {
		t.Errorf("set: %+v, %v", done, err)
	}
	f.connected()
	if diff, err = f.client.DiffTopology(testContext(t), rpc.TopologyFile{}); err != nil || len(diff.What) > 0 || diff.Version != 2 {
		t.Errorf("operator's part and map: %+v, %v", diff, err)
	}

	// Out of use, and back; the reason is shown, and survives a restart.
	link := "leaf-0:3--spine-0:1"
	if _, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte("down: [\"" + link + "\", h0]")}); err != nil {
		t.Fatal(err)
	}
	for restarts := range 2 {
		fabric, err := f.client.Topology(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		down := 0
		for _, c := range fabric.Cables {
			if !c.Up {
				down++
				if c.Why != "operator: taken out of use" {
					t.Errorf("%+v", c)
				}
			}
		}
		if h := fabric.Nodes[0]; down != 1 || h.Up || h.Why == "" {
			t.Errorf("%d links are down; %+v", down, h)
		}
		if restarts == 0 {
			f.manager.Close()
			f.startManager()
		}
	}
	if d, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte("up: [h0]")}); err != nil || !slices.Equal(d.What, []string{"h0 put into use"}) {
		t.Errorf("%+v, %v", d, err)
	}
	history, err := f.client.TopologyHistory(testContext(t))
	if n := len(history); err != nil || n < 5 || !strings.HasPrefix(history[n-1].What[0], "h0 is up: it was down by operator") || history[n-1].Cause != "an operator has edited the topology" ||
		!strings.HasPrefix(history[n-2].What[0], "manager restarted") || history[0].Cause != "an operator has edited the topology" {
		t.Errorf("history %+v, %v", history, err)
	}

	// What only compares or fails leaves the operator's part as it is.
	small := rpc.TopologyFile{Name: "t", Content: []byte("version: 1\nhosts: [h7]\n"), DryRun: true}
	if _, err := f.client.SetTopology(testContext(t), small); err != nil {
		t.Error(err)
	}
	if _, err := f.client.DiffTopology(testContext(t), small); err != nil {
		t.Error(err)
	}
	if o := f.manager.Operator(); !slices.Equal(o.Down, []string{link}) {
		t.Errorf("down is %q", o.Down)
	}

	// A configuration that was changed since counts more.
	f.manager.Close()
	f.cfg.Topology = without(t, f.graph, "spine-1")
	f.cfg.Agents = maps.Clone(f.cfg.Agents)
	delete(f.cfg.Agents, "spine-1")
	f.startManager()
	if o := f.manager.Operator(); o.Version < 5 || len(o.Down) > 0 || o.Graph.Switches() != 3 {
		t.Errorf("after a change of the configuration: %+v", o)
	}
}

// TestRenamedStaysOutOfUse: nodes and links that are out of use are so under new names, too.
func TestRenamedStaysOutOfUse(t *testing.T) {
	f := newFabric(t, nil)
	for _, patch := range []string{"down: [h0, \"leaf-0:3--spine-0:1\", \"leaf-1:3--spine-0:2\"]", "rename: {h0: h9, leaf-0: x, leaf-1: leaf-0, x: leaf-1, spine-0: a}"} {
		if _, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte(patch)}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"a:1--leaf-1:3", "a:2--leaf-0:3", "h9"}
	o := f.manager.Operator()
	if !slices.Equal(o.Down, want) || o.Agents["leaf-1"] != f.cfg.Agents["leaf-0"] || o.Agents["a"] != f.cfg.Agents["spine-0"] {
		t.Errorf("out of use are %v, and agents %v", o.Down, o.Agents)
	}
	fabric, err := f.client.Topology(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	var down []string
	for _, n := range fabric.Nodes {
		if !n.Up && n.Why == "operator: taken out of use" {
			down = append(down, n.Name)
		}
	}
	for _, c := range fabric.Cables {
		if a, b := fmt.Sprint(c.A.Node, ":", c.A.Port), fmt.Sprint(c.B.Node, ":", c.B.Port); !c.Up && c.Why == "operator: taken out of use" {
			down = append(down, min(a, b)+"--"+max(a, b))
		}
	}
	if slices.Sort(down); !slices.Equal(down, want) {
		t.Errorf("down are %v", down)
	}
}

// TestOperatorsPartIsMerged: where something merges it the operator's part is not the
// map, and the last map is what a restart begins with.
func TestOperatorsPartIsMerged(t *testing.T) {
	var mu sync.Mutex
	var merged []managerd.Operator
	f := startFabric(t, nil)
	f.manager.Kill()
	f.at, f.cfg.Agents, f.cfg.Topology, f.cfg.Store = f.cfg.Agents, map[string]string{"leaf-0": f.cfg.Agents["leaf-0"]}, nil, new(managerd.Memory)
	f.cfg.Merge = func(o managerd.Operator, cause string) {
		mu.Lock()
		defer mu.Unlock()
		if cause != "an operator has edited the topology" && cause != "an operator has set the topology" {
			t.Errorf("because %s", cause)
		}
		merged = append(merged, o)
	}
	f.startManager()
	f.set(f.graph, "it was found")
	f.connected()
	if _, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte("hosts: [h9]")}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if len(merged) != 1 || merged[0].Graph.Hosts() != 1 || merged[0].Version != 1 {
		t.Errorf("merged %+v", merged)
	}
	mu.Unlock()
	diff, err := f.client.DiffTopology(testContext(t), rpc.TopologyFile{})
	if err != nil || !slices.Contains(diff.What, "host h9 removed") || !slices.Contains(diff.What, "switch leaf-0 added") {
		t.Errorf("%+v, %v", diff, err)
	}

	// The operator's part speaks of what only the wire has, too; that stays until the
	// operator takes it back.
	agents := map[string]string{"leaf-0": f.at["leaf-0"], "leaf-1": f.at["leaf-1"]}
	edit := func(patch string) {
		t.Helper()
		if _, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte(patch)}); err != nil {
			t.Error(err)
		}
	}
	edit("agents: {leaf-1: \"" + f.at["leaf-1"] + "\"}\ndown: [h1, \"spine-0:1--leaf-0:3\"]")
	for _, content := range []string{"version: 1\nhosts: [h9, h8]\n", "version: 1\nhosts: [h9]\n"} {
		if _, err := f.client.SetTopology(testContext(t), rpc.TopologyFile{Name: "t", Content: []byte(content)}); err != nil {
			t.Error(err)
		}
	}
	if o := f.manager.Operator(); !maps.Equal(o.Agents, agents) || !slices.Equal(o.Down, []string{"h1", "leaf-0:3--spine-0:1"}) {
		t.Errorf("the operator's part has %v, down %v", o.Agents, o.Down)
	}
	if fabric, err := f.client.Topology(testContext(t)); err != nil || fabric.Nodes[1].Up || fabric.Nodes[1].Why != "operator: taken out of use" {
		t.Errorf("%+v, %v", fabric.Nodes[1], err)
	}
	for _, wrong := range []string{"agents: {nobody: \"127.0.0.1:1\"}", "agents: {h9: \"127.0.0.1:1\"}", "down: [nobody]"} {
		if _, err := f.client.EditTopology(testContext(t), rpc.TopologyFile{Name: "p", Content: []byte(wrong)}); !errors.Is(err, rpc.ErrTopology) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	edit("agents: {leaf-1: \"\"}\nup: [h1, \"leaf-0:3--spine-0:1\"]")
	delete(agents, "leaf-1")
	if o := f.manager.Operator(); !maps.Equal(o.Agents, agents) || len(o.Down) > 0 {
		t.Errorf("the operator's part has %v, down %v", o.Agents, o.Down)
	}

	// What the wire may have stays out of use when the operator's part renames or removes it.
	edit("hosts: [h1]\ndown: [h1]")
	for _, patch := range []string{"rename: {h1: other}", "remove: {hosts: [other]}"} {
		edit(patch)
		if o := f.manager.Operator(); !slices.Equal(o.Down, []string{"h1", "other"}) {
			t.Errorf("after %s down are %v", patch, o.Down)
		}
	}
	edit("up: [h1, other]")
	if o := f.manager.Operator(); len(o.Down) > 0 {
		t.Errorf("down are %v", o.Down)
	}

	g := f.newGroup(f.spec("job"))
	offers := g.offers(0)
	f.eventually("the map is stored", func(context.Context) (bool, error) {
		all, err := f.cfg.Store.Load()
		return slices.ContainsFunc(all, func(r manager.Record) bool { return r.Kind == manager.MapRecord }), err
	})
	f.manager.Kill()
	f.startManager()
	for _, m := range g.members {
		m.watch(offers[0].Epoch)
	}
	again := g.offers(0)
	if again[0].Epoch != offers[0].Epoch {
		t.Errorf("epoch %d, it was %d", again[0].Epoch, offers[0].Epoch)
	}
	g.allreduce(again, 0)
}
