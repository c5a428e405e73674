package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/hostlib"
)

func TestDeployment(t *testing.T) {
	d := deploy(t)
	c := d.gather("job")
	if o := c.allreduce(); o.Transport != hostlib.Offload {
		t.Fatalf("it ran by %v since %s", o.Transport, o.Reason)
	}
	root, group, epoch, err := d.root(t.Context())
	if err != nil || root == "" {
		t.Fatalf("root %q, %v", root, err)
	}

	var groups []view.Summary
	if err := json.Unmarshal([]byte(d.ask("group", "list", "--format", "json")), &groups); err != nil || len(groups) != 1 ||
		groups[0].Group != group || groups[0].State != "active" || groups[0].Epoch != epoch || groups[0].Watching != 4 {
		t.Errorf("the groups are %+v, %v", groups, err)
	}
	var shown view.Group
	if err := json.Unmarshal([]byte(d.ask("group", "show", groups[0].Name, "--format", "json")), &shown); err != nil ||
		len(shown.Trees) != 1 || shown.Trees[0].Switches[0].Switch != root || len(shown.Trees[0].Members) != 4 {
		t.Errorf("it is shown as %+v, %v", shown, err)
	}
	for _, q := range []struct {
		args []string
		says []string
	}{
		{[]string{"group", "list"}, []string{"GROUP", "active", groups[0].Name}},
		{[]string{"group", "show", "1"}, []string{"Tree of epoch 2, active", root + " (root)", "4 of them watch"}},
		{[]string{"group", "show", "job"}, []string{groups[0].Name + ": active"}},
		{[]string{"group", "explain", "jo"}, []string{groups[0].Name + ": active"}},
		{[]string{"group", "explain", "1"}, []string{"root " + root + ": ", "LOST BY", "spine-", "For: any collective", "created with 4 members"}},
		{[]string{"group", "show", "1", "--format", "svg"}, []string{"<svg", "edge tree", "Tree of epoch"}},
		{[]string{"topology", "show"}, []string{"4 hosts (0 down), 4 switches, 8 links", "leaf-1", "connected", root + ":"}},
		{[]string{"topology", "show", "--format", "svg"}, []string{"<svg", "node switch", "h3"}},
		{[]string{"topology", "show", "--format", "json"}, []string{`"bandwidth_bits_per_second"`, `"slots_used": 512`}},
		{[]string{"switch", "list"}, []string{"SLOTS USED", "512 of 32768"}},
		{[]string{"switch", "list", "--format", "json"}, []string{`"connected": true`}},
	} {
		if out := d.ask(q.args...); !containsAll(out, q.says) {
			t.Errorf("%v says\n%s\nwithout one of %q", q.args, out, q.says)
		}
	}

	pages := "http://" + attribute(d.manager.await("admin server started"), "address")
	for page, says := range map[string]string{"/healthz": "ok", "/metrics": "tributary_manager_"} {
		if text := get(t, pages+page); !strings.Contains(text, says) {
			t.Errorf("%s says\n%s", page, text)
		}
	}

	if out := d.ask("group", "delete", "1"); !strings.Contains(out, "released") {
		t.Errorf("deleting says %q", out)
	}
	d.eventually("the group is gone", func(ctx context.Context) (bool, error) {
		all, err := d.client.Groups(ctx)
		return len(all) == 0, err
	})
	c.allreduce()
	if status := d.manager.end(terminate); status != 0 || !containsAll(strings.Join(d.manager.last, "\n"), []string{"ending in good order", "manager closed"}) {
		t.Errorf("status %d after\n%s", status, strings.Join(d.manager.last, "\n"))
	}
	if status := d.agents["leaf-0"].end(terminate); status != 0 {
		t.Errorf("the agent's status is %d", status)
	}
	out, err := d.try("store", "check", filepath.Join(d.directory, "manager.db"))
	if err != nil || !strings.Contains(out, "0 groups with 0 trees, the last number given is 1: valid") {
		t.Errorf("the store is %q, %v", out, err)
	}
}

// get returns a page.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	return string(text)
}

