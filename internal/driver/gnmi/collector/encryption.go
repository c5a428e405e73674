package collector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// The errors of a target with which the encryption is not agreed upon.
var (
	ErrEncrypted = errors.New("it ends connections without TLS; if it wants certificates, give them")
	ErrPlaintext = errors.New("it does not serve TLS, and is called with certificates")
)

// hint adds to the error of the first call that it may be of the encryption.
func (s *stream) hint(err error) error {
	switch {
	case s.isPlain.Load():
		return fmt.Errorf("%w: %w", ErrPlaintext, err)
	case s.cfg.TLS == nil && s.isReached.Load() && status.Code(err) == codes.Unavailable:
		return fmt.Errorf("%w: %w", ErrEncrypted, err)
	}
	return err
}

// reach connects.
func (s *stream) reach(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	s.isReached.Store(err == nil)
	return conn, err
}

// handshake notes that the other side does not speak TLS: gRPC passes on the text alone.
type handshake struct {
	credentials.TransportCredentials
	isPlain *atomic.Bool
}

// ClientHandshake implements credentials.TransportCredentials.
func (h handshake) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	sealed, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if wrong := (tls.RecordHeaderError{}); errors.As(err, &wrong) {
		h.isPlain.Store(true)
	}
	return sealed, info, err
}

// Clone implements credentials.TransportCredentials.
func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{h.TransportCredentials.Clone(), h.isPlain}
}
