package rpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// watched are credentials whose connections end with the certificate of the other side.
type watched struct {
	credentials.TransportCredentials
	trust *pki.Source // nil: connections outlive their certificates
}

// ServerHandshake implements credentials.TransportCredentials.
func (t watched) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return t.watch(t.TransportCredentials.ServerHandshake(raw))
}

// ClientHandshake implements credentials.TransportCredentials.
func (t watched) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return t.watch(t.TransportCredentials.ClientHandshake(ctx, authority, raw))
}

// Clone implements credentials.TransportCredentials.
func (t watched) Clone() credentials.TransportCredentials {
	return watched{t.TransportCredentials.Clone(), t.trust}
}

func (t watched) watch(raw net.Conn, info credentials.AuthInfo, err error) (net.Conn, credentials.AuthInfo, error) {
	of, ok := info.(credentials.TLSInfo)
	if err != nil || !ok || t.trust == nil {
		return raw, info, err
	}
	c := &certified{Conn: raw}
	c.leave = t.trust.Follow(of.State, raw.RemoteAddr().String(), c.expire)
	return c, info, nil
}

// certified is a connection that ends with a certificate.
type certified struct {
	net.Conn
	reason atomic.Pointer[error]
	once   sync.Once
	leave  func()
}

// expire ends the connection. It is called before leave is set, at the earliest.
func (c *certified) expire(reason error) {
	c.reason.Store(&reason)
	_ = c.Conn.Close()
}

// Close implements net.Conn.
func (c *certified) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// Read implements net.Conn. What has expired says so.
func (c *certified) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		if reason := c.reason.Load(); reason != nil {
			err = *reason
		}
	}
	return n, err
}
