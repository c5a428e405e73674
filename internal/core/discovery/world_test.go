package discovery

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A world is a true fabric, whose switches report what they see when they are asked to.
type world struct {
	*trial
	nodes  []*being
	cables []*cable
	forged map[string][]Neighbor // heard besides, by "node port"
}

// being is a true switch or host.
type being struct {
	name    string
	kind    int // of those below
	address string
	cert    string
	style   int // how its ports are announced
	ports   int
	boots   uint64
}

const (
	agent  = iota // a target
	dumb          // a switch that only sends LLDP
	mute          // a target that reports no neighbours
	server        // a host
)

// cable joins port numbers of two nodes.
type cable struct {
	node [2]*being
	port [2]int
	up   bool
}

func (b *being) iface(port int) string { return fmt.Sprintf("e%d", port) }

func (b *being) mac(port int) ID { return MACID(fmt.Sprintf("02:00:%s:%02x", b.name[1:], port)) }

func drawWorld(t *rapid.T) *world {
	w := &world{forged: map[string][]Neighbor{}}
	isCertified := rapid.Bool().Draw(t, "certified")
	for i := range rapid.IntRange(2, 6).Draw(t, "switches") {
		b := &being{name: fmt.Sprintf("s%02d", i), ports: 6, address: fmt.Sprintf("10.0.0.%d:74", i+1), style: rapid.IntRange(0, 3).Draw(t, "style")}
		if i > 0 {
			b.kind = rapid.SampledFrom([]int{agent, agent, agent, dumb, mute}).Draw(t, "kind")
		}
		if b.kind == dumb {
			b.style %= 2
		}
		if isCertified {
			b.cert = b.name
		}
		w.nodes = append(w.nodes, b)
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "hosts") {
		w.nodes = append(w.nodes, &being{name: fmt.Sprintf("h%02d", i), kind: server, ports: 2})
	}
	for range rapid.IntRange(1, 14).Draw(t, "cables") {
		w.lay(t)
	}
	cfg := Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, Flaps: 4, Hold: 200 * time.Millisecond, MaxHold: 5 * time.Second}
	for _, b := range w.nodes {
		if b.isTarget() { // every target can be reached, whatever the cables
			cfg.Seeds = append(cfg.Seeds, b.address)
		}
	}
	w.trial = newTrial(t, cfg)
	w.step()
	return w
}

func (b *being) isTarget() bool { return b.kind == agent || b.kind == mute }

// lay adds a cable between free ports, of which one is an agent's.
func (w *world) lay(t *rapid.T) {
	a, i := w.free(t, func(b *being) bool { return b.kind == agent })
	b, j := w.free(t, func(b *being) bool { return b != a })
	if a != nil && b != nil {
		w.cables = append(w.cables, &cable{[2]*being{a, b}, [2]int{i, j}, true})
	}
}

func (w *world) free(t *rapid.T, is func(*being) bool) (*being, int) {
	type end struct {
		b *being
		i int
	}
	var all []end
	for _, b := range w.nodes {
		for i := 1; i <= b.ports; i++ {
			if is(b) && w.at(b, i) == nil {
				all = append(all, end{b, i})
			}
		}
	}
	if len(all) == 0 {
		return nil, 0
	}
	e := rapid.SampledFrom(all).Draw(t, "port")
	return e.b, e.i
}

func (w *world) at(b *being, port int) *cable {
	for _, k := range w.cables {
		if k.node[0] == b && k.port[0] == port || k.node[1] == b && k.port[1] == port {
			return k
		}
	}
	return nil
}

// announcement is what b sends at a port.
func (b *being) announcement(port int) Neighbor {
	n := Neighbor{Chassis: NameID("chassis of " + b.name), Name: b.name, Switch: b.kind != server, Port: NameID(b.iface(port))}
	switch b.style {
	case 1:
		n.Node, n.Number = b.name, uint32(port)
	case 2:
		n.Port = b.mac(port)
	case 3: // one MAC address for all, and the name beside
		n.Port, n.Description = b.mac(0), b.iface(port)
	}
	if b.isTarget() {
		at := netip.MustParseAddrPort(b.address)
		n.AgentPort, n.Management = at.Port(), []netip.Addr{at.Addr()}
	}
	return n
}

