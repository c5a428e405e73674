package runner_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

func TestEvent(t *testing.T) {
	var e runner.Event
	early := e.Done()
	if e.Happened() || isOver(early) {
		t.Error("it has happened before it did")
	}
	e.Happen()
	if !e.Happened() || !isOver(early) || !isOver(e.Done()) {
		t.Error("it has not happened, or its channel is open")
	}
	if e.Renew() || !e.Happened() {
		t.Error("it was renewed under who has its channel")
	}
	var again runner.Event
	for range 3 {
		again.Happen()
		if !again.Happened() || !again.Renew() || again.Happened() {
			t.Error("what nobody has the channel of was not renewed")
		}
	}
	late := again.Done()
	if isOver(late) {
		t.Error("the channel of a renewed event is closed")
	}
	if again.Happen(); !isOver(late) {
		t.Error("the channel of a renewed event stays open")
	}
}

// TestEventAtOnce: whoever asks for the channel while it happens gets one that
// is closed in the end.
func TestEventAtOnce(t *testing.T) {
	for range 1000 {
		var e runner.Event
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() { <-e.Done() })
		}
		e.Happen()
		group.Wait()
	}
}

// TestEventIsRenewedAtOnce: one that is renewed as soon as it is seen to have
// happened, as whoever drives does, while Happen has yet to return.
func TestEventIsRenewedAtOnce(t *testing.T) {
	var e runner.Event
	begin := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for range begin {
			e.Happen()
		}
	})
	for range 1000 {
		begin <- struct{}{}
		for !e.Happened() {
			runtime.Gosched()
		}
		if !e.Renew() || e.Happened() {
			t.Fatal("it was not renewed")
		}
	}
	close(begin)
	group.Wait()
}

// TestEventIsAwaitedAtOnce: whoever awaits it while it happens waits no longer, in each of
// its lives, whether or not it has given up waiting before.
func TestEventIsAwaitedAtOnce(t *testing.T) {
	var e runner.Event
	begin, givesUp := make(chan struct{}), make(chan struct{})
	close(givesUp)
	var group sync.WaitGroup
	group.Go(func() {
		for range begin {
			e.Happen()
		}
	})
	for i := range 3000 {
		begin <- struct{}{}
		if i%3 == 0 {
			e.Await(givesUp, nil)
		}
		e.Await(nil, nil)
		if !e.Happened() || !e.Renew() || e.Happened() {
			t.Fatal("it has not happened, or was not renewed")
		}
	}
	close(begin)
	group.Wait()
}

func isOver(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
