package attribute

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// Neighbours returns the lives of the neighbours, in the order in which they
// came. It is the core's own.
func (c *Core) Neighbours() []attributes.Life { return c.neighbours }

func (c *Core) isNeighbour(life attributes.Life) bool { return slices.Contains(c.neighbours, life) }

// neighbourUp gives a new neighbour the versions of all that is known here.
func (c *Core) neighbourUp(life attributes.Life, out *Output) {
	if life == c.cfg.Self || life == 0 || c.isNeighbour(life) {
		return
	}
	c.neighbours = append(c.neighbours, life)
	var all []attributes.Map
	for i := range c.replicas {
		if r := &c.replicas[i]; r.version > 0 {
			all = append(all, attributes.Map{Life: r.life, Version: r.version})
		}
	}
	slices.SortFunc(all, byLife)
	for part := range slices.Chunk(all, c.mapsInMessage()) {
		c.send(out, life, &attributes.Digest{Maps: part})
	}
}

// neighbourDown has what was asked of a lost neighbour asked of all.
func (c *Core) neighbourDown(life attributes.Life) {
	i := slices.Index(c.neighbours, life)
	if i < 0 {
		return
	}
	c.neighbours = slices.Delete(c.neighbours, i, i+1)
	for i := range c.replicas {
		if r := &c.replicas[i]; r.pending > 0 && r.target == life {
			c.askAll(r)
		}
	}
}

// askAll takes back what is pending, and has it asked of all neighbours.
func (c *Core) askAll(r *replica) {
	r.pending, r.target = 0, 0
	c.wants = append(c.wants, want{life: r.life})
}

// byLife is the order of maps in messages.
func byLife(a, b attributes.Map) int { return cmp.Compare(a.Life, b.Life) }

// mapsInMessage returns how many maps a digest or a request has at most.
func (c *Core) mapsInMessage() int { return (c.cfg.MessageBytes - 6) / attributes.MapSize }

func (c *Core) send(out *Output, to attributes.Life, m attributes.Message) {
	out.Sends = append(out.Sends, Send{To: to, Message: m})
}

func (c *Core) sendAll(out *Output, m attributes.Message) {
	for _, to := range c.neighbours {
		c.send(out, to, m)
	}
}

// update is the update stage: what has changed is reported to all neighbours, but
// for bursts at most once in a period.
func (c *Core) update(now core.Time, out *Output) {
	if len(c.changed) == 0 || now < c.due() {
		return
	}
	var news []attributes.Map
	for _, slot := range c.changed {
		r := &c.replicas[slot]
		r.listed = false
		if r.version > r.sent {
			news = append(news, attributes.Map{Life: r.life, Version: r.version})
			r.sent = r.version
		}
	}
	c.changed = c.changed[:0]
	if len(news) == 0 || len(c.neighbours) == 0 {
		return // who becomes a neighbour is sent all
	}
	slices.SortFunc(news, byLife)
	c.next = max(c.next, now).Add(c.cfg.Period)
	for part := range slices.Chunk(news, c.mapsInMessage()) {
		c.sendAll(out, &attributes.Digest{Maps: part})
	}
}

// touch notes that a replica has a version that was not sent.
func (c *Core) touch(slot int32) {
	if r := &c.replicas[slot]; !r.listed {
		r.listed = true
		c.changed = append(c.changed, slot)
	}
}
