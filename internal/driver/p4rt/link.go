package p4rt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// link is the connection of one session. It is never made again: what was
// asked on one that has ended cannot reach a target that was restarted since.
type link struct {
	api    p4v1.P4RuntimeClient
	stream p4v1.P4Runtime_StreamChannelClient
	cancel context.CancelCauseFunc
	broken atomic.Pointer[error] // why this side has ended the session; nil: it has not
	soon   chan struct{}         // asks for a look; has room for one

	portBytes bool // the target knows ports as bytes, by its version

	sending sync.Mutex // one message at a time
}

// largestMessage bounds what a target may send at once, in bytes: bmv2 answers
// a read with one message.
const largestMessage = 64 << 20

// end ends the session.
func (l *link) end(why error) {
	l.broken.CompareAndSwap(nil, &why)
	l.cancel(why)
}

// call makes a call that the target has to answer within a time. One that ends
// because the session does fails for the same reason.
func (l *link) call(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	err := call(ctx, within, f)
	if why := l.broken.Load(); why != nil && errors.Is(err, ErrUnavailable) {
		return *why
	}
	return err
}

// connect returns a connection that is made with the first call on it.
func (c Config) connect() (*grpc.ClientConn, error) {
	network, address, err := NetworkOf(c.Target)
	if err != nil {
		return nil, err
	}
	security := insecure.NewCredentials()
	if c.TLS != nil {
		config, err := c.TLS()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		security = credentials.NewTLS(config)
	}
	host := "localhost"
	if network == "tcp" {
		host = address
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(security)}
	if c.Login != (Login{}) {
		options = append(options, grpc.WithPerRPCCredentials(c.Login))
	}
	return grpc.NewClient("passthrough:///"+host, append(options,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage)),
		grpc.WithIdleTimeout(0),
		// Own dialing also keeps the environment's proxies out.
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}))...)
}

// hold holds one session until it ends. It returns why, and whether the target
// ever reported who is primary.
func (c *Client) hold(ctx context.Context) (reported bool, err error) {
	conn, err := c.cfg.connect()
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	patience := time.AfterFunc(c.cfg.Deadline, func() { end(silence(conn, c.cfg.Deadline)) })
	defer patience.Stop()

	l := &link{api: p4v1.NewP4RuntimeClient(conn), cancel: end, soon: make(chan struct{}, 1)}
	if err := l.begin(ctx, c.cfg); err != nil {
		return false, streamEnd(ctx, err)
	}
	c.join(l)
	watch.Go(func() { c.watch(ctx, l) })
	for {
		m, err := l.stream.Recv()
		if err != nil {
			return reported, streamEnd(ctx, err)
		}
		if a := m.GetArbitration(); a != nil {
			patience.Stop()
			reported = true
			c.elected(l, a)
			continue
		}
		c.receive(m)
	}
}

// silence says why nothing was heard of a target within a time.
func silence(conn *grpc.ClientConn, d time.Duration) error {
	if conn.GetState() != connectivity.Ready {
		return fmt.Errorf("%w: no connection within %v", ErrUnavailable, d)
	}
	return fmt.Errorf("%w: it did not report within %v who is primary", ErrWedged, d)
}

// begin asks for the target's version, opens the stream, and takes part in the
// election.
func (l *link) begin(ctx context.Context, c Config) error {
	answer, err := l.api.Capabilities(ctx, &p4v1.CapabilitiesRequest{DeviceId: c.Device})
	if err != nil && status.Code(err) != codes.Unimplemented { // this call is younger than the others
		return err
	}
	l.portBytes = atLeast(answer.GetP4RuntimeApiVersion(), 1, 4)
	if l.stream, err = l.api.StreamChannel(ctx); err != nil {
		return err
	}
	return l.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: c.Device, ElectionId: c.Election.proto()},
	}})
}

// atLeast reports whether a version as "1.3.0" is at least major.minor. One
// that cannot be read is none.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	b, err := strconv.Atoi(parts[1])
	return err == nil && (a > major || a == major && b >= minor)
}

// streamEnd turns the error that ended a session into one of this package.
func streamEnd(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return fmt.Errorf("%w: the session has ended", ErrUnavailable)
		}
		return cause
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ended the stream", ErrUnavailable)
	}
	s := status.Convert(err)
	// What is invalid about an arbitration is that its id is another's.
	if s.Code() == codes.InvalidArgument || s.Code() == codes.AlreadyExists {
		return fmt.Errorf("%w (%v: %s)", ErrElection, s.Code(), s.Message())
	}
	return fromCode(callCodes, s.Code(), s.Message())
}

// join makes l the link of the client.
func (c *Client) join(l *link) {
	c.counts.sessions.Add(1)
	c.step(func(s *session) []Event {
		c.link = l
		s.open()
		return nil
	})
}

// part takes the client's link from it, and why.
func (c *Client) part(why error) {
	c.step(func(s *session) []Event {
		c.link = nil
		return s.end(why)
	})
}

// elected takes the outcome of an election.
func (c *Client) elected(l *link, a *p4v1.MasterArbitrationUpdate) {
	leader := Election{a.GetElectionId().GetHigh(), a.GetElectionId().GetLow()}
	c.step(func(s *session) []Event {
		events, look := s.elected(codes.Code(a.GetStatus().GetCode()) == codes.OK, leader)
		if look {
			select {
			case l.soon <- struct{}{}:
			default:
			}
		}
		return events
	})
}

// receive takes a message of the stream that is not about an election.
func (c *Client) receive(m *p4v1.StreamMessageResponse) {
	switch update := m.GetUpdate().(type) {
	case *p4v1.StreamMessageResponse_Packet:
		p, err := c.schema.packetIn(update.Packet)
		if err != nil {
			c.fault(err)
			return
		}
		p.Session = c.counts.sessions.Load()
		c.counts.in.Add(1)
		if !c.packets.Put(p) {
			c.counts.dropped.Add(1)
		}
	case *p4v1.StreamMessageResponse_Error:
		e := update.Error
		c.fault(fmt.Errorf("the target reports: %w", fromCode(updateCodes, codes.Code(e.GetCanonicalCode()), e.GetMessage())))
	default:
		c.fault(fmt.Errorf("%w: a stream message of type %T", ErrMalformed, update))
	}
}

// watch looks at regular times, and when it is asked to, what the target
// holds. A target that cannot give ends the session.
func (c *Client) watch(ctx context.Context, l *link) {
	beat := time.NewTicker(c.cfg.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		case <-l.soon:
		}
		err := c.look(ctx, l)
		if ctx.Err() != nil {
			return // the session has ended, and knows why
		}
		if err != nil {
			l.end(fmt.Errorf("asking for the cookie: %w", err))
			return
		}
	}
}

// send sends packets, one after the other.
func (l *link) send(patience time.Duration, packets []*p4v1.PacketOut) (sent int, err error) {
	l.sending.Lock()
	defer l.sending.Unlock()
	watch := time.AfterFunc(patience, func() {
		l.end(fmt.Errorf("%w: it did not take a packet within %v", ErrWedged, patience))
	})
	defer watch.Stop()
	for i, p := range packets {
		err := l.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: p}})
		if err != nil {
			return i, streamEnd(l.stream.Context(), err)
		}
	}
	return len(packets), nil
}
