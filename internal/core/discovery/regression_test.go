package discovery

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var seeds = []string{"10.0.0.1:74", "10.0.0.2:74", "10.0.0.3:74", "10.0.0.4:74"}

func (t *trial) hasLink(ends string, up bool) bool {
	return slices.ContainsFunc(t.c.Map().Links, func(l Link) bool { return l.Ends.String() == ends && l.Up == up })
}

func (t *trial) hasNode(name string) bool {
	return slices.ContainsFunc(t.c.Map().Nodes, func(n Node) bool { return n.Name == name })
}

// A host that comes back at another leaf with another chassis (a NIC was exchanged, or a
// virtual cable made anew) keeps its name: nobody hears the one of before any more.
func TestHostMovesWithAnotherChassis(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > h0/eth0,chassis=aa",
		"connect 10.0.0.2:74", "report 10.0.0.2:74 leaf-1 | e2 down", "wait 1s",
		"report 10.0.0.1:74 leaf-0 | e1 down",
		"report 10.0.0.2:74 leaf-1 | e2 up > h0/eth0,chassis=bb", "wait 30s")
	if !tr.hasLink("h0:0--leaf-1:2", true) && !strings.Contains(tr.drawn(), "leaf-1:2 up") {
		t.Errorf("h0 is not at leaf-1: \n%s", tr.drawn())
	}
}

// One direction of a cable is lost after the link was found.
func TestOneDirectionLost(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > spine-0/e1",
		"connect 10.0.0.2:74", "report 10.0.0.2:74 spine-0 | e1 up > leaf-0/e1", "wait 1s",
		"report 10.0.0.2:74 spine-0 | e1 up", "wait 1m")
	if len(tr.alarmed(OneSided)) == 0 {
		t.Errorf("spine-0 e1 hears nobody, leaf-0 e1 hears spine-0: there is no alarm; alarms %v", tr.c.Alarms())
	}
}

// A port that gets another name keeps its number: it is the same port.
func TestRenamedInterface(t *testing.T) {
	for name, option := range map[string]string{"number by name": "", "number given": " number=3"} {
		t.Run(name, func(t *testing.T) {
			tr := dialing(t, seeds...)
			tr.do(
				"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | eth3 up"+option+" > spine-0/e1",
				"connect 10.0.0.2:74", "report 10.0.0.2:74 spine-0 | e1 up > leaf-0/eth3", "wait 1s",
				"report 10.0.0.1:74 leaf-0 | eth3 down"+option,
				"report 10.0.0.2:74 spine-0 | e1 down", "wait 1s",
				"report 10.0.0.1:74 leaf-0 | swp3 up"+option+" > spine-0/e1",
				"report 10.0.0.2:74 spine-0 | e1 up > leaf-0/swp3", "wait 1m")
			if !tr.hasLink("leaf-0:3--spine-0:1", true) {
				t.Errorf("the link at swp3, port 3:\n%s", tr.drawn())
			}
		})
	}
}

// Two hosts that announce one chassis (as with the USB interface of a management
// controller, which is first and has the same address in all machines) and different names.
func TestTwoHostsOneChassis(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > h0/p0,chassis=aa | e2 up > h1/p1,chassis=aa", "wait 1m")
	if !(tr.hasNode("h0") && tr.hasNode("h1")) && len(tr.c.Alarms()) == 0 {
		t.Errorf("h1 is missing, its link is one of h0's, and no alarm says so:\n%s", tr.drawn())
	}
}

// Cables are swapped between two pairs of switches.
func TestSwappedCables(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74", "report 10.0.0.1:74 a | e1 up > b/e1",
		"connect 10.0.0.2:74", "report 10.0.0.2:74 b | e1 up > a/e1",
		"connect 10.0.0.3:74", "report 10.0.0.3:74 c | e1 up > d/e1",
		"connect 10.0.0.4:74", "report 10.0.0.4:74 d | e1 up > c/e1", "wait 1s",
		"report 10.0.0.1:74 a | e1 up > d/e1", "report 10.0.0.3:74 c | e1 up > b/e1",
		"report 10.0.0.2:74 b | e1 up > c/e1", "report 10.0.0.4:74 d | e1 up > a/e1", "wait 1s")
	if !tr.hasLink("a:1--d:1", true) || !tr.hasLink("b:1--c:1", true) || len(tr.c.Map().Links) != 2 {
		t.Errorf("%s", tr.drawn())
	}
}

