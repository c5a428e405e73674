package hostlib

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// fake is a host that says what a test has it say.
type fake struct {
	t    testing.TB
	host *peer.Host
	to   string

	mu     sync.Mutex
	conns  [2][]*peer.Conn // by class
	downs  int
	words  []word
	frames []string // of streams
}

// newFake makes one that is connected with h.
func newFake(t testing.TB, name string, h *Host, change ...func(*peer.Config)) *fake {
	t.Helper()
	f := &fake{t: t, to: h.peers.Name()}
	c := peer.Config{
		Name: name, Incarnation: 1, Listen: "127.0.0.1:0", Resolve: nowhere, DeadAfter: patience, GreetWithin: patience,
		Handlers: map[peer.Service]peer.Handler{peer.Communicators: f}, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	var err error
	if f.host, err = peer.Listen(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.host.Close() })
	for class := range f.conns {
		f.host.Hold(f.to, peer.Class(class), h.Addr())
		f.conn(peer.Class(class))
	}
	return f
}

// conn returns the connection of a class, once there is one.
func (f *fake) conn(class peer.Class) (c *peer.Conn) {
	f.t.Helper()
	until(within(f.t), f.t, "there is a connection", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := len(f.conns[class]); n > 0 {
			c = f.conns[class][n-1]
		}
		return c != nil
	})
	return c
}

// member returns it as the lists of members name it.
func (f *fake) member() Member { return Member{Host: f.host.Name(), Addr: f.host.Addr()} }

// bytes sends a frame of a stream.
func (f *fake) bytes(class peer.Class, number uint32, b []byte) {
	f.t.Helper()
	c := f.conn(class)
	if err := c.Send(&peer.Send{Service: peer.Communicators, Stream: number, Body: b}); err != nil {
		f.t.Error(err)
	}
	c.Flush(peer.Communicators, nil)
}

// frame sends a frame as a link does.
func (f *fake) frame(class peer.Class, number uint32, b []byte) {
	f.t.Helper()
	f.bytes(class, number, append(make([]byte, lead), b...))
}

func (f *fake) say(class peer.Class, w word) {
	f.t.Helper()
	f.bytes(class, 0, w.bytes())
}

// answer says a word, and returns the next that comes to one of the fake's streams.
func (f *fake) answer(class peer.Class, w word) word {
	f.t.Helper()
	f.mu.Lock()
	had := len(f.words)
	f.mu.Unlock()
	f.say(class, w)
	return f.next(had)
}

// next returns the word after so many.
func (f *fake) next(had int) (w word) {
	f.t.Helper()
	until(within(f.t), f.t, "a word comes", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.words) > had {
			w = f.words[had]
		}
		return w.kind != 0
	})
	return w
}

// heard returns the words of a kind.
func (f *fake) heard(k kind) (all []word) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.words {
		if w.kind == k {
			all = append(all, w)
		}
	}
	return all
}

// count returns how many words of a kind have come.
func (f *fake) count(k kind) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.words {
		if f.words[i].kind == k {
			n++
		}
	}
	return n
}

// hasFrame reports whether a frame has come that begins and contains so.
func (f *fake) hasFrame(kind wire.FrameKind, says string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.frames {
		if wire.FrameKind(b[0]) == kind && bytes.Contains([]byte(b), []byte(says)) {
			return true
		}
	}
	return false
}

// opening is what rank 1 of members says to rank 0.
func opening(name string, members []Member, number uint32) word {
	c := Config{}.filled()
	return word{kind: opens, from: number, own: 77, hello: hello{
		group: digestOf(name, members, c.ChunkBytes, c.Window, optionsOf(nil)), rank: 1, of: 0, name: name,
	}}
}

// link has the fake be rank 1 of a communicator with h, all of which have come, and
// returns the number of h's stream.
func (f *fake) link(name string, members []Member) uint32 {
	f.t.Helper()
	a := f.answer(peer.Control, opening(name, members, 5))
	if a.kind != accepts || a.to != 5 {
		f.t.Fatalf("answered by %+v: %s", a, a.rest)
	}
	f.say(peer.Control, word{kind: confirms, to: a.from})
	f.frame(peer.Control, a.from, new(wire.Missing).Append(nil)) // none beneath it is
	return a.from
}

func (f *fake) Up(c *peer.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[c.Class()] = append(f.conns[c.Class()], c)
}

func (f *fake) Down(c *peer.Conn, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.downs++
}

func (f *fake) Received(_ *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	defer b.Release()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range frames {
		if x.Stream != 0 {
			f.frames = append(f.frames, string(x.Bytes[lead:]))
			continue
		}
		w, err := readWord(bytes.Clone(x.Bytes))
		if err != nil {
			f.t.Error(err)
		}
		f.words = append(f.words, w)
	}
}

func (*fake) Failed(string, peer.Class, error) {}
func (*fake) Sent([]uint64, error)             {}
func (*fake) Restarted(string, uint64, uint64) {}
func (f *fake) downsAre(n int) bool            { f.mu.Lock(); defer f.mu.Unlock(); return f.downs == n }
func (f *fake) close(ctx context.Context)      { f.host.Shutdown(ctx); _ = f.host.Close() }

func nowhere(context.Context, string) (string, error) { return "", ErrArgument }
