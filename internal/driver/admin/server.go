package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/admission"
)

// DefaultListen is the address of a Config that names none: any free port.
const DefaultListen = "127.0.0.1:0"

// ErrRemote: an address can be reached from other machines, and that is not
// allowed.
var ErrRemote = errors.New("admin: only loopback addresses are served, unless remote access is allowed (\"remote: true\" in a configuration file's \"admin\")")

// ErrProfiles: profiles are for who is on this machine.
var ErrProfiles = errors.New("admin: profiles are served on loopback addresses alone: forward the port, as by ssh -L")

const (
	headerTimeout = 5 * time.Second  // for a request's header to arrive
	readTimeout   = 10 * time.Second // for all of a request
	writeTimeout  = time.Minute      // for an answer; a profile may take longer
	idleTimeout   = time.Minute      // between requests of a connection
	closeTimeout  = time.Second      // for answers under way when the server is closed

	maxHeader = 16 << 10 // bytes of a request's header
)

// limits are of each listener's connections.
var limits = admission.Limits{All: 64, OfSource: 16}

// Config says what to serve. Its zero value serves the health of a process that
// is always well.
type Config struct {
	Listen      string // "host:port"; port 0 takes a free one; empty: DefaultListen
	AllowRemote bool   // Listen may be another address than a loopback one
	Profiles    string // "host:port" of profiles, on loopback and not Listen; empty: there are none

	Metrics http.Handler            // of the page of that name, as NewMetrics makes it; nil: there is none
	Health  func() error            // returns why the process is not well; nil: it always is
	Pages   map[string]http.Handler // further ones to GET, by their paths, such as "/members"

	Log *slog.Logger // nil: none
}

// Server serves the pages of one process.
type Server struct{ pages, profiles *door } // profiles: nil if there are none

// door is one listener.
type door struct {
	http *http.Server
	addr net.Addr
	done chan struct{}
	err  error // why it ended; read after done
}

// Start starts a server. The caller owns it and must Close it.
func Start(c Config) (*Server, error) {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	listener, err := listen(c)
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if c.Profiles != "" {
		behind, err := c.listenProfiles()
		if err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		s.profiles = open(behind, newProfiles(), 0, c.Log)
		c.Log.Info("profiles are served", slog.String("address", s.profiles.addr.String()))
	}
	s.pages = open(listener, newMux(c), writeTimeout, c.Log)
	c.Log.Info("admin server started", slog.String("address", s.Addr()))
	return s, nil
}

// open serves on a listener.
func open(listener net.Listener, pages http.Handler, within time.Duration, log *slog.Logger) *door {
	d := &door{
		http: &http.Server{
			Handler: pages, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: within,
			IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		addr: listener.Addr(),
		done: make(chan struct{}),
	}
	go func() {
		defer close(d.done)
		if err := d.http.Serve(admission.New(listener, limits, log)); !errors.Is(err, http.ErrServerClosed) {
			d.err = err
			log.Error("the admin server failed", slog.Any("error", err))
		}
	}()
	return d
}

// Check returns why Start cannot succeed, the port aside.
func (c Config) Check() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	if err := c.mayListen(); err != nil {
		return err
	}
	c.Listen = net.JoinHostPort(host, "0")
	listener, err := listen(c)
	if err != nil {
		return err
	}
	if err := listener.Close(); err != nil || c.Profiles == "" {
		return err
	}
	if host, _, err = net.SplitHostPort(c.Profiles); err != nil {
		return fmt.Errorf("admin: profiles: %w", err)
	}
	c.Profiles = net.JoinHostPort(host, "0")
	if listener, err = c.listenProfiles(); err != nil {
		return err
	}
	return listener.Close()
}

// listenProfiles opens the listener of profiles, whatever AllowRemote says.
func (c Config) listenProfiles() (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", c.Profiles)
	if err != nil {
		return nil, fmt.Errorf("admin: profiles: %w", err)
	}
	if !a.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: %s", ErrProfiles, c.Profiles)
	}
	listener, err := net.ListenTCP("tcp", a)
	if err != nil {
		return nil, fmt.Errorf("admin: profiles: %w", err)
	}
	return listener, nil
}

// mayListen returns ErrRemote if the address is for more than this machine, and
// that is not allowed.
func (c Config) mayListen() error {
	a, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	if !c.AllowRemote && !a.IP.IsLoopback() {
		return fmt.Errorf("%w: %s", ErrRemote, c.Listen)
	}
	return nil
}

func listen(c Config) (net.Listener, error) {
	if err := c.mayListen(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	return listener, nil
}

func newMux(c Config) *http.ServeMux {
	mux := http.NewServeMux()
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics)
	}
	for path, page := range c.Pages {
		mux.Handle("GET "+path, page)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { healthz(w, c.Health) })
	return mux
}

func newProfiles() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func healthz(w http.ResponseWriter, health func() error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if health != nil {
		if err := health(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, err)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

// Addr returns the "host:port" that it serves on.
func (s *Server) Addr() string { return s.pages.addr.String() }

// ProfilesAddr returns the "host:port" of profiles; empty: there are none.
func (s *Server) ProfilesAddr() string {
	if s.profiles == nil {
		return ""
	}
	return s.profiles.addr.String()
}

// Close ends the server, gives answers under way a moment, and returns when
// all has ended. The error is that a listener failed before.
func (s *Server) Close() error {
	err := s.pages.close()
	if s.profiles != nil {
		err = errors.Join(err, s.profiles.close())
	}
	return err
}

func (d *door) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if d.http.Shutdown(ctx) != nil {
		_ = d.http.Close() // breaks off what is left, a profile perhaps
	}
	<-d.done
	return d.err
}
