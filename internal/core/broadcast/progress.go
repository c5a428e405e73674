package broadcast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// returned goes on after a callback.
func (c *Core) returned(in *Input) {
	r := c.requests[in.Request]
	if r == nil {
		return
	}
	switch in.Call {
	case Map:
		if r.phase == mapping {
			c.mapped(r, in)
		}
	case PreRequest:
		if r.phase == preparing {
			c.prepared(r, in)
		}
	case IncomingRequest:
		if r.asked {
			r.asked, r.ran = false, in.Err == nil
			c.failed(r, in.Err)
			c.advance(r)
		}
	case IncomingReply:
		if in.Child >= 0 && in.Child < len(r.children) && r.children[in.Child].state == reported {
			c.over(r, in.Child)
			c.failed(r, in.Err)
			c.advance(r)
		}
	case PostReply:
		if r.phase == posting {
			c.failed(r, in.Err)
			c.posted(r)
		}
	case ReplyOut:
		if r.phase == leaving {
			c.end(r, c.errorOf(r))
		}
	case Created:
	}
}

// failed notes that a callback returned an error, or panicked: the library
// replies to the parent itself, once the other callbacks are through.
func (c *Core) failed(r *request, err error) {
	if err != nil && r.fail == broadcastmsg.OK {
		r.fail, r.reason = broadcastmsg.Failed, clip(err.Error())
	}
}

// verdict is what becomes of a child's reply.
type verdict struct {
	status  broadcastmsg.Status
	reason  string
	ran     uint32                 // nodes beneath the child that it says ran the request
	missing []broadcastmsg.Missing // those that it says did not
}

// settle ends the wait for a child's reply; the service is notified once.
func (c *Core) settle(r *request, i int, v verdict) {
	k := &r.children[i]
	if k.state >= reported {
		return
	}
	branch := &r.route.children[i]
	status := c.account(r, branch, &v)
	size := uint64(0)
	if status == broadcastmsg.OK {
		size = k.got
	}
	k.state = reported
	if i == r.oldest {
		c.rearm(r)
	}
	if r.own || c.services[r.service].NoReplies {
		c.over(r, i)
		return
	}
	c.call(Call{Kind: IncomingReply, Service: r.service, Request: r.id, Reply: ChildReply{
		Child: i, Source: branch.Node, Status: status, Reason: v.reason, Body: k.buf[:size:size],
	}})
}

// account adds what is known of the child's subtree, and returns the status that
// its reply has after that. Of whom it says nothing, the status is reported.
func (c *Core) account(r *request, b *Branch, v *verdict) broadcastmsg.Status {
	known, status := uint64(v.ran), v.status
	for i := range v.missing {
		known += uint64(v.missing[i].Nodes)
	}
	if known > uint64(b.Nodes) || status == broadcastmsg.OK && known < uint64(b.Nodes) {
		*v, known, status = verdict{}, 0, broadcastmsg.Unreadable
	}
	reason := ""
	if status.Explained() {
		reason = v.reason
	}
	r.reached += int(v.ran)
	r.missing = append(r.missing, v.missing...)
	if rest := b.Nodes - int(known); rest > 0 {
		r.missing = append(r.missing, broadcastmsg.Missing{Node: b.Node, Nodes: uint32(rest), Status: status, Reason: reason})
	}
	return status
}

// over gives a child's reply buffer back.
func (c *Core) over(r *request, i int) {
	k := &r.children[i]
	k.state = over
	r.open--
	c.giveBack(k)
}

func (c *Core) giveBack(k *child) {
	if k.posted {
		c.counters.Posted--
		c.pool.release(k.lent)
	}
	k.posted, k.buf, k.lent = false, nil, nil
}

// advance lets r go on as far as it can.
func (c *Core) advance(r *request) {
	if r.phase == running && !r.asked && r.open == 0 {
		c.revoke(r)
		r.phase = posting
		if r.own {
			r.replied = true
			c.posted(r)
			return
		}
		c.call(Call{Kind: PostReply, Service: r.service, Request: r.id})
	}
	c.flush(r)
}

// posted goes on after post-reply: the root's request has ended, another's
// replies.
func (c *Core) posted(r *request) {
	r.phase = replying
	if r.root {
		c.end(r, c.errorOf(r))
		return
	}
	c.flush(r)
}

// revoke ends what other nodes may read of r.
func (c *Core) revoke(r *request) {
	if r.exposed != 0 {
		c.out.Revokes = append(c.out.Revokes, r.exposed)
		c.counters.Exposed--
		r.exposed = 0
	}
}

// outcome returns what a root knows of who ran its request.
func (r *request) outcome() Outcome {
	o := Outcome{Nodes: r.route.nodes, Ran: r.reached, Missing: r.missing}
	if r.ran && r.fail == broadcastmsg.OK {
		o.Ran++
	}
	if r.without {
		o.Nodes--
	}
	return o
}

