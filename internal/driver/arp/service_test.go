package arp

import (
	"log/slog"
	"net"
	"sync"
	"testing"
)

// wire is a socket whose other end is the test.
type wire struct {
	in, out chan sending
	once    sync.Once
	gone    chan struct{}
}

func newWire() *wire {
	return &wire{in: make(chan sending), out: make(chan sending, 64), gone: make(chan struct{})}
}

func (w *wire) receive(b []byte) (size, index int, err error) {
	select {
	case s := <-w.in:
		return copy(b, s.frame), s.index, nil
	case <-w.gone:
		return 0, 0, net.ErrClosed
	}
}

func (w *wire) send(index int, frame []byte) error {
	select {
	case w.out <- sending{index, frame}:
	case <-w.gone:
	}
	return nil
}

func (w *wire) close() { w.once.Do(func() { close(w.gone) }) }

// TestService asks for a neighbour as soon as somebody waits for it, reports what it
// answers, and answers questions.
func TestService(t *testing.T) {
	w := newWire()
	changed := make(chan struct{}, 8)
	s := startOn(t, w, func() { changed <- struct{}{} })
	s.Set([]Port{own}, []Neighbour{host})
	if m, ok := parse((<-w.out).frame); !ok || m.target != host.Addr {
		t.Fatalf("asks for %+v", m)
	}
	if _, known := s.MAC(host); known {
		t.Error("it is known before it answers")
	}
	mac := MAC{2, 0, 0, 0, 0, 7}
	w.in <- sending{own.Index, from(host, mac, reply, own.Addr)}
	<-changed
	if got, known := s.MAC(host); !known || got != mac {
		t.Errorf("it is at %v, %v", got, known)
	}
	w.in <- sending{own.Index, from(host, mac, request, own.Addr)}
	for {
		if m, _ := parse((<-w.out).frame); m.operation == reply && m.target == host.Addr {
			return
		}
	}
}

func startOn(t *testing.T, w *wire, changed func()) *Service {
	t.Helper()
	s := startService(slog.New(slog.DiscardHandler), changed, w)
	t.Cleanup(s.Close)
	return s
}
