package rail

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// loadOf returns the frame by which a peer begins to read memory.
func loadOf(t *testing.T, m *Memory, size int) []byte {
	c, err := rail.New(m.node.core("x"))
	if err != nil {
		t.Fatal(err)
	}
	var out rail.Output
	c.PathUp(0, rail.Message, 1, 0, 0, &out)
	c.Get(&rail.RecvRequest{Data: make([]byte, size), Handle: m.handle}, 0, &out)
	return out.Frames[0].Head
}

// lateLeave is connections on which something comes while the node leaves.
type lateLeave struct {
	connections
	before func()
}

func (l *lateLeave) leave() {
	l.before()
	l.connections.leave()
}

// TestReadWhileClosing: a read that begins between the end of all requests and the node's
// leaving keeps no memory.
func TestReadWhileClosing(t *testing.T) {
	s := &solo{}
	s.node = newNode(s, Config{}, slog.New(slog.DiscardHandler))
	s.meet(t, "b")
	m, err := s.node.Register(Read, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	load := loadOf(t, m, 1<<20)
	s.node.host = &lateLeave{s, func() { s.hand(s.paths[rail.Message], load) }}
	if err := s.node.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if s.node.memory.release(m.handle) != nil {
		t.Error("somebody reads the memory")
	}
}

// TestRevokeWhileReleaseWaits: a Revoke cuts off a reader that a Release waits for.
func TestRevokeWhileReleaseWaits(t *testing.T) {
	s := &solo{}
	s.node = newNode(s, Config{}, slog.New(slog.DiscardHandler))
	s.meet(t, "b")
	p, data := peerOf(t, s.node, "b"), s.paths[rail.Fragment]
	m, err := s.node.Register(Read, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	s.hand(s.paths[rail.Message], loadOf(t, m, 1<<20))
	if len(data.sent) == 0 {
		t.Fatal("nothing is read")
	}
	var all sync.WaitGroup
	all.Go(m.Release)
	await(t, "the release", func() bool {
		s.node.memory.mu.Lock()
		defer s.node.memory.mu.Unlock()
		return len(s.node.memory.freed) == 1
	})
	all.Go(m.Revoke)
	await(t, "the end of the path that the reader is on", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return data.broken != nil
	})
	s.end(data)
	all.Wait()
	m.Revoke()
	m.Release()
	if err := s.node.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRevokeOfWhatIsWritten: memory that no connection reads any more is its owner's at once,
// though it is not acknowledged, and no path ends for that.
func TestRevokeOfWhatIsWritten(t *testing.T) {
	s := &solo{}
	s.node = newNode(s, Config{}, slog.New(slog.DiscardHandler))
	s.meet(t, "b")
	data := s.paths[rail.Fragment]
	data.isWritten = true
	m, err := s.node.Register(Read, make([]byte, 1<<10))
	if err != nil {
		t.Fatal(err)
	}
	s.hand(s.paths[rail.Message], loadOf(t, m, 1<<10))
	if len(data.sent) == 0 {
		t.Fatal("nothing is read")
	}
	m.Revoke()
	if data.broken != nil {
		t.Errorf("the path has ended: %v", data.broken)
	}
	s.end(data)
	if err := s.node.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
