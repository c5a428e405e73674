package hostlib

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// certificates are the files of WithTLS.
type certificates struct{ cert, key, ca string }

// WithTLS encrypts the connections to the manager and to other members: PEM files of the
// host's certificate, its key, and the authorities that it trusts. The certificate has to
// name the host by the URI tributary://host/NAME, the manager's to name a manager, and
// those of other members their hosts. Files that change are read again. Packets to and from
// switches are not encrypted.
//
// Without, only loopback addresses are served and called: see WithPlaintext.
func WithTLS(certFile, keyFile, caFile string) Option {
	return func(s *settings) { s.certificates = &certificates{certFile, keyFile, caFile} }
}

// WithPlaintext serves and calls members at all addresses without certificates: whoever
// reaches them may say that it is any host.
func WithPlaintext() Option { return func(s *settings) { s.plaintext = true } }

// source returns the certificate of the host of that name; nil: there is none.
func (s *settings) source(name string, log *slog.Logger) (*pki.Source, error) {
	if s.certificates == nil {
		return nil, nil
	}
	source, err := pki.Load(s.certificates.cert, s.certificates.key, s.certificates.ca, log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	if err := source.Expect(pki.Want{Role: pki.Host, Name: name}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	return source, nil
}

// encryption returns how the host speaks to a manager; nil: in plaintext.
func encryption(source *pki.Source) *tls.Config {
	if source == nil {
		return nil
	}
	return source.Client(pki.Want{Role: pki.Manager})
}
