package rail

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/metrics"
)

// Traffic is an amount of complete messages, or accesses to memory, without truncated bytes.
type Traffic struct{ Messages, Bytes uint64 }

// Flow is what went one way and the other.
type Flow struct{ Sent, Received Traffic }

// Counters report what a node has counted over all peers, or with one, and what it holds now.
type Counters struct {
	Eager      Flow // messages that were sent at once
	Rendezvous Flow // messages that stayed with the sender until a receive awaited them
	Put        Flow // sent: by Put; received: by the peer's
	Get        Flow // received: by Get; sent: by the peer's

	Fragments  uint64 // handed to connections
	Failed     uint64 // of them: not confirmed when their path ended
	Resent     uint64 // of those: sent again as they were
	Restarts   uint64 // of messages and accesses that began again, on other rails
	Losses     uint64 // of the last rail, and of peers: all requests have failed
	Duplicates uint64 // messages that had arrived before
	Late       uint64 // fragments of what had restarted or ended
	Malformed  uint64 // fragments that no peer may send; their connection was closed
	Refused    uint64 // accesses of peers to memory that is not registered so
	Unwanted   uint64 // messages for a space that is not open

	Requests   int // under way
	Unexpected int // messages that have arrived, or are announced, and that no receive has taken
	Bytes      int // of memory of the node's, for them
	Peers      int
}

// Counters returns what the node has counted, with peers that are forgotten.
func (n *Node) Counters() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.past
	c.Requests, c.Unexpected, c.Bytes, c.Peers = 0, 0, 0, 0
	for _, p := range n.peers {
		c.add(p)
	}
	return c
}

// Counters returns what was counted with the peer.
func (p *Peer) Counters() (c Counters) {
	c.add(p)
	return c
}

// add adds what was counted with a peer.
func (c *Counters) add(p *Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.core.Counters()
	for flow, f := range [...]*Flow{rail.Eager: &c.Eager, rail.Rendezvous: &c.Rendezvous, rail.Store: &c.Put, rail.Load: &c.Get} {
		f.Sent.add(k.Sent[flow])
		f.Received.add(k.Received[flow])
	}
	c.Fragments += k.Fragments
	c.Failed += k.Failed
	c.Resent += k.Resent
	c.Restarts += k.Restarts
	c.Losses += p.losses
	c.Duplicates += k.Duplicates
	c.Late += k.Late
	c.Malformed += k.Malformed
	c.Refused += k.Refused
	c.Unwanted += k.Discarded
	bytes, heads := p.core.Held()
	c.Requests += p.under
	c.Unexpected += heads
	c.Bytes += bytes
	c.Peers++
}

func (t *Traffic) add(o rail.Traffic) {
	t.Messages += o.Messages
	t.Bytes += o.Bytes
}

// The metrics, as docs/metrics.md lists them.
var (
	metricSet = metrics.NewSet("tributary_messages_")

	descCompleted  = metricSet.New("completed_total", "Messages, and accesses to memory, that are complete, by flow and direction of the data.", "flow", "direction")
	descBytes      = metricSet.New("bytes_total", "Bytes of these.", "flow", "direction")
	descFragments  = metricSet.New("fragments_total", "Fragments that were handed to connections.")
	descFailed     = metricSet.New("failed_fragments_total", "Fragments that were not confirmed when their path ended.")
	descResent     = metricSet.New("resent_fragments_total", "Fragments of these that were sent again as they were.")
	descRestarts   = metricSet.New("restarts_total", "Messages and accesses that began again on other rails.")
	descLosses     = metricSet.New("peer_losses_total", "Losses of a peer, or of the last rail to it, with all requests.")
	descDropped    = metricSet.New("dropped_total", "Fragments of peers that were not taken, by reason.", "reason")
	descRequests   = metricSet.New("requests", "Requests that are not done.")
	descUnexpected = metricSet.New("unexpected", "Messages that no receive has taken.")
	descHeld       = metricSet.New("unexpected_bytes", "Bytes of memory for them.")
	descPeers      = metricSet.New("peers", "Other hosts that are known.")
)

// Collector returns the node's metrics; docs/metrics.md lists them.
func (n *Node) Collector() prometheus.Collector { return metricSet.Collector(n.collect) }

// collect gives the metrics' values.
func (n *Node) collect(to metrics.Values) {
	c := n.Counters()
	for _, f := range []struct {
		name string
		Flow
	}{{"eager", c.Eager}, {"rendezvous", c.Rendezvous}, {"put", c.Put}, {"get", c.Get}} {
		to.Counter(descCompleted, f.Received.Messages, f.name, "in")
		to.Counter(descCompleted, f.Sent.Messages, f.name, "out")
		to.Counter(descBytes, f.Received.Bytes, f.name, "in")
		to.Counter(descBytes, f.Sent.Bytes, f.name, "out")
	}
	to.Counter(descFragments, c.Fragments)
	to.Counter(descFailed, c.Failed)
	to.Counter(descResent, c.Resent)
	to.Counter(descRestarts, c.Restarts)
	to.Counter(descLosses, c.Losses)
	to.Counter(descDropped, c.Duplicates, "duplicate")
	to.Counter(descDropped, c.Late, "late")
	to.Counter(descDropped, c.Malformed, "malformed")
	to.Counter(descDropped, c.Refused, "refused")
	to.Counter(descDropped, c.Unwanted, "unwanted")
	to.Count(descRequests, c.Requests)
	to.Count(descUnexpected, c.Unexpected)
	to.Count(descHeld, c.Bytes)
	to.Count(descPeers, c.Peers)
}
