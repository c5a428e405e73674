package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/admin"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

// ErrHurried: a second signal came before the daemon had ended in good order.
var ErrHurried = errors.New("ended at once by a second signal")

// Main runs a program's command line, and returns the status to exit with.
func Main(name string, root *cobra.Command) (status int) {
	return Supervise(os.Stderr, name, func(ctx context.Context) error { return Execute(ctx, root, os.Stdout) })
}

// Supervise runs a command under the context that the first SIGINT or SIGTERM
// ends, and returns the status to exit with: 1 after an error, which it writes in
// a line that begins with the program's name, and as shells do, 128 and the
// signal's number, if one has broken the command off.
func Supervise(stderr io.Writer, name string, run func(context.Context) error) (status int) {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			stop(interrupted{s})
		case <-ctx.Done():
		}
	}()
	defer func() {
		signal.Stop(signals)
		stop(nil)
		<-done
	}()
	err := run(ctx)
	if err == nil {
		return 0
	}
	var by interrupted
	if errors.As(context.Cause(ctx), &by) && !errors.Is(err, ErrHurried) {
		fmt.Fprintln(stderr, name+": interrupted")
		if s, ok := by.signal.(syscall.Signal); ok {
			return 128 + int(s)
		}
		return 1
	}
	fmt.Fprintln(stderr, name+":", OneLine(err))
	return 1
}

// interrupted is why a command's context has ended.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "interrupted by " + i.signal.String() }

// OneLine joins the lines of an error, of which some have several, fit for a
// terminal.
func OneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = printable.Text(lines[i])
	}
	return strings.Join(lines, "; ")
}

// Service is what runs until it is to end.
type Service interface {
	Close()                // ends it in good order
	Kill()                 // ends it at once, also while Close is under way; returns when it has ended
	Done() <-chan struct{} // closed when it cannot be reached any more
	Err() error            // why, if it was not closed
}

// Daemon is a manager or an agent that runs.
type Daemon interface {
	Service
	Collector() prometheus.Collector
}

// inZone is a Daemon that may be a node of a zone.
type inZone interface {
	Pages() map[string]http.Handler         // further ones of the admin server
	ZoneCollectors() []prometheus.Collector // none: it is in no zone
}

// Serve starts the admin server, if there is to be one, and is Run.
func Serve(ctx context.Context, d Daemon, a settings.Admin, check func() error, log *slog.Logger) (err error) {
	if a.Listen != "" {
		server, err := startAdmin(d, a, log)
		if err != nil {
			d.Close()
			return err
		}
		defer func() { _ = server.Close() }() // its failure is in the log
	}
	return Run(ctx, d, check, log)
}

// CheckAdmin returns why Serve cannot start the admin server.
func CheckAdmin(a settings.Admin) error {
	if a.Listen == "" {
		return nil
	}
	return admin.Config{Listen: a.Listen, AllowRemote: a.Remote, Profiles: a.Profiles}.Check()
}

func startAdmin(d Daemon, a settings.Admin, log *slog.Logger) (*admin.Server, error) {
	counts := []prometheus.Collector{d.Collector()}
	if more, ok := d.(inZone); ok {
		counts = append(counts, more.ZoneCollectors()...)
	}
	metrics, err := admin.NewMetrics(log, counts...)
	if err != nil {
		return nil, err
	}
	health := func() error {
		select {
		case <-d.Done():
			return errors.New("it cannot be reached any more")
		default:
			return nil
		}
	}
	c := admin.Config{Listen: a.Listen, AllowRemote: a.Remote, Profiles: a.Profiles, Metrics: metrics, Health: health, Log: log}
	if more, ok := d.(inZone); ok {
		c.Pages = more.Pages()
	}
	return admin.Start(c)
}

// Run closes d when ctx ends, and returns when d has ended. It notifies the service
// manager when the daemon serves and when it ends. A second signal
// kills d: it waits for no call, but what it holds is closed; the error is
// ErrHurried. A third one has Run return at once, whatever is still open, so
// that the process can always be ended.
//
// SIGHUP, which asks other daemons to read their configuration again, changes
// nothing here: it has check look at the files as they are now, and the log say
// whether a restart would take them.
func Run(ctx context.Context, d Service, check func() error, log *slog.Logger) error {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	log.Info("running until SIGTERM or SIGINT")
	inform := func(state string) {
		if err := notify(state); err != nil {
			log.Warn("it goes on", slog.Any("error", err))
		}
	}
	inform(isReady)
	for ctx.Err() == nil {
		select {
		case <-d.Done():
			d.Close()
			return d.Err()
		case <-hangUp:
			informOfChange(check(), log)
		case <-ctx.Done():
		}
	}
	inform(isEnding)
	again := make(chan os.Signal, 2)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	log.Info("ending in good order; a second signal ends it at once")
	if s := during(d.Close, again); s == nil {
		return nil
	}
	log.Warn("a second signal: calls under way are broken off, and their callers not reported; a third one leaves everything as it is")
	if s := during(d.Kill, again); s != nil {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // the caller's own end may hang as well: the next one is the system's
		log.Error("a third signal: it did not end, and is left as it is")
		return fmt.Errorf("%w: a third signal: %v", ErrHurried, s)
	}
	log.Warn("ended at once: all that it had open is closed")
	return ErrHurried
}

// informOfChange answers a SIGHUP.
func informOfChange(wrong error, log *slog.Logger) {
	if wrong != nil {
		log.Error("the configuration as it is now would keep a restart from succeeding", slog.String("error", OneLine(wrong)))
		return
	}
	log.Warn("the configuration is read at the start alone; it is valid as it is now, and a restart takes it")
}

// during runs end until it returns (nil) or a signal comes. What goes on then
// ends with the process.
func during(end func(), signals <-chan os.Signal) os.Signal {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	select {
	case <-ended:
		return nil
	case s := <-signals:
		return s
	}
}

// Trust reads the certificate files, if there are any.
func Trust(t settings.TLS, log *slog.Logger) (*pki.Source, error) {
	if !t.Given() {
		return nil, nil
	}
	return pki.Load(t.Files(), log)
}
