package membership

import (
	"context"
	"errors"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// service is the node as its host's connections see it. It implements peer.Absentee.
type service Node

// runs waits until the node's loop does; it reports false if it cannot.
func (n *service) runs() bool {
	<-n.ready
	return n.loop != nil
}

// Up implements peer.Handler.
func (n *service) Up(c *peer.Conn) {
	if n.runs() {
		(*Node)(n).post(item{kind: connected, conn: c})
	}
}

// Down implements peer.Handler.
func (n *service) Down(c *peer.Conn, why error) {
	if n.runs() {
		(*Node)(n).post(item{kind: disconnected, conn: c, err: why})
	}
}

// Failed implements peer.Handler: the core asks for hosts that do not answer.
func (n *service) Failed(string, peer.Class, error) {}

// Absent implements peer.Absentee: a node that is closed ends its links, though the other
// services of its host go on.
func (n *service) Absent(c *peer.Conn, _ bool) {
	if n.runs() {
		(*Node)(n).post(item{kind: absent, conn: c})
	}
}

// Restarted implements peer.Handler: connections say so as well.
func (n *service) Restarted(string, uint64, uint64) {}

// Sent implements peer.Handler: what opens a link has a number.
func (n *service) Sent(numbers []uint64, err error) {
	if err == nil {
		return
	}
	items := make([]item, len(numbers))
	for i, number := range numbers {
		items[i] = item{kind: unsent, number: number, err: err}
	}
	n.loop.Add(items...)
}

// Received implements peer.Handler. It waits while the loop has too much to do.
func (n *service) Received(c *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	defer b.Release()
	if !n.runs() {
		return
	}
	items := make([]item, 0, len(frames))
	for _, f := range frames {
		n.identity.foresee(f.Bytes)
		n.counts.framesIn.Add(1)
		n.counts.streamBytesIn.Add(uint64(len(f.Bytes)))
		it := item{kind: frameCame, conn: c, stream: f.Stream}
		if len(f.Bytes) <= frameHead+gossip.MaxFrame { // otherwise it is none
			it.raw = n.buffers.get(len(f.Bytes))
			copy(*it.raw, f.Bytes)
		}
		items = append(items, it)
	}
	_ = n.loop.Post(context.Background(), items...) // a loop that has ended takes none
}

// newsWithin is how many Tau news of a node takes to everybody, or more.
const newsWithin = 10

// resolve returns the address of a node in the view. Who sends has heard of it, perhaps from
// another node that knows more: news of it is waited for.
func (n *Node) resolve(ctx context.Context, host string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, newsWithin*n.cfg.Timing.Tau)
	defer cancel()
	m, err := n.Member(ctx, host)
	if err == nil {
		return m.Addr.String(), nil
	}
	if errors.Is(err, ErrUnknown) {
		for x := range n.Notices(ctx) {
			if x.Kind == Joined && x.Member.Name == host {
				return x.Member.Addr.String(), nil
			}
		}
	}
	return "", err
}
