package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// readyAgent reports its state to everyone who watches.
type readyAgent struct{ fakeAgent }

func (a *readyAgent) Watch(ctx context.Context, _ time.Duration, event func(AgentEvent) error) error {
	if err := event(AgentEvent{State: &someState}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// A switch has one manager at a time; who only looks on is none.
func TestSecondManager(t *testing.T) {
	s := serve(t, Services{Agent: new(readyAgent)})
	enough := errors.New("enough")
	watch := func(number uint64, meanwhile func()) error {
		c, err := DialAgent(s.Addr().String(), ClientConfig{Manager: number})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return c.Watch(testContext(t), time.Minute, func(AgentEvent) error { meanwhile(); return enough })
	}
	nothing := func() {}
	err := watch(1, func() {
		if err := watch(2, nothing); !errors.Is(err, ErrLed) || strings.Count(err.Error(), "at 127.0.0.1:") != 2 {
			t.Errorf("another manager: %v, want %v, and both addresses", err, ErrLed)
		}
		for _, number := range []uint64{0, 1} {
			if err := watch(number, nothing); !errors.Is(err, enough) {
				t.Errorf("number %d: %v", number, err)
			}
		}
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	for err = ErrLed; errors.Is(err, ErrLed); { // until the agent has heard that the first one has gone
		err = watch(2, nothing)
	}
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}
