package rail

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// solo is what a node without a host has for one: a test is all others.
type solo struct {
	node  *Node
	paths []*soloPath
	calls int
	away  time.Duration // for how long a peer may be; 0: the last rail to it is its end
}

func (s *solo) Name() string            { return "a" }
func (s *solo) place(path) place        { return place{rail: "one"} }
func (s *solo) call(string, rail.Class) { s.calls++ }

// patience implements connections.
func (s *solo) patience() time.Duration { return s.away }

// drive implements connections.
func (*solo) drive(*runner.Event, <-chan struct{}) {}

// wake implements connections.
func (*solo) wake(*runner.Event) {}

func (s *solo) leave() {}

// soloPath is a path to a test.
type soloPath struct {
	class  rail.Class
	heads  [][]byte // what was sent
	sent   []uint64 // and is not acknowledged
	broken error

	isWritten bool // what was sent
	peer      string
}

func (p *soloPath) Send(s *peer.Send) error {
	if p.broken != nil {
		return peer.ErrGone
	}
	p.heads = append(p.heads, append([]byte(nil), s.Head...))
	if s.Number != 0 {
		p.sent = append(p.sent, s.Number)
	}
	return nil
}
func (p *soloPath) Flush()                  {}
func (p *soloPath) Lends(peer.Service) bool { return !p.isWritten && len(p.sent) > 0 }
func (p *soloPath) Break(reason error)      { p.broken = reason }

// meet lets a peer connect in both classes, and agree upon a session.
func (s *solo) meet(t testing.TB, name string) {
	for class := range rail.Class(classes) {
		p := &soloPath{class: class, peer: name}
		s.paths = append(s.paths, p)
		s.node.pathUp(p, peer.Peer{Name: name, Incarnation: 1}, p, class)
		own, err := rail.ParseHello(p.heads[0])
		if err != nil {
			t.Fatal(err)
		}
		h := rail.Hello{Epoch: 7, Known: own.Epoch, Window: rail.Window{Bytes: 64 << 10, Messages: 16}}
		s.hand(p, h.AppendTo(nil))
	}
}

// hand lets a frame come. If it is refused, its connection ends, as that of a host does.
func (s *solo) hand(p *soloPath, b []byte) {
	if p.broken == nil {
		if err := s.node.received(p, []peer.Frame{{Bytes: b}}); err != nil {
			p.broken = err
		}
	}
}

// parts lets a frame come to its place, if it has one: n bytes, then something else happens, then the rest.
func (s *solo) parts(p *soloPath, b []byte, n int, between func()) {
	if len(b) <= rail.BeginSize {
		return
	}
	begin, at := b[:rail.BeginSize], rail.BeginSize
	part := func(n int) bool {
		return p.broken == nil && s.node.place(p, begin, len(b), at, func(into []byte) {
			if len(into) != len(b)-at {
				panic("the place is not that of the rest")
			}
			at += copy(into[:min(n, len(into))], b[at:])
		})
	}
	if !part(n) {
		return
	}
	between()
	frame := peer.Frame{Bytes: begin}
	if part(len(b)) {
		frame.Rest = len(b) - rail.BeginSize
	}
	if err := s.node.received(p, []peer.Frame{frame}); err != nil {
		p.broken = err
	}
}

// end ends a path that was broken.
func (s *solo) end(p *soloPath) {
	s.node.pathDown(p, p, p.broken)
	s.node.sent(p.sent, p.broken)
	p.sent = nil
	s.node.connDown(p, p.peer, p.class, p.broken)
}

// recorded are frames of each class, as nodes send them to each other in all flows.
var recorded = sync.OnceValue(func() (all [classes][][]byte) {
	var mu sync.Mutex
	t := &testing.T{}
	f := &fabric{t: t, pairs: 3, hosts: map[string]*fakeHost{}}
	n := 0
	f.fault = func(frame *fakeFrame) verdict {
		mu.Lock()
		defer mu.Unlock()
		if frame.from.name == "b" && len(frame.body) < 1<<10 && len(all[frame.class]) < 400 {
			all[frame.class] = append(all[frame.class], append(append([]byte(nil), frame.head...), frame.body...))
		}
		if n++; frame.pair != 0 && n%9 == 0 {
			return cutAfter
		}
		return pass
	}
	na, nb := f.add("a", Config{Eager: 64}), f.add("b", Config{Eager: 64})
	a, _ := na.Peer("b")
	b, _ := nb.Peer("a")
	source, _ := na.Register(Read, make([]byte, 1<<10))
	target, _ := na.Register(Write, make([]byte, 1<<10))
	var under []*Request
	for i := range 40 {
		size := []int{0, 8, 64, 65, 500, 1000}[i%6]
		under = append(under, b.StartSend(Tag(i%3), make([]byte, size)), a.StartRecv(Tag(i%3), make([]byte, size)), a.StartSend(1, make([]byte, size)), b.StartRecv(1, make([]byte, size)),
			b.StartGet(source.Key(), 0, make([]byte, size)), b.StartPut(target.Key(), 0, make([]byte, size)))
	}
	for _, r := range under {
		<-r.Done()
	}
	_, _ = na.Close(t.Context()), nb.Close(t.Context())
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.tasks.Wait()
	return all
})

