package gnmi

import (
	"context"
	"log/slog"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Set implements gNMI, for the one leaf that can be set: /tributary/config/drain.
// All operations of a request count together or, if one is refused, none.
func (s *Server) Set(ctx context.Context, m *pb.SetRequest) (*pb.SetResponse, error) {
	r := &reader{prefix: m.GetPrefix()}
	if n := len(m.GetDelete()) + len(m.GetReplace()) + len(m.GetUpdate()) + len(m.GetUnionReplace()); n > maxPaths {
		return nil, status.Errorf(codes.ResourceExhausted, "%d operations, and %d are allowed", n, maxPaths)
	}
	if len(m.GetUnionReplace()) > 0 {
		return nil, status.Error(codes.Unimplemented, "union_replace is not supported: replace and update are")
	}
	answer := &pb.SetResponse{Prefix: r.answer()}
	drain, change := false, false
	done := func(op pb.UpdateResult_Operation, path *pb.Path) {
		answer.Response = append(answer.Response, &pb.UpdateResult{Op: op, Path: path})
		change = true
	}
	for _, path := range m.GetDelete() {
		if err := r.settable(path); err != nil {
			return nil, err
		}
		drain = false // the default
		done(pb.UpdateResult_DELETE, path)
	}
	for _, part := range []struct {
		op      pb.UpdateResult_Operation
		updates []*pb.Update
	}{{pb.UpdateResult_REPLACE, m.GetReplace()}, {pb.UpdateResult_UPDATE, m.GetUpdate()}} {
		for _, u := range part.updates {
			var err error
			if drain, err = r.truth(u); err != nil {
				return nil, err
			}
			done(part.op, u.GetPath())
		}
	}
	if change {
		if err := s.cfg.Source.Drain(ctx, drain); err != nil {
			return nil, err
		}
		s.cfg.Log.Info("set by gNMI", slog.Bool("drain", drain))
	}
	answer.Timestamp = time.Now().UnixNano() // clients of before 0.10 read it there
	for _, x := range answer.Response {
		x.Timestamp = answer.Timestamp //nolint:staticcheck // as above
	}
	return answer, nil
}

// settable returns why a path cannot be set.
func (r *reader) settable(m *pb.Path) error {
	q, err := r.read(m)
	if status.Code(err) == codes.Unimplemented {
		return status.Errorf(codes.NotFound, "path %s is not in the schema", q.path)
	}
	if err != nil {
		return err
	}
	if l, known := openconfig.Find(q.path); known && l.Config {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "path %s cannot be set: /tributary/config/drain can", q.path)
}

// truth reads the truth value that is to be set.
func (r *reader) truth(u *pb.Update) (bool, error) {
	if err := r.settable(u.GetPath()); err != nil {
		return false, err
	}
	switch u.GetVal().GetValue().(type) {
	case *pb.TypedValue_AsciiVal, *pb.TypedValue_BytesVal, *pb.TypedValue_AnyVal, *pb.TypedValue_ProtoBytes:
		return false, status.Errorf(codes.Unimplemented, "the encoding of the value is not supported: %v are", encodings)
	}
	v, err := fromTyped(u.GetVal())
	if err != nil {
		return false, status.Errorf(codes.InvalidArgument, "/tributary/config/drain: %v", err)
	}
	if v.Kind() != openconfig.Bool {
		return false, status.Errorf(codes.InvalidArgument, "/tributary/config/drain is true or false, not %.100q", v)
	}
	return v.Bool(), nil
}
