package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// The errors of the calls themselves.
var (
	ErrUnavailable = errors.New("rpc: the other side cannot be reached")
	ErrUnsupported = errors.New("rpc: the other side does not serve this call: it is another program, or of another version")
	ErrMalformed   = errors.New("rpc: malformed message")
	ErrSilent      = errors.New("rpc: the other side is silent")
	ErrClosing     = errors.New("rpc: the service is being closed")
)

// toStatus turns a service's error into gRPC's.
func toStatus(err error) error {
	if _, already := status.FromError(err); already {
		return err // nil, or gRPC's own
	}
	s := status.New(codeOf(err), err.Error())
	if detailed, failed := s.WithDetails(problem(err)); failed == nil {
		s = detailed
	}
	return s.Err()
}

func codeOf(err error) codes.Code {
	var byManager *manager.Refusal
	var bySwitch *agent.Refusal
	if !errors.As(err, &byManager) && errors.As(err, &bySwitch) {
		return causeCodes[bySwitch.Cause]
	}
	if _, code, ok := nameOf(err); ok {
		return code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, ErrClosing):
		return codes.Unavailable
	}
	return codes.Internal
}

// fromStatus turns gRPC's error into the one that the service returned, or
// into what this package says of the call.
func fromStatus(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	for _, detail := range s.Details() {
		if p, ok := detail.(*pb.Problem); ok && (p.Reason != "" || p.Refusal != nil) {
			return unproblem(p)
		}
	}
	is := map[codes.Code]error{
		codes.Canceled:         context.Canceled,
		codes.DeadlineExceeded: context.DeadlineExceeded,
		codes.Unavailable:      ErrUnavailable,
		codes.Unimplemented:    ErrUnsupported,
	}[s.Code()]
	if is == nil {
		return &remote{message: s.Message()}
	}
	return fmt.Errorf("%w: %s", is, s.Message())
}

// unaryClient and streamClient are the interceptors of a client: callers get plain errors.
func unaryClient(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return fromStatus(invoke(ctx, method, request, response, conn, opts...))
}

func streamClient(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, d, conn, method, opts...)
	if err != nil {
		return nil, fromStatus(err)
	}
	return clientStream{s}, nil
}

type clientStream struct{ grpc.ClientStream }

func (s clientStream) SendMsg(m any) error { return fromStatus(s.ClientStream.SendMsg(m)) }
func (s clientStream) RecvMsg(m any) error { return fromStatus(s.ClientStream.RecvMsg(m)) }
