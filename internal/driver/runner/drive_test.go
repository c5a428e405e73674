package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// answers is an Apply that has the event of each input that was stepped happen.
type answers struct {
	mu      sync.Mutex
	waiting map[string]*runner.Event
	order   []string
}

func (a *answers) expect(name string) *runner.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]*runner.Event{}
	}
	e := new(runner.Event)
	a.waiting[name] = e
	return e
}

func (a *answers) apply(_ core.Time, out *[]step) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range *out {
		for _, name := range s.Inputs {
			a.order = append(a.order, name)
			if e := a.waiting[name]; e != nil {
				e.Happen()
			}
		}
	}
	*out = (*out)[:0]
	return nil
}

func (a *answers) stepped() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.order)
}

func idle() bool { return false }

// TestDrive: after a caller, the loop's own goroutine stands back. What is
// queued lies until the next caller comes, or until none has for a while.
func TestDrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		source := newTimer[string]()
		l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: a.apply, Source: source})
		defer l.Close()
		drive := func(name string) {
			t.Helper()
			done := a.expect(name)
			if err := l.Queue(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if slices.Contains(a.stepped(), name) {
				t.Fatalf("%s was stepped by the loop's goroutine", name)
			}
			l.Drive(done, nil, idle)
			if !slices.Contains(a.stepped(), name) {
				t.Fatalf("%s was not stepped", name)
			}
		}
		synctest.Wait() // the loop's goroutine holds the step lock
		quit, ended := make(chan struct{}), make(chan struct{})
		go func() { l.Drive(new(runner.Event), quit, idle); close(ended) }()
		synctest.Wait() // the caller has it
		close(quit)
		source.Wake()
		<-ended
		drive("first")
		drive("second")
		third := a.expect("third")
		if err := l.Queue(t.Context(), "third"); err != nil {
			t.Fatal(err)
		}
		<-third.Done() // the loop's goroutine has waited for nothing
		if diff := cmp.Diff([]string{"first", "second", "third"}, a.stepped()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestPostAfterDrive: an input that somebody else posts does not wait for a
// caller.
func TestPostAfterDrive(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var a answers
			l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: a.apply})
			defer l.Close()
			begun := time.Now()
			for i := range 3 {
				mine, other := fmt.Sprint("mine ", i), fmt.Sprint("other ", i)
				done, posted := a.expect(mine), a.expect(other)
				if err := l.Queue(t.Context(), mine); err != nil {
					t.Fatal(err)
				}
				l.Drive(done, nil, func() bool { return busy })
				if err := l.Post(t.Context(), other); err != nil {
					t.Fatal(err)
				}
				<-posted.Done()
			}
			if waited := time.Since(begun); waited > 0 { // of the bubble's clock
				t.Errorf("busy=%v: it took %v", busy, waited)
			}
		})
	}
}

// TestTwoHelpers: the second waits for the first, or for the loop's goroutine
// when the first is done.
func TestTwoHelpers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: a.apply})
		defer l.Close()
		never, quit, ended := new(runner.Event), make(chan struct{}), make(chan struct{})
		go func() { l.Drive(never, quit, idle); close(ended) }()
		synctest.Wait()
		one := a.expect("one")
		if err := l.Queue(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		l.Drive(one, nil, idle) // the first caller steps it
		two := a.expect("two")
		waiting := make(chan struct{})
		go func() { l.Drive(two, nil, idle); close(waiting) }()
		synctest.Wait()
		close(quit)
		l.Wake()
		<-ended
		if err := l.Post(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		<-waiting // the loop's goroutine steps it
	})
}

// TestDriveEnds: a caller is released by its quit, by Close, and by a source
// that fails.
func TestDriveEnds(t *testing.T) {
	fails := errors.New("no more")
	for _, how := range []string{"quit", "close", "source"} {
		synctest.Test(t, func(t *testing.T) {
			var a answers
			s := &failing{timerSource: newTimer[string](), err: make(chan error, 1)}
			l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: a.apply, Source: s})
			quit, ended := make(chan struct{}), make(chan struct{})
			go func() { l.Drive(new(runner.Event), quit, idle); close(ended) }()
			synctest.Wait()
			switch how {
			case "quit":
				close(quit)
				l.Wake()
			case "close":
				l.Close()
			case "source":
				s.err <- fails
				l.Wake()
				if err := l.Err(); !errors.Is(err, fails) {
					t.Errorf("ended by %v", err)
				}
			}
			<-ended
			l.Close()
			l.Drive(new(runner.Event), nil, idle) // does not wait for an ended loop
		})
	}
}

