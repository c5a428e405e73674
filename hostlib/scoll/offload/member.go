package offload

import (
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// shutdownLength stands where a request's length does when none follows.
const shutdownLength = 1<<32 - 1

// headWords are before a payload through the switches: the request's number and
// its length.
const headWords = 3

// words returns how many a request has.
func (c *Config[T]) words() int { return headWords + (c.RequestBytes+3)/4 }

// pack lays a request into words.
func pack(words []uint32, number uint64, payload []byte, length uint32) {
	clear(words)
	words[0], words[1], words[2] = uint32(number), uint32(number>>32), length
	for i := range payload {
		words[headWords+i/4] |= uint32(payload[i]) << (8 * (i % 4))
	}
}

// unpack returns what words say; the payload is appended to b.
func unpack(words []uint32, b []byte) (number uint64, payload []byte, shutdown bool, err error) {
	length := words[2]
	if length == shutdownLength {
		return 0, nil, true, nil
	}
	if int64(length) > int64(4*(len(words)-headWords)) {
		return 0, nil, false, fmt.Errorf("%w: a request of %d bytes in %d words", ErrUnknown, length, len(words))
	}
	for _, w := range words[headWords:] {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return uint64(words[0]) | uint64(words[1])<<32, b[:length], false, nil
}

// credit is a place for a request that comes, and for the reply to it.
type credit[T reduce.Element] struct {
	words   []uint32
	request *hostlib.Request
	bytes   []byte // of the payload
	reply   *hostlib.Request
	vector  []T
}

func (g *Group[T]) post(c *credit[T]) {
	c.request = hostlib.StartBroadcast(g.down, g.spec.Root, c.words)
}

// serve takes requests from the switches, in their order, until the root says
// shutdown or something goes wrong.
func (g *Group[T]) serve() {
	defer close(g.served)
	cfg := &g.service.cfg
	credits := make([]credit[T], cfg.Ahead)
	for i := range credits {
		credits[i] = credit[T]{words: make([]uint32, cfg.words()), vector: make([]T, cfg.Elements+1)}
		g.post(&credits[i])
	}
	if err := g.take(credits); err != nil {
		g.lose(err.Error())
	}
	for i := range credits { // what the library still has
		c := &credits[i]
		if g.isLost() {
			<-c.request.Done()
		}
		if c.reply != nil {
			if _, err := c.reply.Wait(g.ctx); err != nil {
				g.lose(err.Error())
				<-c.reply.Done()
			}
		}
	}
}

// take takes requests until every credit has brought the root's shutdown.
func (g *Group[T]) take(credits []credit[T]) error {
	shutdowns := 0
	for i := 0; shutdowns < len(credits); i = (i + 1) % len(credits) {
		c := &credits[i]
		if _, err := c.request.Wait(g.ctx); err != nil {
			return err
		}
		number, payload, shutdown, err := unpack(c.words, c.bytes[:0])
		if shutdown {
			shutdowns++
			continue
		}
		var v []byte
		if err == nil {
			c.bytes = payload
			v, err = g.run(number, &Request{Payload: payload, Transport: hostlib.Offload, Group: g.name})
		}
		if err := g.answer(c, v, err); err != nil {
			return err
		}
		g.post(c)
	}
	return nil
}

// answer sends the reply up.
func (g *Group[T]) answer(c *credit[T], v []byte, failed error) error {
	if c.reply != nil {
		if _, err := c.reply.Wait(g.ctx); err != nil {
			return err
		}
	}
	g.lay(c.vector, v, failed)
	c.reply = hostlib.StartReduce(g.up, g.service.cfg.Function, g.spec.Root, c.vector, nil)
	return nil
}

// lay lays a reply into a vector, with the flag behind it.
func (g *Group[T]) lay(vector []T, v []byte, failed error) {
	last := len(vector) - 1
	clear(vector)
	vector[last] = g.service.flag.failed
	if failed == nil {
		reduce.Get(vector[:last], v)
		vector[last] = g.service.flag.fine
	}
}
