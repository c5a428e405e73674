package agentd_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vishvananda/netlink"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// TestLLDPOnLinks: an agent hears who is on its links, and counts that. It runs again as a
// process in a network namespace of its own, in which both ends of a link are the switch's.
func TestLLDPOnLinks(t *testing.T) {
	const inside = "AGENTD_LLDP_TEST"
	if os.Getenv(inside) == "" {
		if os.Geteuid() != 0 {
			t.Skip("network namespaces take root")
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestLLDPOnLinks$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p1"}, PeerName: "p2"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lo", "p1", "p2"} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := config()
	c.LLDP = &agentd.LLDP{Required: true}
	c.Interfaces = nic.System()
	d, _ := start(t, c)
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(d.Collector())
	value := func(name string) (sum float64) {
		families, err := all.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name {
					sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return sum
	}
	for value("tributary_agent_lldp_neighbors") < 2 { // until the test's timeout
		if err := runner.Pause(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if frames, discards := value("tributary_agent_lldp_frames_total"), value("tributary_agent_lldp_discards_total"); frames < 4 || discards > 0 {
		t.Errorf("%v frames, %v discarded", frames, discards)
	}
	// The same by telemetry, which also follows the link.
	const p1, state = "/lldp/interfaces/interface[name=p1]/neighbors/neighbor", "/interfaces/interface[name=p1]/state/oper-status"
	news := subscribe(testContext(t), t, dialTelemetry(t, d), "/lldp/interfaces/interface[name=p1]", "/interfaces/interface[name=p1]/state/oper-status")
	heard := func() (names []string) {
		for path, value := range news.leaves {
			if strings.HasPrefix(path, p1) && strings.HasSuffix(path, "/state/port-id") {
				names = append(names, value)
			}
		}
		return names
	}
	for len(heard()) == 0 {
		news.read()
	}
	if names := heard(); !slices.Equal(names, []string{"p2"}) {
		t.Errorf("p1 hears %v", names)
	}
	news.await(state, "UP")
	if err := netlink.LinkSetDown(pair); err != nil {
		t.Fatal(err)
	}
	news.await(state, "DOWN")
	for len(heard()) > 0 {
		news.read()
	}
}