// facts is what b reports.
func (w *world) facts(b *being) *Facts {
	f := &Facts{Hostname: b.name, Chassis: NameID("chassis of " + b.name), Speaks: b.kind == agent, Agent: &Agent{Switch: b.name, Incarnation: b.boots}}
	for i := 1; i <= b.ports; i++ {
		p := Port{Interface: b.iface(i), Number: uint32(i), Index: uint32(i + 100), MAC: b.mac(i)}
		if b.style == 3 {
			p.MAC = b.mac(0)
		}
		if k := w.at(b, i); k != nil && k.up {
			p.Up = true
			other := 0
			if k.node[0] == b && k.port[0] == i {
				other = 1
			}
			if b.kind == agent {
				p.Neighbors = append(p.Neighbors, k.node[other].announcement(k.port[other]))
			}
		}
		for _, n := range w.forged[b.name+" "+p.Interface] {
			p.Up = true
			p.Neighbors = append(p.Neighbors, n)
		}
		f.Ports = append(f.Ports, p)
	}
	slices.SortFunc(f.Ports, func(a, b Port) int { return compareNames(a.Interface, b.Interface) })
	return f
}

func (w *world) report(b *being) {
	switch t := w.c.targets[b.address]; {
	case t == nil || t.state == idle:
	case t.state != connected:
		b.boots++
		w.step(Input{Kind: Connected, Target: b.address, Name: b.cert}, Input{Kind: Reported, Target: b.address, Facts: w.facts(b)})
	default:
		w.step(Input{Kind: Reported, Target: b.address, Facts: w.facts(b)})
	}
}

// event lets something happen.
func (w *world) event(t *rapid.T) {
	b := rapid.SampledFrom(w.nodes).Draw(t, "node")
	switch rapid.SampledFrom([]string{"report", "report", "report", "lose", "fail", "cut", "restore", "move", "lay", "wait", "wait"}).Draw(t, "event") {
	case "report":
		w.report(b)
	case "lose":
		w.step(Input{Kind: Lost, Target: b.address, Why: "test"})
	case "fail":
		w.step(Input{Kind: Failed, Target: b.address, Why: "test"})
	case "cut":
		rapid.SampledFrom(w.cables).Draw(t, "cable").up = false
	case "restore":
		rapid.SampledFrom(w.cables).Draw(t, "cable").up = true
	case "move":
		k := rapid.SampledFrom(w.cables).Draw(t, "cable")
		end := rapid.IntRange(0, 1).Draw(t, "end")
		if to, i := w.free(t, func(b *being) bool { return b != k.node[1-end] && (b.kind == agent || k.node[1-end].kind == agent) }); to != nil {
			k.node[end], k.port[end] = to, i
		}
	case "lay":
		w.lay(t)
	case "wait":
		w.wait(rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 150 * time.Millisecond, 12 * time.Second}).Draw(t, "time"), func() {})
	}
}

// settle has every target report, and waits until all is in the map.
func (w *world) settle() {
	for range 2 {
		for _, b := range w.nodes {
			w.report(b)
		}
		w.wait(2*time.Minute, func() {})
	}
}

// links returns the links that are up, in truth and in the map.
func (w *world) links() (is, want []string) {
	for _, k := range w.cables {
		if k.up {
			a, b := k.node[0].name+" "+k.node[0].iface(k.port[0]), k.node[1].name+" "+k.node[1].iface(k.port[1])
			want = append(want, min(a, b)+"--"+max(a, b))
		}
	}
	for _, l := range w.c.Map().Links {
		if l.Up {
			a, b := fmt.Sprintf("%s e%d", l.Ends[0].Node, l.Ends[0].Port), fmt.Sprintf("%s e%d", l.Ends[1].Node, l.Ends[1].Port)
			is = append(is, min(a, b)+"--"+max(a, b))
		}
	}
	slices.Sort(is)
	slices.Sort(want)
	return is, want
}

