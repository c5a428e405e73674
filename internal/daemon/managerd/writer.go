package managerd

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// The wait after a failed Save, which doubles with each up to the cap.
const (
	minSaveRetry = 50 * time.Millisecond
	maxSaveRetry = 5 * time.Second
)

// writer stores records. While the store fails, the core answers requests with its
// error (manager.Unstored), and nothing that has to be stored first happens; what
// runs is not disturbed.
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
		if err != nil || !w.save(ctx, records, post) {
			return
		}
	}
}

// save stores records, and notifies the core. What the store refuses it retries,
// together with what has come since; false: the manager ends.
func (w *writer) save(ctx context.Context, records []manager.Record, post func(...manager.Input) error) bool {
	for wait := minSaveRetry; len(records) > 0; wait = min(2*wait, maxSaveRetry) {
		last := records[len(records)-1].Seq
		err := w.store.Save(records)
		if err == nil {
			return post(manager.Stored{Seq: last}) == nil
		}
		w.counts.unsaved.Add(1)
		w.log.Error("storing failed: no group is created and no tree is built until it succeeds",
			slog.Int("records", len(records)), slog.Duration("retry", wait), slog.Any("error", err))
		records = slices.DeleteFunc(records, creates)
		if post(manager.Unstored{Seq: last, Err: err}) != nil || runner.Pause(ctx, wait) != nil {
			return false
		}
		records = latest(append(records, w.box.Poll()...))
	}
	return true
}

// creates reports whether a record is of a new group: its spec never changes.
func creates(r manager.Record) bool { return r.Kind == manager.SpecRecord && !r.Delete }

// latest returns the last record of each key, in their order.
func latest(records []manager.Record) []manager.Record {
	seen := make(map[memoryKey]bool, len(records))
	for i := len(records) - 1; i >= 0; i-- {
		key := memoryKey{records[i].Kind, records[i].Group}
		if seen[key] {
			records[i].Seq = 0
		}
		seen[key] = true
	}
	return slices.DeleteFunc(records, func(r manager.Record) bool { return r.Seq == 0 })
}
