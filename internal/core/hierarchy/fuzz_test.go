package hierarchy

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// FuzzMessages gives both roles any messages, on links of their own and of a
// stranger, in a hierarchy that has come together. Nothing breaks, what they send
// can be read, and when the links have ended all comes together again.
func FuzzMessages(f *testing.F) {
	one := gossip.Version{Incarnation: 1, Minor: 1}
	for i, m := range []wire.Message{
		&wire.Hello{Zone: 0, From: "d9@10.9.9.9:1", Incarnation: 1},
		&wire.Assign{Zone: 0, Supervisors: []gossip.ID{"s2@10.0.0.2:7946"}},
		&wire.Change{Zone: 0, Base: true, Last: true, Alives: []wire.Member{{ID: "d9@10.9.9.9:1", Version: one}}},
		&wire.Change{Zone: 0, Leaves: []wire.Leave{{ID: "h4@10.0.0.4:7946", Version: one}}},
		&wire.Beat{}, &wire.Fetch{Zone: 0, Follow: true},
	} {
		b := m.Append(nil)
		f.Add(append([]byte{byte(i), byte(len(b))}, b...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t, 1, 1, 3, 3, DefaultSettings())
		w.pass(time.Second)
		for n := 0; len(data) >= 2 && n < 16; n++ {
			what, size := data[0], min(int(data[1]), len(data)-2)
			m, err := wire.Decode(data[2 : 2+size])
			data = data[2+size:]
			if a, assigns := m.(*wire.Assign); err != nil || assigns && !w.known(a) {
				continue
			}
			l := w.wires[int(what>>1)%len(w.wires)]
			end := int(what & 1)
			if a := l.ends[end]; l.up[end] && !l.broken {
				a.step(nil, Input{Kind: Received, Link: l.number[end], Message: m})
			}
			w.pass(time.Duration(what) * time.Millisecond)
			if len(w.wires) == 0 {
				break
			}
		}
		for _, l := range w.wires {
			l.breaks()
		}
		w.pass(20 * time.Second)
		for _, a := range w.all {
			a.notices = nil // some of nodes that are not there
		}
		if text := w.wrong(); text != "" {
			t.Error(text)
		}
	})
}

// known reports whether an Assign is of nodes that there are: the test has no
// others to be dialled.
func (w *world) known(m *wire.Assign) bool {
	for _, ids := range [][]gossip.ID{m.Supervisors, m.Contacts} {
		for _, id := range ids {
			found := false
			for _, a := range w.mesh.nodes {
				found = found || a.id == id
			}
			if !found {
				return false
			}
		}
	}
	return true
}
