package offload

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/reduce"
)

// Errors that are wrapped by those of this package.
var (
	ErrConfig  = errors.New("offload: invalid configuration")
	ErrClosed  = errors.New("offload: the group is closed")
	ErrRoot    = errors.New("offload: only the root broadcasts")
	ErrPayload = errors.New("offload: the payload is too large")
	ErrUnknown = errors.New("offload: a request of a group that is not here, or from too long ago")
)

// Config is what a service is, the same on all nodes.
type Config[T reduce.Element] struct {
	ID       scoll.ServiceID
	Function reduce.Function // by which replies are reduced, element by element
	Elements int             // of a reply
	// RequestBytes are the most bytes of a request's payload; 1024 by default, at
	// most about 4000. All requests travel with as many.
	RequestBytes int
	// Ahead is how many requests may be under way, whose credits members post
	// before they come; 32 by default.
	Ahead int
	// Run runs a request on a node, the root included, and lays its reply into
	// vector, which is zero. It runs once for a request, one request after the
	// other. An error is reported to the root as that of this node.
	Run func(r *Request, vector []T) error
	// Access says which hosts may call the service, and make its groups, over hosts. In the
	// switches members take requests from the root of their Spec alone.
	Access scoll.Access
	// RoundTrip and Timeout are R and P: a request is back from the switches
	// within 2R + P, or counts as lost there. 10 ms and 0 by default.
	RoundTrip, Timeout time.Duration
}

func (c Config[T]) filled() Config[T] {
	c.RequestBytes, c.Ahead = cmp.Or(c.RequestBytes, 1024), cmp.Or(c.Ahead, 32)
	c.RoundTrip = cmp.Or(c.RoundTrip, 10*time.Millisecond)
	return c
}

// headBytes are before a payload over hosts: the group's number and the
// request's.
const headBytes = 16

func (c *Config[T]) validate() error {
	const most = scoll.MaxRequest - 256
	switch {
	case c.Run == nil || c.Elements < 1 || c.Ahead < 1 || c.RoundTrip < 0 || c.Timeout < 0:
		return fmt.Errorf("%w: %d elements, %d requests ahead, back in 2 x %v + %v, or no Run", ErrConfig, c.Elements, c.Ahead, c.RoundTrip, c.Timeout)
	case c.RequestBytes < 0 || c.RequestBytes > most-headBytes:
		return fmt.Errorf("%w: payloads of %d bytes, want 0 to %d", ErrConfig, c.RequestBytes, most-headBytes)
	}
	return nil
}

// Request is one request on one node.
type Request struct {
	Payload   []byte // read only, during Run
	IsRoot    bool
	Transport hostlib.Transport // hostlib.Offload: through the switches
	Group     string            // name
}

// Service is a service at a node.
type Service[T reduce.Element] struct {
	cfg  Config[T]
	flag flag[T]
	node *scoll.Node
	host *hostlib.Host // nil: nothing is offloaded
	over *scoll.Service

	mu     sync.Mutex
	groups map[uint64]*Group[T] // by number
}

// Register registers a service at a node, where host is this node's place in the
// fabric; nil: all requests go over hosts. Errors are ErrConfig, ErrFunction and
// those of scoll's Register.
func Register[T reduce.Element](node *scoll.Node, host *hostlib.Host, c Config[T]) (*Service[T], error) {
	c = c.filled()
	if err := c.validate(); err != nil {
		return nil, err
	}
	f, err := flagOf[T](c.Function)
	if err != nil {
		return nil, err
	}
	s := &Service[T]{cfg: c, flag: f, node: node, host: host, groups: map[uint64]*Group[T]{}}
	s.over, err = node.Register(c.ID, s.callbacks())
	return s, err
}

// Over returns the service as it is over hosts, to be closed when all groups
// are.
func (s *Service[T]) Over() *scoll.Service { return s.over }

// callbacks are those over hosts.
func (s *Service[T]) callbacks() scoll.Callbacks {
	element := reduce.TypeOf[T]()
	return scoll.Aggregation{
		Access: s.cfg.Access,
		Check: func(r *scoll.Request) error {
			_, _, _, err := s.read(r.Payload())
			return err
		},
		New: func(*scoll.Request) (aggregate.Aggregator, error) {
			return aggregate.NewVector(s.cfg.Function, element, s.cfg.Elements)
		},
		Size: func(*scoll.Request, scoll.Child) int {
			return aggregate.VectorSize(s.cfg.Function, element, s.cfg.Elements)
		},
		Run: func(r *scoll.Request) (func(aggregate.Aggregator) error, error) {
			g, number, payload, err := s.read(r.Payload())
			if err != nil {
				return nil, err
			}
			v, err := g.run(number, &Request{Payload: payload, IsRoot: r.IsRoot(), Transport: hostlib.HostTree, Group: g.name})
			if err != nil {
				return nil, err
			}
			return func(a aggregate.Aggregator) error { return a.(*aggregate.Vector).Put(v) }, nil
		},
		Done: func(r *scoll.Request, a aggregate.Aggregator) {
			f := r.Private().(*flight[T])
			f.vector = make([]T, s.cfg.Elements)
			reduce.Get(f.vector, a.(*aggregate.Vector).Result())
		},
	}.Callbacks()
}

// read returns what a payload over hosts says.
func (s *Service[T]) read(b []byte) (g *Group[T], number uint64, payload []byte, err error) {
	if len(b) < headBytes {
		return nil, 0, nil, fmt.Errorf("%w: %d bytes", ErrUnknown, len(b))
	}
	s.mu.Lock()
	g = s.groups[binary.BigEndian.Uint64(b)]
	s.mu.Unlock()
	if g == nil {
		return nil, 0, nil, ErrUnknown
	}
	return g, binary.BigEndian.Uint64(b[8:]), b[headBytes:], nil
}

// numberOf returns a group's number: all members come to the same.
func numberOf(name string, members []hostlib.Member) uint64 {
	h := sha256.New()
	fmt.Fprintf(h, "tributary/offload/1 %q", name)
	for _, m := range members {
		fmt.Fprintf(h, " %q", m.Host)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
