package hostlib

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// onLog calls f for each message of a log.
type onLog struct {
	slog.Handler
	f func(r slog.Record)
}

func (l onLog) Enabled(context.Context, slog.Level) bool { return true }
func (l onLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l onLog) Handle(_ context.Context, r slog.Record) error {
	l.f(r)
	return nil
}

// TestShrinkAfterHalfAGrow: a member whose Grow was given up at the last moment, when another had formed
// the larger communicator, shrinks with that one.
func TestShrinkAfterHalfAGrow(t *testing.T) {
	gaveUp, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	watch := func(c *Config) {
		if c.Name != "h1" {
			return
		}
		c.Log = slog.New(onLog{slog.DiscardHandler, func(r slog.Record) {
			r.Attrs(func(a slog.Attr) bool {
				if r.Message == "formed a communicator" && strings.Contains(a.Value.String(), "/") {
					giveUp()
				}
				return true
			})
		}})
	}
	hosts, members := joinAs(t, names(3), patient, watch)
	comms := form(t, "test", hosts[:2], members[:2])
	go hosts[2].AwaitInvitation(t.Context())
	each(2, func(i int) {
		ctx := within(t)
		if i == 1 {
			ctx = gaveUp
		}
		_, err := comms[i].Grow(ctx, members[2:])
		t.Logf("rank %d: %v", i, err)
	})
	comms[0].Revoke()
	<-comms[1].Done()
	each(2, func(i int) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		smaller, err := comms[i].Shrink(ctx)
		if err != nil {
			t.Errorf("rank %d: %v", i, err)
		} else {
			t.Logf("rank %d: %s", i, smaller.Name())
		}
	})
}