// errorOf returns why a request has failed, nil if it has not.
func (c *Core) errorOf(r *request) error {
	switch {
	case r.fail != broadcastmsg.OK:
		return &StatusError{r.fail, r.reason}
	case r.root && r.reached+1 < r.route.nodes:
		return &IncompleteError{r.outcome()}
	case !r.root && r.unsent != nil:
		return fmt.Errorf("scoll: the reply did not go out: %w", r.unsent)
	}
	return nil
}

// refuse ends a request without another callback, and notifies the parent.
func (c *Core) refuse(r *request, status broadcastmsg.Status, reason string) {
	if !r.root && !r.silent {
		c.reject(r.from, r.key, status, reason)
	}
	c.end(r, &StatusError{status, clip(reason)})
}

// reject reports who sent a request that nothing comes of it here.
func (c *Core) reject(to broadcastmsg.Node, key broadcastmsg.Key, status broadcastmsg.Status, reason string) {
	c.counters.Refusals++
	m := broadcastmsg.Reply{Key: key, Final: true, Status: status, Reason: clip(reason)}
	b := c.pool.get(m.HeadSize())
	b.b = m.Append(b.b)
	c.send(to, b, 0, nobody)
}

// end frees all that r held.
func (c *Core) end(r *request, err error) {
	c.revoke(r)
	for i := range r.children {
		c.giveBack(&r.children[i])
	}
	c.pool.release(r.raw)
	c.pool.release(r.copied)
	r.raw, r.copied, r.payload, r.tail = nil, nil, nil, nil
	delete(c.requests, r.id)
	if c.active[r.key] == r {
		delete(c.active, r.key)
	}
	if !r.root {
		c.quotas.end(r.key.Root)
	}
	switch {
	case r.root:
		c.ended()
	case r.route == nil:
	case r.isProven && r.key.Incarnation < c.incarnations[r.key.Root]: // nothing of that life is taken any more
	case r.isProven: // whoever has it may send it again, until its root says that it has ended
		c.finished.add(r.key, core.Never)
	default:
		c.finished.add(r.key, c.parentGivesUp(r).Add(c.cfg.Linger))
	}
	e := End{Request: r.id, Root: r.root, Err: err}
	if r.root {
		e.Outcome = r.outcome()
	}
	c.out.Ends = append(c.out.Ends, e)
	c.timers.Set(&r.alarm, core.Never)
	c.endOver(r, err)
	rivals := r.rivals
	c.spares.end(r)
	for _, rival := range rivals {
		c.requestMessage(rival.from, 0, rival.bytes, true)
	}
}

// endOver does what the end of r means to its group.
func (c *Core) endOver(r *request, err error) {
	g := r.group
	if g == nil {
		return
	}
	if r.last && (r.root && err == nil || !r.root && r.phase >= posting) {
		c.freeTree(g, r.key.Root)
	}
	if g.first != r.id {
		return
	}
	g.first = 0
	switch {
	case r.own && !g.ready:
		c.populationEnded(g, err)
		return
	case r.own && (err != nil || r.filter != nil):
		g.spread = somewhere
	case r.own:
		g.spread = everywhere
	}
	next := g.queue
	g.queue = nil
	for _, id := range next {
		q := c.requests[id]
		if q == nil || q.phase != queued {
			continue
		}
		q.phase = idle
		if g.first != 0 {
			q.phase, g.queue = queued, append(g.queue, id)
			continue
		}
		if err := c.launch(q); err != nil {
			c.end(q, err)
		}
	}
}

// Abort ends a request before its time. Replies that are missing are reported as
// aborted, post-reply and reply-out follow as always; End reports when all
// callbacks have returned and all buffers are free. One that was not sent ends
// at once.
func (c *Core) Abort(now core.Time, id uint64, out *Output) error {
	c.enter(now, out)
	r := c.requests[id]
	if r == nil {
		return fmt.Errorf("abort: %w", ErrRequest)
	}
	c.stop(r, broadcastmsg.Aborted)
	return nil
}

// stop ends the wait of r with a status.
func (c *Core) stop(r *request, status broadcastmsg.Status) {
	switch r.phase {
	case idle, queued:
		c.end(r, ErrAborted)
		return
	case mapping, fetching, preparing, pulling:
		if r.aborting == broadcastmsg.OK {
			r.aborting = status
		}
		return
	default:
	}
	if r.fail == broadcastmsg.OK && !r.flushed {
		r.fail = status
	}
	for i := range r.children {
		c.settle(r, i, verdict{status: status})
	}
	c.advance(r)
}

func deadError(dead []broadcastmsg.Node) error {
	slices.Sort(dead)
	var names []string
	for _, node := range dead[:min(len(dead), 8)] {
		names = append(names, string(node))
	}
	return fmt.Errorf("%w: %d, %s", ErrDead, len(dead), strings.Join(names, ", "))
}
