package runner_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// recorder is a core that reports when it was stepped and with what, and wants
// to be stepped every period.
type recorder struct {
	period time.Duration // 0: never
	next   core.Time
}

type step struct {
	At     time.Duration
	Inputs []string
}

func newRecorder(period time.Duration) *recorder {
	r := &recorder{period: period, next: core.Never}
	if period > 0 {
		r.next = core.Time(period)
	}
	return r
}

func (r *recorder) Step(now core.Time, batch []string, out *[]step) {
	*out = append(*out, step{time.Duration(now), append([]string(nil), batch...)})
	if r.period > 0 && now >= r.next {
		r.next = now.Add(r.period)
	}
}

func (r *recorder) Deadline() core.Time { return r.next }

// log collects what comes out.
type log struct {
	mu    sync.Mutex
	steps []step
}

func (l *log) apply(_ core.Time, out *[]step) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, *out...)
	*out = (*out)[:0]
	return nil
}

func (l *log) get() []step {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]step(nil), l.steps...)
}

func start(t *testing.T, c runner.Config[string, []step]) *runner.Loop[string, []step] {
	t.Helper()
	c.Clock = runner.NewClock()
	l, err := runner.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		l := start(t, runner.Config[string, []step]{Core: newRecorder(time.Second), Apply: got.apply})
		defer l.Close()
		time.AfterFunc(1500*time.Millisecond, func() {
			if err := l.Post(t.Context(), "a", "b"); err != nil {
				t.Error(err)
			}
		})
		<-time.After(3500 * time.Millisecond)
		synctest.Wait()
		var seen []string
		var ticks []time.Duration
		for _, s := range got.get() {
			if len(s.Inputs) == 0 {
				ticks = append(ticks, s.At)
			} else if s.At != 1500*time.Millisecond {
				t.Errorf("inputs %v at %v", s.Inputs, s.At)
			}
			seen = append(seen, s.Inputs...)
		}
		if diff := cmp.Diff([]string{"a", "b"}, seen); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, ticks); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNoStepWithoutReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: got.apply})
		defer l.Close()
		ran := false
		if err := l.Do(t.Context(), func() { ran = true }); err != nil || !ran {
			t.Errorf("Do: %v, ran %v", err, ran)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if steps := got.get(); len(steps) > 0 {
			t.Errorf("stepped: %v", steps)
		}
	})
}

func TestApplyFeedsTheNextStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		l := start(t, runner.Config[string, []step]{
			Core: newRecorder(0),
			Apply: func(now core.Time, out *[]step) []string {
				first := (*out)[0].Inputs[0] == "question"
				got.apply(now, out)
				if first {
					return []string{"answer"}
				}
				return nil
			},
		})
		defer l.Close()
		if err := l.Post(t.Context(), "question"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]step{{0, []string{"question"}}, {0, []string{"answer"}}}, got.get()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPostIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		release := make(chan struct{})
		l := start(t, runner.Config[string, []step]{
			Core:  newRecorder(0),
			Queue: 2,
			Apply: func(now core.Time, out *[]step) []string {
				<-release
				return got.apply(now, out)
			},
		})
		if err := l.Post(t.Context(), "0"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the loop waits in Apply
		if err := l.Post(t.Context(), "1", "2"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Post(ctx, "too many"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("fourth input: %v", err)
		}
		var late error
		posted := make(chan struct{})
		go func() { late = l.Post(context.Background(), "3"); close(posted) }()
		synctest.Wait()
		close(release)
		<-posted
		synctest.Wait()
		if late != nil {
			t.Error(late)
		}
		l.Close()
		var seen []string
		for _, s := range got.get() {
			seen = append(seen, s.Inputs...)
		}
		if diff := cmp.Diff([]string{"0", "1", "2", "3"}, seen); diff != "" {
			t.Error(diff)
		}
	})
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		l := start(t, runner.Config[string, []step]{Core: newRecorder(time.Second), Apply: got.apply})
		l.Close()
		l.Close()
		<-l.Done()
		if err := l.Err(); err != nil {
			t.Errorf("Err: %v", err)
		}
		if err := l.Post(t.Context(), "late"); !errors.Is(err, runner.ErrClosed) {
			t.Errorf("Post: %v", err)
		}
		if err := l.Do(t.Context(), func() { t.Error("ran") }); !errors.Is(err, runner.ErrClosed) {
			t.Errorf("Do: %v", err)
		}
		<-time.After(time.Minute)
		if steps := got.get(); len(steps) > 0 {
			t.Errorf("stepped after Close: %v", steps)
		}
	})
}

func TestPostersAreFreedByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		l := start(t, runner.Config[string, []step]{
			Core: newRecorder(0), Queue: 1,
			Apply: func(_ core.Time, out *[]step) []string { <-hold; *out = nil; return nil },
		})
		freed := make(chan error)
		for range 5 {
			go func() { freed <- l.Post(context.Background(), "x", "y") }()
		}
		synctest.Wait()
		go close(hold)
		go l.Close()
		for range 5 {
			if err := <-freed; err != nil && !errors.Is(err, runner.ErrClosed) {
				t.Error(err)
			}
		}
		<-l.Done()
	})
}

// pipe is a Conn that receives what a test gives it.
type pipe struct {
	transport.Conn
	packets chan string
	wakes   chan struct{}
	closed  chan struct{}
}

func (p *pipe) ReadBatch(packets []transport.Packet, until time.Time) (int, error) {
	var due <-chan time.Time
	if !until.IsZero() {
		due = time.After(time.Until(until))
	}
	select {
	case data := <-p.packets:
		packets[0] = transport.Packet{Data: []byte(data)}
		return 1, nil
	case <-p.wakes:
		return 0, transport.ErrWoken
	case <-due:
		return 0, os.ErrDeadlineExceeded
	case <-p.closed:
		return 0, net.ErrClosed
	}
}

