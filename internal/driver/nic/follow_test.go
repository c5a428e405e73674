package nic_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// failing is a source of which watching fails some times, once with ErrUnsupported.
type failing struct {
	nic.Fake
	watched []time.Duration // when, since start
	start   time.Time
	fails   int
	last    error
}

func (f *failing) Watch(ctx context.Context, changed func()) error {
	f.watched = append(f.watched, time.Since(f.start))
	if len(f.watched) <= f.fails {
		return errors.New("no buffer space available")
	}
	if f.last != nil {
		return f.last
	}
	return f.Fake.Watch(ctx, changed)
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &failing{start: time.Now(), fails: 2}
		changes := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			nic.Follow(ctx, s, slog.New(slog.DiscardHandler), func() { changes++ })
		}()
		if err := runner.Pause(ctx, 5*time.Second); err != nil { // of virtual time
			t.Error(err)
		}
		synctest.Wait()
		if len(s.watched) != 3 || s.watched[1] != time.Second || s.watched[2] != 2*time.Second || changes != 1 {
			t.Errorf("watched at %v, %d changes", s.watched, changes)
		}
		s.Set(nil, nil)
		synctest.Wait()
		if changes != 2 {
			t.Errorf("%d changes", changes)
		}
		cancel()
		<-done
	})
	s := &failing{last: nic.ErrUnsupported}
	nic.Follow(t.Context(), s, slog.New(slog.DiscardHandler), func() { t.Error("changed") })
	if len(s.watched) != 1 {
		t.Error("watched again what there is not")
	}
}
