package linkaudit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/topology"
)

// Count is bytes in both directions, since some beginning.
type Count struct{ In, Out uint64 }

// of returns the bytes of one direction.
func (c Count) of(d Direction) uint64 {
	if d == Sent {
		return c.Out
	}
	return c.In
}

// since returns what was counted after before, and whether c can be later.
func (c Count) since(before Count) (Count, bool) {
	if c.In < before.In || c.Out < before.Out {
		return Count{}, false
	}
	return Count{c.In - before.In, c.Out - before.Out}, true
}

// Direction is that of packets at a switch.
type Direction uint8

// The directions.
const (
	Received Direction = iota
	Sent
	directions
)

// Port is the interface at the switch's end of a link.
type Port struct {
	Port      topology.Port
	Interface string
	Count     Count // bytes of frames
}

// Flow is what one epoch of a group's tree has exchanged over a link.
type Flow struct {
	Group, Epoch uint32
	Port         topology.Port
	Count        Count  // bytes of UDP payloads
	Window       uint64 // the same, at most, of one window of its packets
}

// Share is what one epoch of a tree has contributed to a sum.
type Share struct {
	Group, Epoch uint32
	Bytes        uint64
}

// Mismatch is a link that has not carried what trees exchanged over it.
type Mismatch struct {
	Port      topology.Port
	Interface string
	Direction Direction
	Expected  uint64  // bytes of the trees
	Seen      uint64  // bytes that the interface has carried meanwhile
	Trees     []Share // the largest first
}

// Auditor judges one switch. Its zero value has seen nothing. It is not for
// concurrent use.
type Auditor struct {
	ports map[topology.Port]*port
	flows map[flowKey]Count
}

type flowKey struct {
	group, epoch uint32
	port         topology.Port
}

// port is what is known of the end of a link.
type port struct {
	last    Port
	windows [directions]window
}

// window is the time since which the most is missing: it begins anew whenever
// nothing is, so that what was in place before cannot hide what is not now.
type window struct {
	seen     uint64
	onTheWay uint64 // the most that it may have been
	shares   map[shareKey]uint64

	standing *Mismatch
	passed   uint64 // bytes of the trees since it was found
}

type shareKey struct{ group, epoch uint32 }

// The terms of a judgement, as in the package's documentation.
const (
	enough       = 16 // times what may be on its way, until a mismatch is over
	windowsOnWay = 2
)

// allowance is the share, one of so many, that may be missing.
var allowance = [directions]uint64{Received: 16, Sent: 4}

// Take takes the counts of all ports and flows of a switch, read at one moment,
// and returns the mismatches that were not known before, by port. Each is
// among the ports at most once; the flows of others are not judged.
func (a *Auditor) Take(ports []Port, flows []Flow) []Mismatch {
	fresh := a.renew(ports)
	a.exchange(flows, fresh)
	var found []Mismatch
	for _, number := range slices.Sorted(maps.Keys(a.ports)) {
		p := a.ports[number]
		for d := range directions {
			if m := p.windows[d].judge(&p.last, d); m != nil {
				found = append(found, *m)
			}
		}
	}
	return found
}

// Standing returns the mismatches that hold, by port: as they were last found,
// until enough has passed without one or no tree is left that they are about.
func (a *Auditor) Standing() []Mismatch {
	var all []Mismatch
	for _, number := range slices.Sorted(maps.Keys(a.ports)) {
		for d := range directions {
			if m := a.ports[number].windows[d].standing; m != nil {
				all = append(all, *m)
			}
		}
	}
	return all
}

// renew takes what the ports have carried, and returns those that begin anew.
func (a *Auditor) renew(now []Port) (fresh map[topology.Port]bool) {
	fresh = map[topology.Port]bool{}
	before := a.ports
	a.ports = make(map[topology.Port]*port, len(now))
	for _, p := range now {
		old := before[p.Port]
		if old == nil {
			old = &port{}
		}
		carried, later := p.Count.since(old.last.Count)
		if old.last.Interface != p.Interface || !later {
			fresh[p.Port] = true
			for d := range directions {
				old.windows[d].restart()
			}
		} else {
			for d := range directions {
				old.windows[d].seen += carried.of(d)
			}
		}
		old.last = p
		a.ports[p.Port] = old
	}
	return fresh
}

// exchange takes what the trees have exchanged over ports that are not fresh.
func (a *Auditor) exchange(now []Flow, fresh map[topology.Port]bool) {
	before := a.flows
	a.flows = make(map[flowKey]Count, len(now))
	live := map[shareKey]bool{}
	way := map[topology.Port]uint64{}
	for _, f := range now {
		key := flowKey{f.Group, f.Epoch, f.Port}
		a.flows[key] = f.Count
		live[shareKey{f.Group, f.Epoch}] = true
		way[f.Port] += windowsOnWay * f.Window
		last, known := before[key]
		moved, later := f.Count.since(last)
		p := a.ports[f.Port]
		if p == nil || fresh[f.Port] || !known || !later {
			continue
		}
		for d := range directions {
			p.windows[d].add(shareKey{f.Group, f.Epoch}, moved.of(d))
		}
	}
	for number, p := range a.ports {
		for d := range directions {
			w := &p.windows[d]
			w.onTheWay = max(w.onTheWay, way[number])
			w.forget(live)
		}
	}
}

func (w *window) add(of shareKey, bytes uint64) {
	if bytes == 0 {
		return
	}
	if w.shares == nil {
		w.shares = map[shareKey]uint64{}
	}
	w.shares[of] += bytes
	w.passed += bytes
}

// restart begins the comparison anew; what was found stands.
func (w *window) restart() {
	w.seen, w.onTheWay = 0, 0
	clear(w.shares)
}

// forget drops a mismatch of trees that are gone.
func (w *window) forget(live map[shareKey]bool) {
	if w.standing == nil {
		return
	}
	for _, s := range w.standing.Trees {
		if live[shareKey{s.Group, s.Epoch}] {
			return
		}
	}
	w.standing = nil
}

// judge compares, and returns a mismatch that did not stand before.
func (w *window) judge(p *Port, d Direction) *Mismatch {
	expected := uint64(0)
	for _, bytes := range w.shares {
		expected += bytes
	}
	missing := expected - min(expected, expected/allowance[d]+w.seen)
	switch {
	case missing > w.onTheWay:
		stood := w.standing != nil
		w.standing = &Mismatch{
			Port: p.Port, Interface: p.Interface, Direction: d, Expected: expected, Seen: w.seen, Trees: w.sorted(),
		}
		w.passed = 0
		w.restart()
		if stood {
			return nil
		}
		return w.standing
	case missing == 0:
		if w.passed >= enough*w.onTheWay && w.passed > 0 {
			w.standing = nil
		}
		w.restart()
	}
	return nil
}

// sorted returns the shares, the largest first.
func (w *window) sorted() []Share {
	all := make([]Share, 0, len(w.shares))
	for of, bytes := range w.shares {
		all = append(all, Share{of.group, of.epoch, bytes})
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Epoch, b.Epoch))
	})
	return all
}
