package peer

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const notTaken = "a call was not taken"

// summary logs what anybody who reaches the host may cause: each at level Debug, and not more
// than one line a second at its own level, with how many there were.
type summary struct {
	log   *slog.Logger
	level slog.Level
	after func(time.Duration, func()) // runs a function later

	mu        sync.Mutex // guards what follows
	isWaiting bool       // the second since the last line is not over
	count     int        // since that
	latest    []slog.Attr
}

func newSummary(log *slog.Logger, level slog.Level, kind string) *summary {
	return &summary{log: log.With(slog.String("kind", kind)), level: level, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }}
}

// add logs one.
func (s *summary) add(attrs ...slog.Attr) {
	s.log.LogAttrs(context.Background(), slog.LevelDebug, notTaken, attrs...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.latest = attrs
	if !s.isWaiting {
		s.report()
	}
}

// report logs how many there were, and the latest. The caller holds the lock.
func (s *summary) report() {
	s.isWaiting = s.count > 0
	if !s.isWaiting {
		return
	}
	s.log.LogAttrs(context.Background(), s.level, notTaken, append(s.latest, slog.Int("suppressed", s.count-1))...)
	s.count, s.latest = 0, nil
	s.after(time.Second, s.flush)
}

// flush reports what came since the last line.
func (s *summary) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report()
}
