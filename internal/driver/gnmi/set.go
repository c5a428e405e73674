package gnmi

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Set implements gNMI, for the one leaf that can be set: /tributary/config/drain.
// All operations of a request count together or, if one is refused, none.
func (s *Server) Set(ctx context.Context, m *pb.SetRequest) (*pb.SetResponse, error) {
	if err := checkExtensions(m.GetExtension()); err != nil {
		return nil, err
	}
	r := &reader{prefix: m.GetPrefix()}
	if n := len(m.GetDelete()) + len(m.GetReplace()) + len(m.GetUpdate()) + len(m.GetUnionReplace()); n > maxPaths {
		return nil, status.Errorf(codes.ResourceExhausted, "%d operations, and %d are allowed", n, maxPaths)
	}
	if len(m.GetUnionReplace()) > 0 {
		return nil, status.Error(codes.Unimplemented, "union_replace is not supported: replace and update are")
	}
	answer := &pb.SetResponse{Prefix: m.GetPrefix()}
	var drain *bool // nil: as it is
	for _, m := range m.GetDelete() {
		q, err := r.settable(m)
		if err != nil {
			return nil, err
		}
		if !q.selects(settable.Path) {
			return nil, fixed(q.path)
		}
		drain = new(false) // the default
		answer.Response = append(answer.Response, &pb.UpdateResult{Op: pb.UpdateResult_DELETE, Path: m})
	}
	for _, part := range []struct {
		op      pb.UpdateResult_Operation
		updates []*pb.Update
	}{{pb.UpdateResult_REPLACE, m.GetReplace()}, {pb.UpdateResult_UPDATE, m.GetUpdate()}} {
		for _, u := range part.updates {
			is, err := r.decided(u)
			if err != nil {
				return nil, err
			}
			if is == nil && part.op == pb.UpdateResult_REPLACE {
				is = new(false) // the default of what the value lacks
			}
			drain = cmp.Or(is, drain)
			answer.Response = append(answer.Response, &pb.UpdateResult{Op: part.op, Path: u.GetPath()})
		}
	}
	if drain != nil {
		if err := s.cfg.Source.Drain(ctx, *drain); err != nil {
			return nil, err
		}
		s.cfg.Log.Info("set by gNMI", slog.Bool("drain", *drain))
	}
	answer.Timestamp = time.Now().UnixNano() // clients of before 0.10 read it there
	for _, x := range answer.Response {
		x.Timestamp = answer.Timestamp //nolint:staticcheck // as above
	}
	return answer, nil
}

// settable is the leaf that can be set.
var settable = func() *openconfig.Leaf {
	for l := range openconfig.Schema() {
		if l.Config {
			return l
		}
	}
	return nil
}()

func fixed(p openconfig.Path) error {
	return status.Errorf(codes.InvalidArgument, "path %s cannot be set: %s can", p, settable.Path)
}

// settable reads the path of an operation.
func (r *reader) settable(m *pb.Path) (requested, error) {
	q, err := r.read(m)
	if status.Code(err) == codes.Unimplemented {
		err = status.Errorf(codes.NotFound, "path %s is not in the schema", q.path)
	}
	return q, err
}

// decided returns what an update has for the leaf, or for what it is in; nil: nothing.
func (r *reader) decided(u *pb.Update) (drain *bool, err error) {
	q, err := r.settable(u.GetPath())
	if err != nil {
		return nil, err
	}
	n := min(len(q.path), len(settable.Path))
	if !q.selects(settable.Path) || q.path.String() != settable.Path[:n].String() { // which has no wildcards
		return nil, fixed(q.path)
	}
	switch u.GetVal().GetValue().(type) {
	case *pb.TypedValue_AsciiVal, *pb.TypedValue_BytesVal, *pb.TypedValue_AnyVal, *pb.TypedValue_ProtoBytes:
		return nil, status.Errorf(codes.Unimplemented, "the encoding of the value is not supported: %v are", encodings)
	}
	for l, err := range message.Leaves(q.path, u.GetVal()) {
		switch at, _ := openconfig.Find(l.Path); {
		case err != nil:
			return nil, status.Errorf(codes.InvalidArgument, "%s: %v", l.Path, err)
		case at != settable:
			return nil, fixed(l.Path)
		case l.Value.Kind() != openconfig.Bool:
			return nil, status.Errorf(codes.InvalidArgument, "%s is true or false, not %.100q", l.Path, l.Value)
		}
		drain = new(l.Value.Bool())
	}
	return drain, nil
}
