package p4rttest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// A Method is a call of P4Runtime, for faults.
type Method string

// The methods.
const (
	Capabilities Method = "Capabilities"
	Stream       Method = "StreamChannel"
	Set          Method = "SetForwardingPipelineConfig"
	Get          Method = "GetForwardingPipelineConfig"
	Write        Method = "Write"
	Read         Method = "Read"
)

// DefaultVersion is what a Target says of P4Runtime's version; bmv2 does.
const DefaultVersion = "1.3.0"

// Target is a P4Runtime server with one device, of any id. It is safe for
// concurrent use.
type Target struct {
	dir  string
	path string
	tls  *tls.Config // nil: in plain text, on a Unix socket
	tcp  string      // "host:port" with TLS

	mu       sync.Mutex
	server   *grpc.Server
	served   chan struct{} // closed when the server has ended
	user     string        // empty: everybody is let in
	password string
	hung     map[Method]*Hung
	failing  map[Method]error
	version  string
	refuse   func(*p4v1.Update) error
	mangle   func(*p4v1.ReadResponse)
	forge    func(*p4v1.ForwardingPipelineConfig)
	streams  []*stream // by falling election id: the first is primary
	config   *p4v1.ForwardingPipelineConfig
	state    state
	updates  []*p4v1.Update
	cables   map[uint64]uint64               // from a port that packets leave by to the one that they come back by
	outgoing runner.Mailbox[*p4v1.PacketOut] // what the primary sent
}

// Start returns a Target that serves, without a program. The caller closes it.
func Start() (*Target, error) {
	dir, err := os.MkdirTemp("", "p4rt")
	if err != nil {
		return nil, err
	}
	t := &Target{
		dir: dir, path: filepath.Join(dir, "s"),
		hung: make(map[Method]*Hung), failing: make(map[Method]error), version: DefaultVersion,
	}
	if err := t.serve(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return t, nil
}

// StartTLS returns a Target that serves by TLS at a free port of a loopback address,
// without a program. The caller closes it.
func StartTLS(c *tls.Config) (*Target, error) {
	t := &Target{
		tls: c, tcp: "127.0.0.1:0",
		hung: make(map[Method]*Hung), failing: make(map[Method]error), version: DefaultVersion,
	}
	return t, t.serve()
}

// Require makes every call without this user's name and password fail; an empty name
// ends that.
func (t *Target) Require(user, password string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.user, t.password = user, password
}

// admits returns why a call is not let in.
func (t *Target) admits(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, _ := metadata.FromIncomingContext(ctx)
	if t.user != "" && (!slices.Equal(m.Get("username"), []string{t.user}) || !slices.Equal(m.Get("password"), []string{t.password})) {
		return status.Error(codes.Unauthenticated, "unknown user, or wrong password")
	}
	return nil
}

// Address returns where it serves, also while it is stopped.
func (t *Target) Address() string {
	if t.tls != nil {
		return t.tcp
	}
	return "unix:" + t.path
}

// Close ends the server and removes its socket.
func (t *Target) Close() {
	t.Stop()
	if t.dir != "" {
		_ = os.RemoveAll(t.dir)
	}
}

// Stop ends the server as a kill does: connections break, nobody listens. What
// the target holds is lost, and so is every fault.
func (t *Target) Stop() {
	t.disconnect()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hung {
		close(h.released)
	}
	clear(t.hung)
	clear(t.failing)
	t.config, t.state, t.refuse, t.mangle, t.forge = nil, state{}, nil, nil, nil
}

// Restart stops the target and serves again, empty.
func (t *Target) Restart() error {
	t.Stop()
	return t.serve()
}

// Disconnect breaks all connections, and serves again; what the target holds
// stays.
func (t *Target) Disconnect() error {
	t.disconnect()
	return t.serve()
}

// disconnect ends the server and all its calls, and waits for their end.
func (t *Target) disconnect() {
	t.mu.Lock()
	server, served := t.server, t.served
	t.server = nil
	t.mu.Unlock()
	if server != nil {
		server.Stop()
		<-served
	}
}

// listen listens; the free port that it takes first is kept.
func (t *Target) listen() (net.Listener, error) {
	if t.tls == nil {
		return net.Listen("unix", t.path)
	}
	l, err := net.Listen("tcp", t.tcp)
	if err == nil {
		t.tcp = l.Addr().String()
	}
	return l, err
}

func (t *Target) serve() error {
	listener, err := t.listen()
	if err != nil {
		return err
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(largestMessage), grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := t.admits(ctx); err != nil {
				return nil, err
			}
			return handle(ctx, m)
		}),
		grpc.StreamInterceptor(func(s any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := t.admits(stream.Context()); err != nil {
				return err
			}
			return handle(s, stream)
		}),
	}
	if t.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(t.tls)))
	}
	server, served := grpc.NewServer(options...), make(chan struct{})
	p4v1.RegisterP4RuntimeServer(server, &service{target: t})
	t.mu.Lock()
	t.server, t.served = server, served
	t.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve(listener) // nil after Stop, which is the only end
	}()
	return nil
}

const largestMessage = 64 << 20 // bytes

