package rails

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// Port is one end of what carries messages between two hosts. StartSend and StartRecv
// keep their order; the memory is theirs until Wait has returned.
type Port interface {
	// Send begins to send a message, when what the Send before it has sent is complete:
	// until then that memory must stay as it is.
	Send(ctx context.Context, b []byte) error
	Recv(ctx context.Context, b []byte) (int, error)
	StartSend(b []byte) Pending
	StartRecv(b []byte) Pending
	Close() error
}

// Pending is a message under way. Cancel ends a receive that no message is for.
type Pending interface {
	Wait(ctx context.Context) (int, error)
	Cancel()
}

// Sides of a pair: the first sends streams, and its pingpongs are timed.
const (
	Asker    = 0
	Answerer = 1
)

// PortConfig says what port a process has.
type PortConfig struct {
	Side  int
	Own   []string // addresses of this host's rails
	Peer  []string // of the other's
	Kinds []string // of the rails: tcp or udp; one for all, or one each
	Trust string   // directory of certificates; empty: plaintext
	Port  uint16   // where it listens
}

// at returns the TCP address of a host's first rail, of all of its addresses.
func (c *PortConfig) at(addresses []string) string {
	return net.JoinHostPort(addresses[0], strconv.Itoa(int(c.Port)))
}

// hostName returns the name of a side's host.
func hostName(side int) string { return netlab.RailHost(side) }

// identity returns that of a side's host.
func identity(side int) pki.Identity { return pki.Identity{Role: pki.Host, Name: hostName(side)} }

// Issue makes certificates for both sides in a directory.
func Issue(dir string) error {
	_, err := pki.Init(dir, identity(Asker), identity(Answerer))
	return err
}

// trust returns the certificate of this side, nil for plaintext.
func (c *PortConfig) trust() (*pki.Source, error) {
	if c.Trust == "" {
		return nil, nil
	}
	id := identity(c.Side)
	file := func(name string) string { return filepath.Join(c.Trust, name) }
	return pki.Load(pki.Files{Cert: file(pki.CertFile(id)), Key: file(pki.KeyFile(id)), CA: file(pki.AuthorityFile)}, nil)
}

// plainPort is a TCP connection with messages of sizes that both sides know: the least
// that TCP and TLS can cost.
type plainPort struct {
	net.Conn
}

// OpenPlain returns an end of a plain TCP connection over the first rail, with TLS 1.3 if
// there are certificates. The answerer listens, and reports that by ready.
func OpenPlain(ctx context.Context, c PortConfig, ready func() error) (Port, error) {
	source, err := c.trust()
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	if c.Side == Asker {
		if err := ready(); err != nil {
			return nil, err
		}
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", c.at(c.Peer))
	} else {
		conn, err = accept(ctx, c.at(c.Own), ready)
	}
	if err != nil {
		return nil, err
	}
	if source == nil {
		return plainPort{conn}, nil
	}
	var secured *tls.Conn
	if c.Side == Asker {
		secured = tls.Client(conn, source.Client(pki.Want{Role: pki.Host, Name: hostName(Answerer)}))
	} else {
		secured = tls.Server(conn, source.Server())
	}
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return plainPort{secured}, nil
}

// accept returns the first connection to an address.
func accept(ctx context.Context, address string, ready func() error) (net.Conn, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	if err := ready(); err != nil {
		return nil, err
	}
	conn, err := l.Accept()
	if err != nil {
		return nil, fmt.Errorf("nobody has called: %w", errors.Join(err, context.Cause(ctx)))
	}
	return conn, nil
}

// expires has what blocks end with ctx, until the function that it returns is called.
func (p plainPort) expires(ctx context.Context) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = p.SetDeadline(time.Unix(1, 0)) })
}

func (p plainPort) Send(_ context.Context, b []byte) error {
	_, err := p.Write(b)
	return err
}

func (p plainPort) Recv(_ context.Context, b []byte) (int, error) { return io.ReadFull(p, b) }

// StartSend has sent b when it returns: TCP's buffers hold what is under way.
func (p plainPort) StartSend(b []byte) Pending {
	n, err := p.Write(b)
	return ended{n, err}
}

// StartRecv reads when Wait is called.
func (p plainPort) StartRecv(b []byte) Pending { return reading{p, b} }

type ended struct {
	n   int
	err error
}

func (e ended) Wait(context.Context) (int, error) { return e.n, e.err }
func (ended) Cancel()                             {}

type reading struct {
	from plainPort
	into []byte
}

func (r reading) Wait(ctx context.Context) (int, error) { return r.from.Recv(ctx, r.into) }
func (reading) Cancel()                                 {}

// bounded is a port whose calls end with a context, if it is a connection.
func bounded(ctx context.Context, p Port) (stop func() bool) {
	if c, ok := p.(plainPort); ok {
		return c.expires(ctx)
	}
	return func() bool { return true }
}