// TestConverges: whatever happens in whatever order, the map is in the end that of
// the true fabric, and at each moment that of the slow oracle.
func TestConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		if len(w.cables) == 0 {
			return
		}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			w.event(t)
			check(t, w.c)
		}
		w.settle()
		check(t, w.c)
		if is, want := w.links(); !slices.Equal(is, want) {
			t.Fatalf("links\n%v\nwant\n%v", is, want)
		}
		for _, k := range w.cables {
			k.up = true
		}
		w.settle()
		if is, want := w.links(); !slices.Equal(is, want) {
			t.Fatalf("with all cables: links\n%v\nwant\n%v", is, want)
		}
		for _, a := range w.c.Alarms() {
			t.Fatalf("alarm in a right fabric: %v", a)
		}
		// Nothing is put out without a change.
		for _, b := range w.nodes {
			w.report(b)
			if text := w.out.String(); text != "" {
				t.Fatalf("a repeat of %s put out %s", b.name, text)
			}
		}
	})
}

// TestForged: what strangers announce at ports of certified switches changes nothing of
// what these agree on, and is dialled within the allowed prefixes alone.
func TestForged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, b := range w.nodes {
			b.cert = b.name
		}
		w.settle()
		certified := func() (all []string) {
			for _, n := range w.c.Map().Nodes {
				if n.Certified {
					all = append(all, fmt.Sprintf("%+v", n))
				}
			}
			for _, l := range w.c.Map().Links {
				a, b := w.c.devices[l.Ends[0].Node], w.c.devices[l.Ends[1].Node]
				if a != nil && b != nil && a.speaks && b.speaks {
					all = append(all, fmt.Sprintf("%+v", l))
				}
			}
			return all
		}
		before := certified()
		for range rapid.IntRange(1, 20).Draw(t, "forgeries") {
			victim := rapid.SampledFrom(w.nodes).Draw(t, "victim")
			n := victim.announcement(rapid.IntRange(1, 6).Draw(t, "port"))
			if rapid.Bool().Draw(t, "other chassis") {
				n.Chassis = NameID(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "chassis"))
			}
			if rapid.Bool().Draw(t, "other name") {
				n.Name = rapid.SampledFrom([]string{"evil", "h00", "s00", "no name", "\x1b[31m"}).Draw(t, "name")
			}
			n.Management = append(n.Management, netip.AddrFrom4([4]byte{byte(rapid.IntRange(9, 10).Draw(t, "net")), 0, 0, byte(rapid.IntRange(0, 255).Draw(t, "host"))}))
			n.AgentPort = 74
			at, i := w.free(t, func(b *being) bool { return b.kind == agent })
			if at == nil {
				return
			}
			key := at.name + " " + at.iface(i)
			w.forged[key] = append(w.forged[key], n)
			w.report(at)
			w.wait(time.Second, func() {})
			// Who answers at an announced address has no certificate, and lies.
			for address := range w.dials {
				if w.c.targets[address].state == dialled {
					w.step(Input{Kind: Connected, Target: address}, Input{Kind: Reported, Target: address, Facts: w.facts(victim)})
				}
			}
			check(t, w.c)
		}
		w.wait(time.Minute, func() {})
		after := certified() // two who forge at both ends can add a link: LLDP is not signed
		for _, x := range before {
			if !slices.Contains(after, x) {
				t.Fatalf("%s is gone or changed:\n%v", x, after)
			}
		}
		for address := range w.dials {
			if a := netip.MustParseAddrPort(address); !netip.MustParsePrefix("10.0.0.0/24").Contains(a.Addr()) {
				t.Fatalf("dialled %v", a)
			}
		}
	})
}
