package field

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tributary-fabric/tributary/bench/perf"
)

// recording is perf at work.
type recording struct {
	*perf.Recording
	dir  string // of its files
	data string
	of   map[Side][]int // process ids
}

// record has perf look.
func (w *window) record(dir string) error {
	r := &recording{dir: dir, data: filepath.Join(dir, "perf.data"), of: map[Side][]int{}}
	err := w.each(func(side Side, p *process) error {
		r.of[side] = append(r.of[side], p.cmd.Process.Pid)
		return nil
	})
	if err != nil {
		return err
	}
	if r.Recording, err = perf.Start(r.data); err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	w.recording = r
	return nil
}

// drop ends what record began.
func (w *window) drop() error {
	r := w.recording
	if r == nil {
		return nil
	}
	w.recording = nil
	if err := r.Stop(); err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	return nil
}

// keep ends it, and makes a profile of each side.
func (w *window) keep() error {
	r := w.recording
	if r == nil {
		return nil
	}
	if err := w.drop(); err != nil {
		return err
	}
	for side, processes := range r.of {
		p, err := perf.Read(context.Background(), r.data, processes)
		if err != nil {
			return fmt.Errorf("profiling the %s: %w", side, err)
		}
		path := filepath.Join(r.dir, string(side)+".pprof")
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := errors.Join(p.Write(f), f.Close()); err != nil {
			return err
		}
		w.profiles[side] = []string{path}
	}
	return os.Remove(r.data)
}
