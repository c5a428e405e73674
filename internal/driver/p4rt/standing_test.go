package p4rt

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/p4"
)

func TestRestartLosesEverything(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	if _, err := c.Reconcile(ctx, someState()); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if e := c.next(); e.Kind != Lost || !errors.Is(e.Err, ErrUnavailable) || e.Session != 1 {
		t.Errorf("event: %+v, want that session 1 is lost", e)
	}
	e := c.await(Primary)
	if !errors.Is(e.Err, ErrRestarted) || !errors.Is(e.Err, ErrNoPipeline) || e.Cookie != 0 {
		t.Errorf("event: %+v, want restarted, and no program", e)
	}
	if err := c.Write(ctx, []Update{{Op: Insert, Entry: new(pair(9))}}); !errors.Is(err, ErrNoPipeline) {
		t.Errorf("write: %v", err)
	}
	pushAnew(ctx, t, c)
}

// pushAnew writes all to a target that has lost all.
func pushAnew(ctx context.Context, t *testing.T, c *owned) {
	t.Helper()
	if _, err := c.Push(ctx); err != nil {
		t.Fatal(err)
	}
	if report, err := c.Reconcile(ctx, someState()); err != nil || report.Kept != 0 {
		t.Errorf("reconcile: %+v, %v", report, err)
	}
}

func TestBrokenConnectionLosesNothing(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	first, err := c.Reconcile(ctx, someState())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Disconnect(); err != nil {
		t.Fatal(err)
	}
	c.await(Lost)
	if e := c.await(Primary); e.Err != nil || e.Cookie != first.Cookie {
		t.Errorf("event: %+v, want the program as before, with cookie %#x", e, first.Cookie)
	}
	if report, err := c.Reconcile(ctx, someState()); err != nil || report.Inserted != 0 || report.Cookie != first.Cookie {
		t.Errorf("reconcile: %+v, %v", report, err)
	}
}

func TestRestartInTheMiddleOfAReconcile(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	hung := server.Hang(p4rttest.Write)
	failed := make(chan error, 1)
	go func() { failed <- errOf(c.Reconcile(ctx, someState())) }()
	<-hung.Reached()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, ErrUnavailable) {
		t.Errorf("reconcile: %v", err)
	}
	if e := c.await(Primary); !errors.Is(e.Err, ErrRestarted) {
		t.Errorf("event: %+v", e)
	}
	pushAnew(ctx, t, c)
}

// A controller that starts finds what its predecessor left.
func TestSuccessorAdopts(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	first, err := c.Reconcile(ctx, someState())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	next := dial(t, configOf(server.Address()))
	if e := next.await(Primary); e.Err != nil || e.Cookie != first.Cookie {
		t.Fatalf("event: %+v, want the program of the predecessor", e)
	}
	report, err := next.Reconcile(ctx, p4.Program{Entries: someState().Entries[:1]})
	if err != nil || report.Kept != 1 || report.Deleted != len(someState().Entries)+len(someState().Groups)-1 {
		t.Errorf("reconcile: %+v, %v; want all but one entry swept", report, err)
	}
}

func TestSecondController(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	higher := configOf(server.Address())
	higher.Election = Election{High: 1}
	second := dial(t, higher)
	if e := c.next(); e.Kind != Backup || e.Leader != higher.Election || !errors.Is(e.Err, ErrNotPrimary) {
		t.Fatalf("event: %+v, want backup of %v", e, higher.Election)
	}
	for name, err := range map[string]error{
		"write":      c.Write(ctx, []Update{{Op: Insert, Entry: new(pair(1))}}),
		"packet out": c.PacketOut(Packet{}),
		"push":       errOf(c.Push(ctx)),
	} {
		if !errors.Is(err, ErrNotPrimary) {
			t.Errorf("%s of a backup: %v", name, err)
		}
	}
	second.await(Primary)
	t.Run("that only looks on", func(t *testing.T) {
		second.Close()
		if e := c.await(Primary); e.Err != nil {
			t.Errorf("event: %+v, want the program as it was left", e)
		}
	})
	t.Run("that pushes the same program", func(t *testing.T) {
		newPrimary(t, higher).Close()
		if e := c.await(Primary); !errors.Is(e.Err, ErrRestarted) || errors.Is(e.Err, ErrNoPipeline) || e.Cookie == 0 {
			t.Errorf("event: %+v, want restarted, with the program", e)
		}
	})
	t.Run("that pushes another program", func(t *testing.T) {
		higher.Pipeline = otherProgram(t)
		newPrimary(t, higher).Close()
		if e := c.await(Primary); !errors.Is(e.Err, ErrRestarted) || !errors.Is(e.Err, ErrOtherPipeline) {
			t.Errorf("event: %+v, want restarted, and another program", e)
		}
		if _, err := c.Reconcile(ctx, someState()); !errors.Is(err, ErrOtherPipeline) {
			t.Errorf("reconcile: %v", err)
		}
	})
}