func TestDrainedSwitchCarriesNothing(t *testing.T) {
	d := deploy(t)
	c := d.gather("job")
	c.allreduce()
	root, _, epoch, err := d.root(t.Context())
	if err != nil || root == "" {
		t.Fatalf("root %q, %v", root, err)
	}
	d.ask("switch", "drain", root)
	d.eventually("the group has moved", func(ctx context.Context) (bool, error) {
		c.allreduce() // members change to a new tree when they have something to do
		fabric, err := d.client.Topology(ctx)
		if err != nil {
			return false, err
		}
		for _, n := range fabric.Nodes {
			if n.Name == root {
				return n.Switch.Trees == 0 && n.Switch.SlotsUsed == 0, nil
			}
		}
		return false, nil
	})
	if o := c.allreduce(); o.Transport != hostlib.Offload {
		t.Errorf("after that it ran by %v since %s", o.Transport, o.Reason)
	}
	if other, _, later, err := d.root(t.Context()); err != nil || other == root || later <= epoch {
		t.Errorf("the root is %s in epoch %d, %v; before it was %s in epoch %d", other, later, err, root, epoch)
	}
	if out := d.ask("switch", "list"); !strings.Contains(out, "up, draining") {
		t.Errorf("switches:\n%s", out)
	}
	d.ask("switch", "undrain", root)
	if out := d.ask("switch", "list"); strings.Contains(out, "draining") {
		t.Errorf("switches:\n%s", out)
	}
}

func TestManagerIsKilled(t *testing.T) {
	d := deploy(t)
	c := d.gather("job")
	first := c.allreduce()
	root, group, epoch, err := d.root(t.Context())
	if err != nil || root == "" {
		t.Fatalf("root %q, %v", root, err)
	}
	if err := d.manager.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for range d.manager.lines { // until it has ended
		}
	}()
	during := 0
	for running := true; running || during < 3; during++ {
		if o := c.allreduce(); o.Transport != hostlib.Offload || o.Epochs[len(o.Epochs)-1] != first.Epochs[0] {
			t.Fatalf("it ran by %v in %v since %s, before in %v", o.Transport, o.Epochs, o.Reason, first.Epochs)
		}
		select {
		case <-killed:
			running = false
		default:
		}
	}

	d.startManager()
	d.eventually("all members watch again", func(ctx context.Context) (bool, error) {
		groups, err := d.client.Groups(ctx)
		return len(groups) == 1 && groups[0].Group == group && groups[0].Watching == 4, err
	})
	if again, _, later, err := d.root(t.Context()); err != nil || again != root || later != epoch {
		t.Errorf("the tree is of root %s and epoch %d, %v; before it was %s and %d\n%s", again, later, err, root, epoch, d.ask("group", "explain", "1"))
	}
	if o := c.allreduce(); o.Transport != hostlib.Offload || o.Epochs[0] != first.Epochs[0] {
		t.Errorf("it ran by %v in %v since %s", o.Transport, o.Epochs, o.Reason)
	}
	if out := d.ask("group", "create", "other", "h0", "h1"); !strings.Contains(out, "Group 2, other: created") {
		t.Errorf("a new group: %q", out)
	}
}

func TestAgentsAreKilled(t *testing.T) {
	d := deploy(t)
	c := d.gather("job")
	c.allreduce()
	root, _, _, err := d.root(t.Context())
	if err != nil || root == "" {
		t.Fatalf("root %q, %v", root, err)
	}
	for _, name := range []string{root, "leaf-0"} { // past a leaf there is no other tree
		if err := d.agents[name].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if o := c.allreduce(); o.Reason == "" {
			t.Errorf("after the death of %s it ran by %v, and nothing says why", name, o.Transport)
		}
		d.manager.await("agent lost", "switch="+name)
		d.startAgent(name)
		d.connected()
		d.eventually("the switches reduce again", func(context.Context) (bool, error) {
			return c.allreduce().Transport == hostlib.Offload, nil
		})
	}
}

func TestTopologyChangesUnderTheStore(t *testing.T) {
	d := deploy(t)
	d.ask("group", "create", "job", "h2", "h3")
	d.manager.end(syscall.SIGKILL)
	config := d.write("manager.yaml", "version: 1\ntopology: leaf-spine:1,2,2\nstore: manager.db\n")
	d.manager = launch(t, "offload-manager", "serve", "--config", config, "--listen", d.address)
	d.manager.await("manager started")
	d.eventually("the group says who is absent", func(context.Context) (bool, error) {
		out, err := d.try("group", "show", "job")
		return err == nil && containsAll(out, []string{"hosts are not in the fabric", "h2 h3"}), nil
	})
}

func TestManagerSaysForWhomItWaits(t *testing.T) {
	d := deploy(t)
	if status := d.manager.end(terminate); status != 0 {
		t.Errorf("status %d", status)
	}
	d.agents["leaf-1"].end(syscall.SIGKILL)
	d.startManager()
	d.manager.await("waiting for agent", "switch=leaf-1", "agent="+d.at["leaf-1"])
	d.startAgent("leaf-1")
	d.manager.await("agent met", "switch=leaf-1")
	d.connected()
	if o := d.gather("job").allreduce(); o.Transport != hostlib.Offload {
		t.Errorf("it ran by %v since %s", o.Transport, o.Reason)
	}
}

