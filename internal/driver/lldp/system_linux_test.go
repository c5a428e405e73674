package lldp

import (
	"encoding/json"
	"net/netip"
	"os/exec"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// TestTwoNodes: two processes on a virtual cable know each other, and what it takes to cross
// it; a port that goes down has no neighbour; a cable that is plugged elsewhere is known
// there; who ends is forgotten.
func TestTwoNodes(t *testing.T) {
	a, b, c := newNode(t, "leaf0", lldpdu.Switch), newNode(t, "h0", lldpdu.Host), newNode(t, "h1", lldpdu.Host)
	cable(a.space, "p1", 1, b.space, "eth0", 2)
	b.address("eth0", "10.1.2.3/31")
	a.await("leaf0 hears h0, and measures", func(all map[string]Port) bool {
		return hears(all, "p1", "h0") && all["p1"].Latency > 0 && len(all["p1"].Neighbors[0].Management) == 1
	})
	n := a.ports["p1"].Neighbors[0]
	if n.Tributary != (lldpdu.Tributary{Role: lldpdu.Host, Name: "h0", AgentPort: 7410}) || n.Port.Value != "eth0" || n.Loop ||
		!slices.Equal(n.Management, []netip.Addr{netip.MustParseAddr("10.1.2.3")}) || n.MAC != [6]byte{2, 5: 2} {
		t.Errorf("leaf0 heard %+v", n)
	}
	b.await("h0 hears leaf0, and measures", func(all map[string]Port) bool { return hears(all, "eth0", "leaf0") && all["eth0"].Latency > 0 })

	b.set("eth0", b.net.LinkSetDown)
	a.await("the cable is down", func(all map[string]Port) bool { return len(all["p1"].Neighbors) == 0 })
	b.set("eth0", b.net.LinkSetUp)
	a.await("the cable is up", func(all map[string]Port) bool { return hears(all, "p1", "h0") })

	a.set("p1", a.net.LinkDel)
	a.await("there is no port", func(all map[string]Port) bool { return len(all) == 0 })
	cable(a.space, "p2", 1, b.space, "eth0", 2)
	cable(a.space, "p1", 3, c.space, "eth0", 4)
	a.await("h0 is at p2, and h1 at p1", func(all map[string]Port) bool { return hears(all, "p2", "h0") && hears(all, "p1", "h1") })
	b.order("close")
	a.await("h0 has ended", func(all map[string]Port) bool { return len(all["p2"].Neighbors) == 0 && hears(all, "p1", "h1") })
}

// TestFlood: 10,000 forged neighbours on a port leave the true one, of which news is still
// heard; there are no more than a port may have.
func TestFlood(t *testing.T) {
	a, b := newNode(t, "leaf0", lldpdu.Switch), newNode(t, "h0", lldpdu.Host)
	cable(a.space, "p1", 1, b.space, "eth0", 2)
	a.await("leaf0 hears h0", func(all map[string]Port) bool { return hears(all, "p1", "h0") })
	b.order(`forge eth0 10000 ""`)
	b.set("eth0", func(l netlink.Link) error { return b.net.LinkSetAlias(l, "after the flood") })
	a.await("leaf0 hears news of h0", func(all map[string]Port) bool {
		n := all["p1"].Neighbors
		return len(n) > 0 && n[0].SystemName == "h0" && n[0].PortDescription == "after the flood"
	})
	if n := len(a.ports["p1"].Neighbors); n > 16 {
		t.Errorf("%d neighbours, want at most 16", n)
	}
}

// TestTagged: what has a VLAN tag is not for the port.
func TestTagged(t *testing.T) {
	a, b := newNode(t, "leaf0", lldpdu.Switch), newNode(t, "h0", lldpdu.Host)
	cable(a.space, "p1", 1, b.space, "eth0", 2)
	a.await("leaf0 hears h0", func(all map[string]Port) bool { return hears(all, "p1", "h0") })
	b.order(`forge eth0 3 "\x81\x00\x00\x07"`)
	b.order(`forge eth0 1 ""`)
	a.await("leaf0 hears what has no tag", func(all map[string]Port) bool { return len(all["p1"].Neighbors) > 1 })
	if n := a.ports["p1"].Neighbors; len(n) != 2 || n[1].SystemName != "forged0" {
		t.Errorf("neighbours %+v", n)
	}
}

// TestOneProcess: a second process on a machine waits until the first one ends.
func TestOneProcess(t *testing.T) {
	needSpaces(t)
	first, err := kernel{}.claim(t.Context(), func(int) { t.Error("somebody has it already") })
	if err != nil {
		t.Skip(err) // an agent runs on this machine
	}
	waits, has := make(chan int, 1), make(chan error)
	go func() {
		release, err := kernel{}.claim(t.Context(), func(pid int) { waits <- pid })
		if err == nil {
			release()
		}
		has <- err
	}()
	if pid := <-waits; pid <= 0 {
		t.Errorf("process %d has it", pid)
	}
	first()
	if err := <-has; err != nil {
		t.Error(err)
	}
}

// TestLldpdHearsUs: Debian's lldpd reads what a port announces, with Tributary's own TLVs as
// those of an organization that it does not know.
func TestLldpdHearsUs(t *testing.T) {
	d, a := newDebian(t), idleNode(t, slow, "leaf0", lldpdu.Switch)
	cable(a.space, "p3", 1, d.space, "eth0", 2)
	a.address("p3", "10.1.2.2/31")
	a.set("p3", func(l netlink.Link) error { return a.net.LinkSetAlias(l, "to debian") })
	a.order("start")
	type tlv struct {
		OUI     string `json:"oui"`
		Subtype string `json:"subtype"`
		Value   string `json:"value"`
	}
	type value struct {
		Type, Value string
	}
	var said struct {
		LLDP struct {
			Interface struct {
				Eth0 struct {
					Chassis map[string]struct {
						ID         value
						Descr      string
						Management any `json:"mgmt-ip"`
						Capability []struct {
							Type    string
							Enabled bool
						}
					}
					Port struct {
						ID    value
						Descr string
						TTL   string
					}
					Unknown struct {
						TLVs []tlv `json:"unknown-tlv"`
					} `json:"unknown-tlvs"`
				}
			}
		}
	}
	eth0 := &said.LLDP.Interface.Eth0
	var text string
	d.await("lldpd hears leaf0", func() bool {
		out, err := exec.Command("lldpcli", "-u", d.socket, "-f", "json", "show", "neighbors", "details").Output()
		text = string(out)
		said.LLDP.Interface.Eth0.Chassis = nil
		_ = json.Unmarshal(out, &said) // without a neighbour it has another form
		return err == nil && eth0.Chassis["leaf0"].Management == "10.1.2.2" && eth0.Port.Descr == "to debian"
	})
	c := eth0.Chassis["leaf0"]
	if c.ID != (value{"mac", "02:00:00:00:00:01"}) || c.Descr != "a node of a test" || eth0.Port.ID != (value{"ifname", "p3"}) || eth0.Port.TTL != "21" {
		t.Errorf("lldpd has heard %s", text)
	}
	want := []tlv{{"02,54,42", "1", "01,6C,65,61,66,30"}, {"02,54,42", "2", "1C,F2"}}
	if got := eth0.Unknown.TLVs; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("lldpd has heard the TLVs %v, want %v: %s", got, want, text)
	}
}

