package speed

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/topology"
)

// hostBudget is about what a process spends to learn its host's speed.
const hostBudget = 2 * time.Millisecond

// patience is how long it may take at most, where little is left for others.
const patience = time.Second

// Host returns how fast this host reduces as a node of a host tree: what arrives over
// connections, without encryption. It is measured once in a process. Of packets nothing
// is said: what a message costs a host, the model of plans has.
var Host = sync.OnceValue(func() topology.Speed {
	bytes, err := measureHost(hostBudget)
	if err != nil {
		return topology.Speed{} // then the model's counts
	}
	return topology.Speed{Bytes: bytes}
})

func measureHost(budget time.Duration) (bytes int64, err error) {
	n, err := newNode()
	if err != nil {
		return 0, fmt.Errorf("measure speed: %w", err)
	}
	const attempts = 3 // of which the best counts
	for range attempts {
		took, _, failed := quartile(budget/attempts, n.round)
		if err = errors.Join(err, failed); failed == nil {
			bytes = max(bytes, rate(Children*Window*Payload, took))
		}
	}
	if err := errors.Join(err, n.close()); err != nil {
		return 0, fmt.Errorf("measure speed: %w", err)
	}
	return bytes, nil
}

// node is a node of a host tree, and its children's ends of the connections.
type node struct {
	stream   *Stream
	core     *switchreduce.Core
	out      switchreduce.Output
	from     [Children]netip.AddrPort
	own      []net.Conn
	children []net.Conn
	arrived  [Children][]byte
	now      core.Time
}

func newNode() (*node, error) {
	n := &node{stream: NewStream(Payload), core: switchreduce.New(), out: switchreduce.Output{TakesBatches: true}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	for i := range n.from {
		n.from[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(i+1)) // names alone
		n.arrived[i] = make([]byte, Window*n.stream.Size())
		child, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, errors.Join(err, n.close(), l.Close())
		}
		n.children = append(n.children, child)
		own, err := l.Accept()
		if err != nil {
			return nil, errors.Join(err, n.close(), l.Close())
		}
		n.own = append(n.own, own)
	}
	for _, c := range append(n.own, n.children...) {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			return nil, errors.Join(err, n.close(), l.Close())
		}
	}
	n.core.Step(0, []switchreduce.Input{{Kind: switchreduce.Install, Config: n.stream.Config(n.from)}}, &n.out)
	return n, l.Close()
}

func (n *node) close() error {
	var errs []error
	for _, c := range append(n.own, n.children...) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// round takes a window of chunks to the node, and their results back. Where that does
// not fit the connections' buffers, one goroutine does not do, and patience ends it.
func (n *node) round() (time.Duration, error) {
	for i, packets := range n.stream.Next() {
		if _, err := n.children[i].Write(packets); err != nil {
			return 0, err
		}
	}
	begun := time.Now()
	var in [Children]switchreduce.Input
	for i, c := range n.own {
		if _, err := io.ReadFull(c, n.arrived[i]); err != nil {
			return 0, err
		}
		in[i] = switchreduce.Input{Kind: switchreduce.Packet, From: n.from[i], Packet: n.arrived[i], Size: n.stream.Size()}
	}
	n.out.Reset()
	n.now++
	n.core.Step(n.now, in[:], &n.out)
	for i := range n.out.Batches {
		b := &n.out.Batches[i]
		b.Address()
		if _, err := n.own[b.To.Port()-1].Write(b.Packets); err != nil {
			return 0, err
		}
	}
	took := time.Since(begun)
	for i, c := range n.children {
		if _, err := io.ReadFull(c, n.arrived[i]); err != nil {
			return 0, err
		}
	}
	return took, nil
}
