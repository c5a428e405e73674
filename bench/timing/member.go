package timing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// Mark is notified before the timed operations of a measurement, and after them, by
// every member; all members are at that point of the measurement at once.
type Mark func(size int, begins bool) error

// Member measures, as one member, what c says, one size after the other, and
// calls row with each measurement; mark may be nil. Its errors are those of
// operations, of row and mark, and, when all is measured, ErrWrong and ErrTransport.
func Member(ctx context.Context, comm *hostlib.Communicator, c Config, mark Mark, row func(Row) error) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if mark == nil {
		mark = func(int, bool) error { return nil }
	}
	m := &member{comm: comm, gate: comm, cfg: c, mark: mark}
	for i, size := range c.Bytes {
		r, err := m.measure(ctx, size, c.iterations(i))
		if err != nil {
			return fmt.Errorf("measuring %s of %d bytes: %w", c.Collective, size, err)
		}
		if err := row(r); err != nil {
			return err
		}
	}
	switch {
	case m.wrong > 0:
		return fmt.Errorf("%w: %d of them, counted over all members", ErrWrong, m.wrong)
	case m.astray != "":
		return fmt.Errorf("%w: %s was, and some ran by %s: %s", ErrTransport, c.Transport, m.astray, m.reason)
	}
	return nil
}

type member struct {
	comm   *hostlib.Communicator
	gate   *hostlib.Communicator // of barriers before operations
	cfg    Config
	mark   Mark
	wrong  int64
	astray string // the way, if it was not the one that was asked for
	reason string // of this member's last operation
}

// maxWarming is the most operations that are run before the timed ones. It is
// below period.
const maxWarming = 100

// measure runs some operations to warm up, and then those that are timed.
func (m *member) measure(ctx context.Context, size, iterations int) (Row, error) {
	t, err := newTask(place{m.comm, m.comm.Rank(), m.comm.Size()}, m.cfg, size)
	if err != nil {
		return Row{}, err
	}
	s := series{times: make([]float64, iterations), spans: make([]Span, iterations)}
	first := -min(iterations/10+1, maxWarming)
	for i := first; i < iterations; i++ {
		if i == 0 {
			if err := m.at(ctx, size, true); err != nil {
				return Row{}, err
			}
		}
		if err := m.once(ctx, t, i, m.cfg.Pace == Checked || i == first, &s); err != nil {
			return Row{}, err
		}
	}
	if err := m.at(ctx, size, false); err != nil {
		return Row{}, err
	}
	if m.cfg.Pace != Checked {
		if err := m.once(ctx, t, first-1, true, &s); err != nil {
			return Row{}, err
		}
	}
	return m.conclude(ctx, size, &s)
}

// at is a point of the measurement that no member passes before all are there.
func (m *member) at(ctx context.Context, size int, begins bool) error {
	if _, err := hostlib.Barrier(ctx, m.comm); err != nil {
		return err
	}
	if err := m.mark(size, begins); err != nil {
		return err
	}
	_, err := hostlib.Barrier(ctx, m.comm)
	return err
}

// series is what one member has seen in a measurement.
type series struct {
	times      []float64 // microseconds
	spans      []Span
	transports [4]int64                 // timed operations by hostlib.Transport
	by         [topology.Pipelines]bool // what reduced some of them
	wrong      int64                    // results, those of operations that are not timed included
}

// once runs one operation; those with negative numbers are not timed. A fresh
// one has vectors of its own, and its result is checked.
func (m *member) once(ctx context.Context, t task, number int, fresh bool, s *series) error {
	if fresh {
		t.prepare(number + period)
	}
	if fresh || m.cfg.Pace != Stream {
		if _, err := hostlib.Barrier(ctx, m.gate); err != nil {
			return err
		}
	}
	begun := time.Now()
	outcome, err := t.run(ctx)
	ended := time.Now()
	if err != nil {
		return err
	}
	m.reason = outcome.Reason
	if fresh && !t.right() {
		s.wrong++
	}
	if number >= 0 {
		s.times[number] = float64(ended.Sub(begun)) / float64(time.Microsecond)
		s.spans[number] = Span{begun.UnixNano(), ended.UnixNano()}
		s.transports[outcome.Transport]++
		for _, r := range outcome.Reducers() {
			s.by[r.By] = true
		}
	}
	return nil
}

// conclude brings together what all members have seen.
func (m *member) conclude(ctx context.Context, size int, s *series) (Row, error) {
	slowest := make([]float64, len(s.times))
	if _, err := hostlib.Allreduce(ctx, m.comm, reduce.Max, s.times, slowest); err != nil {
		return Row{}, err
	}
	counts := append(s.transports[:], s.wrong)
	if _, err := hostlib.Allreduce(ctx, m.comm, reduce.Sum, counts, counts); err != nil {
		return Row{}, err
	}
	m.wrong += counts[len(counts)-1]
	transport := transportOf(counts)
	if !m.cfg.fits(transport) {
		m.astray = transport.String()
	}
	r := Row{
		Ranks: m.comm.Size(), Type: m.cfg.Type.String(), Bytes: size, Iterations: len(s.times),
		Transport: transport.String(), By: reducedBy(s.by), Right: counts[len(counts)-1] == 0, Spans: s.spans,
	}
	r.Tail = TailOf(slowest)
	r.Goodput = goodput(size, r.Median, m.cfg.Rate)
	return r, nil
}

// reducedBy joins the names of what reduced.
func reducedBy(by [topology.Pipelines]bool) string {
	var names []string
	for p, on := range by {
		if on {
			names = append(names, topology.Pipeline(p).String())
		}
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

// transportOf returns the way of all operations, or that they were mixed.
func transportOf(counts []int64) hostlib.Transport {
	switch {
	case counts[hostlib.Hosts] > 0 && counts[hostlib.Offload]+counts[hostlib.HostTree]+counts[hostlib.Mixed] == 0:
		return hostlib.Hosts
	case counts[hostlib.Offload] == 0 && counts[hostlib.Mixed] == 0 && counts[hostlib.Hosts] == 0:
		return hostlib.HostTree
	case counts[hostlib.HostTree] == 0 && counts[hostlib.Mixed] == 0 && counts[hostlib.Hosts] == 0:
		return hostlib.Offload
	}
	return hostlib.Mixed
}
