package hostlib

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/reduce"
)

// clogged is a connection of class Data through which nothing goes while it is so: the
// caller's greeting says which class it is.
type clogged struct {
	net.Conn
	wait   *atomic.Pointer[chan struct{}] // nil: it is not
	first  bool
	isData bool
	end    chan struct{}
	once   sync.Once
}

func (c *clogged) Write(b []byte) (int, error) {
	if c.first {
		c.first = false
		c.isData = bytes.HasPrefix(b, []byte("TRIB")) && b[5] == byte(peer.Data)
	}
	if wait := c.wait.Load(); wait != nil && c.isData {
		select {
		case <-*wait:
		case <-c.end:
			return 0, net.ErrClosed
		}
	}
	return c.Conn.Write(b)
}

func (c *clogged) Close() error {
	c.once.Do(func() { close(c.end) })
	return c.Conn.Close()
}

// TestVectorsHoldNobodyUp: while a vector waits for a network that takes nothing more of
// it, the same hosts form another group and run its small operations.
func TestVectorsHoldNobodyUp(t *testing.T) {
	var wait atomic.Pointer[chan struct{}]
	hosts, members := joinAll(t, hooks.Hooks{Link: func(c net.Conn) net.Conn {
		return &clogged{Conn: c, wait: &wait, first: true, end: make(chan struct{})}
	}}, []string{"h0", "h1", "h2"}, func(c *Config) { c.DeadAfter = patience })
	first := form(t, "first", hosts, members, OnTree())
	sum(t, first, 100_000) // which is on connections of its own from now on
	until(within(t), t, "vectors have connections", func() bool { return hosts[0].peers.Counters().Open == 4 })
	opened := make(chan struct{})
	wait.Store(&opened)
	requests, all := make([]*Request, 3), vectors(3, 100_000)
	for i, c := range first {
		requests[i] = StartAllreduce(c, reduce.Sum, all[i], all[i])
	}
	for k := range 3 {
		comms := form(t, fmt.Sprint("other ", k), hosts, members)
		sum(t, comms, 10)
		leave(t, comms)
	}
	for _, r := range requests {
		select {
		case <-r.Done():
			t.Error("the vector has passed")
		default:
		}
	}
	wait.Store(nil)
	close(opened)
	for i, r := range requests {
		if _, err := r.Wait(within(t)); err != nil {
			t.Error(err)
		}
		checkSum(t, 3, i, all[i])
	}
	leave(t, first)
}
