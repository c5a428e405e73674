package p4rttest

import (
	"context"
	"maps"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	spb "google.golang.org/genproto/googleapis/rpc/status"
)

var errNoPipeline = status.Error(codes.FailedPrecondition, "No forwarding pipeline config set for this device")

// SetForwardingPipelineConfig implements the call of that name.
func (s *service) SetForwardingPipelineConfig(ctx context.Context, m *p4v1.SetForwardingPipelineConfigRequest) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	t := s.target
	if err := t.arrive(ctx, Set); err != nil {
		return nil, err
	}
	t.mu.Lock()
	wedged, err := t.setPipeline(m)
	t.mu.Unlock()
	if wedged {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return new(p4v1.SetForwardingPipelineConfigResponse), err
}

// GetForwardingPipelineConfig implements the call of that name.
func (s *service) GetForwardingPipelineConfig(ctx context.Context, m *p4v1.GetForwardingPipelineConfigRequest) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	t := s.target
	if err := t.arrive(ctx, Get); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.config == nil {
		return nil, errNoPipeline
	}
	answer := &p4v1.ForwardingPipelineConfig{Cookie: t.config.GetCookie()}
	switch m.GetResponseType() {
	case p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY:
	case p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE:
		answer.P4Info = t.config.GetP4Info()
	case p4v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE:
		answer.P4DeviceConfig = t.config.GetP4DeviceConfig()
	default:
		answer = t.config
	}
	answer = proto.CloneOf(answer)
	if t.forge != nil {
		t.forge(answer)
	}
	return &p4v1.GetForwardingPipelineConfigResponse{Config: answer}, nil
}

// Write implements the call of that name.
func (s *service) Write(ctx context.Context, m *p4v1.WriteRequest) (*p4v1.WriteResponse, error) {
	t := s.target
	if err := t.arrive(ctx, Write); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.primary(m.GetElectionId()); err != nil {
		return nil, err
	}
	if t.config == nil {
		return nil, errNoPipeline
	}
	outcome := &spb.Status{Code: int32(codes.Unknown)}
	failed := false
	for _, u := range m.GetUpdates() {
		refused := status.Convert(t.change(u))
		failed = failed || refused.Code() != codes.OK
		detail, err := anypb.New(&p4v1.Error{
			CanonicalCode: int32(refused.Code()), Message: refused.Message(), Space: "p4rttest",
		})
		if err != nil {
			return nil, err
		}
		outcome.Details = append(outcome.Details, detail)
	}
	if failed {
		return nil, status.ErrorProto(outcome)
	}
	return new(p4v1.WriteResponse), nil
}

// Read implements the call of that name.
func (s *service) Read(m *p4v1.ReadRequest, stream p4v1.P4Runtime_ReadServer) error {
	t := s.target
	if err := t.arrive(stream.Context(), Read); err != nil {
		return err
	}
	answer, err := t.read(m)
	if err != nil {
		return err
	}
	return stream.Send(answer)
}

// read returns one message with all, as bmv2 does.
func (t *Target) read(m *p4v1.ReadRequest) (*p4v1.ReadResponse, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.config == nil {
		return nil, errNoPipeline
	}
	answer := new(p4v1.ReadResponse)
	for _, asked := range m.GetEntities() {
		found, err := t.find(asked)
		if err != nil {
			return nil, err
		}
		answer.Entities = append(answer.Entities, found...)
	}
	answer = proto.CloneOf(answer)
	if t.mangle != nil {
		t.mangle(answer)
	}
	return answer, nil
}

func (t *Target) find(asked *p4v1.Entity) (found []*p4v1.Entity, err error) {
	switch kind := asked.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		for _, e := range t.ofTable(kind.TableEntry.GetTableId()) {
			found = append(found, &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}})
		}
	case *p4v1.Entity_CounterEntry:
		id := kind.CounterEntry.GetCounterId()
		for i, data := range t.state.cells[id] {
			if one := kind.CounterEntry.GetIndex(); one != nil && one.GetIndex() != int64(i) {
				continue
			}
			found = append(found, &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
				CounterId: id, Index: &p4v1.Index{Index: int64(i)}, Data: data,
			}}})
		}
	case *p4v1.Entity_PacketReplicationEngineEntry:
		for _, id := range slices.Sorted(maps.Keys(t.state.groups)) {
			found = append(found, &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{
				PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
					Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: t.state.groups[id]},
				},
			}})
		}
	default:
		return nil, status.Error(codes.Unimplemented, "nothing of that kind can be read")
	}
	return found, nil
}

// ofTable returns the entries of a table, 0 of all; t.mu is held.
func (t *Target) ofTable(table uint32) []*p4v1.TableEntry {
	var all []*p4v1.TableEntry
	for _, key := range slices.Sorted(maps.Keys(t.state.entries)) {
		if e := t.state.entries[key]; table == 0 || e.GetTableId() == table {
			all = append(all, e)
		}
	}
	return all
}