// A switch renumbers all its ports at once, in a circle.
func TestRenumbered(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74", "report 10.0.0.1:74 a | x up number=1 > b/e1 | y up number=2 > c/e1 | z up number=3 > d/e1",
		"connect 10.0.0.2:74", "report 10.0.0.2:74 b | e1 up > a/x,number=1",
		"connect 10.0.0.3:74", "report 10.0.0.3:74 c | e1 up > a/y,number=2",
		"connect 10.0.0.4:74", "report 10.0.0.4:74 d | e1 up > a/z,number=3", "wait 1s",
		"report 10.0.0.1:74 a | x up number=2 > b/e1 | y up number=3 > c/e1 | z up number=1 > d/e1", "wait 200ms",
		"report 10.0.0.2:74 b | e1 up > a/x,number=2",
		"report 10.0.0.3:74 c | e1 up > a/y,number=3",
		"report 10.0.0.4:74 d | e1 up > a/z,number=1", "wait 1s")
	if !tr.hasLink("a:2--b:1", true) || !tr.hasLink("a:3--c:1", true) || !tr.hasLink("a:1--d:1", true) || len(tr.c.Map().Links) != 3 {
		t.Errorf("%s", tr.drawn())
	}
}

// A gNMI target that calls itself as a host does takes the host's name.
func TestDeviceTakesHostsName(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74 leaf-0", "report 10.0.0.1:74 leaf-0 | e1 up > h0/eth0 | e2 up > x/e1,at=10.0.0.66:74,switch", "wait 1s",
		"connect 10.0.0.66:74", "report 10.0.0.66:74 h0 chassis=evil no-agent | e9 up", "wait 1m")
	if !strings.Contains(tr.drawn(), "h0:0--leaf-0:1 up") && !strings.Contains(tr.drawn(), "--leaf-0:1 up") {
		t.Errorf("h0 has lost its link by a target without a certificate:\n%s", tr.drawn())
	}
}

// A second NIC of a host is heard: the first link stays what it was.
func TestSecondNIC(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do("connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > h0/p,plain,mac=02:00:00:00:00:aa", "wait 1s")
	tr.do("connect 10.0.0.2:74", "report 10.0.0.2:74 leaf-1 | e1 up > h0/p,plain,mac=02:00:00:00:00:01", "wait 1s")
	if !strings.Contains(tr.drawn(), "h0:1--leaf-0:1 up") {
		t.Errorf("the first link has another name since the second is there:\n%s", tr.drawn())
	}
}

// A stranger at a host's port (a container of it, or behind the same hub) that announces the host's name,
// and a chassis that sorts before the host's, does not take the host's place without an alarm.
func TestNamesakeAtOnePort(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do("connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up > h0/eth0,number=1,mac=02:00:00:00:00:10", "wait 1s")
	before := tr.drawn()
	tr.do("report 10.0.0.1:74 leaf-0 | e1 up > h0/eth0,number=1,mac=02:00:00:00:00:10 h0/x,chassis=a,number=7", "wait 1m")
	if tr.drawn() != before && len(tr.c.Alarms()) == 0 {
		t.Errorf("before\n%safter\n%s", before, tr.drawn())
	}
}

// The operator's file has a host's only link, with a faster speed; on the wire the host's interface is
// called ens5, and the host says no number. It is the same cable.
func TestFileNumbersHosts(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do("file h0:1--leaf-0:1=400", "connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | e1 up addr=10.9.0.1/24 > h0/ens5,plain,at=10.9.0.2", "wait 1m")
	if len(tr.c.Alarms()) > 0 || !strings.Contains(tr.drawn(), "10.9.0.2") {
		t.Errorf("%v\n%s", tr.c.Alarms(), tr.drawn())
	}
}

func TestIPv6Only(t *testing.T) {
	tr := newTrial(t, Config{Seeds: []string{"[fd00::1]:74"}, Allow: []netip.Prefix{netip.MustParsePrefix("fd00::/64")}})
	tr.step()
	tr.do("connect [fd00::1]:74", "report [fd00::1]:74 leaf-0 | e1 up > leaf-1/e1,at=[fd00::2]:74 | e2 up > leaf-2/e1,at=[fe80::2]:74", "wait 1m")
	if !tr.dials["[fd00::2]:74"] {
		t.Errorf("dialled %v", tr.dials)
	}
}

