package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// impaired is a Network whose datagrams can be lost, one way or both, while
// its connections work.
type impaired struct {
	Network
	deaf, mute atomic.Bool
	lost       atomic.Int64
}

func (u *impaired) Listen(ctx context.Context, address string) (net.Listener, Datagrams, error) {
	l, d, err := u.Network.Listen(ctx, address)
	return l, &lossy{d, u}, err
}

// lossy is the socket of an impaired network.
type lossy struct {
	Datagrams
	of *impaired
}

func (l *lossy) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := l.Datagrams.ReadFromUDPAddrPort(b)
		if err != nil || !l.of.deaf.Load() {
			return n, from, err
		}
		l.of.lost.Add(1)
	}
}

func (l *lossy) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if l.of.mute.Load() {
		l.of.lost.Add(1)
		return len(b), nil
	}
	return l.Datagrams.WriteToUDPAddrPort(b, to)
}

// TestLostDatagrams: a node whose datagrams do not come or go, and whose
// connections work, has nobody removed, and stays itself.
func TestLostDatagrams(t *testing.T) {
	for _, c := range []struct{ deaf, mute bool }{{true, true}, {true, false}, {false, true}} {
		t.Run(fmt.Sprintf("deaf=%v,mute=%v", c.deaf, c.mute), func(t *testing.T) {
			u := &impaired{Network: System()}
			nodes := zoneOf(t, 16, func(i int, c *Config) {
				if i == 7 {
					c.Network = u
				}
			})
			agree(t, nodes...)
			settle(t, nodes...)
			u.deaf.Store(c.deaf)
			u.mute.Store(c.mute)
			await(t, func() bool { return u.lost.Load() > 60 })
			for _, n := range nodes {
				if left := n.counts.leaves[Failed].Load(); left > 0 {
					t.Errorf("%s has removed %d that are there", n.Name(), left)
				}
			}
			agree(t, nodes...)
		})
	}
}
