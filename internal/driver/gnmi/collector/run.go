package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// The errors of a target that Config.Ended gets, beside those of gRPC.
var (
	ErrNoTarget  = errors.New("it is no gNMI server")
	ErrVersion   = errors.New("its version of gNMI is too old")
	ErrEncoding  = errors.New("it has none of the encodings PROTO, JSON_IETF and JSON")
	ErrSilent    = errors.New("it does not answer, or report everything, in time")
	ErrMalformed = errors.New("it sends too much that is malformed")
)

// Run keeps a subscription until the context ends. Its error is that c is invalid.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c.Limits = c.Limits.filled()
	if c.Counts == nil {
		c.Counts = new(Counts)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	pace := &pace{rate: c.Limits.Rate, counts: c.Counts}
	for wait := time.Duration(0); ; {
		to := c
		s, begin := newStream(&to, pace), time.Now()
		err := to.prepare(ctx)
		if err == nil {
			err = s.run(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		c.Counts.Failures.Add(1)
		c.Ended(reason{err})
		wait = c.Limits.retry(wait, s.isSynced, time.Since(begin), err)
		pause := time.NewTimer(wait/2 + rand.N(wait/2+1))
		select {
		case <-pause.C:
		case <-c.Retry:
			wait = 0
		case <-ctx.Done():
		}
		if pause.Stop(); ctx.Err() != nil {
			return nil
		}
	}
}

// retry returns the pause after a connection, of which the one before it had another.
func (l Limits) retry(last time.Duration, isSynced bool, lasted time.Duration, err error) time.Duration {
	switch {
	case errors.Is(err, ErrMalformed):
		return l.MaxRetry // the next connection would bring the same
	case isSynced && lasted > last:
		return l.MinRetry
	}
	return min(max(2*last, l.MinRetry), l.MaxRetry) // also where each connection ends soon
}

// patience returns how long a target that has not reported everything yet may be silent, where
// it has had some time.
func (l Limits) patience(had time.Duration) time.Duration {
	return max(0, min(l.Answer, l.Sync-had))
}

// reason is why a connection has ended. Much of its text can be the target's.
type reason struct{ error }

// Error returns the begin of it, on one line.
func (r reason) Error() string { return printable.Text(fmt.Sprintf("%.300s", r.error.Error())) }

func (r reason) Unwrap() error { return r.error }

// stream is one connection.
type stream struct {
	cfg     *Config
	changed chan struct{} // has room for one: there is something to report
	begun   time.Time
	pace    *pace // of who reads; all connections share it

	mu       sync.Mutex // guards what follows
	device   *openconfig.Device
	isSynced bool
	mistakes int
	wanted   map[*openconfig.Leaf]bool // that are subscribed

	isReached atomic.Bool // it has accepted the connection
	isPlain   atomic.Bool // it has answered a TLS handshake with something else
}

func newStream(c *Config, p *pace) *stream {
	return &stream{cfg: c, device: &openconfig.Device{}, changed: make(chan struct{}, 1), pace: p, begun: time.Now()}
}

// run is one connection, from its begin to its end.
func (s *stream) run(ctx context.Context) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // its only error is that it was closed
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := pb.NewGNMIClient(conn)
	encoding, models, err := s.capabilities(ctx, client)
	if err != nil {
		return s.hint(err)
	}
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, client, cancel) })
	defer watching.Wait()
	defer cancel(nil)
	patience := time.AfterFunc(s.cfg.Limits.Answer, func() { cancel(fmt.Errorf("%w: %v", ErrSilent, s.cfg.Limits.Answer)) })
	defer patience.Stop()
	var refused error
	for _, a := range attempts {
		sub, err := client.Subscribe(ctx)
		if err == nil {
			err = sub.Send(s.request(encoding, a, models))
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = s.receive(ctx, sub, patience)
		}
		code := status.Code(err)
		if s.isSynced || code != codes.InvalidArgument && code != codes.Unimplemented && code != codes.NotFound {
			return cause(ctx, err)
		}
		refused = err
	}
	if status.Code(refused) == codes.Unimplemented {
		return fmt.Errorf("%w: %w", ErrNoTarget, refused)
	}
	return refused
}

// watch ends the connection when the target does not answer any more. That is asked by a
// call: servers end connections on which they get pings more often than every 5 minutes.
func (s *stream) watch(ctx context.Context, client pb.GNMIClient, end context.CancelCauseFunc) {
	for runner.Pause(ctx, s.cfg.Limits.Alive) == nil {
		asked, cancel := context.WithTimeout(ctx, s.cfg.Limits.Answer)
		_, err := client.Capabilities(asked, &pb.CapabilityRequest{})
		cancel()
		if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Unavailable {
			end(fmt.Errorf("%w: %v", ErrSilent, s.cfg.Limits.Answer))
		}
	}
}