// Hung is a method that takes calls and does not answer them.
type Hung struct {
	target   *Target
	method   Method
	once     sync.Once
	reached  chan struct{} // closed when a call hangs
	released chan struct{} // closed when it answers again
}

// Hang makes a method hang until Stop or Release; of Stream, messages of
// controllers are kept back.
func (t *Target) Hang(m Method) *Hung {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hang(m)
}

// hang makes a method hang; t.mu is held.
func (t *Target) hang(m Method) *Hung {
	if t.hung[m] == nil {
		t.hung[m] = &Hung{target: t, method: m, reached: make(chan struct{}), released: make(chan struct{})}
	}
	return t.hung[m]
}

// Reached is closed when a call hangs.
func (h *Hung) Reached() <-chan struct{} { return h.reached }

// Release lets the method answer again.
func (h *Hung) Release() {
	h.target.mu.Lock()
	defer h.target.mu.Unlock()
	if h.target.hung[h.method] == h {
		delete(h.target.hung, h.method)
		close(h.released)
	}
}

// Fail makes a method answer with a status; codes.OK ends that.
func (t *Target) Fail(m Method, code codes.Code, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failing[m] = status.Error(code, message) // nil if OK
}

// Refuse asks f about every update of a Write. What it returns an error for,
// best one of package status, is refused with it. nil: none is.
func (t *Target) Refuse(f func(*p4v1.Update) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refuse = f
}

// Mangle lets f change what every Read answers; nil: none.
func (t *Target) Mangle(f func(*p4v1.ReadResponse)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mangle = f
}

// Forge lets f change what the target reports the program that it holds; nil:
// nothing.
func (t *Target) Forge(f func(*p4v1.ForwardingPipelineConfig)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forge = f
}

// SetVersion sets what the target says of P4Runtime's version.
func (t *Target) SetVersion(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
}

// arrive begins a call: it waits while the method hangs, and returns why the
// call fails.
func (t *Target) arrive(ctx context.Context, m Method) error {
	t.mu.Lock()
	h := t.hung[m]
	t.mu.Unlock()
	if h != nil {
		h.once.Do(func() { close(h.reached) })
		select {
		case <-h.released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failing[m]
}

// wedge makes everything hang but Capabilities; t.mu is held.
func (t *Target) wedge() {
	for _, m := range []Method{Stream, Set, Get, Write, Read} {
		t.hang(m)
	}
}

// Info returns the P4Info of the program that the target holds, nil if none.
func (t *Target) Info() *p4config.P4Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.config.GetP4Info()
}

// Punt sends a packet to the primary, with the fields of the program's packet_in
// header in their order. It fails if there is no primary or no such header.
func (t *Target) Punt(payload []byte, fields ...uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &p4v1.PacketIn{Payload: payload}
	for _, h := range t.config.GetP4Info().GetControllerPacketMetadata() {
		if h.GetPreamble().GetName() != "packet_in" {
			continue
		}
		if len(fields) != len(h.GetMetadata()) {
			return fmt.Errorf("p4rttest: %d fields for a packet_in header of %d", len(fields), len(h.GetMetadata()))
		}
		for i, m := range h.GetMetadata() {
			p.Metadata = append(p.Metadata, &p4v1.PacketMetadata{MetadataId: m.GetId(), Value: canonical(fields[i])})
		}
		return t.notify(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: p}})
	}
	return fmt.Errorf("p4rttest: the program has no packet_in header")
}

// Cable makes what the primary sends by a port come back to it as having come in by
// another, or by none that is 0. The ports are the first fields of the program's
// packet_out and packet_in headers.
func (t *Target) Cable(from, to uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cables == nil {
		t.cables = map[uint64]uint64{}
	}
	t.cables[from] = to
}

// looped reports whether a packet leaves by a port that has a cable, and sends it
// back.
func (t *Target) looped(p *p4v1.PacketOut) bool {
	if len(p.GetMetadata()) == 0 {
		return false
	}
	var from uint64
	for _, b := range p.GetMetadata()[0].GetValue() {
		from = from<<8 | uint64(b)
	}
	t.mu.Lock()
	to, cable := t.cables[from]
	t.mu.Unlock()
	if cable && to != 0 {
		_ = t.Punt(p.GetPayload(), to, 0, 0) // it is lost without a primary
	}
	return cable
}

// Notify sends the primary any message. It fails if there is none.
func (t *Target) Notify(m *p4v1.StreamMessageResponse) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.notify(m)
}

func (t *Target) notify(m *p4v1.StreamMessageResponse) error {
	if len(t.streams) == 0 {
		return fmt.Errorf("p4rttest: there is no primary")
	}
	t.streams[0].box.Put(m)
	return nil
}

// PacketsOut waits for packets from the primary and returns all.
func (t *Target) PacketsOut(ctx context.Context) ([]*p4v1.PacketOut, error) {
	return t.outgoing.Take(ctx)
}

// Updates returns the updates that were asked for since the last call, refused
// ones too.
func (t *Target) Updates() []*p4v1.Update {
	t.mu.Lock()
	defer t.mu.Unlock()
	updates := t.updates
	t.updates = nil
	return updates
}
