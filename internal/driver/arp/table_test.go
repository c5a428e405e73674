package arp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	own   = Port{Interface: "p1", Index: 3, Addr: netip.MustParseAddr("10.0.0.0"), MAC: MAC{2, 0, 0, 0, 0, 1}}
	host  = Neighbour{"p1", netip.MustParseAddr("10.0.0.1")}
	start = time.Unix(1000, 0)
)

func from(n Neighbour, mac MAC, operation uint16, to netip.Addr) []byte {
	m := message{operation: operation, sender: n.Addr, senderMAC: mac, target: to}
	return m.frame(everybody)
}

func TestTable(t *testing.T) {
	var tab table
	tab.set(start, []Port{own}, []Neighbour{host, {"p2", host.Addr}})
	asked, next := tab.ask(start)
	if len(asked) != 1 || asked[0].index != own.Index || !next.Equal(start.Add(firstPause)) {
		t.Fatalf("asks %+v, again at %v", asked, next)
	}
	m, ok := parse(asked[0].frame)
	if !ok || m.operation != request || m.sender != own.Addr || m.senderMAC != own.MAC || m.target != host.Addr || MAC(asked[0].frame) != everybody {
		t.Fatalf("asks by %+v", m)
	}
	mac := MAC{2, 0, 0, 0, 0, 2}
	if _, changed := tab.take(start, own.Index, from(host, mac, reply, own.Addr)); !changed {
		t.Error("its answer changes nothing")
	}
	if _, changed := tab.take(start, own.Index, from(host, mac, reply, own.Addr)); changed {
		t.Error("the same answer changes something")
	}
	if asked, next := tab.ask(start.Add(time.Second)); len(asked) != 0 || !next.Equal(start.Add(refresh)) {
		t.Errorf("asks %+v of one that is known, again at %v", asked, next)
	}
	if asked, _ := tab.ask(start.Add(refresh)); len(asked) != 1 {
		t.Error("does not ask again")
	}
	other := Neighbour{"p1", netip.MustParseAddr("10.0.0.9")}
	if answer, changed := tab.take(start, own.Index, from(other, mac, request, own.Addr)); changed {
		t.Error("one that nobody waits for is taken")
	} else if m, ok := parse(answer); !ok || m.operation != reply || m.sender != own.Addr || m.senderMAC != own.MAC || m.target != other.Addr || m.toTheir != mac || MAC(answer) != mac {
		t.Errorf("answers by %+v", m)
	}
	for name, frame := range map[string][]byte{
		"a question for another": from(other, mac, request, host.Addr), "an answer": from(other, mac, reply, own.Addr),
		"a multicast sender": from(other, MAC{3}, request, own.Addr), "a frame of another kind": make([]byte, 60),
		"its own address": from(Neighbour{"p1", own.Addr}, mac, request, own.Addr),
	} {
		if answer, _ := tab.take(start, own.Index, frame); answer != nil {
			t.Errorf("answers %s", name)
		}
	}
	if answer, _ := tab.take(start, 4, from(other, mac, request, own.Addr)); answer != nil {
		t.Error("answers on an interface that is no port")
	}
	tab.set(start, []Port{own}, []Neighbour{host})
	if tab.neighbours[host].mac != mac {
		t.Error("forgets a neighbour that stays")
	}
}

// TestRequestsAreBounded: whatever is set, taken and asked, no neighbour is asked more
// often than every firstPause, and nobody but neighbours that were set has an entry.
func TestRequestsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		now, last := start, map[Neighbour]time.Time{}
		tab.set(now, []Port{own}, nil)
		wanted := []Neighbour{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			who := Neighbour{"p1", netip.AddrFrom4([4]byte{10, 0, 0, rapid.ByteRange(1, 4).Draw(t, "who")})}
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				if !slices.Contains(wanted, who) {
					wanted = append(wanted, who)
				}
				tab.set(now, []Port{own}, wanted)
			case 1:
				mac := MAC{2, 0, 0, 0, 0, rapid.Byte().Draw(t, "mac")}
				tab.take(now, own.Index, from(who, mac, rapid.SampledFrom([]uint16{request, reply}).Draw(t, "op"), own.Addr))
			default:
				requests, next := tab.ask(now)
				for _, r := range requests {
					m, _ := parse(r.frame)
					n := Neighbour{"p1", m.target}
					if before, asked := last[n]; asked && now.Sub(before) < firstPause {
						t.Fatalf("%v is asked after %v", n, now.Sub(before))
					}
					last[n] = now
				}
				if len(wanted) > 0 && !next.After(now) {
					t.Fatal("wants to ask again at once")
				}
			}
			if len(tab.neighbours) != len(wanted) {
				t.Fatalf("%d entries of %d neighbours", len(tab.neighbours), len(wanted))
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(from(host, MAC{2}, request, own.Addr))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := parse(b)
		if !ok {
			return
		}
		again, ok := parse(m.frame(everybody))
		if !ok || again != m {
			t.Fatalf("%+v becomes %+v", m, again)
		}
		var tab table
		tab.set(start, []Port{own}, []Neighbour{host})
		tab.take(start, own.Index, b)
	})
}
