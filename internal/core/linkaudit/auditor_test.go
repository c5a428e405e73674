package linkaudit

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/topology"
)

const oneWindow = 1000 // bytes of every tree here

// moment is what a switch counts at one moment: per link the interface, and per
// tree what it has exchanged over that link.
type moment struct {
	ports []Port
	flows []Flow
}

func at(link topology.Port, name string, in, out uint64) Port {
	return Port{link, name, Count{in, out}}
}

func of(group uint32, link topology.Port, in, out uint64) Flow {
	return Flow{Group: group, Epoch: 2, Port: link, Count: Count{in, out}, Window: oneWindow}
}

func reported(m Mismatch) string {
	d := "received"
	if m.Direction == Sent {
		d = "sent"
	}
	var trees []string
	for _, s := range m.Trees {
		trees = append(trees, fmt.Sprintf("%d.%d:%d", s.Group, s.Epoch, s.Bytes))
	}
	return fmt.Sprintf("link %d %s %s %d of %d (%s)", m.Port, m.Interface, d, m.Seen, m.Expected, strings.Join(trees, " "))
}

func TestAuditor(t *testing.T) {
	for name, test := range map[string]struct {
		moments  []moment
		found    []string // over all moments
		standing []string // after the last
	}{
		"all is well": {
			moments: []moment{
				{[]Port{at(1, "p1", 500, 900)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 100_500, 100_900)}, []Flow{of(7, 1, 98_000, 98_000)}},
			},
		},
		"nothing arrives at the link's end": {
			moments: []moment{
				{[]Port{at(1, "p1", 500, 900)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 560, 100_900)}, []Flow{of(7, 1, 98_000, 98_000)}},
			},
			found:    []string{"link 1 p1 received 60 of 98000 (7.2:98000)"},
			standing: []string{"link 1 p1 received 60 of 98000 (7.2:98000)"},
		},
		"what is sent leaves by another link": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0), at(2, "p2", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 99_000, 80), at(2, "p2", 0, 99_000)}, []Flow{of(7, 1, 98_000, 98_000)}},
			},
			found:    []string{"link 1 p1 sent 80 of 98000 (7.2:98000)"},
			standing: []string{"link 1 p1 sent 80 of 98000 (7.2:98000)"},
		},
		"other traffic beside": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 9_000_000, 9_000_000)}, []Flow{of(7, 1, 98_000, 98_000)}},
			},
		},
		"one tree of two is elsewhere": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0), of(8, 1, 0, 0)}},
				{[]Port{at(1, "p1", 51_000, 102_000)}, []Flow{of(7, 1, 50_000, 50_000), of(8, 1, 49_000, 49_000)}},
			},
			found:    []string{"link 1 p1 received 51000 of 99000 (7.2:50000 8.2:49000)"},
			standing: []string{"link 1 p1 received 51000 of 99000 (7.2:50000 8.2:49000)"},
		},
		"a tree that is there before the first look": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 5_000_000, 5_000_000)}},
				{[]Port{at(1, "p1", 10, 10)}, []Flow{of(7, 1, 5_000_000, 5_000_000)}},
			},
		},
		"a tree that comes later": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, nil},
				{[]Port{at(1, "p1", 10, 10)}, []Flow{of(7, 1, 5_000_000, 0)}},
				{[]Port{at(1, "p1", 20, 10)}, []Flow{of(7, 1, 5_005_000, 0)}},
			},
			found:    []string{"link 1 p1 received 10 of 5000 (7.2:5000)"},
			standing: []string{"link 1 p1 received 10 of 5000 (7.2:5000)"},
		},
		"what may be on its way is no alarm": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 2*oneWindow, 2*oneWindow)}},
			},
		},
		"little by little it is": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 900, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 1800, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 2700, 0)}},
			},
			found:    []string{"link 1 p1 received 0 of 2700 (7.2:2700)"},
			standing: []string{"link 1 p1 received 0 of 2700 (7.2:2700)"},
		},
		"a queue drops some of what is sent": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 100_000, 78_000)}, []Flow{of(7, 1, 98_000, 98_000)}},
			},
		},
		"a count falls": {
			moments: []moment{
				{[]Port{at(1, "p1", 1<<32-10, 1<<32-10)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 80_000, 80_000)}, []Flow{of(7, 1, 98_000, 98_000)}},
				{[]Port{at(1, "p1", 180_000, 180_000)}, []Flow{of(7, 1, 196_000, 196_000)}},
			},
		},
		"the address moves to another interface": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p9", 70, 70)}, []Flow{of(7, 1, 98_000, 98_000)}},
				{[]Port{at(1, "p9", 100_070, 100_070)}, []Flow{of(7, 1, 196_000, 196_000)}},
			},
		},
		"a link without an interface": {
			moments: []moment{
				{nil, []Flow{of(7, 1, 0, 0)}},
				{nil, []Flow{of(7, 1, 98_000, 98_000)}},
			},
		},
		"it lasts, and is reported once": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 5000, 0)}},
				{[]Port{at(1, "p1", 1, 0)}, []Flow{of(7, 1, 9000, 0)}},
			},
			found:    []string{"link 1 p1 received 0 of 5000 (7.2:5000)"},
			standing: []string{"link 1 p1 received 1 of 4000 (7.2:4000)"},
		},
		"it passes": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 5000, 0)}},
				{[]Port{at(1, "p1", 20_000, 0)}, []Flow{of(7, 1, 25_000, 0)}},
				{[]Port{at(1, "p1", 60_000, 0)}, []Flow{of(7, 1, 65_000, 0)}},
			},
			found: []string{"link 1 p1 received 0 of 5000 (7.2:5000)"},
		},
		"what was in place before does not hide it": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 31_000, 31_000)}, []Flow{of(7, 1, 30_000, 30_000)}},
				{[]Port{at(1, "p1", 31_000, 31_000)}, []Flow{of(7, 1, 32_200, 32_600)}},
				{[]Port{at(1, "p1", 31_000, 31_000)}, []Flow{of(7, 1, 32_200, 32_700)}},
			},
			found: []string{
				"link 1 p1 received 0 of 2200 (7.2:2200)",
				"link 1 p1 sent 0 of 2700 (7.2:2700)",
			},
			standing: []string{
				"link 1 p1 received 0 of 2200 (7.2:2200)",
				"link 1 p1 sent 0 of 2700 (7.2:2700)",
			},
		},
		"other traffic hides it only while it lasts": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 9_000_000, 0)}, []Flow{of(7, 1, 9_000, 0)}},
				{[]Port{at(1, "p1", 9_000_000, 0)}, []Flow{of(7, 1, 18_000, 0)}},
			},
			found:    []string{"link 1 p1 received 0 of 9000 (7.2:9000)"},
			standing: []string{"link 1 p1 received 0 of 9000 (7.2:9000)"},
		},
		"a part that stays away adds up": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 8_000, 0)}, []Flow{of(7, 1, 10_000, 0)}},
				{[]Port{at(1, "p1", 16_000, 0)}, []Flow{of(7, 1, 20_000, 0)}},
			},
			found:    []string{"link 1 p1 received 16000 of 20000 (7.2:20000)"},
			standing: []string{"link 1 p1 received 16000 of 20000 (7.2:20000)"},
		},
		"it goes with its tree": {
			moments: []moment{
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 0, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(7, 1, 5000, 0)}},
				{[]Port{at(1, "p1", 0, 0)}, []Flow{of(8, 1, 0, 0)}},
			},
			found: []string{"link 1 p1 received 0 of 5000 (7.2:5000)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a Auditor
			var found, standing []string
			for _, m := range test.moments {
				for _, x := range a.Take(m.ports, m.flows) {
					found = append(found, reported(x))
				}
			}
			for _, x := range a.Standing() {
				standing = append(standing, reported(x))
			}
			if fmt.Sprint(found) != fmt.Sprint(test.found) || fmt.Sprint(standing) != fmt.Sprint(test.standing) {
				t.Errorf("found %q, standing %q; want %q, %q", found, standing, test.found, test.standing)
			}
		})
	}
}

