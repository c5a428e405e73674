package peer

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// stuckConn is a connection whose writes return when they are permitted, though it is closed.
type stuckConn struct {
	net.Conn
	w *stuckWrites
}

type stuckWrites struct {
	mu     sync.Mutex
	isOn   bool
	n      int           // writes that wait
	permit chan struct{} // closed: writes return
}

func (w *stuckWrites) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

func (c stuckConn) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	isOn := c.w.isOn
	if isOn {
		c.w.n++
	}
	c.w.mu.Unlock()
	if isOn {
		<-c.w.permit
	}
	return c.Conn.Write(b)
}

// TestUnregisterWhileWriting: a service is unregistered after its connection was closed, and
// before a write on that has returned. Every frame is reported; nothing is afterwards.
func TestUnregisterWhileWriting(t *testing.T) {
	for _, class := range []Class{Control, Data, Large} {
		w := newTown()
		stuck := &stuckWrites{permit: make(chan struct{})}
		a, out := w.settle(t, "a", 1, func(c *Config) {
			c.Wrap = func(conn net.Conn) net.Conn { return stuckConn{conn, stuck} }
		})
		w.settle(t, "b", 1, nil)
		send(t, a, "b", class, 1, "first", 1)
		await(t, "the connection", func() bool { err, ok := out.outcome(1); return ok && err == nil })
		stuck.mu.Lock()
		stuck.isOn = true
		stuck.mu.Unlock()
		const times = 5
		for i := range uint64(times) {
			send(t, a, "b", class, 1, "waits", 2+i)
		}
		await(t, "the write", func() bool { return stuck.count() > 0 })
		path := pathsOf(a, "b", class)[0]
		path.Break(errors.New("cut"))
		await(t, "the end of its reader", func() bool {
			path.channel.mu.Lock()
			defer path.channel.mu.Unlock()
			return path.isOver
		})
		unregistered := make(chan struct{})
		go func() {
			a.Unregister(testService)
			close(unregistered)
		}()
		if class != Large { // of which one is being written
			<-unregistered
		}
		close(stuck.permit)
		<-unregistered
		for i := range uint64(times) {
			if _, ok := out.outcome(2 + i); !ok {
				t.Errorf("class %d: frame %d is not reported", class, 2+i)
			}
		}
	}
}
