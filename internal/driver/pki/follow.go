package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// sweepEvery is how often the files are looked at while there are connections, and
	// sweepIdle how often the clock is, which may have been set, where there are no files.
	sweepEvery = 5 * time.Second
	sweepIdle  = time.Hour
	// renewWithin bounds how long before the end of this process's own certificate
	// connections are replaced, if there is a later one.
	renewWithin = 10 * time.Minute
)

// followed is a connection that a Source follows.
type followed struct {
	peer  []*x509.Certificate
	from  string
	seen  *held     // by which peer was last found to be trusted,
	until time.Time // and until when
	end   func(error)

	own   time.Time     // end of the certificate that this process has shown, and of what it rests upon
	ahead time.Duration // so long before that the connection is renewed
	renew func()        // nil: not, or called already
}

// followers are the connections of a Source. Its zero value has none.
type followers struct {
	mu    sync.Mutex
	all   map[*followed]struct{}
	timer *time.Timer // runs while there are connections; nil: never yet
	due   time.Time   // when it ends
}

// Handshake is one connection's: its certificate is that which the files held when it began.
type Handshake struct {
	source *Source
	held   *held
}

// Begin returns the handshake of one connection.
func (s *Source) Begin() Handshake { return Handshake{s, s.current()} }

// Server returns the configuration of the connection's server, as Source.Server does.
func (h Handshake) Server() *tls.Config { return h.source.server(func() *held { return h.held }) }

// Client returns the configuration of the connection's client, as Source.Client does.
func (h Handshake) Client(w Want) *tls.Config {
	return h.source.client(w, func() *held { return h.held })
}

// Follow watches over the connection as Source.Follow does. It also calls renew, once, some
// time before the certificate of this process ends by which the connection was made, or what
// it rests upon, if there is a later one in its place: a connection made from then on lives
// longer.
func (h Handshake) Follow(c tls.ConnectionState, from string, end func(error), renew func()) (release func()) {
	now := h.source.now()
	f := &followed{peer: c.PeerCertificates, from: from, end: end, own: h.held.until, renew: renew}
	// Not all at once: connections that began together would be replaced together.
	ahead := max(0, min(f.own.Sub(now)/4, renewWithin))
	f.ahead = ahead/2 + rand.N(ahead/2+1)
	return h.source.follow(f, now)
}

// Follow watches over a connection whose handshake this Source has verified, until the
// returned function is called. It calls end, once, and logs that, when the certificate of the
// other side cannot be used any more: when it expires, or within 5 s when a changed file of
// revocation lists has it, or one of authorities does not have its authority any more. The
// call has a goroutine of its own.
func (s *Source) Follow(c tls.ConnectionState, from string, end func(error)) (release func()) {
	return s.follow(&followed{peer: c.PeerCertificates, from: from, end: end}, s.now())
}

func (s *Source) follow(f *followed, now time.Time) (release func()) {
	h := s.current()
	w := &s.followers
	w.mu.Lock()
	if w.all == nil {
		w.all = map[*followed]struct{}{}
	}
	w.all[f] = struct{}{}
	reason := s.look(f, h, now)
	s.wake(s.pause(f, now), now)
	w.mu.Unlock()
	if reason != nil {
		go s.endOf(f, reason) // since the handshake
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, f)
		if len(w.all) == 0 {
			w.timer.Stop()
			w.due = time.Time{}
		}
	}
}

// endOf ends a connection that is followed no longer.
func (s *Source) endOf(f *followed, reason error) {
	if s.log != nil {
		s.log.Warn("connection closed: its certificate cannot be used any more", slog.String("from", f.from), slog.Any("error", reason))
	}
	f.end(reason)
}

// wake has the next sweep be after a pause at the latest. The caller holds the lock.
func (s *Source) wake(pause time.Duration, now time.Time) {
	w := &s.followers
	due := now.Add(pause)
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(pause, s.sweep)
	case w.due.IsZero() || due.Before(w.due):
		w.timer.Reset(pause)
	default:
		return
	}
	w.due = due
}

// pause returns how long a connection need not be looked at.
func (s *Source) pause(f *followed, now time.Time) time.Duration {
	pause := sweepEvery
	if s.files == (Files{}) {
		pause = sweepIdle
	}
	pause = min(pause, f.until.Sub(now)+time.Millisecond) // a certificate is valid up to its end and including it
	if ahead := f.own.Add(-f.ahead).Sub(now); f.renew != nil && ahead > 0 {
		pause = min(pause, ahead)
	}
	return max(pause, time.Millisecond)
}

// look returns why a connection is to end, and forgets it then; and has it renewed, if that is
// due. The caller holds the lock.
func (s *Source) look(f *followed, h *held, now time.Time) (reason error) {
	if f.seen != h || now.After(f.until) {
		if _, f.until, reason = h.verify(f.peer, x509.ExtKeyUsageAny, now); reason != nil {
			delete(s.followers.all, f)
			return fmt.Errorf("the other side: %w", reason)
		}
		f.seen = h
	}
	if f.renew != nil && !now.Before(f.own.Add(-f.ahead)) && h.until.After(f.own) {
		go f.renew()
		f.renew = nil
	}
	return nil
}

// sweep looks at all connections.
func (s *Source) sweep() {
	h, now := s.current(), s.now()
	w := &s.followers
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = time.Time{}
	for f := range w.all {
		if reason := s.look(f, h, now); reason != nil {
			go s.endOf(f, reason) // which may wait
			continue
		}
		s.wake(s.pause(f, now), now)
	}
}
