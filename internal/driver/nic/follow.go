package nic

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// watchRetry is the wait after interfaces could not be watched.
const watchRetry = time.Second

// Follow watches a source until ctx ends, and again after a second where that fails: when the
// system has dropped notices, for instance. It returns at once if there is nothing to watch.
func Follow(ctx context.Context, s Source, log *slog.Logger, changed func()) {
	for {
		err := s.Watch(ctx, changed)
		if ctx.Err() != nil || errors.Is(err, ErrUnsupported) {
			return
		}
		log.Warn("watching the interfaces failed", slog.Any("error", err), slog.Duration("retry", watchRetry))
		if runner.Pause(ctx, watchRetry) != nil {
			return
		}
	}
}
