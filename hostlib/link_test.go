package hostlib

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/reduce"
)

// fragile is a connection that breaks after so many bytes have been read.
type fragile struct {
	net.Conn
	left   int
	broken *atomic.Int64
}

func (f *fragile) Read(b []byte) (int, error) {
	if f.left <= 0 {
		f.broken.Add(1)
		f.Close()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := f.Conn.Read(b[:min(len(b), f.left)])
	f.left -= n
	return n, err
}

// Connections that break again and again in mid-operation lose packets of the
// tree of hosts; the result is right all the same.
func TestBrokenConnections(t *testing.T) {
	const n, length = 8, 100_000
	var broken atomic.Int64
	ctx := hooks.With(t.Context(), hooks.Hooks{
		Link: func(c net.Conn) net.Conn { return &fragile{Conn: c, left: 150_000, broken: &broken} },
	})
	hosts, members := make([]*Host, n), make([]Member, n)
	for i := range hosts {
		h, err := Join(ctx, Config{Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close(context.Background())
		hosts[i], members[i] = h, h.Member()
	}
	var wg sync.WaitGroup
	for i := range hosts {
		wg.Go(func() {
			c, err := hosts[i].Communicator(t.Context(), "test", members, OnTree())
			if err != nil {
				t.Error(err)
				return
			}
			v := make([]int64, length)
			for j := range v {
				v[j] = int64(i + j)
			}
			if _, err := Allreduce(t.Context(), c, reduce.Sum, v, v); err != nil {
				t.Error(err)
				return
			}
			for j := range v {
				if want := int64(n*j + n*(n-1)/2); v[j] != want {
					t.Errorf("rank %d: element %d is %d, want %d", i, j, v[j], want)
					return
				}
			}
			if err := c.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if broken.Load() < 2*(n-1) {
		t.Errorf("only %d connections broke", broken.Load())
	}
}

// Connections that break again and again end no communicator that works by messages: the next one goes
// on with what was under way.
func TestBrokenConnectionsOfMessages(t *testing.T) {
	var broken atomic.Int64
	hosts, members := joinAll(t, hooks.Hooks{
		Link: func(c net.Conn) net.Conn { return &fragile{Conn: c, left: 1_000_000, broken: &broken} }, // more than is on its way at a time
	}, []string{"h0", "h1", "h2", "h3"}, patient)
	for _, a := range []Algorithm{Ring, RecursiveDoubling} {
		comms := form(t, fmt.Sprint(a), hosts, members, OnHosts(a))
		for range 4 {
			for _, n := range []int{10, 5_000, 20_000, 20_000, 5_000, 20_000, 10} {
				sum(t, comms, n)
			}
		}
		leave(t, comms)
	}
	if broken.Load() < 8 {
		t.Errorf("only %d connections broke", broken.Load())
	}
}

// stuck is a connection whose writes hang, once that is so, until it is closed.
type stuck struct {
	net.Conn
	is     *atomic.Bool
	closed context.Context
	close  context.CancelFunc
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.is.Load() {
		<-s.closed.Done()
		return 0, net.ErrClosed
	}
	return s.Conn.Write(b)
}

func (s *stuck) Close() error {
	s.close()
	return s.Conn.Close()
}

// deaf is a connection that reads nothing more, once that is so, until it is closed.
type deaf struct {
	net.Conn
	is     *atomic.Bool
	closed context.Context
	close  context.CancelFunc
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.is.Load() {
		<-d.closed.Done()
		return 0, net.ErrClosed
	}
	return n, err
}

func (d *deaf) Close() error {
	d.close()
	return d.Conn.Close()
}

// TestMemberStopsReading: a member that reads nothing more in the middle of an operation
// counts as dead after DeadAfter, and every other member's error names it.
func TestMemberStopsReading(t *testing.T) {
	const n, silent = 4, 1 // rank 3 is below rank 1, rank 2 is not
	var is atomic.Bool
	hosts, members := make([]*Host, n), make([]Member, n)
	for i := range hosts {
		with, deadAfter := hooks.Hooks{}, 300*time.Millisecond
		if i == silent {
			deadAfter = patience
			with.Link = func(c net.Conn) net.Conn {
				closed, end := context.WithCancel(context.Background())
				return &deaf{c, &is, closed, end}
			}
		}
		hosts[i] = joinHooked(t, with, fmt.Sprint("h", i), func(c *Config) { c.DeadAfter = deadAfter })
		members[i] = hosts[i].Member()
	}
	comms := form(t, "test", hosts, members)
	sum(t, comms, 10)
	is.Store(true)
	ctx, cancel := context.WithCancel(within(t))
	var reported atomic.Int64
	each(n, func(rank int) {
		v := make([]int64, 1<<20)
		if rank == silent {
			if _, err := Allreduce(ctx, comms[rank], reduce.Sum, v, v); err == nil {
				t.Error("the member that reads nothing has a result")
			}
			return
		}
		_, err := Allreduce(ctx, comms[rank], reduce.Sum, v, v)
		wantMember(t, err, silent, "")
		if reported.Add(1) == n-1 {
			cancel()
		}
	})
}

// TestCloseIsBounded: a neighbour that cannot be notified holds Close up until its
// context ends, and no longer.
func TestCloseIsBounded(t *testing.T) {
	var is atomic.Bool
	hosts, members := joinAll(t, hooks.Hooks{Link: func(c net.Conn) net.Conn {
		closed, end := context.WithCancel(context.Background())
		return &stuck{c, &is, closed, end}
	}}, []string{"h0", "h1"})
	form(t, "test", hosts, members)
	is.Store(true)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := hosts[0].Close(ended); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "connections were cut off") {
		t.Error(err)
	}
}
