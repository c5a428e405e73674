package soft

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/sealed"
	"github.com/tributary-fabric/tributary/internal/driver/speed"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// measureFor is about how long a measurement takes, and patience how long packets may
// be under way within the machine.
const (
	measureFor = 40 * time.Millisecond
	patience   = 5 * time.Second
)

// errLost says that packets within the machine were lost.
var errLost = errors.New("soft: packets of the measurement were lost")

// Measure measures how fast trees here reduce, over sockets like theirs: what the
// switch does counts, from the first packet that it reads to the last result that it
// has sent, and not what its children do.
func (p *Plane) Measure() (speed.Result, error) {
	payload := max(min(speed.Payload, p.cfg.Chunk), switchreduce.MinChunk)
	large, err := p.newBench(speed.NewStream(payload))
	if err != nil {
		return speed.Result{}, fmt.Errorf("measure speed: %w", err)
	}
	defer large.close()
	small, err := p.newBench(speed.Small())
	if err != nil {
		return speed.Result{}, fmt.Errorf("measure speed: %w", err)
	}
	defer small.close()
	r, err := speed.Measure(measureFor, speed.Children*speed.Window, payload, small.round, large.round)
	if err != nil {
		return r, fmt.Errorf("measure speed: %w", err)
	}
	return r, nil
}

// bench is a tree without a loop, and its children.
type bench struct {
	tree     *tree
	source   *runner.Packets[switchreduce.Input]
	stream   *speed.Stream
	children []transport.Conn
	read     []transport.Packet
	batch    []switchreduce.Input
	out      switchreduce.Output
}

// newBench opens its sockets.
func (p *Plane) newBench(s *speed.Stream) (*bench, error) {
	at := p.cfg.Data
	if at.IsUnspecified() && at.Is4() {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	} else if at.IsUnspecified() {
		at = netip.IPv6Loopback()
	}
	listen := func() (*transport.UDP, error) {
		return transport.ListenUDP(netip.AddrPortFrom(at, 0), transport.Config{
			ReceiveBuffer: p.cfg.ReceiveBuffer, Without: p.cfg.Without, Batches: true,
		})
	}
	udp, err := listen()
	if err != nil {
		return nil, err
	}
	b := &bench{stream: s, read: make([]transport.Packet, batch), out: switchreduce.Output{TakesBatches: true}}
	b.tree = &tree{plane: p, conn: sealed.Over(udp), udp: udp, core: switchreduce.New()}
	b.source = b.tree.source()
	var from [speed.Children]netip.AddrPort
	for i := range from {
		child, err := listen()
		if err != nil {
			b.close()
			return nil, err
		}
		b.children = append(b.children, child)
		from[i] = child.LocalAddr()
	}
	c := s.Config(from)
	if err := b.tree.protect(c); err != nil {
		b.close()
		return nil, err
	}
	b.tree.core.Step(0, []switchreduce.Input{{Kind: switchreduce.Install, Config: c}}, &b.out)
	return b, nil
}

func (b *bench) close() {
	for _, c := range b.children {
		_ = c.Close() // nothing is to be had from it any more
	}
	_ = b.tree.conn.Close()
}

// round takes a window of chunks through the tree.
func (b *bench) round() (time.Duration, error) {
	to := b.tree.conn.LocalAddr()
	for i, packets := range b.stream.Next() {
		if err := b.children[i].WriteBatch([]transport.Message{{To: to, Body: packets, Size: b.stream.Size()}}); err != nil {
			return 0, err
		}
	}
	want := b.tree.core.Counters().Results + speed.Window
	until := b.tree.plane.cfg.Clock.Now().Add(patience)
	begun := time.Now()
	for b.tree.core.Counters().Results < want {
		in, err := b.source.Receive(b.tree.plane.cfg.Clock, until, b.batch[:0])
		if err != nil {
			return 0, err
		}
		if len(in) == 0 {
			return 0, errLost
		}
		now := b.tree.plane.cfg.Clock.Now()
		b.tree.core.Step(now, in, &b.out)
		b.tree.send(&b.out)
		b.out.TakesBatches, b.batch = true, in
	}
	took := time.Since(begun)
	return took, b.drain(until)
}

// drain has every child read its results.
func (b *bench) drain(until core.Time) error {
	for _, c := range b.children {
		for left := speed.Window; left > 0; {
			n, err := c.ReadBatch(b.read, b.tree.plane.cfg.Clock.At(until))
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				return errLost
			case err != nil:
				return err
			}
			for _, p := range b.read[:n] {
				left--
				if p.Size > 0 {
					left -= (len(p.Data)+p.Size-1)/p.Size - 1
				}
			}
		}
	}
	return nil
}
