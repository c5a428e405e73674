package rail

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// Peer is another host. Its methods are safe for concurrent use.
type Peer struct {
	node   *Node
	name   string
	index  uint32 // of the node's lock, as isHeld and spaces
	isHeld bool   // a caller has it
	spaces int    // that have it

	mu          sync.Mutex
	core        *rail.Peer
	out         rail.Output
	frame       peer.Send // that is laid
	lost        []frameOn // frames that could not be
	epochs      rail.Epochs
	incarnation uint64      // 0: not known
	lastUp      time.Time   // when there was a connection last, if there is none
	isAgreed    bool        // upon a session
	isMuted     bool        // upon none, until messages of earlier ones are received
	isEnded     bool        // the node was closed
	timer       *time.Timer // runs until armed
	armed       core.Time
	reach       [classes]rail.Reach
	trouble     error // of the last call, or connection, of class Message
	conns       []*conn
	paths       [classes][rail.MaxRails]*pathOn // that the core has
	wants       uint8                           // 1<<class: the core waits for a path
	rails       []Failure                       // that have failed, the latest last
	losses      uint64                          // of sessions
	under       int                             // requests that are under way
	watched     int                             // spaces that are
}

// classes is the number of classes of connections that carry messages.
const classes = 2

func newPeer(n *Node, name string) (*Peer, error) {
	c, err := rail.New(n.core(name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	p := &Peer{node: n, name: name, core: c, armed: core.Never}
	for class := range p.reach {
		p.reach[class] = rail.DefaultReach(n.host.patience())
	}
	p.begin()
	return p, nil
}

// isIdle reports that nothing is known of the peer that somebody may still need. The caller
// holds the node's lock.
func (p *Peer) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	bytes, heads := p.core.Held()
	return p.under == 0 && len(p.conns) == 0 && bytes == 0 && heads == 0 && p.core.Outstanding() == 0
}

// Name returns the name of the peer's host.
func (p *Peer) Name() string { return p.name }

// Send sends a message, and waits until it has arrived at the peer's host. If ctx ends
// first, the message is withdrawn, and Send fails with ErrCanceled; it may have arrived all the
// same, if some of it was sent. Either way data are the caller's when Send returns.
func (p *Peer) Send(ctx context.Context, tag Tag, data []byte) error {
	if err := begun(ctx); err != nil {
		return err
	}
	r := p.request()
	p.send(r, tag, data)
	_, err := r.finish(ctx)
	return err
}

// Recv receives the earliest message of a tag, or of AnyTag, into a buffer. A longer message
// fills the buffer and fails with ErrTruncated. If ctx ends before there is a message, it is
// left to another receive.
func (p *Peer) Recv(ctx context.Context, tag Tag, into []byte) (Status, error) {
	if err := begun(ctx); err != nil {
		return Status{}, err
	}
	r := p.request()
	p.recv(r, tag, into)
	return r.finish(ctx)
}

// StartSend begins to send a message.
func (p *Peer) StartSend(tag Tag, data []byte) *Request {
	r := p.request()
	p.send(r, tag, data)
	return r
}

// StartRecv begins to receive a message.
func (p *Peer) StartRecv(tag Tag, into []byte) *Request {
	r := p.request()
	p.recv(r, tag, into)
	return r
}

// Probe returns the message that a receive of the tag would take at once, if there is one.
func (p *Peer) Probe(tag Tag) (s Status, isThere bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.core.Probe(0, uint64(tag), ignored(tag))
	return Status{Tag: Tag(e.Tag), Size: int(e.Size)}, ok
}

// Get reads from memory that the peer has registered.
func (p *Peer) Get(ctx context.Context, key Key, offset uint64, into []byte) error {
	if err := begun(ctx); err != nil {
		return err
	}
	r := p.request()
	p.get(r, key, offset, into)
	_, err := r.finish(ctx)
	return err
}

// Put writes to memory that the peer has registered. It returns when all of it is there.
func (p *Peer) Put(ctx context.Context, key Key, offset uint64, data []byte) error {
	if err := begun(ctx); err != nil {
		return err
	}
	r := p.request()
	p.put(r, key, offset, data)
	_, err := r.finish(ctx)
	return err
}

// StartGet begins to read from memory that the peer has registered.
func (p *Peer) StartGet(key Key, offset uint64, into []byte) *Request {
	r := p.request()
	p.get(r, key, offset, into)
	return r
}

// StartPut begins to write to memory that the peer has registered.
func (p *Peer) StartPut(key Key, offset uint64, data []byte) *Request {
	r := p.request()
	p.put(r, key, offset, data)
	return r
}

// begun returns the error of a request that is not begun, since ctx has ended before.
func begun(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx))
	}
	return nil
}

// request returns a new one.
func (p *Peer) request() *Request {
	r := requests.Get().(*Request)
	r.peer = p
	return r
}

func (p *Peer) send(r *Request, tag Tag, data []byte) {
	if tag == AnyTag {
		r.complete(Status{}, fmt.Errorf("%w: a message of AnyTag, which is for receives", ErrArgument))
		return
	}
	r.send.Tag, r.send.Data = uint64(tag), data
	p.start(r, sends)
}

func (p *Peer) put(r *Request, key Key, offset uint64, data []byte) {
	r.send.Handle, r.send.Offset, r.send.Data = key.handle(), offset, data
	p.start(r, puts)
}

func (p *Peer) recv(r *Request, tag Tag, into []byte) {
	r.recv.Tag, r.recv.Ignore, r.recv.Data = uint64(tag), ignored(tag), into
	p.start(r, receives)
}

// ignored returns the bits of a message's tag that do not matter to a receive.
func ignored(tag Tag) uint64 {
	if tag == AnyTag {
		return rail.AnyTag
	}
	return 0
}

func (p *Peer) get(r *Request, key Key, offset uint64, into []byte) {
	r.recv.Handle, r.recv.Offset, r.recv.Data = key.handle(), offset, into
	p.start(r, gets)
}

// operation is what a request does.
type operation uint8

const (
	sends operation = iota
	receives
	puts
	gets
)

// start begins a request.
func (p *Peer) start(r *Request, what operation) {
	var e effects
	p.mu.Lock()
	if p.isEnded {
		p.mu.Unlock()
		r.complete(Status{}, ErrClosed)
		return
	}
	if space := max(r.send.Context, r.recv.Context); !p.node.accepts(space) {
		p.mu.Unlock()
		r.complete(Status{}, fmt.Errorf("%w: its space is closed", ErrCanceled))
		return
	}
	p.under++
	now := p.node.clock.Now()
	switch what {
	case sends:
		r.send.User = r
		p.core.Send(&r.send, now, &p.out)
	case puts:
		r.send.User = r
		p.core.Put(&r.send, now, &p.out)
	case receives:
		r.isRecv, r.recv.User = true, r
		p.core.Recv(&r.recv, now, &p.out)
	case gets:
		r.isRecv, r.recv.User = true, r
		p.core.Get(&r.recv, now, &p.out)
	}
	p.settle(now, &e)
	p.unlock(&e)
}

// cancel cancels a request that is not done yet.
func (p *Peer) cancel(r *Request) {
	var e effects
	p.mu.Lock()
	if r.over.Happened() {
		p.mu.Unlock()
		return
	}
	now := p.node.clock.Now()
	if r.isRecv {
		p.core.CancelRecv(&r.recv, now, &p.out)
	} else {
		p.core.CancelSend(&r.send, now, &p.out)
	}
	p.settle(now, &e)
	p.unlock(&e)
}
