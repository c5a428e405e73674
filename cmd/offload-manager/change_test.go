package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/topology"
)

// SIGHUP changes nothing, but has the log say what a restart would find.
func TestConfigurationChanges(t *testing.T) {
	d := &deployment{T: t, directory: t.TempDir()}
	write := func(more string) {
		d.write("manager.yaml", "version: 1\ntopology: "+fabricSpec+"\nlisten: 127.0.0.1:0\n"+more)
		d.write("leaf-0.yaml", "version: 1\nswitch: leaf-0\nlisten: 127.0.0.1:0\n"+more)
	}
	write("")
	m := launch(t, "offload-manager", "serve", "--config", filepath.Join(d.directory, "manager.yaml"))
	m.await("running until")
	a := launch(t, "switch-agent", "run", "--config", filepath.Join(d.directory, "leaf-0.yaml"))
	a.await("running until")
	for _, c := range []struct{ more, says string }{
		{"log: {level: debug}\n", "it is valid as it is now, and a restart takes it"},
		{"colour: blue\n", "colour: unknown field"},
	} {
		write(c.more)
		for _, p := range []*child{m, a} {
			p.hangUp(c.says)
		}
	}
	for _, p := range []*child{m, a} {
		if status := p.end(terminate); status != 0 {
			t.Errorf("status %d", status)
		}
	}
}

// hangUp sends SIGHUP and waits for the answer.
func (p *child) hangUp(says string) {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		p.Fatal(err)
	}
	p.await(says)
}

// rest is fabricSpec without one spine.
func rest(t *testing.T, without string) string {
	t.Helper()
	g, err := topology.Parse(fabricSpec)
	if err != nil {
		t.Fatal(err)
	}
	b := topology.Builder{Fabric: "the rest"}
	refs := map[string]topology.Ref{}
	for n := range topology.NodeID(g.Nodes()) {
		name := g.Name(n)
		switch {
		case name == without:
			continue
		case g.IsHost(n):
			refs[name], err = b.AddHost(name)
		default:
			refs[name], err = b.AddSwitch(name, g.Capability(n))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range g.AllLinks() {
		x, y := g.Name(link.Ends[0].Node), g.Name(link.Ends[1].Node)
		if x == without || y == without {
			continue
		}
		if _, err := b.Connect(refs[x], link.Ends[0].Port, refs[y], link.Ends[1].Port, link.LinkSpec); err != nil {
			t.Fatal(err)
		}
	}
	left, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := topology.WriteYAML(&text, left); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// The switch at the root of a tree is struck from the topology, under a group
// that runs: members go over to another tree, and no result is wrong.
func TestRootLeavesTheTopology(t *testing.T) {
	d := deploy(t)
	c := d.gather("job")
	c.allreduce()
	root, group, _, err := d.root(t.Context())
	if err != nil || root == "" {
		t.Fatalf("root %q, %v", root, err)
	}
	d.manager.end(terminate)
	d.write("rest.yaml", rest(t, root))
	data, err := os.ReadFile(filepath.Join(d.directory, "manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "topology: "+fabricSpec, "topology: rest.yaml", 1)
	text = strings.Replace(text, "  "+root+": "+d.at[root]+"\n", "", 1)
	d.write("manager.yaml", text)
	d.startManager()
	d.connected()
	d.eventually("the group has another tree", func(ctx context.Context) (bool, error) {
		c.allreduce() // members change to a new tree when they have something to do
		other, same, _, err := d.root(ctx)
		return other != "" && other != root && same == group, err
	})
	d.eventually("the members run on it", func(context.Context) (bool, error) {
		o := c.allreduce()
		return o.Transport == hostlib.Offload, nil
	})
}

// A group of hosts that have left keeps a manager from starting, until it is
// removed from the store.
func TestGroupIsRemovedFromTheStore(t *testing.T) {
	d := deploy(t)
	d.ask("group", "create", "job", "h0", "h1")
	d.ask("group", "create", "orphan", "h2", "h3")
	d.manager.end(syscall.SIGKILL)
	path := filepath.Join(d.directory, "manager.db")
	for says, args := range map[string][]string{
		"Group 2, orphan: 2 members (h2, h3), ":                {"orphan"},
		"nothing was removed: --yes":                           {"2"},
		"no such group \"3\"; its groups: 1 (job), 2 (orphan)": {"3", "--yes"},
	} {
		out, err := d.try(append([]string{"store", "remove", path}, args...)...)
		if err == nil || !strings.Contains(err.Error(), says) || out != "" {
			t.Errorf("%v: %q, %v, want %q", args, out, err, says)
		}
	}
	if out := d.ask("store", "check", path); !strings.Contains(out, "2 groups") {
		t.Errorf("in it are %s", out)
	}
	if out := d.ask("store", "remove", path, "2", "--yes"); !containsAll(out, []string{"Group 2, orphan: 2 members (h2, h3), ", "trees: removed"}) {
		t.Errorf("it says %q", out)
	}
	d.write("manager.yaml", "version: 1\ntopology: leaf-spine:1,2,2\nstore: manager.db\n")
	d.startManager()
	if out := d.ask("group", "list"); !strings.Contains(out, "job") || strings.Contains(out, "orphan") {
		t.Errorf("there are\n%s", out)
	}
	if out := d.ask("group", "create", "third", "h0", "h1"); !strings.Contains(out, "Group 3, third: created") {
		t.Errorf("it says %q", out)
	}
}
