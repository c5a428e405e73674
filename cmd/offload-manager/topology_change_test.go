package main

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/topology"
)

// TestTopologyCommands changes a running fabric by commands: a spine goes and comes back,
// while a group reduces.
func TestTopologyCommands(t *testing.T) {
	d := deploy(t)
	c := d.gather("job")
	c.allreduce()
	root, _, _, err := d.root(t.Context())
	if err != nil || root == "" {
		t.Fatalf("root %q, %v", root, err)
	}
	if out := d.ask("topology", "edit", "--remove-switch", root, "--dry-run"); !containsAll(out, []string{"Would change (version 0", "switch " + root + " removed", "agent of " + root + " removed"}) {
		t.Errorf("dry run: %s", out)
	}
	if out := d.ask("topology", "history"); !strings.Contains(out, "has not changed") {
		t.Errorf("history: %s", out)
	}
	before := d.ask("topology", "get")
	if out := d.ask("topology", "edit", "--remove-switch", root); !containsAll(out, []string{"Changed (version 1", "switch " + root + " removed"}) {
		t.Errorf("edit: %s", out)
	}
	moved := func() {
		t.Helper()
		d.eventually("the tree is another", func(ctx context.Context) (bool, error) {
			is, _, _, err := d.root(ctx)
			return err == nil && is != root && is != "" && c.allreduce().Transport == hostlib.Offload, nil
		})
	}
	moved()
	if out := d.ask("group", "explain", "job"); !containsAll(out, []string{"switch " + root + ": it is not in the fabric any more: an operator has edited the topology"}) {
		t.Errorf("explain: %s", out)
	}

	// A restart keeps it; a file brings the rest back.
	d.manager.end(syscall.SIGKILL)
	d.startManager()
	d.connected()
	if out := d.ask("topology", "history"); !containsAll(out, []string{"an operator has edited the topology", "switch " + root + " removed", "manager restarted"}) {
		t.Errorf("history after a restart: %s", out)
	}
	path := d.write("fabric.yaml", before)
	if out := d.ask("topology", "diff", path); !containsAll(out, []string{"against the map", "switch " + root + " added"}) {
		t.Errorf("diff: %s", out)
	}
	if _, err := d.try("topology", "set", path, "--version", "9"); err == nil || !strings.Contains(err.Error(), "it is version 1, and not 9") {
		t.Errorf("another version: %v", err)
	}
	var set view.Difference
	if err := json.Unmarshal([]byte(d.ask("topology", "set", path, "--version", "1", "--agent", root+"="+d.at[root], "--format", "json")), &set); err != nil || set.Version != 2 || len(set.What) < 3 {
		t.Errorf("set: %+v, %v", set, err)
	}
	d.connected()
	moved()
	if out := d.ask("topology", "diff"); !strings.Contains(out, "nothing (version 2") {
		t.Errorf("the map and the operator's part: %s", out)
	}
	if _, err := topology.Read(strings.NewReader(d.ask("topology", "get", "--map")), "map"); err != nil {
		t.Error(err)
	}

	d.ask("topology", "edit", "--down", "h0", "--rename", "h1=h9")
	if out := d.ask("topology", "show"); !strings.Contains(out, "DOWN: host h0: operator: taken out of use") {
		t.Errorf("show: %s", out)
	}
	if out := d.ask("topology", "history"); !containsAll(out, []string{"an operator has set the topology", "host h9 added", "h0 is down by operator"}) {
		t.Errorf("history: %s", out)
	}
	patch := d.write("patch.yaml", "up: [h0]\nlinks:\n- {between: [h0, nobody]}\n")
	if _, err := d.try("topology", "edit", patch); err == nil || !strings.Contains(err.Error(), "patch.yaml:3: links[0].between[1]: ") {
		t.Errorf("a patch that cannot be: %v", err)
	}
	for _, args := range [][]string{{patch, "--up", "h0"}, {"--add-link", "h0"}, {"--add-link", "h0:1,leaf-0"}, {"--rename", "h0"}, {"--agent", "leaf-0"}} {
		if _, err := d.try(append([]string{"topology", "edit"}, args...)...); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
