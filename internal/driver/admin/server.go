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
)

// DefaultListen is the address of a Config that names none: any free port.
const DefaultListen = "127.0.0.1:0"

// ErrRemote: an address can be reached from other machines, and that is not
// allowed.
var ErrRemote = errors.New("admin: only loopback addresses are served, unless remote access is allowed (\"remote: true\" in a configuration file's \"admin\")")

const (
	headerTimeout = 5 * time.Second // for a request's header to arrive
	closeTimeout  = time.Second     // for answers under way when the server is closed
)

// Config says what to serve. Its zero value serves profiles of a process that
// is always well.
type Config struct {
	Listen      string // "host:port"; port 0 takes a free one; empty: DefaultListen
	AllowRemote bool   // Listen may be another address than a loopback one

	Metrics http.Handler            // of the page of that name, as NewMetrics makes it; nil: there is none
	Health  func() error            // returns why the process is not well; nil: it always is
	Pages   map[string]http.Handler // further ones to GET, by their paths, such as "/members"

	Log *slog.Logger // nil: none
}

// Server serves the pages of one process.
type Server struct {
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
	s := &Server{
		http: &http.Server{
			Handler: newMux(c), ReadHeaderTimeout: headerTimeout,
			ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
		},
		addr: listener.Addr(),
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
			c.Log.Error("the admin server failed", slog.Any("error", err))
		}
	}()
	c.Log.Info("admin server started", slog.String("address", s.Addr()))
	return s, nil
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
	return listener.Close()
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
func (s *Server) Addr() string { return s.addr.String() }

// Close ends the server, gives answers under way a moment, and returns when
// all has ended. The error is that the listener failed before.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // breaks off what is left, a profile perhaps
	}
	<-s.done
	return s.err
}
