package process_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/admin"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// daemon is one that ends when it may.
type daemon struct {
	closing, killing, may chan struct{}
	done                  chan struct{}
	err                   error
}

func newDaemon() *daemon {
	return &daemon{closing: make(chan struct{}), killing: make(chan struct{}), may: make(chan struct{}), done: make(chan struct{})}
}

func (d *daemon) Close()                { close(d.closing); <-d.may }
func (d *daemon) Kill()                 { close(d.killing); <-d.may }
func (d *daemon) Done() <-chan struct{} { return d.done }
func (d *daemon) Err() error            { return d.err }
func (d *daemon) Collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "test_daemons"}, func() float64 { return 1 })
}

func valid() error { return nil }

// run runs d until the context ends, and returns what Run does.
func run(ctx context.Context, d *daemon) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- process.Run(ctx, d, valid, slog.New(slog.DiscardHandler)) }()
	return ended
}

func TestEndsInGoodOrder(t *testing.T) {
	d := newDaemon()
	ctx, cancel := context.WithCancel(t.Context())
	ended := run(ctx, d)
	cancel()
	<-d.closing
	close(d.may)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestSecondSignal(t *testing.T) { testSignals(t, false) }

func TestThirdSignal(t *testing.T) { testSignals(t, true) }

func testSignals(t *testing.T, third bool) {
	d := newDaemon()
	ctx, cancel := context.WithCancel(t.Context())
	ended := run(ctx, d)
	cancel()
	<-d.closing // signals are heard from before this on
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-d.killing
	if third {
		err = self.Signal(os.Interrupt)
	} else {
		close(d.may)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = <-ended
	if !errors.Is(err, process.ErrHurried) || strings.Contains(err.Error(), "a third signal") != third {
		t.Errorf("%v, want %v", err, process.ErrHurried)
	}
	if third {
		close(d.may)
	}
}

// SIGHUP has the configuration looked at, and no more.
func TestHangUp(t *testing.T) {
	d := newDaemon()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrong := []error{nil, errors.New("f:1: a")}
	looked := make(chan struct{})
	check := func() error {
		err := wrong[0]
		wrong = wrong[1:]
		looked <- struct{}{}
		return err
	}
	var log bytes.Buffer
	ended := make(chan error, 1)
	running := make(chan struct{})
	go func() {
		h := slog.NewTextHandler(io.MultiWriter(&log, reported{"running until", running}), nil)
		ended <- process.Run(ctx, d, check, slog.New(h))
	}()
	<-running
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		<-looked
	}
	cancel()
	<-d.closing
	close(d.may)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "it is valid as it is now") || !strings.Contains(text, "f:1: a") {
		t.Errorf("it logged\n%s", text)
	}
}

// reported is a Writer that closes a channel when it is reported a text.
type reported struct {
	text string
	done chan struct{}
}

func (o reported) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(o.text)) {
		close(o.done)
	}
	return len(p), nil
}

func TestDaemonFails(t *testing.T) {
	d := newDaemon()
	d.err = errors.New("its listener failed")
	close(d.done)
	close(d.may)
	if err := <-run(t.Context(), d); !errors.Is(err, d.err) {
		t.Errorf("%v, want %v", err, d.err)
	}
}

func TestAdminServer(t *testing.T) {
	d := newDaemon()
	close(d.may)
	var log bytes.Buffer
	bad := settings.Admin{Listen: "192.0.2.1:0"}
	if err := process.Serve(t.Context(), d, bad, valid, slog.New(slog.NewTextHandler(&log, nil))); !errors.Is(err, admin.ErrRemote) {
		t.Errorf("%v, want %v", err, admin.ErrRemote)
	}
	<-d.closing

	d = newDaemon()
	close(d.may)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := process.Serve(ctx, d, settings.Admin{Listen: "127.0.0.1:0"}, valid, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "admin server started") {
		t.Errorf("it logged\n%s", &log)
	}
}

func TestTrust(t *testing.T) {
	if source, err := process.Trust(settings.TLS{}, slog.Default()); source != nil || err != nil {
		t.Errorf("without files: %v, %v", source, err)
	}
	if _, err := process.Trust(settings.TLS{Certificate: "a", Key: "b", Authority: "c"}, slog.Default()); err == nil {
		t.Error("absent files were read")
	}
}

func TestCheck(t *testing.T) {
	one, two := errors.New("f:1: a"), errors.Join(errors.New("f:1: a"), errors.New("f:2: b"))
	for _, c := range []struct {
		err               error
		out, errs, failed string
	}{
		{nil, "f: valid\n", "", ""},
		{one, "", "", "f:1: a"},
		{two, "", "f:1: a\nf:2: b\n", "f: 2 errors"},
	} {
		var out, errs bytes.Buffer
		failed := ""
		if err := process.Check(&out, &errs, "f", c.err, func() string { return "valid" }); err != nil {
			failed = err.Error()
		}
		if out.String() != c.out || errs.String() != c.errs || failed != c.failed {
			t.Errorf("%v: wrote %q and %q, and failed with %q", c.err, &out, &errs, failed)
		}
	}
	if line := process.OneLine(two); strings.Contains(line, "\n") || line != "f:1: a; f:2: b" {
		t.Errorf("in one line: %q", line)
	}
}
