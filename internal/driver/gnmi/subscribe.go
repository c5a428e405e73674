package gnmi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/proto/gnmi_ext"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Subscribe implements gNMI.
func (s *Server) Subscribe(stream grpc.BidiStreamingServer[pb.SubscribeRequest, pb.SubscribeResponse]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil // who only looked
	}
	if err != nil {
		return err
	}
	list := first.GetSubscribe()
	if list == nil {
		return status.Error(codes.InvalidArgument, "the first message of a stream has to be a list of subscriptions")
	}
	if err := checkExtensions(first.GetExtension()); err != nil {
		return err
	}
	w, open, err := newWriter(list, &s.written)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	x, err := s.subscribe(ctx, open)
	defer x.leave()
	if err != nil {
		return err
	}
	p := &polls{mode: open.Mode, want: make(chan struct{}), failed: make(chan error, 1)}
	s.tasks.Go(func() { p.receive(ctx, stream) })
	busy := true // until the first sync
	for {
		polls := p.want
		if busy {
			polls = nil // a poll is taken when the one before was answered
		}
		batch, err := x.next(ctx, polls, p.failed)
		if err != nil || batch == nil && x.complete() {
			return err
		}
		if batch == nil { // a poll
			busy = true
			if err := s.post(ctx, telemetry.Poll{Stream: x.id}); err != nil {
				return err
			}
			continue
		}
		for _, m := range w.responses(batch) {
			if err := stream.Send(m); err != nil {
				return err
			}
			busy = busy && !m.GetSyncResponse()
		}
	}
}

// polls are the messages behind the first one of a stream.
type polls struct {
	mode   telemetry.Mode
	want   chan struct{}
	failed chan error // has room for one
}

// receive ends when the stream does.
func (p *polls) receive(ctx context.Context, stream grpc.BidiStreamingServer[pb.SubscribeRequest, pb.SubscribeResponse]) {
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && p.mode != telemetry.Polled:
			return // it only reads from now on
		case err != nil:
			p.failed <- err
			return
		case m.GetPoll() == nil || p.mode != telemetry.Polled:
			p.failed <- status.Error(codes.InvalidArgument, "a stream has one list of subscriptions, and polls only if its mode is POLL")
			return
		}
		select {
		case p.want <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

func (x *subscriber) complete() bool {
	select {
	case <-x.over:
		return true
	default:
		return false
	}
}

// writer writes the answers to one request.
type writer struct {
	reader
	shared   *written
	encoding pb.Encoding
	models   map[string]bool // nil: all
}

// newWriter reads a list of subscriptions.
func newWriter(list *pb.SubscriptionList, shared *written) (*writer, telemetry.Open, error) {
	w := &writer{reader: reader{prefix: list.GetPrefix()}, shared: shared, encoding: list.GetEncoding()}
	var o telemetry.Open
	if err := w.check(list.GetUseModels()); err != nil {
		return w, o, err
	}
	switch list.GetMode() {
	case pb.SubscriptionList_STREAM:
		o.Mode = telemetry.Streaming
	case pb.SubscriptionList_ONCE:
		o.Mode = telemetry.Once
	case pb.SubscriptionList_POLL:
		o.Mode = telemetry.Polled
	default:
		return w, o, status.Errorf(codes.InvalidArgument, "there is no such mode of subscription: %v", list.GetMode())
	}
	o.UpdatesOnly = list.GetUpdatesOnly()
	if n := len(list.GetSubscription()); n > maxPaths {
		return w, o, status.Errorf(codes.ResourceExhausted, "%d subscriptions in one list, and %d are allowed: use wildcards, or several streams", n, maxPaths)
	}
	for _, m := range list.GetSubscription() {
		q, err := w.read(m.GetPath())
		if err != nil {
			return w, o, err
		}
		sub := telemetry.Subscription{
			Interval: duration(m.GetSampleInterval()), Heartbeat: duration(m.GetHeartbeatInterval()), Suppress: m.GetSuppressRedundant(),
		}
		switch m.GetMode() {
		case pb.SubscriptionMode_TARGET_DEFINED:
			sub.Trigger = telemetry.TargetDefined
		case pb.SubscriptionMode_ON_CHANGE:
			sub.Trigger = telemetry.OnChange
		case pb.SubscriptionMode_SAMPLE:
			sub.Trigger = telemetry.Sample
		default:
			return w, o, status.Errorf(codes.InvalidArgument, "there is no such mode of a subscription: %v", m.GetMode())
		}
		for _, p := range q.paths {
			sub.Path = p
			o.Subscriptions = append(o.Subscriptions, sub)
		}
	}
	return w, o, nil
}

// maxPaths bounds the paths of one request, before they are looked at.
const maxPaths = 512

// duration returns that of so many nanoseconds, at most the longest there is.
func duration(n uint64) time.Duration { return time.Duration(min(n, math.MaxInt64)) }

// check refuses encodings and models that are not served.
func (w *writer) check(use []*pb.ModelData) error {
	if err := checkEncoding(w.encoding); err != nil {
		return err
	}
	for _, m := range use {
		if !served(m) {
			return status.Errorf(codes.Unimplemented, "model %.100q %.100q is not supported; Capabilities lists those that are", m.GetName(), m.GetVersion())
		}
		if w.models == nil {
			w.models = map[string]bool{}
		}
		w.models[m.GetName()] = true
	}
	return nil
}

// checkExtensions refuses those of gNMI without which a request means something else. Who
// sends others gets what everybody gets.
func checkExtensions(all []*gnmi_ext.Extension) error {
	for _, e := range all {
		name := ""
		switch e.GetExt().(type) {
		case *gnmi_ext.Extension_MasterArbitration:
			name = "master_arbitration"
		case *gnmi_ext.Extension_Commit:
			name = "commit"
		case *gnmi_ext.Extension_History:
			name = "history"
		default:
			continue
		}
		return status.Errorf(codes.Unimplemented, "extension %s is not supported", name)
	}
	return nil
}

// allows reports whether a leaf is in the models that are to be used.
func (w *writer) allows(l *openconfig.Leaf) bool {
	if w.models == nil {
		return true
	}
	for _, m := range l.Modules {
		if m != "" && !w.models[m] {
			return false
		}
	}
	return true
}

// responses writes a batch: updates of one moment together. A leaf is in a batch once, so
// that what is between two syncs may be in any order.
func (w *writer) responses(batch []telemetry.Entry) (all []*pb.SubscribeResponse) {
	type moment struct {
		at   int64
		kind telemetry.Kind
	}
	now := time.Now().UnixNano()
	of := map[moment]*pb.Notification{}
	for i := range batch {
		e := &batch[i]
		if e.Kind == telemetry.Sync {
			all = append(all, &pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}})
			clear(of)
			continue
		}
		if !w.allows(e.Leaf) {
			continue
		}
		at := moment{cmp.Or(e.At, now), e.Kind}
		n := of[at]
		if n == nil {
			n = &pb.Notification{Timestamp: at.at, Prefix: w.answer()}
			of[at] = n
			all = append(all, &pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: n}})
		}
		if e.Kind == telemetry.Delete {
			n.Delete = append(n.Delete, w.leaf(e))
		} else {
			n.Update = append(n.Update, &pb.Update{Path: w.leaf(e), Val: typed(e.Leaf, e.Value, w.encoding), Duplicates: e.Duplicates})
		}
	}
	return all
}

// leaf writes the path of an entry.
func (w *writer) leaf(e *telemetry.Entry) *pb.Path {
	if w.origins {
		return w.path(e.Path)
	}
	return w.shared.path(e.Name, e.Path)
}
