package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// Source is a certificate, its key, and the authorities that it trusts, from
// files that are read again when they change. It is safe for concurrent use.
type Source struct {
	files    Files
	identity Identity
	log      *slog.Logger
	now      func() time.Time

	mu      sync.Mutex
	held    *held
	edition uint64         // rises with held
	stamps  [4]fs.FileInfo // of the files as they were last read, well or badly
	broken  bool           // they were badly read,
	tried   time.Time      // last then,
	logged  time.Time      // and last logged then
	overdue time.Time      // when a list that should have been followed by another one was last logged

	followers followers
}

// Files are the paths of a Source's files, PEM.
type Files struct {
	Cert    string // the certificate, and those between it and the authority
	Key     string // its private key, which nobody but its owner may read
	CA      string // authorities that are trusted
	Revoked string // revocation lists of authorities, or one in DER; empty: none
}

// paths returns them, the one that may be empty last.
func (f *Files) paths() [4]string { return [...]string{f.Cert, f.Key, f.CA, f.Revoked} }

// held is what was read of the files.
type held struct {
	pair    *tls.Certificate
	chain   []*x509.Certificate // of the pair
	until   time.Time           // the pair can be used
	roots   *x509.CertPool
	known   []*x509.Certificate // in roots
	revoked *revocations
	older   []*list // of the file, in whose place newer ones of before are in revoked
	missing []*list // in revoked, of before, of whose authorities the file has none
}

// Check returns an error that names the field of a TLS, in whose place the paths are, that
// is empty.
func (f Files) Check() error {
	for _, p := range [...][2]string{{"Cert", f.Cert}, {"Key", f.Key}, {"CA", f.CA}} {
		if p[1] == "" {
			return fmt.Errorf("TLS.%s is empty, want the path of a PEM file", p[0])
		}
	}
	return nil
}

// Load reads a certificate, its key, and the authorities whose certificates
// are trusted. The certificate has to be in time, to be of one
// of these authorities, and to name an identity; the key has to be its owner's alone
// (secretfile.ErrMode). What is to be reported later of changed files, and of connections that end with
// their certificate, goes to log; nil: nowhere.
func Load(files Files, log *slog.Logger) (*Source, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Source{files: files, log: log, now: time.Now}
	s.stamps = s.stat()
	h, identity, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("loading certificates: %w", err)
	}
	s.held, s.identity = h, identity
	s.report(h)
	return s, nil
}

// Identity returns whom the certificate names. It does not change: files that
// name another one are not taken.
func (s *Source) Identity() Identity { return s.identity }

// Expect returns nil if the certificate is what w wants, and otherwise an error
// that is ErrWrongRole and says for what it would be needed.
func (s *Source) Expect(w Want) error {
	if err := w.check(s.identity); err != nil {
		return fmt.Errorf("%s: %w", s.files.Cert, err)
	}
	return nil
}

// Edition returns a number that rises when changed files are taken.
func (s *Source) Edition() uint64 {
	s.current()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.edition
}

func (s *Source) read() (*held, Identity, error) {
	pair, chain, err := readPair(s.files.Cert, s.files.Key)
	if err != nil {
		return nil, Identity{}, err
	}
	h := &held{pair: pair, chain: chain, roots: x509.NewCertPool()}
	if h.known, err = readCertificates(s.files.CA); err != nil {
		return nil, Identity{}, err
	}
	for _, cert := range h.known {
		h.roots.AddCert(cert)
	}
	if s.files.Revoked != "" {
		if h.revoked, err = readRevocations(s.files.Revoked); err != nil {
			return nil, Identity{}, err
		}
		if s.held != nil {
			h.older, h.missing = h.revoked.keep(s.held.revoked, slices.Concat(h.known, chain))
		}
	}
	identity, until, err := h.verify(chain, x509.ExtKeyUsageAny, s.now())
	if err != nil {
		return nil, Identity{}, fmt.Errorf("%s: %w", s.files.Cert, err)
	}
	h.until = until
	return h, identity, nil
}

