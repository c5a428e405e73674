package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/driver/admission"
	"github.com/tributary-fabric/tributary/internal/driver/audit"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// ErrPlaintext: without certificates everybody who reaches a server may do
// everything, so that it serves only its own machine unless it is reported
// otherwise.
var ErrPlaintext = errors.New("rpc: without certificates only loopback addresses are served, unless plaintext is allowed (\"plaintext: true\" in a configuration file)")

// Listen opens the listener of a server, or says that it must not be opened.
func Listen(address string, c ServerConfig) (net.Listener, error) {
	a, err := c.resolve(address)
	if err != nil {
		return nil, err
	}
	l := net.ListenConfig{Control: userTimeout}
	l.SetMultipathTCP(false) // which has no such option; clients do without it, too
	return l.Listen(context.Background(), "tcp", a.String())
}

// CheckListen returns why Listen cannot succeed, its port aside, which another
// process may have: it listens on a free one for a moment.
func CheckListen(address string, c ServerConfig) error {
	a, err := c.resolve(address)
	if err != nil {
		return err
	}
	a.Port = 0
	listener, err := net.ListenTCP("tcp", a)
	if err != nil {
		return err
	}
	return listener.Close()
}

func (c ServerConfig) resolve(address string) (*net.TCPAddr, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	if err := c.CheckAddress(a.IP); err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return a, nil
}

// CheckAddress returns ErrPlaintext if nothing may be served on a local
// address: nil, and the unspecified one, are all addresses of the machine.
func (c ServerConfig) CheckAddress(local net.IP) error {
	if c.TLS == nil && !c.AllowPlaintext && !local.IsLoopback() {
		return ErrPlaintext
	}
	return nil
}

// credentials returns what the server's connections begin with.
func (c ServerConfig) credentials() credentials.TransportCredentials {
	if c.TLS == nil {
		return insecure.NewCredentials()
	}
	return reportingHandshake{watched{credentials.NewTLS(c.TLS), c.Trust}, c.Log}
}

// reporting are credentials of a server that log whom they refuse.
type reportingHandshake struct {
	credentials.TransportCredentials
	log *slog.Logger
}

// ServerHandshake implements credentials.TransportCredentials.
func (t reportingHandshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.TransportCredentials.ServerHandshake(raw)
	switch {
	case err == nil:
		admission.Admit(raw)
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed): // somebody looked whether the port is open; it was one of too many
	default:
		t.log.Warn("connection refused", slog.String("from", raw.RemoteAddr().String()), slog.Any("error", err))
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (t reportingHandshake) Clone() credentials.TransportCredentials {
	return reportingHandshake{t.TransportCredentials.Clone(), t.log}
}

type callerKey struct{}

// CallerOf returns who has made the call whose context ctx is, by the
// certificate of its connection; false where the server uses none.
func CallerOf(ctx context.Context) (pki.Identity, bool) {
	i, ok := ctx.Value(callerKey{}).(pki.Identity)
	return i, ok
}

// guard admits calls, by the policy.
type guard struct {
	open  bool // there are no certificates: everybody may do everything
	most  int  // calls at once of one host
	log   *slog.Logger
	audit *audit.Log // may be nil

	mu    sync.Mutex
	calls map[string]int // by host; those that have one
}

// admit returns the context of a call, with its caller, and why it must not be
// made.
func (g *guard) admit(ctx context.Context, method string) (context.Context, error) {
	if g.open {
		return ctx, nil
	}
	caller, err := identify(ctx)
	if err == nil {
		err = permit(caller, method)
	}
	if err != nil {
		from := "unknown"
		if p, ok := peer.FromContext(ctx); ok {
			from = p.Addr.String()
		}
		g.log.Warn("call refused", slog.String("method", method), slog.String("from", from), slog.Any("error", err))
	}
	return context.WithValue(ctx, callerKey{}, caller), err
}

// identify returns who is at the other end of a call's connection, which its
// handshake has verified.
func identify(ctx context.Context) (pki.Identity, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return pki.Identity{}, fmt.Errorf("%w: the call has no connection", ErrDenied)
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return pki.Identity{}, fmt.Errorf("%w: %w", ErrDenied, pki.ErrNoCertificate)
	}
	caller, err := pki.IdentityOf(info.State.PeerCertificates[0])
	if err != nil {
		return caller, fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return caller, nil
}

// tap refuses calls before anything of their messages is read.
func (g *guard) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	admitted, err := g.admit(ctx, info.FullMethodName)
	if err == nil {
		err = g.count(admitted)
	}
	if err != nil {
		of, _ := withRequest(admitted)
		g.record(of, info.FullMethodName, nil, nil, err)
		return nil, toStatus(err)
	}
	return admitted, nil
}

// count has a call be one of its host's until it ends, and returns quota.ErrQuota if there are
// too many: of each the server may hold a message of maxMessage, whatever its method needs.
func (g *guard) count(ctx context.Context) error {
	host, bound := hostOf(ctx)
	if !bound {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[host] >= g.most {
		return fmt.Errorf("%w: calls of host %s: %d are under way, on all its connections: set connections: {per-address: ...}", quota.ErrQuota, host, g.most)
	}
	g.calls[host]++
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.calls[host]--; g.calls[host] == 0 {
			delete(g.calls, host)
		}
	})
	return nil
}

// isAdmitted returns ErrDenied for a call that tap has not seen.
func (g *guard) isAdmitted(ctx context.Context) error {
	if _, known := CallerOf(ctx); !known && !g.open {
		return fmt.Errorf("%w: nobody has looked at who calls", ErrDenied)
	}
	return nil
}

// unary is the interceptor of a server's simple calls. Handlers return plain
// errors.
func (g *guard) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	ctx, id := withRequest(ctx)
	_ = grpc.SetHeader(ctx, metadata.Pairs(RequestID, id)) // who asked may do without
	err := g.isAdmitted(ctx)
	var response any
	if err == nil {
		response, err = handle(ctx, request)
	}
	g.record(ctx, info.FullMethod, request, response, err)
	return response, toStatus(err)
}

// stream is the interceptor of a server's streams.
func (g *guard) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, id := withRequest(stream.Context())
	_ = stream.SetHeader(metadata.Pairs(RequestID, id)) // who asked may do without
	err := g.isAdmitted(ctx)
	if err == nil {
		err = handle(service, &admitted{stream, ctx})
	}
	g.record(ctx, info.FullMethod, nil, nil, err)
	return toStatus(err)
}

// admitted is a stream whose context has its caller.
type admitted struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (a *admitted) Context() context.Context { return a.ctx }
