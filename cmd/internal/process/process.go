package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/admin"
	"github.com/tributary-fabric/tributary/internal/pki"
	"github.com/tributary-fabric/tributary/internal/settings"
)

// ErrHurried: a second signal came before the daemon had ended in good order.
var ErrHurried = errors.New("ended at once by a second signal")

// Main runs a command under the context that the first SIGINT or SIGTERM ends,
// writes its error in a line that begins with its name, and exits with status
// 1 if there is one.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", OneLine(err))
		os.Exit(1) // the deferred stop would only restore signals
	}
}

// OneLine joins the lines of an error, of which some have several.
func OneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

// Daemon is a manager or an agent that runs.
type Daemon interface {
	Close()                // ends it in good order
	Done() <-chan struct{} // closed when it cannot be reached any more
	Err() error            // why, if it was not closed
	Collector() prometheus.Collector
}

// Serve starts the admin server, if there is to be one, and is Run.
func Serve(ctx context.Context, d Daemon, a settings.Admin, log *slog.Logger) (err error) {
	if a.Listen != "" {
		server, err := startAdmin(d, a, log)
		if err != nil {
			d.Close()
			return err
		}
		defer func() { _ = server.Close() }() // its failure is in the log
	}
	return Run(ctx, d, log)
}

func startAdmin(d Daemon, a settings.Admin, log *slog.Logger) (*admin.Server, error) {
	metrics, err := admin.NewMetrics(log, d.Collector())
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
	return admin.Start(admin.Config{Listen: a.Listen, AllowRemote: a.Remote, Metrics: metrics, Health: health, Log: log})
}

// Run closes d when ctx ends, and returns when d has ended. A signal after
// that has it return ErrHurried at once: the process is to exit, which is no
// worse for others than its death.
func Run(ctx context.Context, d Daemon, log *slog.Logger) error {
	select {
	case <-d.Done():
		d.Close()
		return d.Err()
	case <-ctx.Done():
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	log.Info("ending in good order; a second signal ends it at once")
	ended := make(chan struct{})
	go func() { // ends with the process, if not by itself
		defer close(ended)
		d.Close()
	}()
	select {
	case <-ended:
		return nil
	case s := <-again:
		return fmt.Errorf("%w: %v", ErrHurried, s)
	}
}

// Trust reads the certificate files, if there are any.
func Trust(t settings.TLS, log *slog.Logger) (*pki.Source, error) {
	if !t.Given() {
		return nil, nil
	}
	return pki.Load(t.Certificate, t.Key, t.Authority, log)
}