// A link whose measured latency settles, and whose addresses come one after the other, does not flap: it
// was up all the time.
func TestNewLinkIsNoFlap(t *testing.T) {
	tr := dialing(t, seeds...)
	lines := []string{"connect 10.0.0.1:74", "connect 10.0.0.2:74",
		"report 10.0.0.1:74 leaf-0 | e1 up speed=100 > spine-0/e1", "report 10.0.0.2:74 spine-0 | e1 up speed=25 > leaf-0/e1", "wait 20ms",
		"report 10.0.0.1:74 leaf-0 | e1 up speed=100 addr=10.1.0.1/31 > spine-0/e1", "report 10.0.0.2:74 spine-0 | e1 up speed=25 addr=10.1.0.0/31 > leaf-0/e1", "wait 20ms"}
	for _, l := range []string{"80us", "38us", "17us", "8us", "3us", "1400ns"} {
		lines = append(lines, "report 10.0.0.1:74 leaf-0 | e1 up speed=100 addr=10.1.0.1/31 latency="+l+" > spine-0/e1", "wait 20ms")
	}
	lines = append(lines,
		"report 10.0.0.1:74 leaf-0 | e1 down speed=100 addr=10.1.0.1/31 latency=1400ns", "wait 200ms",
		"report 10.0.0.1:74 leaf-0 | e1 up speed=100 addr=10.1.0.1/31 latency=1400ns > spine-0/e1", "wait 500ms")
	tr.do(lines...)
	if len(tr.alarmed(Flapping)) > 0 || !tr.hasLink("leaf-0:1--spine-0:1", true) {
		t.Errorf("it went down once, and is held down: %v\n%s", tr.c.Alarms(), tr.drawn())
	}
}

// Two switches with one chassis (copied virtual machines, modules of one chassis) and different names.
func TestTwoSwitchesOneChassis(t *testing.T) {
	for name, certs := range map[string][2]string{"plain": {"", ""}, "certified": {" leaf-0", " leaf-1"}} {
		t.Run(name, func(t *testing.T) {
			tr := dialing(t, seeds...)
			tr.do(
				"connect 10.0.0.1:74"+certs[0], "report 10.0.0.1:74 leaf-0 chassis=zz | e1 up > spine-0/e1",
				"connect 10.0.0.2:74"+certs[1], "report 10.0.0.2:74 leaf-1 chassis=zz | e1 up > spine-0/e2",
				"connect 10.0.0.3:74", "report 10.0.0.3:74 spine-0 | e1 up > leaf-0/e1,chassis=zz | e2 up > leaf-1/e1,chassis=zz", "wait 1m")
			if !tr.hasLink("leaf-0:1--spine-0:1", true) || !tr.hasLink("leaf-1:1--spine-0:2", true) {
				t.Errorf("%s%v", tr.drawn(), tr.c.Alarms())
			}
		})
	}
}

// A target that reports another one's chassis as its own does not unplug that one: who has a certificate
// keeps its name and its links.
func TestStolenChassis(t *testing.T) {
	for name, certs := range map[string][3]string{"certified": {" leaf-0", " spine-0", " aa"}, "plain": {}} {
		t.Run(name, func(t *testing.T) {
			tr := dialing(t, seeds...)
			tr.do("connect 10.0.0.1:74"+certs[0], "report 10.0.0.1:74 leaf-0 | e1 up > spine-0/e1",
				"connect 10.0.0.2:74"+certs[1], "report 10.0.0.2:74 spine-0 | e1 up > leaf-0/e1", "wait 1h")
			tr.do("connect 10.0.0.3:74"+certs[2], "report 10.0.0.3:74 aa chassis=c-spine-0 | e1 up", "wait 1m")
			if !tr.hasLink("leaf-0:1--spine-0:1", true) {
				t.Errorf("%s%v", tr.drawn(), tr.c.Alarms())
			}
		})
	}
}

// A new interface whose name ends in the same digits takes no number from a port that is
// there, and a MAC address is no name that ends in digits.
func TestNewInterface(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | eth9 up > h0/p,plain,mac=02:00:00:00:00:77", "wait 1s",
		"report 10.0.0.1:74 leaf-0 | aaa9 up | eth9 up > h0/p,plain,mac=02:00:00:00:00:77", "wait 1m")
	if !tr.hasLink("h0:1--leaf-0:9", true) || len(tr.c.Map().Links) != 1 {
		t.Errorf("%s", tr.drawn())
	}
}

// A port without a link holds no number that another is called by.
func TestNumberOfUnusedPort(t *testing.T) {
	tr := dialing(t, seeds...)
	tr.do(
		"connect 10.0.0.1:74", "report 10.0.0.1:74 leaf-0 | control up | eth2 up > h0/p,number=1", "wait 1s",
		"report 10.0.0.1:74 leaf-0 | control up | eth1 up > h1/p,number=1 | eth2 up > h0/p,number=1", "wait 1s")
	if !tr.hasLink("h1:1--leaf-0:1", true) || !tr.hasLink("h0:1--leaf-0:2", true) {
		t.Errorf("%s", tr.drawn())
	}
}