func TestWhatKeepsAManagerFromStarting(t *testing.T) {
	d := deploy(t)
	config := filepath.Join(d.directory, "manager.yaml")
	refuse := func(says string, args ...string) {
		t.Helper()
		out, err := d.try(args...)
		if err == nil || !strings.Contains(err.Error(), "exit status 1: offload-manager: ") || !strings.Contains(err.Error(), says) ||
			strings.Count(err.Error(), "\n") != 1 || out != "" {
			t.Errorf("%v: %v, want a line with %q", args, err, says)
		}
	}
	refuse("another process has it open", "serve", "--config", config, "--listen", "127.0.0.1:0")
	refuse("address already in use", "serve", "--config", config, "--listen", d.address, "--store", filepath.Join(d.directory, "other.db"))
	refuse("absent.yaml", "serve", "--config", filepath.Join(d.directory, "absent.yaml"))
	refuse("--log-format", "serve", "--config", config, "--log-format", "xml")
	refuse("loud", "serve", "--config", config, "--log-level", "loud")
	refuse("--config is missing; usage: offload-manager serve", "serve")
	refuse("manager.yaml:2: topology: ", "serve", "--config", d.write("manager.yaml", "version: 1\ntopology: 5\n"))
	refuse("no such group", "group", "show", "nobody")
	refuse("its switches: leaf-0, leaf-1, spine-0, spine-1", "switch", "drain", "spine-7")
	if out, err := d.try("group", "create", "job", "nobody", "h1"); err != nil || !containsAll(out, []string{"created, 2 members", "hosts are not in the fabric", "(nobody)"}) {
		t.Errorf("a group of unknown hosts: %q, %v", out, err)
	}

	d.manager.end(syscall.SIGKILL)
	refuse("is it running", "group", "list")
	path := filepath.Join(d.directory, "manager.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[4096+20] ^= 1
	d.write("manager.db", string(data))
	config = d.write("manager.yaml", "version: 1\ntopology: "+fabricSpec+"\nstore: manager.db\n")
	refuse("move the file away", "serve", "--config", config, "--listen", d.address)
	refuse("move the file away", "store", "check", path)
	if err := os.Rename(path, path+".damaged"); err != nil {
		t.Fatal(err)
	}
	d.startManager()
}

func TestCertificates(t *testing.T) {
	d := &deployment{T: t, directory: t.TempDir(), at: map[string]string{}, agents: map[string]*child{}}
	trust := filepath.Join(d.directory, "trust")
	d.ask("certs", "init", trust, "--manager", "m", "--agent", "leaf-0", "--agent", "leaf-1", "--operator", "me", "--host", "h0")
	with := func(name string) string {
		return fmt.Sprintf("tls: {certificate: trust/%s.pem, key: trust/%s-key.pem, authority: trust/ca.pem}\n", name, name)
	}
	agent := launch(t, "switch-agent", "run", "--config",
		d.write("leaf-0.yaml", "version: 1\nswitch: leaf-0\nlisten: 127.0.0.1:0\n"+with("agent-leaf-0")))
	address := attribute(agent.await("waiting for a manager"), "address")
	config := d.write("manager.yaml", "version: 1\ntopology: "+fabricSpec+"\nlisten: 127.0.0.1:0\nagents: {leaf-0: '"+address+"'}\n"+with("manager-m"))
	m := launch(t, "offload-manager", "serve", "--config", config)
	d.address = attribute(m.await("manager started"), "address")
	m.await("agent met", "switch=leaf-0")

	as := func(name string, args ...string) []string {
		file := filepath.Join(trust, name)
		return append(args, "--certificate", file+".pem", "--key", file+"-key.pem", "--authority", filepath.Join(trust, "ca.pem"))
	}
	if out := d.ask(as("operator-me", "switch", "drain", "leaf-0")...); !strings.Contains(out, "leaf-0: draining") {
		t.Errorf("an operator is notified %q", out)
	}
	for says, args := range map[string][]string{
		"not allowed":   as("host-h0", "switch", "drain", "leaf-0"),
		"--authority":   {"switch", "list", "--timeout", "2s"}, // hints at what is missing
		"no such group": as("host-h0", "group", "explain", "nobody"),
		"is another's":  as("operator-me", "switch", "list", "--manager", address), // an agent's address
	} {
		if out, err := d.try(args...); err == nil || !strings.Contains(err.Error(), says) || out != "" {
			t.Errorf("%v: %q, %v, want %q", args, out, err, says)
		}
	}
	d.write("leaf-1.yaml", "version: 1\nswitch: leaf-0\nlisten: 127.0.0.1:0\n"+with("agent-leaf-1"))
	p := launch(t, "switch-agent", "run", "--config", filepath.Join(d.directory, "leaf-1.yaml"))
	p.await("switch-agent: ", "agent/leaf-1", "leaf-0")
}
