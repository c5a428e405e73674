package broadcast

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// answer is a request's way up.
type answer struct {
	replied bool   // the service has given all of its reply
	early   bool   // before post-reply: the local one alone
	tail    []byte // what has not gone out
	part    uint32
	offset  uint64
	flushed bool  // the last message is out
	out     int   // messages that are not answered by Sent
	unsent  error // the last that was given up
}

// Reply gives the reply to a request, from a callback of it or from elsewhere,
// until it has ended. With more set it is the next piece of a reply that goes
// on: what fills a message goes out at once.
//
// A reply that is complete before post-reply begins is the local one. It never
// travels alone: post-reply sees it, and the reply that is given from then on,
// which aggregates it with the children's, replaces it. Only at a leaf it goes
// out itself if post-reply gives none. On the root a reply goes nowhere.
func (c *Core) Reply(now core.Time, id uint64, body []byte, more bool, out *Output) error {
	c.enter(now, out)
	r := c.requests[id]
	switch {
	case r == nil || r.phase < preparing || r.phase == leaving:
		return fmt.Errorf("reply: %w", ErrRequest)
	case r.fail == broadcastmsg.Aborted:
		return fmt.Errorf("reply: %w", ErrAborted)
	case r.fail != broadcastmsg.OK:
		return fmt.Errorf("reply: %w: %v", ErrNoReply, r.fail)
	}
	if r.replied {
		if !r.early || r.phase < posting || r.part > 0 || r.flushed {
			return fmt.Errorf("reply: %w", ErrReplied)
		}
		r.replied, r.tail = false, r.tail[:0]
	}
	r.tail = append(r.tail, body...)
	r.early = r.phase < posting
	r.replied = !more
	if r.root {
		return nil
	}
	if more && r.phase >= running {
		c.sendParts(r)
	}
	c.flush(r)
	return nil
}

// sendParts sends what fills a message and is not the last: a reply goes in as
// few messages as its size allows.
func (c *Core) sendParts(r *request) {
	for len(r.tail) > c.cfg.PartBytes {
		c.sendUp(r, broadcastmsg.Reply{Body: r.tail[:c.cfg.PartBytes]})
		r.tail = r.tail[:copy(r.tail, r.tail[c.cfg.PartBytes:])]
	}
}

// flush sends the reply once it is complete and post-reply has returned, and
// lets the request leave once it is out.
func (c *Core) flush(r *request) {
	if r.phase != replying || r.root {
		return
	}
	if !r.flushed && !r.silent {
		// A local reply is all there is to say at a leaf; elsewhere the children's
		// are missing from it.
		complete := r.replied && (!r.early || len(r.children) == 0)
		if r.fail == broadcastmsg.OK && !complete {
			if !r.overdue {
				return
			}
			r.fail = broadcastmsg.NoReply
		}
		c.finalReply(r)
	}
	if r.out > 0 && !r.silent {
		return
	}
	r.phase = leaving
	c.rearm(r)
	if r.own {
		c.end(r, c.errorOf(r))
		return
	}
	c.call(Call{Kind: ReplyOut, Service: r.service, Request: r.id, Err: c.errorOf(r)})
}

// finalReply sends the last message of the reply, with what is known of the
// subtree.
func (c *Core) finalReply(r *request) {
	r.flushed = true
	m := broadcastmsg.Reply{Final: true, Status: r.fail, Reason: r.reason, Ran: uint32(r.reached)}
	if r.fail == broadcastmsg.OK {
		c.sendParts(r)
		m.Body = r.tail
		m.Ran++
	} else if !m.Status.Reportable() {
		m.Status = broadcastmsg.Failed
	}
	m.Missing = fold(r.missing)
	c.sendUp(r, m)
	r.tail = r.tail[:0]
}

func (c *Core) sendUp(r *request, m broadcastmsg.Reply) {
	m.Key, m.Part, m.Offset = r.key, r.part, r.offset
	r.part++
	r.offset += uint64(len(m.Body))
	r.out++
	b := c.pool.get(m.HeadSize() + len(m.Body))
	b.b = m.Append(b.b)
	c.send(r.from, b, r.id, reply)
}

// fold keeps the first subtrees, and counts those beyond the bound with the
// last of them.
func fold(all []broadcastmsg.Missing) []broadcastmsg.Missing {
	if len(all) <= broadcastmsg.MaxMissing {
		return all
	}
	kept := append([]broadcastmsg.Missing(nil), all[:broadcastmsg.MaxMissing]...)
	for i := range all[broadcastmsg.MaxMissing:] {
		kept[broadcastmsg.MaxMissing-1].Nodes += all[broadcastmsg.MaxMissing+i].Nodes
	}
	return kept
}

// replyMessage takes a message of a child's reply into the buffer that was
// posted for it.
func (c *Core) replyMessage(from broadcastmsg.Node, b []byte) {
	m := &c.reply
	if err := m.Decode(b); err != nil {
		c.counters.Unreadable++
		return
	}
	r := c.active[m.Key]
	if r == nil || r.phase != running {
		c.counters.Unmatched++
		return
	}
	i := r.route.child(from)
	if i < 0 || r.children[i].state != waiting {
		c.counters.Unmatched++
		return
	}
	k := &r.children[i]
	switch {
	case m.Status != broadcastmsg.OK:
		c.settle(r, i, verdict{m.Status, m.Reason, m.Ran, m.Missing})
	case m.Offset+uint64(len(m.Body)) > uint64(len(k.buf)):
		why := fmt.Sprintf("%d bytes and more for a buffer of %d", m.Offset+uint64(len(m.Body)), len(k.buf))
		c.settle(r, i, verdict{status: broadcastmsg.Overflow, reason: why})
	case !c.fill(k, m):
		return
	case k.got != k.size:
		c.settle(r, i, verdict{status: broadcastmsg.Unreadable, reason: "its parts do not fit together"})
	default:
		c.settle(r, i, verdict{ran: k.ran, missing: k.lost})
	}
	c.advance(r)
}

// fill copies a part into its place and reports whether it was the last that
// was missing. Parts come in any order; their number is bounded by the buffer's
// size.
func (c *Core) fill(k *child, m *broadcastmsg.Reply) bool {
	for uint64(len(k.parts)) <= uint64(m.Part) {
		k.parts = append(k.parts, false)
	}
	if k.parts[m.Part] || m.Final && k.last {
		c.counters.Unmatched++
		return false
	}
	k.parts[m.Part] = true
	k.count++
	k.got += uint64(copy(k.buf[m.Offset:], m.Body))
	if m.Final {
		k.last, k.size, k.of = true, m.Offset+uint64(len(m.Body)), int(m.Part)+1
		k.ran, k.lost = m.Ran, m.Missing
	}
	return k.last && k.count >= k.of
}