// TestWeHearLldpd: a port hears Debian's lldpd, however that names its port.
func TestWeHearLldpd(t *testing.T) {
	d, a := newDebian(t), newNode(t, "leaf0", lldpdu.Switch)
	cable(a.space, "p3", 1, d.space, "eth0", 2)
	d.address("eth0", "10.1.2.3/31")
	is := func(id lldpdu.PortID) func(map[string]Port) bool {
		return func(all map[string]Port) bool {
			return hears(all, "p3", "debian") && all["p3"].Neighbors[0].Port == id && len(all["p3"].Neighbors[0].Management) > 0
		}
	}
	mac := lldpdu.PortID{Subtype: lldpdu.PortMAC, Value: "\x02\x00\x00\x00\x00\x02"}
	a.await("leaf0 hears lldpd", is(mac)) // its default
	n := a.ports["p3"].Neighbors[0]
	if n.SystemDescription != "Debian as it is" || n.Tributary.Role != lldpdu.None || n.Chassis.Subtype != lldpdu.ChassisMAC || n.TTL != 120 ||
		!slices.Contains(n.Management, netip.MustParseAddr("10.1.2.3")) {
		t.Errorf("leaf0 heard %+v", n)
	}
	d.cli("configure", "lldp", "portidsubtype", "ifname")
	a.await("by its name", is(lldpdu.PortID{Subtype: lldpdu.PortInterface, Value: "eth0"}))
	d.cli("configure", "ports", "eth0", "lldp", "portidsubtype", "local", "seven")
	a.await("by what its operator calls it", is(lldpdu.PortID{Subtype: lldpdu.PortLocal, Value: "seven"}))
	if a.ports["p3"].Latency != 0 {
		t.Errorf("lldpd has responded within %v", a.ports["p3"].Latency)
	}
}
