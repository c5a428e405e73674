package recovery

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/bench/gauge"
)

// event is what the host library has logged.
type event struct {
	at           int64
	what         string
	communicator string
	offload      bool
}

// events is a handler of logs that notes when things happen, and hands them on.
type events struct {
	next slog.Handler
	mu   sync.Mutex
	all  []event
}

// Enabled implements slog.Handler.
func (e *events) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (e *events) Handle(ctx context.Context, r slog.Record) error {
	x := event{at: gauge.Clock(), what: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "communicator":
			x.communicator = a.Value.String()
		case "offload":
			x.offload = a.Value.Bool()
		}
		return true
	})
	e.mu.Lock()
	e.all = append(e.all, x)
	e.mu.Unlock()
	if e.next.Enabled(ctx, r.Level) {
		return e.next.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (e *events) WithAttrs([]slog.Attr) slog.Handler { return e }

// WithGroup implements slog.Handler.
func (e *events) WithGroup(string) slog.Handler { return e }

// take returns what has happened to communicators whose names begin so, and forgets all.
func (e *events) take(prefix string) (all []event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		if strings.HasPrefix(x.communicator, prefix) {
			all = append(all, x)
		}
	}
	e.all = nil
	return all
}
