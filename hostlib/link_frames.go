package hostlib

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// receive gives the loop frames, which lie in a burst and are of one stream, and may wait
// for that.
func (s *stream) receive(c *peer.Conn, number uint32, frames []peer.Frame, b *peer.Burst) {
	l := s.link
	l.mu.Lock()
	if s.conn != c || s.mine != number || s.theirs == 0 {
		l.mu.Unlock()
		return
	}
	var news []item
	if !s.isUp { // it has overtaken what says that
		news = append(news, l.up(s))
	}
	isStale := l.isDiverted && s.class == peer.Control
	l.mu.Unlock()
	for _, i := range news {
		l.c.post(i)
	}
	batch := batches.Get().(*[]item)
	packets := 0
	for i := range frames {
		f := frames[i].Bytes
		if len(f) <= lead {
			l.dead(fmt.Sprintf("it sent a malformed frame of %d bytes", len(f)))
			continue
		}
		l.c.frames.in(frameBytes(len(f) - lead))
		switch kind := wire.FrameKind(f[lead]); {
		case kind == wire.FramePacket:
			packets += len(f)
		case isStale && kind != wire.FrameMissing:
			continue // what mattered of it was repeated
		}
		*batch = append(*batch, item{in: endpoint.Input{Kind: endpoint.Frame, Rank: uint32(l.peer), Bytes: f[lead:]}})
		if len(*batch) == stepMost {
			l.deliver(batch, b)
		}
	}
	l.deliver(batch, b)
	batches.Put(batch)
	if s.class == peer.Control {
		l.mu.Lock()
		l.carried(packets)
		l.mu.Unlock()
	}
}

// stepMost are the most frames that are stepped at once.
const stepMost = 64

// batches are memory for frames on their way to a loop.
var batches = sync.Pool{New: func() any { return new(make([]item, 0, stepMost)) }}

// deliver gives the loop frames, which it steps in order. The last one has a hold on the
// burst.
func (l *link) deliver(batch *[]item, b *peer.Burst) {
	items := *batch
	if len(items) == 0 {
		return
	}
	b.Hold()
	items[len(items)-1].burst = b
	if l.c.loop.Deliver(context.Background(), items...) != nil {
		// The communicator has ended; it may still look at those that were taken.
		l.c.host.tasks.Go(func() {
			<-l.c.loop.Done()
			b.Release()
		})
	}
	clear(items)
	*batch = items[:0]
}

// carried counts packets on Control, and has the link use Data once they are many. The
// caller holds the lock.
func (l *link) carried(n int) {
	if l.passed += n; l.passed < divertAfter || !l.calls || l.held[peer.Data] || l.isShut || l.isOver || l.met == 0 {
		return
	}
	l.hold(peer.Data)
	l.miss(&l.streams[peer.Data])
	l.open(&l.streams[peer.Data])
}

// send lays a frame behind those that wait, which flush sends. Without a stream that the
// core knows of, the frame is dropped: the core repeats what matters when there is one.
// It is for the loop.
func (l *link) send(head, body []byte) {
	kind := wire.FrameKind(head[0])
	l.mu.Lock()
	s := &l.streams[peer.Control]
	if l.isDiverted && kind != wire.FrameMissing {
		s = &l.streams[peer.Data]
	}
	conn, to := s.conn, s.theirs
	if !s.isOpen {
		l.mu.Unlock()
		return
	}
	if s.class == peer.Control && kind == wire.FramePacket {
		l.carried(len(head) + len(body))
	}
	l.mu.Unlock()
	l.c.frames.out(frameBytes(len(head) + len(body)))
	l.scratch = append(append(l.scratch[:0], leading[:]...), head...)
	err := conn.Send(&peer.Send{Service: peer.Communicators, Stream: to, Head: l.scratch, Body: body})
	if errors.Is(err, peer.ErrFull) && kind != wire.FramePacket { // which is repeated
		conn.Break(err)
	}
	l.unsent[s.class] = conn
}

// flush sends what waits: as far as the kernel takes it at once. It is for the loop.
func (l *link) flush() {
	for i, conn := range l.unsent {
		if conn != nil {
			conn.Flush(peer.Communicators, nil)
			l.unsent[i] = nil
		}
	}
}
