package discovery

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// calls are the targets to be dialled when it is their turn.
type calls struct {
	queue []*target
	again core.Time // when the next one may be dialled
	open  int       // that have been dialled, and neither have answered nor failed yet
}

// maxOpen is how many may be under way: where machines are slow, more at a time would all
// take too long.
const maxOpen = 64

func (d *calls) add(t *target) { d.queue = append(d.queue, t) }

func (d *calls) remove(t *target) {
	d.queue = slices.DeleteFunc(d.queue, func(u *target) bool { return u == t })
}

// answered takes that a target has answered, failed, or is not dialled any more.
func (d *calls) answered(t *target) {
	if t.state == dialled {
		d.open--
	}
}

func (d *calls) next() core.Time {
	if len(d.queue) == 0 || d.open >= maxOpen {
		return core.Never
	}
	return d.again
}

// dial decides whom to dial, and does so at the rate that is allowed.
func (c *Core) dial() {
	for _, n := range slices.SortedFunc(maps.Keys(c.retarget), compareNodes) {
		delete(c.retarget, n)
		c.approach(n)
	}
	d := &c.calls
	if c.now < d.again {
		return
	}
	// In a step as many as in a Batch, so that a step is not needed for each.
	step := max(1, int(int64(c.cfg.DialRate)*int64(c.cfg.Batch)/int64(time.Second)))
	n := min(step, len(d.queue), maxOpen-d.open)
	if n <= 0 {
		return
	}
	d.open += n
	for _, t := range d.queue[:n] {
		t.state = dialled
		c.out.Dial = append(c.out.Dial, t.address)
	}
	d.queue = slices.Delete(d.queue, 0, n)
	d.again = c.now.Add(time.Duration(n) * time.Second / time.Duration(c.cfg.DialRate))
}

// approach dials an address that a switch announces, the next one where others fail.
// What is connected already is not dialled at other addresses.
func (c *Core) approach(n *node) {
	wanted := map[*target]bool{}
	var outside []netip.AddrPort
	isNeeded := c.isNode(n) && (n.target == nil && n.forwards() || n.target != nil && n.target.state == away)
	if isNeeded {
		for _, a := range n.addresses(c.cfg.Port) {
			if !c.cfg.allows(a.Addr()) {
				outside = append(outside, a)
				continue
			}
			t := c.targets[a.String()]
			if t == nil {
				if t = c.newTarget(a.String(), n); t == nil {
					break
				}
			}
			wanted[t] = true
			if t.state == idle && !slices.Contains(c.calls.queue, t) {
				c.calls.add(t)
			}
			if !t.isFailed {
				break
			}
		}
	}
	c.want(n, wanted)
	var found []Alarm
	if len(outside) > 0 && len(wanted) == 0 && n.isAgent() {
		c.counts.Refused++
		found = append(found, c.alarm(Outside, Place{Node: n.name}, Place{}, "no prefix of discovery.allow has %v, which it announces", outside))
	}
	c.alarms.set(c, dialOf{n}, found)
}

// dialOf owns the alarms about dialling a node.
type dialOf struct{ n *node }

func (c *Core) newTarget(address string, n *node) *target {
	p := n.lead().from
	if len(c.targets) >= c.cfg.MaxTargets || c.now < p.dialAfter {
		c.counts.Refused++
		if len(c.targets) < c.cfg.MaxTargets {
			c.arm(p, p.dialAfter)
		}
		return nil
	}
	p.dialAfter = c.now.Add(portPause)
	t := &target{address: address, wanted: map[*node]bool{}}
	c.targets[address] = t
	c.calls.add(t)
	return t
}

// want makes targets those that a node announces, and releases those that nobody does.
func (c *Core) want(n *node, wanted map[*target]bool) {
	for t := range n.wants {
		if wanted[t] {
			continue
		}
		delete(t.wanted, n)
		if len(t.wanted) == 0 && !t.isSeed && t.node == nil && t.facts == nil {
			c.release(t)
		}
	}
	for t := range wanted {
		if t.wanted == nil {
			t.wanted = map[*node]bool{}
		}
		t.wanted[n] = true
	}
	n.wants = wanted
}
