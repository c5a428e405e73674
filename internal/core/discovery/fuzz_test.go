package discovery

import (
	"net/netip"
	"testing"
	"time"
)

// FuzzInputs: no sequence of inputs brings the core into a state that the oracle does not
// confirm, or has it dial an address that is not allowed.
func FuzzInputs(f *testing.F) {
	f.Add([]byte{1, 0, 0, 2, 0, 1, 2, 0, 9, 6, 30, 0, 1, 1, 1, 2, 1, 7, 6, 200, 1, 3, 0, 0})
	f.Add([]byte{1, 0, 3, 2, 0, 77, 5, 3, 9, 2, 0, 78, 6, 255, 1, 4, 1, 1, 3, 0, 1, 1, 0, 2, 2, 0, 12})
	f.Fuzz(func(t *testing.T, b []byte) {
		allowed := netip.MustParsePrefix("10.0.0.0/24")
		w := newTrial(t, Config{Seeds: []string{"10.0.0.0:74", "10.0.0.1:74"}, Allow: []netip.Prefix{allowed}, Port: 9339, MaxPorts: 4, MaxNeighbors: 2, MaxTargets: 8, Flaps: 1})
		addresses := []string{"10.0.0.0:74", "10.0.0.1:74", "10.0.0.2:74", "10.0.0.3:9339"}
		names := []string{"", "s0", "s1", "s2", "h0", "x y"}
		pick := func(x byte) string { return names[int(x)%len(names)] }
		w.step()
		for ; len(b) >= 3; b = b[3:] {
			x, y := b[1], b[2]
			target := addresses[x%4]
			switch b[0] % 7 {
			case 1:
				w.step(Input{Kind: Connected, Target: target, Name: pick(y)})
			case 2:
				facts := &Facts{Hostname: pick(y), Chassis: NameID(pick(x >> 2)), Speaks: y&1 == 0, Agent: &Agent{Switch: pick(y >> 3), Incarnation: uint64(y & 3)}}
				for i := range min(len(b)-3, 5) {
					z := b[3+i]
					p := Port{Interface: string(rune('a' + i)), Up: z&1 != 0, Number: uint32(z % 5), MAC: MACID(pick(z)), Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, z >> 1 & 1, z >> 3}), 24)}}
					for j := range z >> 1 & 3 {
						p.Neighbors = append(p.Neighbors, Neighbor{
							Chassis: NameID(pick(z>>2 + j)), Port: NameID(string(rune('a' + (z+j)%5))), Name: pick(z >> 4), Switch: z&8 != 0, AgentPort: 74 * uint16(z>>7),
							Management: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, z & 1, z >> 5})},
						})
					}
					facts.Ports = append(facts.Ports, p)
				}
				w.step(Input{Kind: Reported, Target: target, Facts: facts})
			case 3:
				w.step(Input{Kind: Lost, Target: target, Why: "x"})
			case 4:
				w.step(Input{Kind: Failed, Target: target, Why: "x"})
			case 5:
				w.step(Input{Kind: Operator, Graph: parseFile([][]string{nil, {"h0:1--s0:1", "s0:2--s1:2"}, {"h9:1--s1:1", "h0:2--s1:2=40"}}[y%3])})
			case 6:
				w.wait(time.Duration(x)*time.Duration(y)*time.Millisecond, func() {})
			}
			for a := range w.dials {
				if !allowed.Contains(netip.MustParseAddrPort(a).Addr()) {
					t.Fatalf("dialled %s", a)
				}
			}
			check(t, w.c)
		}
	})
}
