package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
)

// The errors about topology files.
var (
	ErrTopology = errors.New("rpc: invalid topology")                        // what the file says
	ErrVersion  = errors.New("rpc: the topology has been changed meanwhile") // somebody else was first
)

// TopologyFile is a topology in the file format, or a patch of one.
type TopologyFile struct {
	Name    string            // for errors about the content
	Content []byte            // in YAML or JSON
	Agents  map[string]string // "host:port" by switch; those of other switches stay
	Version uint64            // of the operator's part that it is meant for; 0: of any
	DryRun  bool              // report what would change, and change nothing
}

// TopologyDifference is what two topologies differ by, or what a change has changed.
type TopologyDifference struct {
	Version uint64   // of the operator's part, after the change
	What    []string // a line each
	More    int      // lines beyond those
}

const (
	maxFile  = 256 << 20 // bytes of a topology file
	maxPiece = 1 << 20   // bytes of one message's content
	maxLines = 10_000    // lines of a difference
)

// filePieces calls send with f in messages of bounded size.
func filePieces(f TopologyFile, send func(*pb.TopologyFile) error) error {
	m := &pb.TopologyFile{Name: f.Name, Agents: f.Agents, Version: f.Version, DryRun: f.DryRun}
	for part := range slices.Chunk(f.Content, maxPiece) {
		m.Content = part
		if err := send(m); err != nil {
			return err
		}
		m = &pb.TopologyFile{}
	}
	if len(f.Content) == 0 {
		return send(m)
	}
	return nil
}

// fileFrom collects a file from its pieces.
func fileFrom(recv func() (*pb.TopologyFile, error)) (f TopologyFile, err error) {
	for first := true; ; first = false {
		m, err := recv()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		if first {
			f = TopologyFile{Name: m.GetName(), Agents: m.GetAgents(), Version: m.GetVersion(), DryRun: m.GetDryRun()}
		}
		if f.Content = append(f.Content, m.GetContent()...); len(f.Content) > maxFile {
			return f, fmt.Errorf("%w: content of more than %d bytes", ErrMalformed, maxFile)
		}
	}
}

type fileStream = grpc.ClientStreamingServer[pb.TopologyFile, pb.TopologyDifference]

// answerFile serves a call that takes a file.
func answerFile(stream fileStream, call func(context.Context, TopologyFile) (TopologyDifference, error)) error {
	f, err := fileFrom(stream.Recv)
	if err != nil {
		return err
	}
	d, err := call(stream.Context(), f)
	if err != nil {
		return err
	}
	m := &pb.TopologyDifference{Version: d.Version, What: d.What, More: uint32(d.More)}
	if len(d.What) > maxLines {
		m.What, m.More = d.What[:maxLines], uint32(d.More+len(d.What)-maxLines)
	}
	return stream.SendAndClose(m)
}

func (s *managerServer) SetTopology(stream fileStream) error {
	return answerFile(stream, s.manager.SetTopology)
}

func (s *managerServer) EditTopology(stream fileStream) error {
	return answerFile(stream, s.manager.EditTopology)
}

func (s *managerServer) DiffTopology(stream fileStream) error {
	return answerFile(stream, s.manager.DiffTopology)
}

func (s *managerServer) GetTopologyFile(m *pb.GetTopologyFileRequest, stream grpc.ServerStreamingServer[pb.TopologyFile]) error {
	f, err := s.manager.TopologyFile(stream.Context(), m.GetMap())
	if err != nil {
		return err
	}
	return filePieces(f, stream.Send)
}

func (s *managerServer) GetTopologyHistory(ctx context.Context, _ *pb.GetTopologyHistoryRequest) (*pb.GetTopologyHistoryResponse, error) {
	all, err := s.manager.TopologyHistory(ctx)
	return &pb.GetTopologyHistoryResponse{Changes: each(all, func(c MapChange) *pb.TopologyChange {
		return &pb.TopologyChange{At: timestamppb.New(c.At), Version: c.Version, Cause: c.Cause, What: c.What, More: uint32(c.More)}
	})}, err
}

// upload makes a call that takes a file.
func (c *ManagerClient) upload(ctx context.Context, what string, f TopologyFile,
	open func(context.Context, ...grpc.CallOption) (grpc.ClientStreamingClient[pb.TopologyFile, pb.TopologyDifference], error),
) (TopologyDifference, error) {
	stream, err := open(ctx)
	if err != nil {
		return TopologyDifference{}, c.fail(what, err)
	}
	if err := filePieces(f, stream.Send); err != nil && !errors.Is(err, io.EOF) { // of that the answer says why
		return TopologyDifference{}, c.fail(what, err)
	}
	m, err := stream.CloseAndRecv()
	return answered(&c.remoteEnd, what, m, err, func(r *reader, m *pb.TopologyDifference) TopologyDifference {
		return TopologyDifference{m.GetVersion(), m.GetWhat(), r.int("more", m.GetMore())}
	})
}

// SetTopology is Manager's.
func (c *ManagerClient) SetTopology(ctx context.Context, f TopologyFile) (TopologyDifference, error) {
	return c.upload(ctx, "set topology", f, c.client.SetTopology)
}

// EditTopology is Manager's.
func (c *ManagerClient) EditTopology(ctx context.Context, f TopologyFile) (TopologyDifference, error) {
	return c.upload(ctx, "edit topology", f, c.client.EditTopology)
}

// DiffTopology is Manager's.
func (c *ManagerClient) DiffTopology(ctx context.Context, f TopologyFile) (TopologyDifference, error) {
	return c.upload(ctx, "diff topology", f, c.client.DiffTopology)
}

// TopologyFile is Manager's.
func (c *ManagerClient) TopologyFile(ctx context.Context, inEffect bool) (TopologyFile, error) {
	stream, err := c.client.GetTopologyFile(ctx, &pb.GetTopologyFileRequest{Map: inEffect})
	if err != nil {
		return TopologyFile{}, c.fail("topology file", err)
	}
	f, err := fileFrom(stream.Recv)
	return f, c.fail("topology file", err)
}

// TopologyHistory is Manager's.
func (c *ManagerClient) TopologyHistory(ctx context.Context) ([]MapChange, error) {
	m, err := c.client.GetTopologyHistory(ctx, &pb.GetTopologyHistoryRequest{})
	return answered(&c.remoteEnd, "topology history", m, err, func(r *reader, m *pb.GetTopologyHistoryResponse) []MapChange {
		return each(m.GetChanges(), func(c *pb.TopologyChange) MapChange {
			return MapChange{c.GetAt().AsTime(), c.GetVersion(), c.GetCause(), c.GetWhat(), r.int("more", c.GetMore())}
		})
	})
}