// report logs what of new lists may not be as it should.
func (s *Source) report(h *held) {
	if h.revoked == nil {
		return
	}
	for _, l := range h.revoked.lists {
		if isOf := func(c *x509.Certificate) bool { return l.isOf(c) }; !slices.ContainsFunc(h.known, isOf) && !slices.ContainsFunc(h.chain, isOf) {
			s.log.Warn("a revocation list is signed by no authority that this process knows: it counts for certificates alone that bring that authority's with them",
				slog.String("file", s.files.Revoked), slog.String("issuer", l.Issuer.String()))
		}
	}
	for _, l := range h.older {
		s.log.Error("a revocation list is older than the one in use, which stays: a restart takes it, if its authority numbers its lists anew",
			slog.String("file", s.files.Revoked), slog.String("issuer", l.Issuer.String()), slog.Any("number", l.Number), slog.Time("made", l.ThisUpdate))
	}
	for _, l := range h.missing {
		s.log.Error("an authority has no revocation list in the file any more: the one in use stays until a restart",
			slog.String("file", s.files.Revoked), slog.String("issuer", l.Issuer.String()), slog.Any("number", l.Number))
	}
	s.overdue = time.Time{}
	s.remind(h)
}

// remindEvery is how often it is logged that a list is overdue, and that files are not taken.
const remindEvery = time.Hour

// remind logs, from time to time, that a list should have been followed by another one. What
// it revokes stays revoked, and other certificates are still taken: who keeps new lists away
// shall not stop everything.
func (s *Source) remind(h *held) {
	now := s.now()
	if due := h.revoked.due(); !due.IsZero() && now.After(due) && now.Sub(s.overdue) >= remindEvery {
		s.overdue = now
		s.log.Error("a revocation list is out of date: what was revoked since is not known here",
			slog.String("file", s.files.Revoked), slog.Time("due", due))
	}
}

func (s *Source) stat() (stamps [4]fs.FileInfo) {
	for i, path := range s.files.paths() {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = info
		}
	}
	return stamps
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// current returns what the files hold, or held before they were broken.
func (s *Source) current() *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == (Files{}) {
		return s.held
	}
	stamps := s.stat() // before reading: what changes meanwhile is read again
	changed := false
	for i := range stamps {
		changed = changed || !sameFile(stamps[i], s.stamps[i])
	}
	// What is broken may become whole without a change here: by its mode, its owner, the clock.
	now := s.now()
	if !changed && (!s.broken || now.Sub(s.tried) < sweepEvery) {
		s.remind(s.held)
		return s.held
	}
	if changed {
		s.logged = time.Time{}
	}
	s.stamps, s.tried = stamps, now
	h, identity, err := s.read()
	if err == nil && identity != s.identity {
		err = fmt.Errorf("%s: %w: it is %s, it was %s: that needs a restart", s.files.Cert, ErrWrongRole, identity, s.identity)
	}
	if s.broken = err != nil; s.broken {
		if now.Sub(s.logged) >= remindEvery {
			s.logged = now
			s.log.Error("changed certificate files are not taken, the ones before stay in use", slog.Any("error", err))
		}
		s.remind(s.held)
		return s.held
	}
	s.held = h
	s.edition++
	s.log.Info("changed certificate files are in use", slog.String("identity", identity.String()),
		slog.Time("until", h.until))
	s.report(h)
	return h
}

// Server returns the configuration of a server, which takes clients of any
// role: what they may do is for the server's methods to say.
func (s *Source) Server() *tls.Config { return s.server(s.current) }

func (s *Source) server(shown func() *held) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			// One that has expired is for clients to refuse: they say why.
			return shown().pair, nil
		},
		ClientAuth: tls.RequireAnyClientCert, // verified below
		VerifyConnection: func(c tls.ConnectionState) error {
			return s.accept(c, x509.ExtKeyUsageClientAuth, Want{})
		},
		SessionTicketsDisabled: true, // every connection is verified in full
	}
}

// Client returns the configuration of a client that talks to w and to nobody
// else. By which name or address the server was reached does not matter.
func (s *Source) Client(w Want) *tls.Config { return s.client(w, s.current) }

func (s *Source) client(w Want, shown func() *held) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair := shown().pair
			if err := inTime(pair.Leaf, s.now()); err != nil {
				return nil, fmt.Errorf("own certificate: %w", err)
			}
			return pair, nil
		},
		InsecureSkipVerify: true, // instead of a host name, VerifyConnection checks chain and identity
		VerifyConnection: func(c tls.ConnectionState) error {
			return s.accept(c, x509.ExtKeyUsageServerAuth, w)
		},
	}
}

// accept verifies the other side of a connection.
func (s *Source) accept(c tls.ConnectionState, use x509.ExtKeyUsage, w Want) error {
	identity, _, err := s.current().verify(c.PeerCertificates, use, s.now())
	if err == nil {
		err = w.check(identity)
	}
	if err != nil {
		return fmt.Errorf("the other side: %w", err)
	}
	return nil
}
