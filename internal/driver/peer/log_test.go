package peer

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// with returns the lines of a log that have a text.
func with(log *logtest.Log, text string) (all []string) {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, text) {
			all = append(all, line)
		}
	}
	return all
}

// TestStrangersDoNotFillTheLog: of many calls that are not taken there is one line, before
// a second is over, and one after that. Each is a line of level Debug.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	var log logtest.Log
	a, _ := newTown().settle(t, "a", 1, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	var second func()
	a.notTaken.mu.Lock()
	a.notTaken.after = func(_ time.Duration, f func()) { second = f }
	a.notTaken.mu.Unlock()
	const callers = 300
	for i := range callers {
		conn := dialRaw(t, a.Addr())
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		await(t, "the refusal", func() bool { return a.Counters().Malformed == uint64(i+1) })
		conn.Close()
	}
	await(t, "all to be counted", func() bool {
		a.notTaken.mu.Lock()
		defer a.notTaken.mu.Unlock()
		return a.notTaken.count == callers-1
	})
	if got := with(&log, "level=DEBUG"); len(got) != callers {
		t.Errorf("%d lines of level Debug", len(got))
	}
	if got := with(&log, "level=INFO"); len(got) != 1 || !strings.Contains(got[0], "suppressed=0") {
		t.Errorf("within a second: %q", got)
	}
	second()
	second()
	if got := with(&log, "level=INFO"); len(got) != 2 || !strings.Contains(got[1], "suppressed=298") {
		t.Errorf("after that: %q", got)
	}
	a.notTaken.add(slog.Any("error", peering.ErrRefused))
	if got := with(&log, "level=INFO"); len(got) != 3 {
		t.Errorf("after a second without any: %q", got[2:])
	}
	a.notTaken.add(slog.Any("error", peering.ErrRefused))
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if got := with(&log, "level=INFO"); len(got) != 4 {
		t.Errorf("after the end: %q", got[3:])
	}
}
