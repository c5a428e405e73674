package netlab

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/topology"
)

// The processes of TestDiscovery. They run until they are killed.

const agentPort = 7410

var childLog = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

// switchAgent is the agent of a switch, with LLDP on its links.
func switchAgent() error {
	_, err := agentd.Start(agentd.Config{
		Switch: os.Getenv("NETLAB_NAME"), Capability: topology.DefaultCapability(), AllowPlaintext: true, Log: childLog,
		Listen: fmt.Sprintf("0.0.0.0:%d", agentPort), Data: netip.IPv4Unspecified(), Interfaces: nic.System(),
		LLDP: &agentd.LLDP{
			Interfaces: nic.System(), Exclude: []string{station}, Required: true,
			Management: []netip.Addr{netip.MustParseAddr(os.Getenv("NETLAB_ADDRESS"))},
		},
	})
	return err
}

// announcedHost is a host that is announced by LLDP.
func announcedHost() error {
	c := lldp.OfHost(os.Getenv("NETLAB_NAME"), nic.System(), childLog)
	c.Exclude = []string{station}
	_, err := lldp.Start(c)
	return err
}

// discoveringManager is a manager that gets one address, and writes each map that it has, in
// a line.
func discoveringManager() error {
	d, err := managerd.Start(managerd.Config{
		Listen: "127.0.0.1:0", Log: childLog,
		Discovery: &discoverer.Config{Core: discovery.Config{
			Seeds: []string{os.Getenv("NETLAB_ADDRESS")}, Allow: []netip.Prefix{netip.MustParsePrefix("10.100.0.0/16")},
		}},
	})
	if err != nil {
		return err
	}
	last := ""
	for range time.Tick(10 * time.Millisecond) {
		f, err := d.Topology(context.Background())
		if err != nil {
			return err
		}
		var lines []string
		for _, n := range f.Nodes {
			kind := "host"
			if n.Switch != nil {
				kind = "switch"
				if n.Switch.Connected {
					kind = "connected switch"
				}
			}
			lines = append(lines, kind+" "+n.Name)
		}
		for _, c := range f.Cables {
			lines = append(lines, cable(c.A.Node, c.A.Port, c.B.Node, c.B.Port, c.Up))
		}
		slices.Sort(lines)
		if text := strings.Join(lines, ", "); text != last {
			last = text
			fmt.Println(text)
		}
	}
	return nil
}

func cable(a string, p topology.Port, b string, q topology.Port, up bool) string {
	x, y := fmt.Sprintf("%s:%d", a, p), fmt.Sprintf("%s:%d", b, q)
	return fmt.Sprintf("link %s--%s up=%v", min(x, y), max(x, y), up)
}

// TestDiscovery: of switches with agents, hosts with LLDP and one address the manager makes the
// map of the fabric, and follows links that are cut and restored.
func TestDiscovery(t *testing.T) {
	lab := build(t, Config{Prefix: "nldiscover", HostsPerLeaf: 2, Leaves: 2, Spines: 2})
	g := lab.Topology()
	child := func(role, name, address string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "NETLAB_TEST="+role, "NETLAB_NAME="+name, "NETLAB_ADDRESS="+address)
		cmd.Stderr = os.Stderr
		return cmd
	}
	run := func(start func(*exec.Cmd) error, cmd *exec.Cmd) {
		t.Helper()
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()         // it was killed
		})
	}
	for n := range topology.NodeID(g.Nodes()) {
		role := "host"
		if g.IsSwitch(n) {
			role = "agent"
		}
		run(func(c *exec.Cmd) error { return lab.Start(n, c) }, child(role, g.Name(n), lab.AloofAddr(n).String()))
	}
	cmd := child("manager", "", netip.AddrPortFrom(lab.AloofAddr(g.Switch(0)), agentPort).String())
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	run(lab.StartAtStation, cmd)
	give := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer give.Stop()
	maps := bufio.NewReader(said)
	down := map[topology.LinkID]bool{}
	await := func(what string) {
		t.Helper()
		var lines []string
		for n := range topology.NodeID(g.Nodes()) {
			kind := "host"
			if g.IsSwitch(n) {
				kind = "connected switch"
			}
			lines = append(lines, kind+" "+g.Name(n))
		}
		for l, k := range g.AllLinks() {
			lines = append(lines, cable(g.Name(k.Ends[0].Node), k.Ends[0].Port, g.Name(k.Ends[1].Node), k.Ends[1].Port, !down[l]))
		}
		slices.Sort(lines)
		want, last := strings.Join(lines, ", "), ""
		for {
			line, err := maps.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v; the last map is\n%s\nand not\n%s", what, err, last, want)
			}
			if last = strings.TrimSuffix(line, "\n"); last == want {
				t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond))
				return
			}
		}
	}
	await("the map is complete")
	for _, l := range []topology.LinkID{g.Adjacent(g.Switch(0))[0], g.Adjacent(g.Switch(0))[2]} {
		for _, up := range []bool{false, true} {
			began, down[l] = time.Now(), !up
			if err := lab.SetLink(l, up); err != nil {
				t.Fatal(err)
			}
			await(fmt.Sprintf("%s is up=%v", g.LinkName(l), up))
		}
	}
}
