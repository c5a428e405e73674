package hostlib

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/pki"
)

// certificates are the files of WithTLS.
type certificates struct{ cert, key, ca string }

// WithTLS encrypts the connection to the manager: PEM files of the host's
// certificate, its key, and the authorities that it trusts. The certificate
// has to name the host by the URI tributary://host/NAME, and the manager's to
// name a manager. Files that change are read again.
//
// Connections between members, and packets, are not encrypted.
func WithTLS(certFile, keyFile, caFile string) Option {
	return func(s *settings) { s.certificates = &certificates{certFile, keyFile, caFile} }
}

// encryption returns how the host of that name speaks to a manager; nil: in
// plaintext.
func (s *settings) encryption(name string, log *slog.Logger) (*tls.Config, error) {
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
	return source.Client(pki.Want{Role: pki.Manager}), nil
}
