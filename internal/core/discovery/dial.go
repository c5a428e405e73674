package discovery

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// calls are the targets to be dialled when it is their turn. None of them can be kept from
// theirs by what strangers announce: seeds and strangers leave some of maxOpen to each
// other, and of strangers those at one port have only a few.
type calls struct {
	queue []*target
	again core.Time     // when the next one may be dialled
	open  int           // that have been dialled, and neither have answered nor failed yet
	held  map[*port]int // of open, by target.by
}

const (
	// maxOpen is how many may be under way: where machines are slow, more at a time would all
	// take too long.
	maxOpen   = 64
	maxSide   = 48 // of seeds and known switches, and of all others
	maxOfPort = 4  // of others that one port announces
)

func (d *calls) add(t *target) {
	if !slices.Contains(d.queue, t) {
		d.queue = append(d.queue, t)
	}
}

func (d *calls) remove(t *target) {
	d.queue = slices.DeleteFunc(d.queue, func(u *target) bool { return u == t })
}

// answered takes that a target has answered, failed, or is not dialled any more.
func (d *calls) answered(t *target) {
	if t.state != dialled {
		return
	}
	d.open--
	if d.held[t.by]--; d.held[t.by] == 0 {
		delete(d.held, t.by)
	}
}

// may reports whether a target of the queue can have its turn.
func (d *calls) may(t *target) bool {
	switch known := d.held[nil]; {
	case t.state != idle:
		return true // is only to be retried
	case t.by == nil:
		return d.open < maxOpen && known < maxSide
	default:
		return d.open < maxOpen && d.open-known < maxSide && d.held[t.by] < maxOfPort
	}
}

func (d *calls) next() core.Time {
	if !slices.ContainsFunc(d.queue, d.may) {
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
	for _, k := range slices.SortedFunc(maps.Keys(c.announced), (*claim).before) {
		c.recall(k)
	}
	d := &c.calls
	if c.now < d.again {
		return
	}
	// In a step as many as in a Batch, so that a step is not needed for each.
	step := max(1, int(int64(c.cfg.DialRate)*int64(c.cfg.Batch)/int64(time.Second)))
	n := 0
	for _, isKnown := range []bool{true, false} {
		d.queue = slices.DeleteFunc(d.queue, func(t *target) bool {
			if n == step || (t.by == nil) != isKnown || !d.may(t) {
				return false
			}
			n++
			c.call(t)
			return true
		})
	}
	if n > 0 {
		d.again = c.now.Add(time.Duration(n) * time.Second / time.Duration(c.cfg.DialRate))
	}
}

// call has a target dialled; at once, if it is being dialled already.
func (c *Core) call(t *target) {
	switch d := &c.calls; t.state {
	case idle:
		t.state = dialled
		d.open++
		d.held[t.by]++
		c.out.Dial = append(c.out.Dial, t.address)
	case away:
		c.out.Retry = append(c.out.Retry, t.address)
	}
}

// recall has a switch that is away dialled at once, because a port hears it anew.
func (c *Core) recall(k *claim) {
	var all []*target
	if n := k.node; n != nil {
		all = slices.SortedFunc(maps.Keys(n.wants), func(t, u *target) int { return strings.Compare(t.address, u.address) })
		if n.target != nil {
			all = slices.Insert(all, 0, n.target)
		}
	}
	i := slices.IndexFunc(all, func(t *target) bool { return t.state == away })
	p := k.from
	switch {
	case i < 0:
	case c.now < p.dialAfter:
		c.arm(p, p.dialAfter)
		return
	default:
		p.dialAfter = c.now.Add(portPause)
		c.calls.add(all[i])
	}
	delete(c.announced, k)
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
				if t = c.newTarget(a, n); t == nil {
					break
				}
			}
			wanted[t] = true
			if t.state == idle {
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

func (c *Core) newTarget(a netip.AddrPort, n *node) *target {
	p := n.announcer(a.Addr())
	if len(c.targets) >= c.cfg.MaxTargets || c.now < p.dialAfter {
		c.counts.Refused++
		if len(c.targets) < c.cfg.MaxTargets {
			c.arm(p, p.dialAfter)
		}
		return nil
	}
	p.dialAfter = c.now.Add(portPause)
	t := &target{address: a.String(), by: p, wanted: map[*node]bool{}}
	if p.peer != nil && p.peer.node == n && n.target != nil {
		t.by = nil // it was a link of that switch by what both have said
	}
	c.targets[t.address] = t
	c.calls.add(t)
	return t
}

// announcer returns the port that has heard first that n has an address.
func (n *node) announcer(a netip.Addr) *port {
	var first *claim
	for k := range n.incoming {
		has := k.isLive() && slices.ContainsFunc(k.neighbor.Management, func(b netip.Addr) bool { return b.Unmap() == a })
		if has && (first == nil || k.before(first) < 0) {
			first = k
		}
	}
	return first.from
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
