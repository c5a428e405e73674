package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/driver/admission"
	"github.com/tributary-fabric/tributary/internal/driver/audit"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

const (
	// keepaliveTime and keepaliveTimeout are how an idle connection is found
	// dead; keepaliveMin is what a server suffers of its clients.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	keepaliveMin     = 5 * time.Second

	// grace is how long Close waits for calls under way.
	grace = 2 * time.Second

	// maxBackoff is the longest wait between two attempts to connect.
	maxBackoff  = 2 * time.Second
	baseBackoff = 20 * time.Millisecond
)

// Services are what a server serves; those that are nil it does not.
type Services struct {
	Manager Manager
	Members Membership // of the manager's groups; nil: hosts may only create groups
	Agent   Agent
	// Telemetry is served beside, under the policy of this package.
	Telemetry Registrar
}

// Registrar is a gRPC service of another package.
type Registrar interface {
	Register(r grpc.ServiceRegistrar)
	Service() string // its name
}

// ServerConfig reports how to serve. Its zero value serves without encryption,
// on loopback addresses alone. With encryption a caller is whom its
// certificate names (see pki), and may do what the policy allows its role.
type ServerConfig struct {
	TLS            *tls.Config  // nil: no encryption, and everybody may do everything
	Trust          *pki.Source  // that TLS is of: connections end with their certificate; nil: they do not
	AllowPlaintext bool         // serve on other addresses than loopback without encryption, too
	Limits         Limits       // zero fields have the values of DefaultLimits
	Log            *slog.Logger // of who is refused; nil: none
	Audit          *audit.Log   // of who has done what; nil: none
}

// Server serves gRPC: Services, the health service, and reflection.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
	gate   *admission.Listener
	addr   net.Addr
	done   chan struct{}
	err    error // why it ended; read after done
}

// Serve serves on listener, which it owns from then on.
func Serve(listener net.Listener, services Services, c ServerConfig) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Limits = c.Limits.filled()
	g := &guard{open: c.TLS == nil, most: c.Limits.OfSource, log: c.Log, audit: c.Audit, calls: map[string]int{}}
	s := &Server{
		grpc: grpc.NewServer(append(c.Limits.options(),
			grpc.Creds(c.credentials()),
			grpc.InTapHandle(g.tap),
			grpc.UnaryInterceptor(g.unary),
			grpc.StreamInterceptor(g.stream),
			grpc.KeepaliveParams(keepalive.ServerParameters{
				Time: keepaliveTime, Timeout: keepaliveTimeout,
				MaxConnectionIdle: c.Limits.Idle, MaxConnectionAge: c.age(),
			}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMin, PermitWithoutStream: true}),
			grpc.WaitForHandlers(true),
		)...),
		health: health.NewServer(),
		gate:   admission.New(listener, c.Limits.admission(c.TLS != nil), c.Log),
		addr:   listener.Addr(),
		done:   make(chan struct{}),
	}
	healthpb.RegisterHealthServer(s.grpc, s.health)
	if services.Manager != nil {
		pb.RegisterManagerServer(s.grpc, &managerServer{manager: services.Manager, members: services.Members})
		s.health.SetServingStatus(pb.Manager_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	}
	if services.Agent != nil {
		pb.RegisterSwitchAgentServer(s.grpc, &agentServer{agent: services.Agent, log: c.Log})
		s.health.SetServingStatus(pb.SwitchAgent_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	}
	if services.Telemetry != nil {
		services.Telemetry.Register(s.grpc)
		s.health.SetServingStatus(services.Telemetry.Service(), healthpb.HealthCheckResponse_SERVING)
	}
	reflection.Register(s.grpc)
	go func() {
		defer close(s.done)
		if err := s.grpc.Serve(s.gate); !errors.Is(err, grpc.ErrServerStopped) {
			s.err = err
		}
	}()
	return s
}

// Addr returns the address that it serves on.
func (s *Server) Addr() net.Addr { return s.addr }

// Refused returns how many connections were closed because there were too many.
func (s *Server) Refused() uint64 { return s.gate.Refused() }

// Done is closed when the server has ended, by Close, by Kill, or because its
// listener failed.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns, once Done is closed, why the listener failed; nil if it did not.
func (s *Server) Err() error {
	<-s.done
	return s.err
}

// Close notifies clients that the server goes, waits a moment for calls under
// way, then breaks off those that are left, and returns when all have ended.
// Services should end their streams before.
func (s *Server) Close() {
	s.health.Shutdown()
	timer := time.AfterFunc(grace, s.grpc.Stop)
	defer timer.Stop()
	s.grpc.GracefulStop()
	<-s.done
}

// Kill breaks off everything, as the death of the process would, and returns
// when all handlers have ended.
func (s *Server) Kill() {
	s.grpc.Stop()
	<-s.done
}

// ClientConfig reports how to reach a server. Its zero value uses no encryption.
type ClientConfig struct {
	TLS     *tls.Config // nil: none
	Trust   *pki.Source // that TLS is of: connections end with their certificate; nil: they do not
	Manager uint64      // term of the manager that watches an agent; 0: who watches only looks on

	dialer func(ctx context.Context, address string) (net.Conn, error) // nil: over TCP
}

func dial(target string, c ClientConfig) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if c.TLS != nil {
		transport = watched{credentials.NewTLS(c.TLS), c.Trust}
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithUnaryInterceptor(unaryClient),
		grpc.WithStreamInterceptor(streamClient),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: baseBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: maxBackoff,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithNoProxy(),
	}
	if c.dialer != nil {
		options = append(options, grpc.WithContextDialer(c.dialer))
	}
	return grpc.NewClient(target, options...)
}

// remoteEnd is the other side of a client.
type remoteEnd struct {
	conn *grpc.ClientConn
	role string
}

// Close closes the connection; calls under way fail.
func (e *remoteEnd) Close() error { return e.conn.Close() }

// fail names the call that has failed, if it has.
func (e *remoteEnd) fail(call string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s at %s %s: %w", call, e.role, e.conn.Target(), err)
}

// answered reads the answer of a call that has not failed.
func answered[M, T any](e *remoteEnd, call string, m M, err error, read func(*reader, M) T) (v T, _ error) {
	if err != nil {
		return v, e.fail(call, err)
	}
	var r reader
	v = read(&r, m)
	return v, e.fail(call, r.err)
}