// side is a switch's end of one link, and what is counted there. The interface
// and the trees may be a window apart.
type side struct {
	auditor  Auditor
	port     Count
	flows    map[uint32]*Count
	reported map[uint32]uint64 // of what each tree was sent, what it has counted
	lag      uint64            // sent by trees, not yet by the interface
}

// read lets the auditor see it; late bytes wait in a buffer.
func (s *side) read(late uint64) []Mismatch {
	var all []Flow
	for g, c := range s.flows {
		s.reported[g] = max(s.reported[g], c.In-min(late, c.In))
		all = append(all, of(g, 1, s.reported[g], c.Out))
	}
	return s.auditor.Take([]Port{{1, "p1", s.port}}, all)
}

// pass lets n bytes of a tree pass both ways. The queue drops a fifth of what is
// sent, and keeps up to a window.
func (s *side) pass(t *rapid.T, g uint32, n uint64) {
	if s.flows[g] == nil {
		s.flows[g] = &Count{}
	}
	s.flows[g].In += n
	s.flows[g].Out += n
	s.port.In += n
	s.port.Out += s.lag + n - n/5
	s.lag = rapid.Uint64Range(0, min(oneWindow, n-n/5)).Draw(t, "lag")
	s.port.Out -= s.lag
}

// history lets trees come and go, the counts of both sides be up to a window
// apart, queues drop up to a fifth, other traffic pass, and counters begin anew:
// what is where it was planned never makes an alarm.
func history(t *rapid.T) *side {
	s := &side{flows: map[uint32]*Count{}, reported: map[uint32]uint64{}}
	for range rapid.IntRange(1, 40).Draw(t, "moments") {
		g := rapid.Uint32Range(1, 3).Draw(t, "group")
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0:
			delete(s.flows, g)
			delete(s.reported, g)
		case 1:
			s.port, s.lag = Count{}, 0
		case 2:
			s.port.In += rapid.Uint64Range(0, 1<<30).Draw(t, "other in")
			s.port.Out += rapid.Uint64Range(0, 1<<30).Draw(t, "other out")
		default:
			s.pass(t, g, rapid.Uint64Range(0, 100_000).Draw(t, "bytes"))
		}
		late := rapid.Uint64Range(0, oneWindow).Draw(t, "late")
		if len(s.flows) > 1 {
			late = 0 // of one tree alone it is certain whose it is
		}
		if found := s.read(late); len(found) > 0 {
			t.Fatalf("a false alarm: %+v", found[0])
		}
	}
	return s
}

// TestNoFalseAlarm ends with a tree whose packets take another way. Nothing that
// passed before hides that.
func TestNoFalseAlarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := history(t)
		s.flows[9] = &Count{}
		s.read(0)
		const onTheWay = windowsOnWay * (3 + 1) * oneWindow // of all trees that there may have been
		s.port.Out += s.lag                                 // what waits in the queue leaves it meanwhile
		s.flows[9].In += onTheWay*16/15 + 2
		s.flows[9].Out += (onTheWay+s.lag)*4/3 + 2
		found := s.read(0)
		if len(found) != 2 || found[0].Direction != Received || found[1].Direction != Sent {
			t.Fatalf("a tree that takes another way was not found: %v", found)
		}
	})
}
