package membership

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

const (
	postedAtMost = 512 // items that wait for the loop
)

// itemKind is the kind of an item.
type itemKind uint8

const (
	connected    itemKind = iota // conn
	disconnected                 // conn, err
	absent                       // conn: its host is no node
	frameCame                    // conn, stream, raw; nil: of no valid size
	unsent                       // number of the frame, err
	linkFailed                   // link, err
	named                        // link of the hierarchy, to whom: name, or err
	datagramCame                 // from, raw
	departs                      // exit
	rechecks
)

// item is what goroutines give the loop.
type item struct {
	kind   itemKind
	exit   uint8
	stream uint32
	number uint64
	conn   *peer.Conn
	link   *link
	name   string
	from   netip.AddrPort
	raw    *[]byte // returned to its pool after the step
	err    error
}

type nodeLoop = runner.Loop[item, member.Output]

// post gives the loop an item, and reports whether it takes any. It waits while
// the queue is full: sockets then do, too.
func (n *Node) post(it item) bool {
	return n.loop.Post(context.Background(), it) == nil
}

// receive reads datagrams until the socket is closed.
func (n *Node) receive() {
	for {
		b := n.buffers.get(gossip.MaxDatagram + 1)
		size, from, err := n.socket.ReadFromUDPAddrPort(*b)
		switch {
		case n.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			n.buffers.put(b)
			return
		case err != nil:
			// Nothing comes from a socket that is not connected but its own failure.
			n.buffers.put(b)
			n.failing("receive datagrams", err)
			continue
		}
		n.counts.datagramsIn.Add(1)
		n.counts.datagramBytesIn.Add(uint64(size))
		if size == 0 || size > gossip.MaxDatagram {
			n.buffers.put(b)
			n.counts.malformed.Add(1)
			continue
		}
		*b = (*b)[:size]
		if !n.post(item{kind: datagramCame, from: from, raw: b}) {
			n.buffers.put(b)
			return
		}
	}
}

// buffers are a pool of the memory of packets.
type buffers struct{ pool sync.Pool }

func (p *buffers) get(size int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= size {
		*b = (*b)[:size]
		return b
	}
	b := make([]byte, size, max(size, gossip.MaxDatagram+1))
	return &b
}

func (p *buffers) put(b *[]byte) { p.pool.Put(b) }
