package main

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/topology"
)

// TestTopologyDiscover discovers an agent that has no neighbours, one that is not there,
// and refuses what cannot be.
func TestTopologyDiscover(t *testing.T) {
	var ports nic.Fake
	ports.Set([]nic.Interface{{Name: "eth1", Up: true}}, nil)
	a, err := agentd.Start(agentd.Config{
		Switch: "leaf-0", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1"), Interfaces: &ports,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	picture := filepath.Join(t.TempDir(), "fabric.svg")
	out, notes, err := execute(t, "topology", "discover", "--seed", a.Addr(), "--name", "lab", "--picture", picture)
	if err != nil {
		t.Fatalf("%v: %s", err, notes)
	}
	g, err := topology.Read(strings.NewReader(out), "out")
	if err != nil || g.Fabric() != "lab" || g.Switches() != 1 || g.Hosts() != 0 {
		t.Fatalf("%v: %s", err, out)
	}
	if n, ok := g.Lookup("leaf-0"); !ok || g.Capability(n).Slots != topology.DefaultSlots {
		t.Errorf("%s", out)
	}
	if !strings.Contains(notes, "0 hosts, 1 switches of which 1 have an agent, 0 links") {
		t.Errorf("it says %q", notes)
	}
	if svg, err := os.ReadFile(picture); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("the picture: %v", err)
	}
	a.Close()
	if out, notes, err = execute(t, "topology", "discover", "--seed", a.Addr(), "--allow", "127.0.0.1"); out != "" || !errors.Is(err, errIncomplete) || !strings.Contains(notes, "no answer: "+a.Addr()) || !strings.Contains(err.Error(), "1 target without an answer, 1 alarm") {
		t.Errorf("without the agent: %v, %q, %q", err, notes, out)
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{nil, "no --seed"}, {[]string{"--seed", "here"}, "--seed"}, {[]string{"--seed", "a:1", "--allow", "10.0.0.1/8"}, "write 10.0.0.0/8"},
		{[]string{"--seed", "a:1", "--timeout", "-1s"}, "--timeout"}, {[]string{"--seed", "a:1", "--key", "k"}, "needed together"},
	} {
		if _, _, err := execute(t, append([]string{"topology", "discover"}, test.args...)...); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v: %v", test.args, err)
		}
	}
}
