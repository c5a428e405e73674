package field

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tributary-fabric/tributary/cmd/collbench/perf"
)

// recording is perf at work on a side.
type recording struct {
	*perf.Recording
	data, profile string // files
}

// record has perf look at each side.
func (w *window) record(dir string) error {
	of := map[Side][]int{}
	err := w.each(func(side Side, p *process) error {
		of[side] = append(of[side], p.cmd.Process.Pid)
		return nil
	})
	if err != nil {
		return err
	}
	w.recordings = map[Side]*recording{}
	for side, processes := range of {
		r := &recording{data: filepath.Join(dir, string(side)+".perf"), profile: filepath.Join(dir, string(side)+".pprof")}
		if r.Recording, err = perf.Start(r.data, processes); err != nil {
			return errors.Join(fmt.Errorf("profiling the %s: %w", side, err), w.drop())
		}
		w.recordings[side] = r
	}
	return nil
}

// drop ends what record began.
func (w *window) drop() (err error) {
	for _, r := range w.recordings {
		err = errors.Join(err, r.Stop())
	}
	w.recordings = nil
	return err
}

// keep ends it, and makes profiles of what was seen.
func (w *window) keep() error {
	all := w.recordings
	if err := w.drop(); err != nil {
		return err
	}
	for side, r := range all {
		p, err := perf.Read(context.Background(), r.data)
		if err != nil {
			return fmt.Errorf("profiling the %s: %w", side, err)
		}
		f, err := os.Create(r.profile)
		if err != nil {
			return err
		}
		if err := errors.Join(p.Write(f), f.Close(), os.Remove(r.data)); err != nil {
			return err
		}
		w.profiles[side] = []string{r.profile}
	}
	return nil
}
