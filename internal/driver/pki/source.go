package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Source is a certificate, its key, and the authorities that it trusts, from
// files that are read again when they change. It is safe for concurrent use.
type Source struct {
	files    [3]string // certificate, key, authorities
	identity Identity
	log      *slog.Logger
	now      func() time.Time

	mu     sync.Mutex
	held   *held
	stamps [3]fs.FileInfo // of the files as they were last read, well or badly
}

// held is what was read of the files.
type held struct {
	pair  *tls.Certificate
	chain []*x509.Certificate // of the pair
	roots *x509.CertPool
}

// CheckPaths returns an error that names the field of a TLS, of which Load takes the three
// paths, that is empty.
func CheckPaths(cert, key, ca string) error {
	for _, p := range [...][2]string{{"Cert", cert}, {"Key", key}, {"CA", ca}} {
		if p[1] == "" {
			return fmt.Errorf("TLS.%s is empty, want the path of a PEM file", p[0])
		}
	}
	return nil
}

// Load reads a certificate, its key, and the authorities whose certificates
// are trusted, all PEM files. The certificate has to be in time, to be of one
// of these authorities, and to name an identity. What is to be reported later of
// changed files goes to log; nil: nowhere.
func Load(certFile, keyFile, caFile string, log *slog.Logger) (*Source, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Source{files: [3]string{certFile, keyFile, caFile}, log: log, now: time.Now}
	s.stamps = s.stat()
	h, identity, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("loading certificates: %w", err)
	}
	s.held, s.identity = h, identity
	if info := s.stamps[1]; info != nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		log.Warn("others than its owner may read or write a private key", slog.String("file", keyFile), slog.String("mode", info.Mode().String()))
	}
	return s, nil
}

// Identity returns whom the certificate names. It does not change: files that
// name another one are not taken.
func (s *Source) Identity() Identity { return s.identity }

// Expect returns nil if the certificate is what w wants, and otherwise an error
// that is ErrWrongRole and says for what it would be needed.
func (s *Source) Expect(w Want) error {
	if err := w.check(s.identity); err != nil {
		return fmt.Errorf("%s: %w", s.files[0], err)
	}
	return nil
}

func (s *Source) read() (*held, Identity, error) {
	pair, chain, err := readPair(s.files[0], s.files[1])
	if err != nil {
		return nil, Identity{}, err
	}
	authorities, err := readCertificates(s.files[2])
	if err != nil {
		return nil, Identity{}, err
	}
	h := &held{pair: pair, chain: chain, roots: x509.NewCertPool()}
	for _, cert := range authorities {
		h.roots.AddCert(cert)
	}
	identity, err := verify(chain, h.roots, x509.ExtKeyUsageAny, s.now())
	if err != nil {
		return nil, Identity{}, fmt.Errorf("%s: %w", s.files[0], err)
	}
	return h, identity, nil
}

func (s *Source) stat() (stamps [3]fs.FileInfo) {
	for i, path := range s.files {
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
	stamps := s.stat() // before reading: what changes meanwhile is read again
	changed := false
	for i := range stamps {
		changed = changed || !sameFile(stamps[i], s.stamps[i])
	}
	if !changed {
		return s.held
	}
	s.stamps = stamps
	h, identity, err := s.read()
	if err == nil && identity != s.identity {
		err = fmt.Errorf("%s: %w: it is %s, it was %s: that needs a restart", s.files[0], ErrWrongRole, identity, s.identity)
	}
	if err != nil {
		s.log.Error("changed certificate files are not taken, the ones before stay in use", slog.Any("error", err))
		return s.held
	}
	s.held = h
	s.log.Info("changed certificate files are in use", slog.String("identity", identity.String()),
		slog.Time("until", h.pair.Leaf.NotAfter))
	return h
}

// Server returns the configuration of a server, which takes clients of any
// role: what they may do is for the server's methods to say.
func (s *Source) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			// One that has expired is for clients to refuse: they say why.
			return s.current().pair, nil
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
func (s *Source) Client(w Want) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair := s.current().pair
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
	identity, err := verify(c.PeerCertificates, s.current().roots, use, s.now())
	if err == nil {
		err = w.check(identity)
	}
	if err != nil {
		return fmt.Errorf("the other side: %w", err)
	}
	return nil
}