// FuzzNode lets frames of a hostile peer come, recorded ones that are changed and made-up ones,
// among requests with it and with an honest peer. The node holds no more of it than it allows;
// what is asked of it ends when its connections do, and it cannot be called; the honest one is not affected.
func FuzzNode(f *testing.F) {
	all := recorded()
	for class, frames := range all {
		for i, b := range frames {
			op := []byte{byte(i % 4), byte(class), byte(i), byte(i >> 8), byte(len(b) / 2), byte(i)}
			f.Add(append(op, 4, 0, 8, 5, 1, 3, 6, 9, byte(class), byte(i)))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &solo{}
		cfg := Config{Eager: 64, Unexpected: 64 << 10, Announced: 16}
		s.node = newNode(s, cfg, slog.New(slog.DiscardHandler))
		s.meet(t, "hostile")
		s.meet(t, "honest")
		bad, honest := peerOf(t, s.node, "hostile"), peerOf(t, s.node, "honest")
		waits := honest.StartRecv(3, make([]byte, 8))
		m, err := s.node.Register(ReadWrite, make([]byte, 1<<10))
		if err != nil {
			t.Fatal(err)
		}
		var under []*Request
		next := func() byte {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return b
		}
		for len(in) > 0 && len(under) < 100 {
			switch op := next() % 11; op {
			case 0, 1, 2, 3: // a frame, with op bytes changed
				class := next() % classes
				b := append([]byte(nil), all[class][int(binary.LittleEndian.Uint16([]byte{next(), next()}))%len(all[class])]...)
				for range op {
					if at := int(next()); at < len(b) {
						b[at] = next()
					}
				}
				s.hand(s.paths[class], b)
			case 4:
				under = append(under, bad.StartRecv([]Tag{0, 1, AnyTag}[next()%3], make([]byte, int(next())*4)))
			case 5:
				under = append(under, bad.StartSend(Tag(next()%3), make([]byte, int(next())*4)))
			case 6:
				under = append(under, bad.StartGet(m.Key(), uint64(next()), make([]byte, int(next())*4)), bad.StartPut(m.Key(), uint64(next()), make([]byte, int(next())*4)))
			case 7:
				if len(under) > 0 {
					under[int(next())%len(under)].Cancel()
				}
			case 8: // what was sent is acknowledged
				p := s.paths[next()%classes]
				n := min(int(next()), len(p.sent))
				s.node.sent(p.sent[:n], nil)
				p.sent = p.sent[n:]
			case 9: // bytes of its own
				class := next() % classes
				n := min(int(next()), len(in))
				s.hand(s.paths[class], in[:n])
				in = in[n:]
			case 10: // a fragment that is read to its place, with a byte changed, in two parts
				frames := all[rail.Fragment]
				b := append([]byte(nil), frames[int(next())%len(frames)]...)
				if at := int(next()); at < len(b) {
					b[at] = next()
				}
				s.parts(s.paths[rail.Fragment], b, int(next()), func() {
					if len(under) > 0 {
						under[int(next())%len(under)].Cancel()
					}
				})
			}
			bad.mu.Lock()
			bytes, heads := bad.core.Held()
			bad.mu.Unlock()
			if bytes > cfg.Unexpected || heads > cfg.Announced {
				t.Fatalf("%d bytes in %d messages are held", bytes, heads)
			}
		}
		for _, p := range s.paths[2:] {
			if p.broken != nil {
				t.Fatalf("the honest peer's path has ended: %v", p.broken)
			}
		}
		if _, isDone, err := waits.Test(); isDone {
			t.Fatalf("what waits for the honest peer has ended: %v", err)
		}
		for _, p := range s.paths[:2] {
			if p.broken == nil {
				p.broken = errTest
			}
			s.end(p)
		}
		s.node.failed("hostile", rail.Message, errTest) // of a call, after a frame that has ended the session
		for i, r := range under {
			if _, isDone, _ := r.Test(); !isDone {
				t.Fatalf("request %d is not done", i)
			}
		}
		m.Release()
		if err := s.node.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range s.paths[2:] { // as a host does that the node has left
			p.broken = errTest
			s.end(p)
		}
		if _, isDone, err := waits.Test(); !isDone || !errors.Is(err, ErrClosed) {
			t.Fatalf("after the end: %v, %v", isDone, err)
		}
	})
}