// cause returns why a context ended, rather than that a call was cancelled.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// capabilities returns the encoding to use, and the models that the target has. A target
// that does not answer that question has JSON, as the specification wants.
func (s *stream) capabilities(ctx context.Context, client pb.GNMIClient) (pb.Encoding, []string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Limits.Answer, fmt.Errorf("%w: %v", ErrSilent, s.cfg.Limits.Answer))
	defer cancel()
	c, err := client.Capabilities(ctx, &pb.CapabilityRequest{}, grpc.WaitForReady(false))
	switch {
	case status.Code(err) == codes.Unimplemented:
		return pb.Encoding_JSON, nil, nil
	case err != nil:
		return 0, nil, cause(ctx, err)
	}
	if v := c.GetGNMIVersion(); isOld(v) {
		return 0, nil, fmt.Errorf("%w: %s, and 0.4 is needed", ErrVersion, v)
	}
	var models []string
	for _, m := range c.GetSupportedModels() {
		models = append(models, m.GetName())
	}
	for _, e := range []pb.Encoding{pb.Encoding_PROTO, pb.Encoding_JSON_IETF, pb.Encoding_JSON} {
		if slices.Contains(c.GetSupportedEncodings(), e) {
			return e, models, nil
		}
	}
	return 0, nil, fmt.Errorf("%w: it has %v", ErrEncoding, c.GetSupportedEncodings())
}

// isOld reports whether paths of a version of gNMI are of another form.
func isOld(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return false // some report none
	}
	return major == 0 && minor < 4
}

// identify returns the name of the target's certificate.
func (s *stream) identify(ctx context.Context) (string, error) {
	if !s.cfg.Certified {
		return "", nil
	}
	from, ok := peer.FromContext(ctx)
	if !ok {
		return "", pki.ErrNoCertificate
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return "", pki.ErrNoCertificate
	}
	id, err := pki.IdentityOf(info.State.PeerCertificates[0])
	return id.Name, err
}

// receive reads a stream until it ends, while another goroutine reports.
func (s *stream) receive(ctx context.Context, sub pb.GNMI_SubscribeClient, patience *time.Timer) error {
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { s.report(ctx) })
	defer reporting.Wait()
	defer cancel()
	for {
		m, err := sub.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return errors.New("it has ended the subscription")
			}
			return err
		}
		switch r := m.GetResponse().(type) {
		case *pb.SubscribeResponse_Update:
			if err := s.take(ctx, r.Update); err != nil {
				return err
			}
			if !s.isSynced { // it makes progress
				patience.Reset(s.cfg.Limits.patience(time.Since(s.begun)))
			}
		case *pb.SubscribeResponse_SyncResponse:
			if err := s.synced(sub.Context(), patience); err != nil {
				return err
			}
		default:
			if err := s.mistake(errors.New("a response that is empty, or of an old version")); err != nil {
				return err
			}
		}
	}
}

// synced takes the end of the initial updates.
func (s *stream) synced(ctx context.Context, patience *time.Timer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isSynced {
		return nil // some repeat it
	}
	if !patience.Stop() {
		return context.Cause(ctx)
	}
	name, err := s.identify(ctx)
	if err != nil {
		return err
	}
	s.isSynced = true
	s.cfg.Connected(name)
	s.wake()
	return nil
}

func (s *stream) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// report reports after changes, a change at once and more of them in intervals.
func (s *stream) report(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		s.mu.Lock()
		if s.isSynced {
			s.cfg.Report(s.device)
		}
		s.mu.Unlock()
		if runner.Pause(ctx, s.cfg.Limits.Interval) != nil {
			return
		}
	}
}

// pace lets a second have so many updates.
type pace struct {
	rate   int
	counts *Counts
	from   time.Time // of the second
	used   int
}

func (p *pace) wait(ctx context.Context, n int) error {
	if now := time.Now(); now.Sub(p.from) >= time.Second {
		p.from, p.used = now, 0
	}
	if p.used += n; p.used <= p.rate {
		return nil
	}
	p.counts.Throttled.Add(1)
	// What is beyond the rate is paid by the next seconds.
	over := time.Duration(p.used) * time.Second / time.Duration(p.rate)
	err := runner.Pause(ctx, over-time.Since(p.from))
	p.from, p.used = time.Now(), 0
	return err
}
