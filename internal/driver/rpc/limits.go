package rpc

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/driver/admission"
)

// ErrTooLarge: a message is larger than its method needs.
var ErrTooLarge = errors.New("rpc: the message is too large")

// Limits bound what others may take of a server. A zero field has the value of DefaultLimits.
type Limits struct {
	Connections int           // in all; newcomers beyond are closed
	OfSource    int           // of one address (IPv6: network of 64 bits), this machine's own aside; and calls at once of one host
	Streams     int           // calls at once on one connection; more wait at their client
	Handshake   time.Duration // for a connection to be ready for calls
	Idle        time.Duration // a connection without a call for so long is closed in good order
}

// DefaultLimits returns those of a server of which no others are asked.
func DefaultLimits() Limits {
	return Limits{Connections: 16384, OfSource: 512, Streams: 256, Handshake: 5 * time.Second, Idle: 10 * time.Minute}
}

func (l Limits) filled() Limits {
	d := DefaultLimits()
	l.Connections, l.OfSource = cmp.Or(l.Connections, d.Connections), cmp.Or(l.OfSource, d.OfSource)
	l.Streams, l.Handshake, l.Idle = cmp.Or(l.Streams, d.Streams), cmp.Or(l.Handshake, d.Handshake), cmp.Or(l.Idle, d.Idle)
	return l
}

// strangers are the most connections whose handshake goes on at once.
const strangers = 1024

// admission returns the limits of connections of a server, which knows its clients by
// certificates or does not.
func (l Limits) admission(isCertified bool) admission.Limits {
	a := admission.Limits{All: l.Connections, OfSource: l.OfSource}
	if isCertified {
		a.Strangers = strangers
	}
	return a
}

// Bounds of messages, in bytes.
const (
	// maxMessage is the largest message of any method: the members of the largest
	// group, by name, fit well.
	maxMessage = 16 << 20
	// smallMessage is the largest message to a server that has no entry in largeMessages.
	smallMessage = 64 << 10
	// maxHeader is the largest header of a call.
	maxHeader = 16 << 10
)

// largeMessages are those to servers that may have more than smallMessage, by type. A type is
// of one method, or of several that need as much.
var largeMessages = map[protoreflect.FullName]int{
	name(&pb.CreateGroupRequest{}): maxMessage, // members
	name(&pb.PlanGroupRequest{}):   maxMessage,
	name(&pb.HostSessionRequest{}): maxMessage,
	name(&pb.TopologyFile{}):       4 << 20, // a piece, and the agents' addresses; operators only
	name(&pb.PrepareRequest{}):     1 << 20, // a tree's neighbours; the manager only, and below
	name(&pb.CommitRequest{}):      1 << 20,
	name(&pb.SetRoutesRequest{}):   maxMessage, // addresses of all hosts
	"gnmi.SubscribeRequest":        1 << 20,    // paths; the manager and operators only, and below
	"gnmi.GetRequest":              1 << 20,
	"gnmi.SetRequest":              1 << 20,
}

func name(m protoreflect.ProtoMessage) protoreflect.FullName {
	return m.ProtoReflect().Descriptor().FullName()
}

// options returns those of a gRPC server.
func (l Limits) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(uint32(l.Streams)),
		grpc.ConnectionTimeout(l.Handshake),
		grpc.ForceServerCodecV2(bounded{encoding.GetCodecV2(proto.Name)}),
	}
}

// bounded reads messages that are no larger than their method needs: a few bytes may become
// many in memory.
type bounded struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (b bounded) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(protoreflect.ProtoMessage); ok {
		most := cmp.Or(largeMessages[name(m)], smallMessage)
		if n := data.Len(); n > most {
			return fmt.Errorf("%w: %d bytes for %s, want at most %d", ErrTooLarge, n, name(m), most)
		}
	}
	return b.CodecV2.Unmarshal(data, v)
}

// Connections of servers with certificates are replaced so often, in good order: calls that
// begin then are made on a connection whose certificates will be valid long enough. Streams
// stay on theirs, which ends with its certificate.
const (
	minAge = time.Minute
	maxAge = 10 * time.Minute
)

// age returns how old a connection becomes on which calls are begun; zero: any age.
func (c ServerConfig) age() time.Duration {
	if c.Trust == nil {
		return 0
	}
	// Who renews a certificate does so with a third of its time left, or more.
	return min(max(time.Until(c.Trust.Until())/6, minAge), maxAge)
}