// failing is a source that fails when it is reported.
type failing struct {
	*timerSource[string]
	err chan error
}

func (f *failing) Receive(c runner.Clock, until core.Time, batch []string) ([]string, error) {
	batch, err := f.timerSource.Receive(c, until, batch)
	select {
	case err = <-f.err:
	default:
	}
	return batch, err
}

// TestCallersAtOnce has callers, posters and readers at once: each gets what it
// waits for.
func TestCallersAtOnce(t *testing.T) {
	var a answers
	l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: a.apply, Queue: 2})
	defer l.Close()
	var group sync.WaitGroup
	for g := range 6 {
		group.Go(func() {
			for i := range 200 {
				name := fmt.Sprint(g, " ", i)
				done := a.expect(name)
				var err error
				switch g % 3 {
				case 0:
					err = l.Post(t.Context(), name)
				default:
					if err = l.Queue(t.Context(), name); err == nil {
						l.Drive(done, nil, idle)
					}
				}
				<-done.Done()
				err = errors.Join(err, l.Do(t.Context(), func() {}))
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if n := len(a.stepped()); n != 6*200 {
		t.Errorf("%d inputs were stepped, want %d", n, 6*200)
	}
}

// door is a source that is open or closed, and of which nothing comes.
type door struct {
	*timerSource[string]
	open  atomic.Bool
	looks atomic.Int64
}

func (d *door) Open() bool { return d.open.Load() }

func (d *door) Receive(c runner.Clock, until core.Time, batch []string) ([]string, error) {
	d.looks.Add(1)
	return d.timerSource.Receive(c, until, batch)
}

// TestClosedSource: while its source is closed, the loop does not look at it. Who
// delivers an input steps it, and who waits for that just sleeps. Deadlines hold.
func TestClosedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		d := &door{timerSource: newTimer[string]()}
		l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: a.apply, Source: d})
		defer l.Close()
		synctest.Wait()
		one := a.expect("one")
		if err := l.Deliver(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		if !one.Happened() {
			t.Error("who delivered it has not stepped it")
		}
		two, ended := a.expect("two"), make(chan struct{})
		go func() { l.Drive(two, nil, idle); close(ended) }()
		synctest.Wait()
		if err := l.Deliver(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		<-ended
		if n := d.looks.Load(); n != 0 {
			t.Errorf("a closed source was looked at %d times", n)
		}
		// It opens in a step, and then inputs are for whoever waits there.
		if err := l.Do(t.Context(), func() { d.open.Store(true) }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d.looks.Load() == 0 {
			t.Error("an open source was not looked at")
		}
		three := a.expect("three")
		if err := l.Deliver(t.Context(), "three"); err != nil {
			t.Fatal(err)
		}
		<-three.Done()
	})
}

// TestDeliverBringsDeadlineForward: the loop's own goroutine wakes in time for a
// deadline that came about while it slept.
func TestDeliverBringsDeadlineForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		r := newRecorder(0)
		late := make(chan core.Time, 1)
		l := start(t, runner.Config[string, []step]{Core: r, Apply: func(now core.Time, out *[]step) []string {
			if r.period == 0 {
				r.period, r.next = time.Hour, now.Add(time.Minute)
			} else {
				late <- now
			}
			return a.apply(now, out)
		}})
		defer l.Close()
		synctest.Wait()
		if err := l.Deliver(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		if now := <-late; now != core.Time(time.Minute) {
			t.Errorf("it was stepped at %v", time.Duration(now))
		}
	})
}

// TestDeliverAtOnce: many deliver and wait at once; every input is stepped once,
// and never two at a time.
func TestDeliverAtOnce(t *testing.T) {
	var a answers
	l := start(t, runner.Config[string, []step]{Core: newRecorder(0), Apply: a.apply, Queue: 2})
	defer l.Close()
	var group sync.WaitGroup
	for g := range 6 {
		group.Go(func() {
			for i := range 300 {
				name := fmt.Sprint(g, " ", i)
				done := a.expect(name)
				if err := l.Deliver(t.Context(), name); err != nil {
					t.Error(err)
					return
				}
				l.Drive(done, nil, idle)
				if !done.Happened() {
					t.Errorf("%s has not happened", name)
					return
				}
			}
		})
	}
	group.Wait()
	if n := len(a.stepped()); n != 6*300 {
		t.Errorf("%d inputs were stepped, want %d", n, 6*300)
	}
}
