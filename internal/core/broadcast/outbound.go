package broadcast

import (
	"errors"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// What an outbound message is, beside the number of a child.
const (
	reply    = -1 // of a request
	nobody   = -2 // a refusal or an answer, of no request
	question = -3 // to a root
)

// outbound is a message that the transport has not taken charge of.
type outbound struct {
	number   uint64
	to       broadcastmsg.Node
	buf      *buffer // holds one reference
	attempts int
	request  uint64
	child    int
	resting  bool // between two attempts
	alarm    core.Timer[any]
}

func (c *Core) send(to broadcastmsg.Node, b *buffer, request uint64, child int) {
	c.emit(c.outbound(to, b, request, child))
}

func (c *Core) outbound(to broadcastmsg.Node, b *buffer, request uint64, child int) *outbound {
	o := c.spares.send()
	o.number, o.to, o.buf, o.request, o.child = c.next(), to, b, request, child
	c.sends[o.number] = o
	return o
}

func (c *Core) emit(o *outbound) {
	o.attempts++
	c.out.Sends = append(c.out.Sends, Send{Number: o.number, To: o.to, Bytes: o.buf.b})
}

// rest has o wait for a while before it is sent, or sent again.
func (c *Core) rest(o *outbound, d time.Duration) {
	o.resting = true
	c.timers.Set(&o.alarm, c.now.Add(d))
}

// sent takes what became of a message. A failure is local, so that it may be
// sent again.
func (c *Core) sent(number uint64, err error) {
	o := c.sends[number]
	switch {
	case o == nil || o.resting:
	case err != nil && o.attempts < c.cfg.Attempts && c.wanted(o):
		c.rest(o, c.cfg.RetryAfter)
	default:
		c.done(o, err)
	}
}

// wanted reports whether somebody still waits for a message.
func (c *Core) wanted(o *outbound) bool {
	if _, dead := c.dead[o.to]; dead {
		return false
	}
	r := c.requests[o.request]
	switch {
	case o.child == nobody:
		return true
	case o.child == question:
		return c.proofs.asked[o.to] != nil
	case r == nil || r.silent:
		return false
	}
	return o.child == reply || r.children[o.child].state == waiting
}

func (c *Core) again(o *outbound) {
	o.resting = false
	if !c.wanted(o) {
		c.done(o, ErrDead)
		return
	}
	if o.attempts > 0 {
		c.counters.Retries++
	}
	c.emit(o)
}

func (c *Core) done(o *outbound, err error) {
	delete(c.sends, o.number)
	c.pool.release(o.buf)
	r, child, to := c.requests[o.request], o.child, o.to
	c.spares.sent(o)
	switch {
	case child == question:
		c.questioned(to, err)
	case r == nil || child == nobody:
	case child == reply:
		r.out--
		if err != nil {
			r.unsent = err
		}
		c.flush(r)
	case err == nil:
		k := &r.children[child]
		if k.called = false; k.cut && k.state == waiting {
			c.recall(r, child)
		}
	default:
		status := broadcastmsg.Unsent
		if errors.Is(err, ErrOutdated) {
			status = broadcastmsg.Outdated
		}
		c.settle(r, child, verdict{status: status, reason: err.Error()})
		c.advance(r)
	}
}
