package peer

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// pair is two hosts, of which one answers what comes on Control and Data by as much.
func pair(b *testing.B, isSecure bool, rails int) (a *Host, back *echo) {
	w := newTown()
	var all map[string]*pki.Source
	if isSecure {
		all = sources(b, "a", "b")
	}
	back = &echo{arrived: make(chan int, 1024)}
	trust := func(name string, at byte, handler Handler) func(*Config) {
		return func(c *Config) {
			if rails > 1 {
				withRails(at, rails)(c)
			}
			c.Handlers = map[Service]Handler{testService: handler}
			if isSecure {
				c.TLS = all[name]
			}
		}
	}
	a, _ = w.settle(b, "a", 1, trust("a", 1, back))
	other := &echo{}
	h, _ := w.settle(b, "b", 1, trust("b", 2, other))
	other.host.Store(h)
	return a, back
}

// echo answers frames, or reports them.
type echo struct {
	host    atomic.Pointer[Host]
	arrived chan int
}

func (*echo) Up(*Conn)                         {}
func (*echo) Down(*Conn, error)                {}
func (*echo) Failed(string, Class, error)      {}
func (*echo) Restarted(string, uint64, uint64) {}

func (e *echo) Sent(numbers []uint64, _ error) {
	if e.arrived != nil {
		e.arrived <- len(numbers)
	}
}

func (e *echo) Received(c *Conn, frames []Frame, b *Burst) {
	if h := e.host.Load(); h != nil {
		l := h.Channel(c.Peer().Name, c.Class())
		for _, f := range frames {
			if f.Stream != 1 {
				_ = l.Send(&Send{Service: testService, Head: f.Bytes})
			}
		}
		l.Flush(testService, nil)
	} else if e.arrived != nil {
		e.arrived <- len(frames)
	}
	b.Release()
}

// BenchmarkPingPong is a frame of 8 bytes there and back; beside it nothing, or a large
// transfer without end on another connection, or cut into frames on the same one, before
// each of which a short one may pass; or nothing, over two rails.
func BenchmarkPingPong(b *testing.B) {
	for _, isSecure := range []bool{false, true} {
		for _, beside := range []string{"nothing", "other", "same", "rails"} {
			b.Run(fmt.Sprintf("tls=%v/large=%s", isSecure, beside), func(b *testing.B) {
				rails := 1
				if beside == "rails" {
					rails = 2
				}
				a, back := pair(b, isSecure, rails)
				l := a.Channel("b", Data)
				eight := []byte("12345678")
				ping := func() {
					_ = l.Send(&Send{Service: testService, Head: eight})
					l.Flush(testService, nil)
					for n := <-back.arrived; n != 1; n = <-back.arrived {
						b.Fatal(n)
					}
				}
				ping()
				if rails > 1 {
					await(b, "all rails", func() bool { return isWhole(a, "b", Data, rails) })
				}
				stop, stopped := make(chan struct{}), make(chan struct{})
				go load(a, beside, stop, stopped)
				b.ReportAllocs()
				for b.Loop() {
					ping()
				}
				close(stop)
				<-stopped
			})
		}
	}
}

// load sends to b without end: 256 KiB are on their way at a time.
func load(a *Host, how string, stop, stopped chan struct{}) {
	defer close(stopped)
	class, size := Large, 64<<10
	switch how {
	case "nothing", "rails":
		return
	case "same":
		class = Data
	}
	l, body := a.Channel("b", class), make([]byte, size)
	for {
		select {
		case <-stop:
			return
		default:
		}
		l.mu.Lock()
		waits := l.conn != nil && l.conn.all()[0].queue.size > 256<<10 || l.conn == nil && l.queue.size > 0
		l.mu.Unlock()
		if waits {
			<-time.After(10 * time.Microsecond)
			continue
		}
		_ = l.Send(&Send{Service: testService, Stream: 1, Body: body})
		l.Flush(testService, nil)
	}
}

// BenchmarkGoodput is frames in one direction: those of host trees, and large ones that
// are lent.
func BenchmarkGoodput(b *testing.B) {
	for _, isSecure := range []bool{false, true} {
		for _, c := range []struct {
			class Class
			size  int
		}{{Data, 1472}, {Data, 64 << 10}, {Large, 1 << 20}} {
			for _, rails := range []int{1, 2} {
				b.Run(fmt.Sprintf("tls=%v/class=%d/size=%d/rails=%d", isSecure, c.class, c.size, rails), func(b *testing.B) {
					a, _ := pair(b, isSecure, rails)
					back := &echo{arrived: make(chan int, 1<<16)}
					a.Unregister(testService)
					if err := a.Register(testService, back); err != nil {
						b.Fatal(err)
					}
					l, body := a.Channel("b", c.class), make([]byte, c.size)
					const window = 64
					under := 0
					if rails > 1 {
						_ = l.Send(&Send{Service: testService, Stream: 1})
						l.Flush(testService, nil)
						await(b, "all rails", func() bool { return isWhole(a, "b", c.class, rails) })
					}
					b.SetBytes(int64(c.size))
					b.ReportAllocs()
					numbers := make([]uint64, 0, 1024)
					for b.Loop() {
						for under >= window {
							under -= <-back.arrived
						}
						_ = l.Send(&Send{Service: testService, Stream: 1, Body: body, Number: 1})
						under++
						if under%16 == 0 {
							numbers = l.Flush(testService, numbers[:0])
							under -= len(numbers)
						}
					}
				})
			}
		}
	}
}
