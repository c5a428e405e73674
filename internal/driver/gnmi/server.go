package gnmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Source is what a target reports of.
type Source interface {
	// Read returns a part of the data: all of its leaves. Of different parts it is
	// called from different goroutines.
	Read(ctx context.Context, p telemetry.Part) (*openconfig.Device, error)

	// Drain makes the switch take nothing new, or ends that.
	Drain(ctx context.Context, on bool) error
}

// Config says what a target serves.
type Config struct {
	Source Source
	Clock  runner.Clock
	Limits telemetry.Config
	Log    *slog.Logger // nil: none
}

// Server is a gNMI target. It is a rpc.Registrar: the gRPC server is the agent's.
type Server struct {
	pb.UnimplementedGNMIServer
	cfg   Config
	core  *telemetry.Core // owned by loop
	loop  *runner.Loop[telemetry.Input, telemetry.Output]
	parts map[telemetry.Part]chan struct{} // to be read; has room for one
	ctx   context.Context                  // of those who read; ends with the server
	end   context.CancelFunc
	tasks sync.WaitGroup

	written written

	mu   sync.Mutex
	last uint64 // number of a subscriber
	open map[uint64]*subscriber
}

// errClosing ends subscriptions when the server ends.
var errClosing = status.Error(codes.Unavailable, "the target shuts down")

// Start starts a target. It reads its events once they are there, which Changed says; until
// then who reads waits. The caller owns it and must Close it.
func Start(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	machine := telemetry.New(c.Limits)
	s := &Server{cfg: c, core: machine, open: map[uint64]*subscriber{}, parts: map[telemetry.Part]chan struct{}{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	var err error
	s.loop, err = runner.Start(runner.Config[telemetry.Input, telemetry.Output]{Core: machine, Clock: c.Clock, Apply: s.apply})
	if err != nil {
		s.end()
		return nil, fmt.Errorf("gnmi: %w", err)
	}
	for _, p := range telemetry.Parts() {
		stir := make(chan struct{}, 1)
		s.parts[p] = stir
		s.tasks.Go(func() { s.read(p, stir) })
	}
	return s, nil
}

// Register implements rpc.Registrar.
func (s *Server) Register(r grpc.ServiceRegistrar) { pb.RegisterGNMIServer(r, s) }

// Service returns the name of the gRPC service.
func (s *Server) Service() string { return pb.GNMI_ServiceDesc.ServiceName }

// Changed says that events are there, or may have changed. It does not wait.
func (s *Server) Changed() { s.stir(telemetry.Events) }

// pause is between two readings of events.
const pause = 20 * time.Millisecond

func (s *Server) stir(p telemetry.Part) {
	select {
	case s.parts[p] <- struct{}{}:
	default: // it is to be read already
	}
}

// Counters returns what the core has counted.
func (s *Server) Counters(ctx context.Context) (n telemetry.Counters, err error) {
	err = s.loop.Do(ctx, func() { n = s.core.Counters() })
	return n, err
}

// read reads a part whenever that is wanted.
func (s *Server) read(p telemetry.Part, stir <-chan struct{}) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-stir:
		}
		in := telemetry.Snapshot{Part: p, At: time.Now().UnixNano()}
		d, err := s.cfg.Source.Read(s.ctx, p)
		if err != nil {
			in.Failed = true
			if s.ctx.Err() == nil {
				s.cfg.Log.Warn("telemetry cannot be read", slog.String("part", p.String()), slog.Any("error", err))
			}
		} else {
			for path, v := range d.Leaves() {
				in.Leaves = append(in.Leaves, telemetry.Leaf{Path: openconfig.Valid(path), Value: v})
			}
		}
		if s.loop.Post(s.ctx, in) != nil {
			return
		}
		if p == telemetry.Events && runner.Pause(s.ctx, pause) != nil { // what changes often is not read as often
			return
		}
	}
}

// Shut ends the subscriptions; those who read are notified.
func (s *Server) Shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	for _, x := range s.open {
		x.finish(errClosing)
	}
}

// Close ends the target, behind its gRPC server.
func (s *Server) Close() {
	s.Shut()
	s.loop.Close()
	s.tasks.Wait()
}

// apply carries out what a step of the core wants, in its loop.
func (s *Server) apply(_ core.Time, out *telemetry.Output) []telemetry.Input {
	defer out.Reset()
	for _, p := range out.Collect {
		s.stir(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range out.Batches {
		if x := s.open[b.Stream]; x != nil {
			x.batches <- b.Entries // it has room: it was ready
		}
	}
	for _, e := range out.Ended {
		if x := s.open[e.Stream]; x != nil {
			x.finish(e.Err)
		}
	}
	return nil
}

// subscriber takes what the core has for a stream.
type subscriber struct {
	server  *Server
	id      uint64
	batches chan []telemetry.Entry // has room for one
	over    chan struct{}
	once    sync.Once
	err     error // read after over; nil: complete
}

func (x *subscriber) finish(err error) {
	x.once.Do(func() {
		x.err = err
		close(x.over)
	})
}

// subscribe opens a stream at the core. The caller must leave it.
func (s *Server) subscribe(ctx context.Context, o telemetry.Open) (*subscriber, error) {
	s.mu.Lock()
	s.last++
	x := &subscriber{server: s, id: s.last, batches: make(chan []telemetry.Entry, 1), over: make(chan struct{})}
	s.open[x.id] = x
	if s.ctx.Err() != nil {
		x.finish(errClosing)
	}
	s.mu.Unlock()
	o.Stream = x.id
	return x, s.post(ctx, o, telemetry.Ready{Stream: x.id})
}

func (x *subscriber) leave() {
	x.server.mu.Lock()
	delete(x.server.open, x.id)
	x.server.mu.Unlock()
	x.server.loop.Add(telemetry.Close{Stream: x.id})
}

func (s *Server) post(ctx context.Context, in ...telemetry.Input) error {
	err := s.loop.Post(ctx, in...)
	if errors.Is(err, runner.ErrClosed) {
		return errClosing
	}
	return err
}

// codeOf are the gRPC statuses of the core's refusals.
var codeOf = map[error]codes.Code{
	telemetry.ErrInvalid: codes.InvalidArgument, telemetry.ErrLimit: codes.ResourceExhausted, telemetry.ErrUnknown: codes.Unimplemented,
}

// reason returns a core's error with its gRPC status.
func reason(err error) error {
	for sentinel, code := range codeOf {
		if errors.Is(err, sentinel) {
			return status.Error(code, err.Error())
		}
	}
	return err
}

// next returns the next batch; none if the stream is complete, or when one of polls is
// taken.
func (x *subscriber) next(ctx context.Context, polls <-chan struct{}, failed <-chan error) ([]telemetry.Entry, error) {
	select {
	case b := <-x.batches:
		return b, x.server.post(ctx, telemetry.Ready{Stream: x.id})
	case <-x.over:
		select {
		case b := <-x.batches: // the last one
			return b, nil
		default:
			return nil, reason(x.err)
		}
	case <-polls:
		return nil, nil
	case err := <-failed:
		if errors.Is(err, io.EOF) {
			err = nil
			x.finish(nil)
		}
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
