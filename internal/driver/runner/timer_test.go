package runner_test

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// timerSource is a Source from which nothing comes.
type timerSource[In any] struct {
	timer *time.Timer
	woken chan struct{}
}

// newTimer returns a timerSource.
func newTimer[In any]() *timerSource[In] {
	return &timerSource[In]{woken: make(chan struct{}, 1)}
}

// Receive implements Source; nothing comes from a timerSource.
func (t *timerSource[In]) Receive(clock runner.Clock, until core.Time, batch []In) ([]In, error) {
	select {
	case <-t.woken:
		return batch, nil
	default:
	}
	if until == core.Never {
		<-t.woken
		return batch, nil
	}
	wait := until.Sub(clock.Now())
	if wait <= 0 {
		return batch, nil
	}
	if t.timer == nil {
		t.timer = time.NewTimer(wait)
	} else {
		t.timer.Reset(wait)
	}
	defer t.timer.Stop()
	select {
	case <-t.woken:
	case <-t.timer.C:
	}
	return batch, nil
}

// Wake implements Source.
func (t *timerSource[In]) Wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}
