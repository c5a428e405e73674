package peer

import "testing"

// TestPollerCloses although its own goroutine takes what is to end it for another event.
func TestPollerCloses(t *testing.T) {
	for range 2000 {
		l, err := newPoller()
		if err != nil {
			t.Fatal(err)
		}
		go l.wake()
		l.close()
	}
}
