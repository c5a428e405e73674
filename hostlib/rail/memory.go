package rail

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// Access is what others may do with memory.
type Access uint8

// The kinds of access.
const (
	Read      = Access(rail.MayRead)
	Write     = Access(rail.MayWrite)
	ReadWrite = Read | Write
)

// Key names registered memory, and is what gives access to it: nobody can guess it.
type Key [16]byte

func (k Key) handle() rail.Handle {
	return rail.Handle{Number: binary.BigEndian.Uint64(k[:]), Key: binary.BigEndian.Uint64(k[8:])}
}

// Memory is memory that peers may access.
type Memory struct {
	node   *Node
	handle rail.Handle
	once   sync.Once
	freed  chan struct{} // of regions.release, once that was called
}

// Register lets whoever has the key access memory until it is released: vectors, one behind
// the other; one alone if it may be written. The errors are ErrArgument and ErrClosed.
func (n *Node) Register(access Access, memory ...[]byte) (*Memory, error) {
	return n.register(nil, nil, access, memory)
}

// RegisterFor is Register under a key that both sides know already, for these peers alone:
// hosts that show by their certificates that they are. What others ask of the key is
// refused as if it were not there. A key that memory is registered under is ErrArgument.
func (n *Node) RegisterFor(peers []string, key Key, access Access, memory ...[]byte) (*Memory, error) {
	return n.register(append([]string{}, peers...), &key, access, memory)
}

func (n *Node) register(peers []string, key *Key, access Access, memory [][]byte) (*Memory, error) {
	size := 0
	for _, v := range memory {
		size += len(v)
	}
	if access == 0 || access&^ReadWrite != 0 || size == 0 || access&Write != 0 && len(memory) > 1 {
		return nil, fmt.Errorf("%w: %d bytes of memory in %d vectors for access %d: want some bytes, in one vector if they may be written", ErrArgument, size, len(memory), access)
	}
	h, err := n.memory.register(peers, key, rail.Rights(access), memory)
	if err != nil {
		return nil, err
	}
	return &Memory{node: n, handle: h}, nil
}

// Key returns the key of the memory.
func (m *Memory) Key() (k Key) {
	binary.BigEndian.PutUint64(k[:], m.handle.Number)
	binary.BigEndian.PutUint64(k[8:], m.handle.Key)
	return k
}

// Release ends the access, and returns when nobody accesses the memory any more: what peers
// have begun to read or to write is done first, or fails with its peer.
func (m *Memory) Release() {
	if freed := m.release(); freed != nil {
		<-freed
	}
}

// Revoke is Release, but cuts off who reads: those reads fail. It does not wait for the
// network for longer than 5 ms, and may be called while a Release waits. Fragments of other
// requests that are on the same paths are then sent again.
func (m *Memory) Revoke() {
	freed := m.release()
	if freed == nil {
		return
	}
	// What was written to a connection is not read again, and what is being written takes a
	// moment: most often no path has to end.
	var soon <-chan time.Time
	for _, end := range [...]bool{false, true} {
		for _, p := range m.node.all() {
			select {
			case <-freed: // the key may be that of other memory by now
				return
			default:
				p.revoke(m.handle, end)
			}
		}
		if soon == nil {
			soon = time.After(revokeWithin)
			select {
			case <-freed:
				return
			case <-soon:
			}
		}
	}
	<-freed
}

// revokeWithin is how long fragments that are being written may take before their paths end.
const revokeWithin = 5 * time.Millisecond

// release ends the access, the first time. It returns what is closed when nobody uses the
// memory any more; nil: nobody did.
func (m *Memory) release() (freed <-chan struct{}) {
	m.once.Do(func() { m.freed = m.node.memory.release(m.handle) })
	return m.freed
}

// regions are the memory that a node has registered.
type regions struct {
	mu       sync.Mutex
	memory   rail.Memory
	isClosed bool
	freed    map[rail.Handle]chan struct{} // closed when nobody uses a released region
	peers    map[rail.Handle][]string      // who alone may use a region that is not for all
}

// register makes memory available, under a key of its own if there is none, to all if
// there are no peers.
func (r *regions) register(peers []string, key *Key, rights rail.Rights, memory [][]byte) (h rail.Handle, err error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed {
		return h, ErrClosed
	}
	if key == nil {
		return r.memory.Register(rights, binary.BigEndian.Uint64(random[:]), memory...), nil
	}
	if err := r.memory.RegisterAs(key.handle(), rights, memory...); err != nil {
		return h, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	if peers != nil {
		if r.peers == nil {
			r.peers = map[rail.Handle][]string{}
		}
		r.peers[key.handle()] = peers
	}
	return key.handle(), nil
}

// release ends the access. It returns nil if nobody uses the memory, or else what is closed
// when nobody does.
func (r *regions) release(h rail.Handle) (freed chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.peers, h)
	if r.memory.Release(h) {
		return nil
	}
	if r.freed == nil {
		r.freed = map[rail.Handle]chan struct{}{}
	}
	r.freed[h] = make(chan struct{})
	return r.freed[h]
}

// close lets nothing be registered any more.
func (r *regions) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isClosed = true
}

// regionsFor are what a peer may use of them. It implements rail.Regions for its core.
type regionsFor struct {
	*regions
	peer string
}

// Hold implements rail.Regions.
func (r regionsFor) Hold(h rail.Handle, offset, length uint64, isWrite bool) (first []byte, rest [][]byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if only, ok := r.peers[h]; ok && !slices.Contains(only, r.peer) {
		return nil, nil, fmt.Errorf("%w: %d is not for %s", rail.ErrHandle, h.Number, r.peer)
	}
	return r.memory.Hold(h, offset, length, isWrite)
}

// Unhold implements rail.Regions.
func (r *regions) Unhold(h rail.Handle) (isFree bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if isFree = r.memory.Unhold(h); isFree {
		close(r.freed[h])
		delete(r.freed, h)
	}
	return isFree
}

// errRevoked is why a path ends that has revoked memory.
var errRevoked = errors.New("rail: memory that was sent on this path is revoked")

// revoke ends the peer's reads of a region; also, if endsPaths, the paths that still read its
// memory.
func (p *Peer) revoke(h rail.Handle, endsPaths bool) {
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	now := p.node.clock.Now()
	isLent := p.core.Revoke(h, now, &p.out)
	p.settle(now, &e)
	if !isLent {
		return
	}
	isRead := false
	for slot, on := range p.paths[rail.Fragment] {
		if on != nil && p.core.InFlight(uint8(slot), rail.Fragment) > 0 && on.Lends(peer.Messages) {
			if isRead = true; endsPaths {
				on.Break(errRevoked)
			}
		}
	}
	if !isRead {
		p.core.Unlend(h)
	}
}
