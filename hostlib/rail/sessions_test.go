package rail

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// small are the least bounds of what no receive awaits.
var small = Config{Unexpected: 64 << 10, Announced: 16}

// alone returns a node that a test plays the peers of.
func alone(t *testing.T, c Config) *solo {
	s := &solo{}
	s.node = newNode(s, c, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := s.node.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// matchOf returns the first message of a session.
func matchOf(t *testing.T, size int) []byte {
	c, err := rail.New(rail.Config{Eager: 60 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var out rail.Output
	c.PathUp(0, rail.Message, 1, 0, 0, &out)
	c.Send(&rail.SendRequest{Tag: 9, Data: make([]byte, size)}, 0, &out)
	return append(append([]byte(nil), out.Frames[0].Head...), out.Frames[0].Body...)
}

// helloOf returns what a peer says of its session, and of that of the node.
func helloOf(epoch, known uint64) []byte {
	h := rail.Hello{Epoch: epoch, Known: known, Window: rail.Window{Bytes: 64 << 10, Messages: 16}}
	return h.AppendTo(nil)
}

// TestSessionsFillNoMemory: a peer that begins session after session, each with messages that no
// receive awaits, is held to the bound of one.
func TestSessionsFillNoMemory(t *testing.T) {
	s := alone(t, small)
	s.meet(t, "b")
	p, on := peerOf(t, s.node, "b"), s.paths[rail.Message]
	own := p.epochs.Hello().Epoch
	for session := range uint64(100) {
		s.hand(on, helloOf(8+session, own))
		s.hand(on, matchOf(t, 60<<10))
	}
	if bytes, heads := p.core.Held(); bytes > 2*small.Unexpected {
		t.Errorf("%d bytes in %d messages are held", bytes, heads)
	}
}

// TestNothingBeforeHello: a node whose memory is full does not take part in a session that its
// peer does not know of.
func TestNothingBeforeHello(t *testing.T) {
	s := alone(t, small)
	s.meet(t, "b")
	p, on := peerOf(t, s.node, "b"), s.paths[rail.Message]
	s.hand(on, matchOf(t, 60<<10))
	own := p.epochs.Hello().Epoch
	for e := range uint64(2) {
		on = &soloPath{class: rail.Message, peer: "b"}
		s.node.pathUp(on, peer.Peer{Name: "b", Incarnation: 1}, on, rail.Message)
		s.hand(on, helloOf(8+e, own))
		if e == 0 {
			s.hand(on, matchOf(t, 60<<10))
		}
	}
	p.StartSend(1, []byte("x"))
	var said rail.Hello
	for _, b := range on.heads {
		if b[0] == rail.KindHello {
			said, _ = rail.ParseHello(b)
		} else if said.Known != 9 {
			t.Fatalf("a message is sent in session 9, and the last hello was %+v", said)
		}
	}
}

// TestRevokeOfAStore: Revoke waits for no peer that has begun to write and does not go on.
func TestRevokeOfAStore(t *testing.T) {
	s := alone(t, Config{})
	s.meet(t, "b")
	m, err := s.node.Register(ReadWrite, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	c, err := rail.New(s.node.core("x"))
	if err != nil {
		t.Fatal(err)
	}
	var out rail.Output
	c.PathUp(0, rail.Message, 1, 0, 0, &out)
	c.Put(&rail.SendRequest{Data: make([]byte, 100), Handle: m.handle}, 0, &out)
	s.hand(s.paths[rail.Message], out.Frames[0].Head)
	if s.node.memory.memory.Release(m.handle) {
		t.Fatal("nobody writes")
	}
	m.Revoke()
}

// TestNinthPath: a path for which there is no number replaces none, and takes none away.
func TestNinthPath(t *testing.T) {
	s := alone(t, Config{})
	key := &soloPath{}
	var paths []*soloPath
	for range rail.MaxRails + 1 {
		p := &soloPath{class: rail.Message, peer: "b"}
		paths = append(paths, p)
		s.node.pathUp(key, peer.Peer{Name: "b", Incarnation: 1}, p, rail.Message)
	}
	own, err := rail.ParseHello(paths[0].heads[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.node.received(key, []peer.Frame{{Bytes: helloOf(7, own.Epoch)}}); err != nil {
		t.Fatal(err)
	}
	last := paths[rail.MaxRails]
	if last.broken == nil {
		t.Error("the path stays")
	}
	s.node.pathDown(key, last, last.broken)
	if n := peerOf(t, s.node, "b").pathsUp(); n[rail.Message] != rail.MaxRails {
		t.Errorf("%v paths are up", n)
	}
}

// TestRecvAfterLoss: a receive that begins after the loss of the peer calls it, and learns if
// it cannot be reached.
func TestRecvAfterLoss(t *testing.T) {
	s := alone(t, Config{})
	s.meet(t, "b")
	for _, p := range s.paths {
		p.broken = errTest
		s.end(p)
	}
	r := peerOf(t, s.node, "b").StartRecv(1, make([]byte, 1))
	if s.calls == 0 {
		t.Error("the receive does not call the peer")
	}
	s.node.failed("b", rail.Message, errTest)
	if _, isDone, err := r.Test(); !isDone || err == nil {
		t.Errorf("it is done: %v, %v", isDone, err)
	}
}

// TestCallAfterUnknownConnection: the end of a connection that was there before the node lets
// a request call the peer.
func TestCallAfterUnknownConnection(t *testing.T) {
	s := alone(t, Config{})
	peerOf(t, s.node, "b").StartSend(1, []byte("x"))
	if s.calls != 1 {
		t.Fatalf("%d calls", s.calls)
	}
	s.node.connDown(new(int), "b", rail.Message, errTest) // the call came to nothing
	if s.calls != 2 {
		t.Errorf("%d calls after the end of the connection", s.calls)
	}
}

// TestEndedContext: nothing begins with a context that has ended.
func TestEndedContext(t *testing.T) {
	s := alone(t, Config{})
	p := peerOf(t, s.node, "b")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, recv := p.Recv(over, 1, nil)
	for what, err := range map[string]error{
		"Send": p.Send(over, 1, nil), "Recv": recv, "Get": p.Get(over, Key{}, 0, nil), "Put": p.Put(over, Key{}, 0, nil),
	} {
		if !errors.Is(err, ErrCanceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s.calls != 0 || p.Counters().Requests != 0 {
		t.Errorf("%d calls, %d requests", s.calls, p.Counters().Requests)
	}
}
