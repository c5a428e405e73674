package field

import (
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
)

// Side is a side of the fabric, as processor time is reported.
type Side string

// The sides.
const (
	Hosts    Side = "hosts"
	Switches Side = "switches"
	Stream   Side = "stream" // the end of the TCP stream beside
)

// Window is what was done between the marks of a measurement.
type Window struct {
	Elapsed time.Duration
	Sides   map[Side]gauge.Reading // all processes of a side together
	Machine gauge.Machine
}

// window is one that is open.
type window struct {
	gauges  map[Side][]*process
	begun   time.Time
	machine gauge.Machine
}

// open opens a window on processes. Each of them writes a profile to a file whose
// name begins as profiles says; nil: none does.
func (f *Fabric) open(of map[Side][]*process, profiles func(Side) string) (_ *window, err error) {
	w := &window{gauges: of}
	err = w.each(func(side Side, p *process) error {
		if profiles == nil {
			return p.gauge.Open("")
		}
		return p.gauge.Open(profiles(side) + p.name + ".pprof")
	})
	if err != nil {
		return nil, err
	}
	if w.machine, err = gauge.ReadMachine(); err != nil {
		return nil, err
	}
	w.begun = time.Now()
	return w, nil
}

// shut closes the window.
func (w *window) shut() (*Window, error) {
	done := &Window{Elapsed: time.Since(w.begun), Sides: map[Side]gauge.Reading{}}
	now, err := gauge.ReadMachine()
	if err != nil {
		return nil, err
	}
	done.Machine = now.Since(w.machine)
	err = w.each(func(side Side, p *process) error {
		r, err := p.gauge.Shut()
		done.Sides[side] = done.Sides[side].Add(r)
		return err
	})
	return done, err
}

// each calls f with every process. One that has no gauge any more, or never
// had, is left out.
func (w *window) each(f func(Side, *process) error) error {
	for side, all := range w.gauges {
		for _, p := range all {
			if p.gauge == nil || p.ended() {
				continue
			}
			if err := f(side, p); err != nil && !p.isEnding() {
				return fmt.Errorf("reading %s: %w", p.name, err)
			}
		}
	}
	return nil
}

// ended reports whether the process has.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
