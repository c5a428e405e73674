package arp

import (
	"net/netip"
	"time"
)

// Port is an interface, and what the switch is there.
type Port struct {
	Interface string
	Index     int // of the interface
	Addr      netip.Addr
	MAC       MAC
}

// Neighbour is a station on a port's link.
type Neighbour struct {
	Interface string
	Addr      netip.Addr
}

// Requests are repeated after firstPause, which doubles up to longestPause, until there
// is an answer; a neighbour that is known is asked again after refresh.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	refresh      = 30 * time.Second
)

// table is what is asked and known.
type table struct {
	ports      map[int]Port // by index
	names      map[string]int
	neighbours map[Neighbour]*entry
}

// entry is a neighbour that somebody waits for.
type entry struct {
	mac   MAC // zero: not known
	due   time.Time
	pause time.Duration
}

// sending is a frame for an interface.
type sending struct {
	index int
	frame []byte
}

// set replaces ports and neighbours; what is known of those that stay is kept.
func (t *table) set(now time.Time, ports []Port, neighbours []Neighbour) {
	t.ports, t.names = map[int]Port{}, map[string]int{}
	for _, p := range ports {
		if p.Addr.Is4() {
			t.ports[p.Index], t.names[p.Interface] = p, p.Index
		}
	}
	before := t.neighbours
	t.neighbours = map[Neighbour]*entry{}
	for _, n := range neighbours {
		if !n.Addr.Is4() {
			continue
		}
		if t.neighbours[n] = before[n]; before[n] == nil {
			t.neighbours[n] = &entry{due: now}
		}
	}
}

// take takes a frame from an interface. It returns the answer, nil for none, and
// whether another hardware address is known than before.
func (t *table) take(now time.Time, index int, frame []byte) (answer []byte, changed bool) {
	m, ok := parse(frame)
	p, own := t.ports[index]
	if !ok || !own {
		return nil, false
	}
	if e := t.neighbours[Neighbour{p.Interface, m.sender}]; e != nil {
		changed = e.mac != m.senderMAC
		e.mac, e.due, e.pause = m.senderMAC, now.Add(refresh), 0
	}
	if m.operation == request && m.target == p.Addr && m.sender != p.Addr {
		back := message{operation: reply, sender: p.Addr, senderMAC: p.MAC, target: m.sender, toTheir: m.senderMAC}
		answer = back.frame(m.senderMAC)
	}
	return answer, changed
}

// ask returns the requests that are due, and when the next are; zero: never.
func (t *table) ask(now time.Time) (requests []sending, next time.Time) {
	for n, e := range t.neighbours {
		index, there := t.names[n.Interface]
		if !there {
			continue
		}
		if !e.due.After(now) {
			e.pause = min(max(firstPause, 2*e.pause), longestPause)
			e.due = now.Add(e.pause)
			p := t.ports[index]
			m := message{operation: request, sender: p.Addr, senderMAC: p.MAC, target: n.Addr}
			requests = append(requests, sending{index, m.frame(everybody)})
		}
		if next.IsZero() || e.due.Before(next) {
			next = e.due
		}
	}
	return requests, next
}
