package p4rt

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
)

// What Config has where it says nothing else.
const (
	DefaultDeadline     = 3 * time.Second
	DefaultPushDeadline = 30 * time.Second
	DefaultHeartbeat    = 2 * time.Second
	DefaultMinPause     = 100 * time.Millisecond
	DefaultMaxPause     = 5 * time.Second
	DefaultPackets      = 4096
)

// Config says which target a client controls, and how.
type Config struct {
	// Target is where its P4Runtime server listens: "host:port", or the path of
	// a unix socket, absolute or after "unix:".
	Target string
	Device uint64 // device id of the target
	// Election is this controller's id in the election of the primary: of all
	// that are connected the highest wins. It must not be 0. Two controllers of
	// one target need different ones; a controller that is to win against one
	// that hangs takes a higher one, for instance made of its time of start.
	Election Election
	Pipeline Pipeline // the program that the target is to run
	// TLS returns how the server is met by TLS, anew for each connection, so that
	// renewed certificates are used. nil: in plain text.
	TLS func() (*tls.Config, error)
	// Login is what the server wants to see of every call; zero: nothing.
	Login Login

	Deadline     time.Duration // for a target to answer a call, and to take a packet; 0: DefaultDeadline
	PushDeadline time.Duration // for a target to take a program; 0: DefaultPushDeadline
	Heartbeat    time.Duration // between two looks at the target's cookie; 0: DefaultHeartbeat

	// The pause before another try to connect begins with MinPause and doubles
	// up to MaxPause; 0: DefaultMinPause, DefaultMaxPause.
	MinPause, MaxPause time.Duration

	// Packets is how many punted packets wait at most for Packets; what comes
	// beyond is dropped and counted. 0: DefaultPackets.
	Packets int

	Log *slog.Logger // nil: none
}

// Login is a user's name and password, which calls carry as metadata "username" and
// "password".
type Login struct{ User, Password string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (l Login) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"username": l.User, "password": l.Password}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: whether a password
// may go in plain text, as to a server on the same machine, its giver decides.
func (l Login) RequireTransportSecurity() bool { return false }

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c Config) Validate() error {
	if _, _, err := NetworkOf(c.Target); err != nil {
		return err
	}
	if c.Election == (Election{}) {
		return fmt.Errorf("%w: target %s: election id 0, which means that a controller takes no part", ErrConfig, c.Target)
	}
	for _, d := range []time.Duration{c.Deadline, c.PushDeadline, c.Heartbeat, c.MinPause, c.MaxPause} {
		if d < 0 {
			return fmt.Errorf("%w: target %s: a duration of %v", ErrConfig, c.Target, d)
		}
	}
	filled := c.filled()
	switch {
	case c.Packets < 0:
		return fmt.Errorf("%w: target %s: room for %d packets", ErrConfig, c.Target, c.Packets)
	case filled.MinPause > filled.MaxPause:
		return fmt.Errorf("%w: target %s: least pause %v is above the longest, %v", ErrConfig, c.Target, filled.MinPause, filled.MaxPause)
	}
	if err := c.Pipeline.Validate(); err != nil {
		return fmt.Errorf("%w: target %s: %w", ErrConfig, c.Target, err)
	}
	return nil
}

// NetworkOf returns "tcp" or "unix", and the address there, of what may be the
// Target of a Config; the error wraps ErrConfig.
func NetworkOf(target string) (network, address string, err error) {
	if path, unix := strings.CutPrefix(target, "unix:"); unix || strings.HasPrefix(target, "/") {
		path = "/" + strings.TrimLeft(path, "/")
		if path == "/" {
			return "", "", fmt.Errorf("%w: target %q has no path; want unix:/path, or host:port", ErrConfig, target)
		}
		return "unix", path, nil
	}
	if host, port, err := net.SplitHostPort(target); err != nil || host == "" || port == "" {
		return "", "", fmt.Errorf("%w: target %q; want host:port, or unix:/path", ErrConfig, target)
	}
	return "tcp", target, nil
}

// filled returns c with its defaults.
func (c Config) filled() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Deadline, DefaultDeadline}, {&c.PushDeadline, DefaultPushDeadline}, {&c.Heartbeat, DefaultHeartbeat},
		{&c.MinPause, DefaultMinPause}, {&c.MaxPause, max(DefaultMaxPause, c.MinPause)},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Packets == 0 {
		c.Packets = DefaultPackets
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
