package rail

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// TestCallWhileAConnectionEnds: the driver makes no connection while it has one that is about to
// end. The peer is called again when that has ended.
func TestCallWhileAConnectionEnds(t *testing.T) {
	s := &solo{}
	s.node = newNode(s, Config{}, slog.New(slog.DiscardHandler))
	s.meet(t, "b")
	s.node.over("b", 1, ErrRestarted)
	p := peerOf(t, s.node, "b")
	p.StartSend(1, []byte("x"))
	if s.calls != 1 {
		t.Fatalf("%d calls", s.calls)
	}
	s.end(s.paths[rail.Message])
	if s.calls != 2 {
		t.Errorf("%d calls after the end of the connection", s.calls)
	}
	if err := s.node.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLaterEpochOnAnAgreedConnection: a peer that begins a later session on a connection of
// the one before is in that session on it, and gets what is sent.
func TestLaterEpochOnAnAgreedConnection(t *testing.T) {
	s := &solo{}
	s.node = newNode(s, Config{}, slog.New(slog.DiscardHandler))
	s.meet(t, "b")
	p, kept := peerOf(t, s.node, "b"), s.paths[rail.Message]
	h := rail.Hello{Epoch: 8, Known: 1, Window: rail.Window{Bytes: 64 << 10, Messages: 16}}
	s.hand(kept, h.AppendTo(nil))
	if kept.broken != nil || s.paths[rail.Fragment].broken == nil {
		t.Fatalf("the paths have ended with %v and %v", kept.broken, s.paths[rail.Fragment].broken)
	}
	if n := p.pathsUp(); n[rail.Message] != 1 || n[rail.Fragment] != 0 {
		t.Errorf("%v paths are up", n)
	}
	before := len(kept.sent)
	r := p.StartSend(1, []byte("x"))
	if len(kept.sent) != before+1 {
		t.Fatalf("%d messages were sent", len(kept.sent)-before)
	}
	s.node.sent(kept.sent, nil)
	if _, err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.node.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHostileBeginnings: what a peer says before a session ends its connection, and no other's.
func TestHostileBeginnings(t *testing.T) {
	good := rail.Hello{Epoch: 7, Known: 1, Window: rail.Window{Bytes: 64 << 10, Messages: 16}}
	changed := func(change func(*rail.Hello)) []byte {
		h := good
		change(&h)
		return h.AppendTo(nil)
	}
	for what, frames := range map[string][][]byte{
		"nothing":                       {{}},
		"a fragment before the session": {{1, 0, 0, 0, 0, 0, 0, 0}},
		"a short hello":                 {good.AppendTo(nil)[:rail.HelloSize-1]},
		"another version":               {append([]byte{rail.KindHello, 9}, good.AppendTo(nil)[2:]...)},
		"epoch 0":                       {changed(func(h *rail.Hello) { h.Epoch = 0 })},
		"an epoch that is to come":      {changed(func(h *rail.Hello) { h.Known = 1 << 40 })},
		"an earlier epoch":              {changed(func(h *rail.Hello) { h.Known = 0 }), changed(func(h *rail.Hello) { h.Epoch = 6 })},
		"no kind of fragment":           {good.AppendTo(nil), {200, 0, 0, 0}},
		"a fragment cut short":          {good.AppendTo(nil), {1, 0, 0, 0, 0}},
	} {
		t.Run(what, func(t *testing.T) {
			s := &solo{}
			s.node = newNode(s, Config{}, slog.New(slog.DiscardHandler))
			bad := &soloPath{class: rail.Message}
			s.node.pathUp(bad, peer.Peer{Name: "bad", Incarnation: 1}, bad, rail.Message)
			s.meet(t, "honest")
			for i, b := range frames {
				if bad.broken != nil {
					t.Fatalf("frame %d is refused: %v", i-1, bad.broken)
				}
				s.hand(bad, b)
			}
			if bad.broken == nil {
				t.Error("it is taken")
			}
			for _, p := range s.paths {
				if p.broken != nil {
					t.Errorf("an honest peer's path has ended: %v", p.broken)
				}
			}
			if errors.Is(bad.broken, rail.ErrMalformed) != (peerOf(t, s.node, "bad").Counters().Malformed == 1) {
				t.Errorf("%v is counted as %+v", bad.broken, peerOf(t, s.node, "bad").Counters())
			}
			if err := s.node.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
