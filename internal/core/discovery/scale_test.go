package discovery

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// crowd returns the facts of a fabric of n switches with 32 ports each: half of them lead
// to hosts, half to other switches.
func crowd(n int) []*Facts {
	all := make([]*Facts, n)
	name := func(i int) string { return fmt.Sprintf("sw-%d", i%n) }
	for i := range all {
		f := &Facts{Hostname: name(i), Chassis: NameID(name(i)), Speaks: true, Agent: &Agent{Switch: name(i)}}
		for p := 1; p <= 32; p++ {
			port := Port{Interface: fmt.Sprintf("Ethernet%d", p), Number: uint32(p), Up: true, Speed: 1e11, MTU: 9000}
			other := Neighbor{Number: 1, Chassis: NameID(fmt.Sprintf("h%d-%d", i, p)), Port: NameID("eth0")}
			if p > 16 { // the odd ones lead to the next switches, the even ones to those before
				step := (p - 15) / 2
				j, q := i+step, p+1
				if p%2 == 0 {
					j, q = i-step+n, p-1
				}
				other = Neighbor{Number: uint32(q), Chassis: NameID(name(j)), Port: NameID(fmt.Sprintf("Ethernet%d", q)), Switch: true, AgentPort: 74}
				j %= n
				other.Management = []netip.Addr{netip.AddrFrom4([4]byte{10, byte(j >> 16), byte(j >> 8), byte(j)})}
			}
			other.Name, other.Node = other.Chassis.Value, other.Chassis.Value
			port.Neighbors = []Neighbor{other}
			f.Ports = append(f.Ports, port)
		}
		all[i] = f
	}
	return all
}

func (t *trial) meet(facts []*Facts) {
	for left := len(facts); left > 0; {
		dial := append([]string(nil), t.out.Dial...)
		for _, a := range dial {
			ip := netip.MustParseAddrPort(a).Addr().As4()
			t.step(Input{Kind: Connected, Target: a}, Input{Kind: Reported, Target: a, Facts: facts[int(ip[1])<<16|int(ip[2])<<8|int(ip[3])]})
			left--
			dial = append(dial, t.out.Dial...)
		}
		t.now = max(t.now, t.c.Deadline())
		t.step()
	}
	t.wait(time.Second, func() {})
}

func beginCrowd(b fataler, n int) (*trial, []*Facts) {
	facts := crowd(n)
	t := newTrial(b, Config{Seeds: []string{"10.0.0.0:74"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, DialRate: 1 << 20, MaxTargets: 1 << 20})
	t.step()
	t.meet(facts)
	if got := t.c.Counts(); got.Links != 24*n || got.Nodes != 17*n || got.Alarms != 0 {
		b.Fatalf("the map of %d switches: %+v", n, got)
	}
	return t, facts
}

// TestCrowd: a fabric is discovered from one seed.
func TestCrowd(t *testing.T) { beginCrowd(t, 40) }

// BenchmarkMap measures a map from its seed until it is complete.
func BenchmarkMap(b *testing.B) {
	for _, n := range []int{20, 200, 1000, 5000} {
		b.Run(fmt.Sprintf("switches=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				beginCrowd(b, n)
			}
		})
	}
}

// BenchmarkEvent measures a link that goes down at both ends, and comes up.
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{20, 1000} {
		b.Run(fmt.Sprintf("switches=%d", n), func(b *testing.B) {
			t, facts := beginCrowd(b, n)
			set := func(sw, port int, up bool) {
				f := *facts[sw]
				f.Ports = append([]Port(nil), f.Ports...)
				if f.Ports[port-1].Up = up; !up {
					f.Ports[port-1].Neighbors = nil
				}
				t.step(Input{Kind: Reported, Target: fmt.Sprintf("10.0.%d.%d:74", sw>>8, sw&255), Facts: &f})
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for _, up := range []bool{false, true} {
					set(3, 17, up)
					set(4, 18, up)
				}
				t.wait(2*time.Minute, func() {})
			}
		})
	}
}

// BenchmarkGraph measures the graph of a map.
func BenchmarkGraph(b *testing.B) {
	t, _ := beginCrowd(b, 1000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, _, err := t.c.Map().Graph("x"); err != nil {
			b.Fatal(err)
		}
	}
}