func (p *pipe) Wake() {
	select {
	case p.wakes <- struct{}{}:
	default:
	}
}

func TestPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &pipe{packets: make(chan string, 1), wakes: make(chan struct{}, 1), closed: make(chan struct{})}
		var got log
		l := start(t, runner.Config[string, []step]{
			Core:   newRecorder(time.Second),
			Apply:  got.apply,
			Source: runner.FromConn(conn, 4, func(p *transport.Packet) string { return string(p.Data) }),
		})
		conn.packets <- "packet"
		synctest.Wait()
		if err := l.Post(t.Context(), "posted"); err != nil {
			t.Fatal(err)
		}
		<-time.After(1500 * time.Millisecond)
		synctest.Wait()
		want := []step{{0, []string{"packet"}}, {0, []string{"posted"}}, {time.Second, nil}}
		if diff := cmp.Diff(want, got.get()); diff != "" {
			t.Error(diff)
		}
		close(conn.closed)
		if err := l.Err(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("ended by %v", err)
		}
		if err := l.Post(t.Context(), "late"); !errors.Is(err, runner.ErrClosed) {
			t.Errorf("Post: %v", err)
		}
		l.Close()
	})
}

// slowSource posts to its own loop while it receives.
type slowSource struct {
	*timerSource[string]
	receive func() []string
}

func (s *slowSource) Receive(c runner.Clock, until core.Time, batch []string) ([]string, error) {
	batch, err := s.timerSource.Receive(c, until, batch)
	return append(batch, s.receive()...), err
}

func TestPostedComesBeforeWhatArrivedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		var l *runner.Loop[string, []step]
		ready := make(chan struct{})
		arrived := false
		l = start(t, runner.Config[string, []step]{
			Core: newRecorder(0), Apply: got.apply,
			Source: &slowSource{newTimer[string](), func() []string {
				<-ready
				if arrived {
					return nil
				}
				arrived = true
				if err := l.Post(context.Background(), "install"); err != nil {
					t.Error(err)
				}
				return []string{"packet"}
			}},
		})
		close(ready)
		if err := l.Do(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]step{{0, []string{"install", "packet"}}}, got.get()); diff != "" {
			t.Error(diff)
		}
		l.Close()
	})
}

// diary is a core and its source, and notes which of both the loop turns to.
type diary struct {
	*recorder
	*timerSource[string]
	mu      sync.Mutex
	entries []string
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, s)
}

// take returns the entries since the last time.
func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.entries
	d.entries = nil
	return all
}

func (d *diary) Step(now core.Time, batch []string, out *[]step) {
	for _, in := range batch {
		d.note(in)
	}
	d.recorder.Step(now, batch, out)
}

func (d *diary) Receive(clock runner.Clock, until core.Time, batch []string) ([]string, error) {
	d.note("look")
	return d.timerSource.Receive(clock, until, batch)
}

// TestPostedComesBeforeALook: what was posted is stepped without a look at the
// source, but not twice in a row.
func TestPostedComesBeforeALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{recorder: newRecorder(0), timerSource: newTimer[string]()}
		var over runner.Event
		more := 5
		l := start(t, runner.Config[string, []step]{Core: d, Source: d, Apply: func(_ core.Time, out *[]step) []string {
			*out = (*out)[:0]
			if more--; more == 0 {
				over.Happen()
			}
			return []string{"more"}[:min(max(more, 0), 1)]
		}})
		defer l.Close()
		synctest.Wait() // the loop's goroutine holds the step lock, and stands back later
		quit, ended := make(chan struct{}), make(chan struct{})
		go func() { l.Drive(new(runner.Event), quit, idle); close(ended) }()
		synctest.Wait() // the caller has it
		close(quit)
		d.Wake()
		<-ended
		d.take()
		if err := l.Queue(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		l.Drive(&over, nil, idle)
		want := []string{"first", "look", "more", "more", "look", "more", "more"}
		if diff := cmp.Diff(want, d.take()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDueComesAfterALook: what is due is judged when what lies in the source has
// been read, also where something was posted.
func TestDueComesAfterALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{recorder: newRecorder(time.Second), timerSource: newTimer[string]()}
		l := start(t, runner.Config[string, []step]{Core: d, Source: d, Apply: func(now core.Time, out *[]step) []string {
			*out = (*out)[:0]
			if now > 0 {
				return nil
			}
			<-time.After(1500 * time.Millisecond) // of the bubble's clock
			return []string{"second"}
		}})
		defer l.Close()
		synctest.Wait()
		if err := l.Post(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		<-time.After(1600 * time.Millisecond)
		want := []string{"look", "first", "look", "second", "look"}
		if diff := cmp.Diff(want, d.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestConfig(t *testing.T) {
	var got log
	for name, c := range map[string]runner.Config[string, []step]{
		"no core":        {Apply: got.apply, Clock: runner.NewClock()},
		"no Apply":       {Core: newRecorder(0), Clock: runner.NewClock()},
		"no clock":       {Core: newRecorder(0), Apply: got.apply},
		"negative queue": {Core: newRecorder(0), Apply: got.apply, Clock: runner.NewClock(), Queue: -1},
	} {
		if _, err := runner.Start(c); !errors.Is(err, runner.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runner.NewClock()
		<-time.After(time.Second)
		if now := c.Now(); now != core.Time(time.Second) {
			t.Errorf("after a second it is %d", now)
		}
		if at := c.At(c.Now().Add(time.Minute)); !at.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("a minute from now is %v", at)
		}
		if at := c.At(core.Never); !at.IsZero() {
			t.Errorf("never is %v", at)
		}
	})
}
