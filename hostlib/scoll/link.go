package scoll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// classOf returns the class of connections for a message of so many bytes: small ones
// never wait behind large ones.
func classOf(size int) peer.Class {
	if size <= peer.Control.FrameMost() {
		return peer.Control
	}
	return peer.Large
}

// send has a message be sent with the next flush, and appends why it cannot be.
func (n *Node) send(m *broadcast.Send, out *output) {
	l := n.host.Channel(string(m.To), classOf(len(m.Bytes)))
	err := l.Send(&peer.Send{Service: peer.Collectives, Body: m.Bytes, Number: m.Number})
	switch {
	case err != nil:
		out.back = appendSent(out.back, []uint64{m.Number}, err)
		return
	case len(out.channels) == 0 || out.channels[len(out.channels)-1] != l:
		out.channels = append(out.channels, l)
	}
	out.messages++
	out.bytes += uint64(len(m.Bytes))
}

// flush sends what waits, and appends what is known of it already.
func (n *Node) flush(out *output) {
	// Before: who gets one may look at the counters at once.
	n.counts.messagesOut.Add(out.messages)
	n.counts.bytesOut.Add(out.bytes)
	out.messages, out.bytes = 0, 0
	for _, l := range out.channels {
		out.sent = l.Flush(peer.Collectives, out.sent[:0])
		out.back = appendSent(out.back, out.sent, nil)
	}
	clear(out.channels)
	out.channels = out.channels[:0]
}

func appendSent(back []broadcast.Input, numbers []uint64, err error) []broadcast.Input {
	for _, n := range numbers {
		back = append(back, broadcast.Input{Kind: broadcast.Sent, Number: n, Err: err})
	}
	return back
}

// link is the node as its host's connections see it. It implements peer.Handler.
type link Node

// Up implements peer.Handler.
func (l *link) Up(c *peer.Conn) { (*Node)(l).meet(c.Peer().Name, c.Peer().Incarnation) }

// Restarted implements peer.Handler.
func (l *link) Restarted(node string, before, incarnation uint64) {
	(*Node)(l).meet(node, before) // it may have been met before this node was there
	(*Node)(l).meet(node, incarnation)
}

// Received implements peer.Handler. It waits while the loop has too much to do.
func (l *link) Received(c *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	from := c.Peer()
	lent := messages.Get().(*[]broadcast.Input)
	all := (*lent)[:0]
	bytes := 0
	for _, f := range frames {
		bytes += len(f.Bytes)
		if len(f.Bytes) == 0 {
			continue // it only asks whether this node is there
		}
		all = append(all, broadcast.Input{Kind: broadcast.Message, Node: broadcastmsg.Node(from.Name), Incarnation: from.Incarnation, Bytes: f.Bytes})
	}
	l.counts.messagesIn.Add(uint64(len(frames)))
	l.counts.bytesIn.Add(uint64(bytes))
	if len(all) == 0 {
		b.Release()
		return
	}
	all[len(all)-1].Memory = b
	_ = l.loop.Post(context.Background(), all...) // the loop ends after the last call of this
	clear(all)
	*lent = all
	messages.Put(lent)
}

// messages are memory for those on their way to the loop.
var messages = sync.Pool{New: func() any { return new([]broadcast.Input) }}

// Failed implements peer.Handler: what was to be sent is reported by Sent.
func (l *link) Failed(string, peer.Class, error) {}

// Down implements peer.Handler. All requests are of the first class.
func (l *link) Down(c *peer.Conn, _ error) {
	if c.Class() == peer.Control && l.ctx.Err() == nil {
		l.loop.Add(broadcast.Input{Kind: broadcast.Cut, Node: broadcastmsg.Node(c.Peer().Name)})
	}
}

// Forgotten implements peer.Forgetter.
func (l *link) Forgotten(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isWatched := l.met[node].watched
	if !isWatched {
		delete(l.met, node)
	}
	l.core.Forget(broadcastmsg.Node(node), isWatched)
}

// Absent implements peer.Absentee. A node that has gone may have replied before: whoever
// waits for it finds out.
func (l *link) Absent(c *peer.Conn, isDropped bool) {
	kind := broadcast.Cut
	if isDropped {
		kind = broadcast.Absent
	}
	l.loop.Add(broadcast.Input{Kind: kind, Node: broadcastmsg.Node(c.Peer().Name)})
}

// Sent implements peer.Handler.
func (l *link) Sent(numbers []uint64, err error) {
	if errors.Is(err, peering.ErrOutdated) {
		if errors.Is(err, peering.ErrRefused) {
			l.log.Warn("this node is known in a later incarnation: it has to begin with a larger one", slog.Any("error", err))
		}
		err = fmt.Errorf("scoll: %w: %w", broadcast.ErrOutdated, err)
	}
	l.loop.Add(appendSent(nil, numbers, err)...)
}
