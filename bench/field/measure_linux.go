package field

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/bench/timing"
)

// Mark is notified before the timed operations of a measurement and after them;
// meanwhile all members wait.
type Mark func(size int, begins bool) error

// Run is what a fabric measures.
type Run struct {
	Args     []string           // of the command run
	Groups   int                // at once, each with all hosts; 0: one
	Profiles string             // absolute path of the directory for a profile of each process and size; empty: none
	Mark     Mark               // nil: nobody wants to know
	Take     func(Sample) error // is handed each measurement of each group, one at a time
}

// Sample is one group's part of a measurement.
type Sample struct {
	Group int
	Row   timing.Row
	Spans []timing.Span // of rank 0's operations, at the pace timing.Stream
	*Window
}

// Measure runs one process a host and group, and hands on what is measured. It
// returns when all processes have ended, or ended them all after the first that
// failed.
func (f *Fabric) Measure(ctx context.Context, r Run) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := &measuring{Fabric: f, run: r, meeting: newMeeting(max(1, r.Groups))}
	defer func() { stop(m.members) }()
	for group := range max(1, r.Groups) {
		if err := m.start(group, cancel); err != nil {
			return err
		}
	}
	heard := make(chan error, len(m.firsts))
	for group, first := range m.firsts {
		go func() {
			err := m.converse(group, first)
			m.meeting.leave() // it meets nobody any more
			if err != nil {
				cancel(err)
			}
			heard <- err
		}()
	}
	err := f.wait(ctx, m.members)
	if err != nil {
		stop(m.members)
	}
	// The processes have ended, and so does the talk with them.
	for range m.firsts {
		if talk := <-heard; err == nil { // of any of them
			err = talk
		}
	}
	for _, first := range m.firsts {
		err = errors.Join(err, first.close())
	}
	return err
}

// measuring is a measurement under way.
type measuring struct {
	*Fabric
	run     Run
	members []*process
	firsts  []*rank // by group
	meeting *meeting
	taking  sync.Mutex

	// Of the meetings:
	opened *window
	shut   *Window // the last
}

// start starts a group's members.
func (m *measuring) start(group int, cancel context.CancelCauseFunc) error {
	for r := range m.Lab().Topology().Hosts() {
		p, err := m.startRank(group, r, true, m.run.Args)
		if err != nil {
			return err
		}
		m.members = append(m.members, p.process)
		if r == 0 {
			m.firsts = append(m.firsts, p)
		}
		go func() {
			<-p.done
			if p.err != nil {
				cancel(p.err)
			}
		}()
	}
	return nil
}

// wait waits until all processes have ended well, one of them has not, or ctx
// ends.
func (f *Fabric) wait(ctx context.Context, all []*process) error {
	for _, p := range all {
		select {
		case <-p.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return failure(all)
}

// maxLine is the longest line that rank 0 says: the spans of all operations.
const maxLine = 64 << 20

// converse takes what a group's rank 0 says, and asks it to go on after each
// mark.
func (m *measuring) converse(group int, first *rank) error {
	sample := Sample{Group: group}
	head := true
	lines := bufio.NewScanner(first.out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := lines.Text()
		if size, begins, ok := parseMark(line); ok {
			if err := m.mark(size, begins, &sample.Window); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(first.in, "go on"); err != nil {
				return fmt.Errorf("rank 0 listens no more: %w", err)
			}
			continue
		}
		spans, ok, err := parseSpans(line)
		switch {
		case err != nil:
			return err
		case ok:
			sample.Spans = spans
			continue
		case head: // above the rows
			head = false
			continue
		}
		if sample.Row, err = timing.ParseRow(line); err != nil {
			return fmt.Errorf("%w: %w", ErrWords, err)
		}
		if err := m.take(sample); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (m *measuring) take(s Sample) error {
	m.taking.Lock()
	defer m.taking.Unlock()
	return m.run.Take(s)
}

// mark is where all groups begin or end a measurement together. At an end it
// reports the window between the two.
func (m *measuring) mark(size int, begins bool, w **Window) error {
	err := m.meeting.come(func() (err error) {
		if begins {
			if err := m.report(size, true); err != nil {
				return err
			}
			m.opened, err = m.Fabric.open(m.sides(), m.profiles(size))
			return err
		}
		if m.shut, err = m.opened.shut(); err != nil {
			return err
		}
		return m.report(size, false)
	})
	*w = m.shut // nobody comes to the next meeting before this one has
	return err
}

// profiles returns how the names of the profiles of a size begin, by side.
func (m *measuring) profiles(size int) func(Side) string {
	if m.run.Profiles == "" {
		return nil
	}
	return func(s Side) string { return filepath.Join(m.run.Profiles, fmt.Sprintf("%s-%d-", s, size)) }
}

func (m *measuring) report(size int, begins bool) error {
	if m.run.Mark == nil {
		return nil
	}
	return m.run.Mark(size, begins)
}

// sides returns all processes that are measured.
func (m *measuring) sides() map[Side][]*process {
	all := map[Side][]*process{Hosts: slices.Clone(m.members)}
	for _, p := range m.agents {
		all[Switches] = append(all[Switches], p)
	}
	if m.stream != nil {
		all[Stream] = []*process{m.stream.sink}
	}
	return all
}
