package peer

import (
	"runtime"
	"testing"
)

// TestPollerCloses although its own goroutine takes what is to end it for another event.
func TestPollerCloses(t *testing.T) {
	for range 500 {
		l, err := newPoller()
		if err != nil {
			t.Fatal(err)
		}
		l.reading.Lock()
		l.wake()
		for range 200 { // its goroutine is about to read, mostly
			runtime.Gosched()
		}
		closed := make(chan struct{})
		go func() {
			l.close()
			close(closed)
		}()
		for range 200 {
			runtime.Gosched()
		}
		l.reading.Unlock()
		<-closed
	}
}
