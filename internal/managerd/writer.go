package managerd

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/runner"
)

// The wait after a failed Save, which doubles with each up to the cap.
const (
	minSaveRetry = 50 * time.Millisecond
	maxSaveRetry = 5 * time.Second
)

// writer stores records. While the store fails nothing new is stored, and so
// nothing that has to be stored first happens; what runs is not disturbed.
type writer struct {
	store  Store
	log    *slog.Logger
	counts *counts
	box    runner.Mailbox[manager.Record]
}

func (w *writer) put(records []manager.Record) {
	if len(records) > 0 {
		w.box.Put(slices.Clone(records)...)
	}
}

// run stores until the context ends.
func (w *writer) run(ctx context.Context, post func(...manager.Input) error) {
	for {
		records, err := w.box.Take(ctx)
		if err != nil || !w.save(ctx, records) {
			return
		}
		if post(manager.Stored{Seq: records[len(records)-1].Seq}) != nil {
			return
		}
	}
}

// save stores records, again and again until that succeeds (true) or the
// context ends.
func (w *writer) save(ctx context.Context, records []manager.Record) bool {
	for wait := minSaveRetry; ; wait = min(2*wait, maxSaveRetry) {
		err := w.store.Save(records)
		if err == nil {
			return true
		}
		w.counts.unsaved.Add(1)
		w.log.Error("storing failed: no group is created and no tree is built until it succeeds",
			slog.Int("records", len(records)), slog.Duration("retry", wait), slog.Any("error", err))
		if !pause(ctx, wait) {
			return false
		}
	}
}

// pause waits; it reports false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