// otherProgram is another version of the program.
func otherProgram(t testing.TB) Pipeline {
	t.Helper()
	p := toy
	p.P4Info = strings.Replace(toy.P4Info, `arch: "v1model"`, `arch: "v1model" version: "2"`, 1)
	return p
}

func TestHeld(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := dial(t, configOf(server.Address()))
	c.await(Primary)
	if _, _, err := c.Held(ctx); !errors.Is(err, ErrNoPipeline) {
		t.Errorf("of a target without a program: %v", err)
	}
	if _, err := c.Push(ctx); err != nil {
		t.Fatal(err)
	}
	server.Forge(func(f *p4v1.ForwardingPipelineConfig) {
		if f.P4Info != nil { // else the client checks the cookie alone, beside this test
			f.P4Info.PkgInfo = &p4config.PkgInfo{Name: "another", Version: "2"}
		}
	})
	if name, version, err := c.Held(ctx); name != "another" || version != "2" || err != nil {
		t.Errorf("%q %q, %v", name, version, err)
	}
	server.Forge(func(f *p4v1.ForwardingPipelineConfig) { f.P4Info = nil })
	if name, version, err := c.Held(ctx); name != "" || version != "" || err != nil {
		t.Errorf("of a target that does not report: %q %q, %v", name, version, err)
	}
}

// A backup that becomes primary for the first time has nothing to lose: what it
// finds is another's, and it can sweep it.
func TestTakingOverFromAPrimary(t *testing.T) {
	server := target(t)
	newer := newPrimary(t, configOf(server.Address()))
	low := configOf(server.Address())
	low.Election = Election{Low: 1}
	c := dial(t, low)
	c.await(Backup)
	if _, err := newer.Reconcile(testContext(t), someState()); err != nil {
		t.Fatal(err)
	}
	newer.Close()
	if e := c.await(Primary); e.Err != nil || e.Cookie == 0 {
		t.Errorf("event: %+v", e)
	}
	report, err := c.Reconcile(testContext(t), p4.Program{})
	if err != nil || report.Deleted == 0 {
		t.Errorf("reconcile: %+v, %v", report, err)
	}
}

func TestSameElectionID(t *testing.T) {
	server := target(t)
	first := newPrimary(t, configOf(server.Address()))
	c := dial(t, configOf(server.Address()))
	if e := c.next(); e.Kind != Lost || !errors.Is(e.Err, ErrElection) {
		t.Errorf("event: %+v, want that the id is taken", e)
	}
	first.Close()
	c.await(Primary) // it went on to try
}

func TestAProgramWithoutACookieIsAnother(t *testing.T) {
	server := target(t)
	c := newPrimary(t, configOf(server.Address()))
	l, err := c.connected()
	if err != nil {
		t.Fatal(err)
	}
	// Somebody with the same election id pushes; no stream reports it.
	_, err = l.api.SetForwardingPipelineConfig(testContext(t), &p4v1.SetForwardingPipelineConfigRequest{
		ElectionId: Election{Low: 10}.proto(), Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
		Config: &p4v1.ForwardingPipelineConfig{P4Info: c.schema.info, P4DeviceConfig: toyDevice},
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := c.await(Primary); !errors.Is(e.Err, ErrOtherPipeline) || !errors.Is(e.Err, ErrRestarted) {
		t.Errorf("event: %+v", e)
	}
}

// Everything at once, while the target restarts again and again. What fails has
// a reason, and in the end the target holds what was wanted last.
func TestConcurrentUse(t *testing.T) {
	const restarts = 10
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	over := make(chan struct{})
	var workers sync.WaitGroup
	for name, work := range map[string]func() error{
		"push":       func() error { return errOf(c.Push(ctx)) },
		"reconcile":  func() error { return errOf(c.Reconcile(ctx, someState())) },
		"write":      func() error { return c.Write(ctx, []Update{{Op: Insert, Entry: new(pair(1))}}) },
		"read":       func() error { return errOf(c.Read(ctx)) },
		"counter":    func() error { return errOf(c.Counter(ctx, seen)) },
		"packet out": func() error { return c.PacketOut(Packet{Payload: []byte("x")}) },
	} {
		workers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if err := work(); err != nil && !reasonable(err) {
					t.Errorf("%s: %v", name, err)
					return
				}
				runtime.Gosched() // what fails at once leaves the processor to those who connect
			}
		})
	}
	for range restarts {
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		c.await(Primary)
	}
	close(over)
	workers.Wait()
	if _, err := c.Push(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(ctx, someState()); err != nil {
		t.Fatal(err)
	}
	got, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, someState())
}

// reasonable reports whether an error may be while a target restarts and others
// push and write.
func reasonable(err error) bool {
	for _, is := range []error{ErrUnavailable, ErrNoPipeline, ErrNotPrimary, ErrExists, ErrMissing, ErrOtherPipeline} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
