package hostlib

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
)

// restAfter is how long, at least, nothing is started on a communicator before it
// rests. That takes up to twice as long.
const restAfter = time.Second

// restIdle has communicators on which nothing was started for a while give back
// memory, until the host is closed: one timer for all of them.
func (h *Host) restIdle() {
	ticker := time.NewTicker(restAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return
		}
		h.peers.Rest()
		for _, c := range h.counts.all() {
			c.restIfIdle()
		}
	}
}

// restIfIdle has the communicator rest, once after each time of work, and in each epoch.
func (c *Communicator) restIfIdle() {
	c.mu.Lock()
	last := c.requests.next
	isBusy := c.requests.areSome()
	epoch := c.status.epoch
	c.mu.Unlock()
	seen := c.seenID
	c.seenID = last
	if isBusy || last != seen || c.isResting && c.restID == last && c.restEpoch == epoch {
		return
	}
	c.isResting, c.restID, c.restEpoch = true, last, epoch
	c.loop.Trim()
	c.post(item{in: endpoint.Input{Kind: endpoint.Rest}})
}
