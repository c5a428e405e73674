package netlab

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// vethSpeed is what Linux says of every virtual cable, in bit/s.
const vethSpeed = 10_000_000_000

// watcher writes the interfaces, as JSON, whenever they may have changed.
func watcher() {
	s := nic.System()
	err := s.Watch(context.Background(), func() {
		all, err := s.Read()
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(all)
		}
		if err != nil {
			panic(err)
		}
	})
	panic(err)
}

// TestInterfaces has package nic report what becomes of interfaces.
func TestInterfaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	lab, err := Build(Config{Prefix: "nictest", HostsPerLeaf: 2, Leaves: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	}()
	g := lab.Topology()
	leaf := g.Switch(0)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NETLAB_TEST=watcher")
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Start(leaf, cmd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	}()
	give := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer give.Stop()
	lines := json.NewDecoder(said)
	// await waits until port1 is up or down, and returns all interfaces by name.
	await := func(up bool) map[string]nic.Interface {
		t.Helper()
		for {
			var all []nic.Interface
			if err := lines.Decode(&all); err != nil {
				t.Fatalf("waiting until port1 is up: %v: %v", up, err)
			}
			named := map[string]nic.Interface{}
			for _, i := range all {
				named[i.Name] = i
			}
			if i, ok := named["port1"]; ok && i.Up == up {
				return named
			}
		}
	}
	end := func(port int) netip.Addr { return g.AddressAt(g.Adjacent(leaf)[port-1], leaf) }
	before := await(true)
	if i := before["port1"]; !i.Has(end(1)) || i.Has(end(2)) {
		t.Errorf("port1 has %v", i.Addresses)
	}
	if i := before["port1"]; i.Speed != vethSpeed || !i.Ethernet || len(i.MAC) != 6 || i.MTU == 0 || i.Prefix(0).IsSingleIP() {
		t.Errorf("port1 is %+v", i)
	}
	if _, reported := before["lo"]; reported {
		t.Error("the loopback interface is reported")
	}
	if err := lab.SetLink(g.Adjacent(leaf)[0], false); err != nil {
		t.Fatal(err)
	}
	await(false)

	// What a host sends is counted where it arrives.
	const size, count = 1000, 100
	err = lab.Do(1, func() error {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(end(2), 9)))
		if err != nil {
			return err
		}
		for sent := 0; sent < count; {
			if _, err := c.Write(make([]byte, size)); err == nil { // otherwise the kernel reports that nobody listens
				sent++
			}
		}
		return c.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.SetLink(g.Adjacent(leaf)[0], true); err != nil {
		t.Fatal(err)
	}
	after := await(true)
	if n := after["port2"].Traffic.BytesIn - before["port2"].Traffic.BytesIn; n < count*size || n > count*(size+100) {
		t.Errorf("port2 took %d bytes of %d packets of %d", n, count, size)
	}
}
