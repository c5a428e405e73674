package membership

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wirehierarchy "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// timed is a connection that keeps the deadline that it was given last.
type timed struct {
	net.Conn
	mu     sync.Mutex
	at     time.Time
	closed bool
}

func (c *timed) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
	return nil
}

func (c *timed) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *timed) state() (deadline, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.at.IsZero(), c.closed
}

// pipe returns one end of a connection of which the other end says nothing.
func pipe(t *testing.T) *timed {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	return &timed{Conn: near}
}

// delegated starts a node that may be a delegate. Nobody is at its supervisor's address.
func delegated(t *testing.T) *Node {
	return join(t, Config{Name: "a", Supervisors: []string{"127.0.0.1:1"}})
}

// packet returns a frame without its length and seal.
func packet(kind gossip.Type, body []byte) []byte {
	return (&gossip.Packet{Type: kind, Body: body}).Append(nil)
}

// TestFirstFrame: a connection of the hierarchy that was dialled is given up when
// the other end says nothing, and when what it says is no message of the
// hierarchy.
func TestFirstFrame(t *testing.T) {
	n := delegated(t)
	for name, test := range map[string]struct {
		frame  []byte
		valid  bool
		closed bool
	}{
		"nothing":   {},
		"a beat":    {frame: packet(gossip.Hierarchy, (&wirehierarchy.Beat{}).Append(nil)), valid: true},
		"attribute": {frame: packet(gossip.Attributes, (&wirehierarchy.Beat{}).Append(nil)), closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			conn := pipe(t)
			err := n.ask(within(t), func(s *stepper) {
				const link hierarchy.Link = 1 << 20
				s.tier.dialled(link, conn)
				c := s.tier.links[link]
				theirs := gossip.MakePreamble(randomBytes())
				s.preambled(c, theirs[:])
				if test.frame != nil {
					s.frame(c, test.frame)
				}
				deadline, closed := conn.state()
				if deadline == test.valid || closed != test.closed || (s.tier.links[link] == c) == test.closed {
					t.Errorf("deadline %v, closed %v", deadline, closed)
				}
				if !closed {
					s.failed(c)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestConnectionsAreBounded: connections of the hierarchy have a bound of their
// own, beside that of the zone's.
func TestConnectionsAreBounded(t *testing.T) {
	n := delegated(t)
	frame := packet(gossip.Hierarchy, (&wirehierarchy.Beat{}).Append(nil))
	call := func(s *stepper) (conn *timed, adopted bool) {
		conn = pipe(t)
		s.called(conn)
		c := s.streams[s.next]
		theirs := gossip.MakePreamble(randomBytes())
		s.preambled(c, theirs[:])
		s.frame(c, append([]byte(nil), frame...))
		if adopted = s.has(c); adopted {
			s.failed(c)
		}
		return conn, adopted
	}
	err := n.ask(within(t), func(s *stepper) {
		if _, adopted := call(s); !adopted {
			t.Error("there is room, and none is adopted")
		}
		for i := range maxLinks {
			s.tier.links[hierarchy.Link(1<<20+i)] = nil
		}
		before := n.counts.turnedAway.Load()
		conn, adopted := call(s)
		if _, closed := conn.state(); adopted || !closed || n.counts.turnedAway.Load() != before+1 {
			t.Errorf("adopted %v, closed %v, %d turned away", adopted, closed, n.counts.turnedAway.Load()-before)
		}
		clear(s.tier.links)
		for i := range maxStreams {
			s.streams[member.Link(1<<20+i)] = nil
		}
		conn = pipe(t)
		s.called(conn)
		if _, closed := conn.state(); !closed {
			t.Errorf("%d streams, and one more", len(s.streams))
		}
		clear(s.streams)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStrangersMakeRoom: who connects and says nothing does not keep others out,
// of the zone or of the hierarchy.
func TestStrangersMakeRoom(t *testing.T) {
	n := delegated(t)
	beat := packet(gossip.Hierarchy, (&wirehierarchy.Beat{}).Append(nil))
	nack := (&gossip.Packet{Type: gossip.Nack, Nonce: 1}).Append(nil)
	err := n.ask(within(t), func(s *stepper) {
		var silent []*timed
		call := func() *stream {
			silent = append(silent, pipe(t))
			s.called(silent[len(silent)-1])
			return s.streams[s.next]
		}
		for range maxStrangers {
			call()
		}
		for i, frame := range [][]byte{beat, nack} {
			c := call()
			theirs := gossip.MakePreamble(randomBytes())
			s.preambled(c, theirs[:])
			s.frame(c, append([]byte(nil), frame...))
			if !s.has(c) || c.tier != (i == 0) {
				t.Errorf("frame %d: who says something valid is not heard", i)
			}
			s.failed(c)
		}
		if _, closed := silent[0].state(); !closed {
			t.Error("who was silent for longest is still there")
		}
		if _, closed := silent[1].state(); closed {
			t.Error("more had to go than have come")
		}
		for len(s.strangers) > 0 {
			s.failed(s.strangers[0])
		}
		if len(s.streams)+len(s.tier.links) > 0 || n.counts.turnedAway.Load() != 1 {
			t.Errorf("%d streams and %d links are left, %d turned away", len(s.streams), len(s.tier.links), n.counts.turnedAway.Load())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLeaveInTime: Leave ends with its context also where the loop takes nothing.
func TestLeaveInTime(t *testing.T) {
	n := join(t, Config{Name: "a"})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	release, blocked := make(chan struct{}), make(chan struct{})
	var asks sync.WaitGroup
	defer asks.Wait()
	asks.Go(func() {
		_ = n.ask(t.Context(), func(*stepper) {
			close(blocked)
			<-release
		})
	})
	<-blocked
	for n.loop.Post(canceled, item{kind: ended, stream: &stream{}}) == nil {
	}
	left := make(chan error, 1)
	asks.Go(func() { left <- n.Leave(canceled, 0) })
	select {
	case <-n.over:
	case <-within(t).Done():
		t.Error("it waits for a loop that takes nothing")
	}
	close(release)
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
