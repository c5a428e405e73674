package scoll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/collective"
	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// frameLength is the bytes of a message's length on a connection.
const frameLength = 4

// urgentMost are the most bytes of a message on the urgent lane; larger ones
// have a lane of their own, behind which none waits.
const urgentMost = 64 << 10

// largeMost are the most bytes of any message.
const largeMost = collect.MaxPart + 64<<10

// chunkClasses are the sizes of what is read into: for many small messages at
// once, and for a part of a large reply.
var chunkClasses = [...]int{urgentMost + 4<<10, collect.MinPart + 64<<10}

// chunksKept are the most chunks of a class that wait to be used again.
const chunksKept = 64

// errFrame ends a connection whose other side does not keep to the format.
var errFrame = errors.New("scoll: a message of unsound length")

// leastRoom is how much of a chunk must be left to read into it once more.
const leastRoom = 4 << 10

// chunk is memory that is read into, with messages in it that are not stepped
// yet.
type chunk struct {
	memory []byte
	class  int // -1: none
	holds  int // the reader's, and one for each lot of messages; guarded by chunks.mu
}

// chunks are a pool that never refuses.
type chunks struct {
	mu   sync.Mutex
	free [len(chunkClasses)][]*chunk
	lent int
}

// get lends a chunk of at least so many bytes.
func (p *chunks) get(size int) *chunk {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent++
	for class, n := range chunkClasses {
		if size > n {
			continue
		}
		free := p.free[class]
		if len(free) == 0 {
			return &chunk{memory: make([]byte, n), class: class, holds: 1}
		}
		c := free[len(free)-1]
		p.free[class] = free[:len(free)-1]
		c.holds = 1
		return c
	}
	return &chunk{memory: make([]byte, size), class: -1, holds: 1}
}

// hold keeps a chunk for another holder.
func (p *chunks) hold(c *chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.holds++
}

// put ends a hold of each.
func (p *chunks) put(all ...*chunk) {
	if len(all) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		if c.holds--; c.holds > 0 {
			continue
		}
		p.lent--
		if c.class >= 0 && len(p.free[c.class]) < chunksKept {
			p.free[c.class] = append(p.free[c.class], c)
		}
	}
}

// reader reads messages from a connection: as many at once as there are.
type reader struct {
	node     *Node
	from     collect.Node
	most     int // bytes of a message
	chunk    *chunk
	at, have int // of it: up to where it was handed on, and read
	messages []collective.Input
}

// read hands messages to the loop until the connection ends.
func (r *reader) read(conn io.Reader) error {
	r.chunk = r.node.chunks.get(chunkClasses[0])
	defer func() { r.node.chunks.put(r.chunk) }()
	for {
		n, err := conn.Read(r.chunk.memory[r.have:])
		r.have += n
		want, bad := r.split()
		if bad != nil {
			return bad
		}
		if err != nil {
			return err
		}
		if r.at+want > len(r.chunk.memory) || len(r.chunk.memory)-r.have < leastRoom {
			r.renew(want)
		}
	}
}

// split hands on what is whole. It returns the bytes of the message that is not,
// as far as that is known.
func (r *reader) split() (want int, err error) {
	for {
		have := r.chunk.memory[r.at:r.have]
		if want = frameLength; len(have) < want {
			break
		}
		size := int(binary.BigEndian.Uint32(have))
		if size > r.most {
			err = fmt.Errorf("%w: %d bytes, want at most %d", errFrame, size, r.most)
			break
		}
		if want += size; len(have) < want {
			break
		}
		if size == 0 { // it only asks whether this node is there
			r.at += want
			continue
		}
		r.messages = append(r.messages, collective.Input{Kind: collective.Message, Node: r.from, Bytes: have[frameLength:want:want]})
		r.node.counts.received(want)
		r.at += want
	}
	if len(r.messages) > 0 {
		r.node.chunks.hold(r.chunk)
		r.node.inbox.arrived(r.chunk, r.messages)
		clear(r.messages)
		r.messages = r.messages[:0]
	}
	return want, err
}

// renew goes on in another chunk. What a message says of its length is believed
// only as far as it has come.
func (r *reader) renew(want int) {
	rest := r.chunk.memory[r.at:r.have]
	next := r.node.chunks.get(min(want+leastRoom, max(2*len(rest), chunkClasses[0])))
	r.at, r.have = 0, copy(next.memory, rest)
	r.node.chunks.put(r.chunk)
	r.chunk = next
}
