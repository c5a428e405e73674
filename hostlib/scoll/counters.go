package scoll

import (
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
)

// Counters report what a node has counted, and what it holds now. When nothing is
// under way all of the second kind are 0 but Groups and Places. Connections are the
// host's: see hostlib.Host.Connections.
type Counters struct {
	Succeeded, Failed       uint64 // broadcasts with this node for their root
	MessagesIn, MessagesOut uint64
	BytesIn, BytesOut       uint64 // of messages
	Panics                  uint64 // of callbacks

	Unreadable uint64 // messages that are none
	Copies     uint64 // requests that were here already
	Unmatched  uint64 // replies for which no buffer was posted: late, twice, or forged
	Refusals   uint64 // requests that were refused before, or in, pre-request
	Denied     uint64 // of them, those whose root a rule of the service's Access is not for
	Unproven   uint64 // and those of which it is not proven that their root has sent them
	Retries    uint64 // messages sent again after a local failure
	Refills    uint64 // times that receive buffers were made anew

	Requests     int // that have not ended
	Callbacks    int // that run
	Waiting      int // callbacks that wait for one to return
	Pulls        int // of bulk data, under way
	LentBuffers  int // of the library, for messages and replies
	ReplyBuffers int // posted and not given back
	Exposed      int // bulk data that children may read
	Groups       int
	Places       int // in trees, each of the size of its children
}

// counts are what the driver counts.
type counts struct {
	panics                  atomic.Uint64
	succeeded, failed       atomic.Uint64
	messagesIn, messagesOut atomic.Uint64
	bytesIn, bytesOut       atomic.Uint64
}

// ended counts a broadcast of this node's own.
func (c *counts) ended(e *broadcast.End) {
	switch {
	case !e.Root:
	case e.Err == nil:
		c.succeeded.Add(1)
	default:
		c.failed.Add(1)
	}
}

// Counters returns the node's counters.
func (n *Node) Counters() Counters {
	n.mu.Lock()
	k := n.core.Counters()
	n.mu.Unlock()
	c := Counters{
		Succeeded: n.counts.succeeded.Load(), Failed: n.counts.failed.Load(),
		MessagesIn: n.counts.messagesIn.Load(), MessagesOut: n.counts.messagesOut.Load(),
		BytesIn: n.counts.bytesIn.Load(), BytesOut: n.counts.bytesOut.Load(), Panics: n.counts.panics.Load(),
		Unreadable: k.Unreadable, Copies: k.Copies, Unmatched: k.Unmatched, Refusals: k.Refusals, Denied: k.Denied, Unproven: k.Unproven,
		Retries: k.Retries, Refills: k.Refills, Requests: k.Requests,
		LentBuffers: k.LentBuffers, ReplyBuffers: k.Posted, Exposed: k.Exposed, Groups: k.Groups, Places: k.Routes,
	}
	c.Callbacks, c.Waiting = n.workers.state()
	n.pulls.mu.Lock()
	c.Pulls = len(n.pulls.all)
	n.pulls.mu.Unlock()
	return c
}
