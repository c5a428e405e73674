package scoll

import (
	"log/slog"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// mostWaiting are the messages that wait for the loop before readers of connections do:
// what is sent to a slow node then waits at its senders.
const mostWaiting = 8192

// output is what a step brings about, and the callbacks that it asks for with
// what they are about.
type output struct {
	broadcast.Output
	tasks    []task
	back     []broadcast.Input
	channels []*peer.Channel // with something to send
	sent     []uint64        // for flush

	messages, bytes uint64 // that are sent
}

// stepper is the node as its loop steps it.
type stepper Node

// Step implements runner.Core. It also takes what methods have brought about
// since the last step.
func (s *stepper) Step(now core.Time, inputs []broadcast.Input, out *output) {
	defer release(inputs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.core.Step(now, inputs, &s.out)
	s.out, out.Output = out.Output, s.out
	if s.drained != nil && s.core.Counters().LentBuffers == 0 {
		close(s.drained)
		s.drained = nil
	}
	for i := range out.Calls {
		if t, ok := (*Node)(s).task(&out.Calls[i]); ok {
			out.tasks = append(out.tasks, t)
		}
	}
}

// release gives back the bursts that a step has read.
func release(inputs []broadcast.Input) {
	for i := range inputs {
		if b, ok := inputs[i].Memory.(*peer.Burst); ok {
			b.Release()
		}
	}
	clear(inputs)
}

// Deadline implements runner.Core.
func (s *stepper) Deadline() core.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := &s.out; len(o.Sends)+len(o.Calls)+len(o.Pulls)+len(o.Exposes)+len(o.Revokes)+len(o.Ends)+len(o.Denials) > 0 {
		return 0
	}
	return s.core.Deadline()
}

// apply does what a step has brought about, in an order that lets nobody see
// memory before it is exposed or after it is the service's again. It runs on the
// loop's goroutine.
func (n *Node) apply(_ core.Time, out *output) []broadcast.Input {
	out.back = out.back[:0]
	for _, key := range out.Revokes {
		n.bulk.Revoke(key)
	}
	for i := range out.Exposes {
		n.expose(&out.Exposes[i])
	}
	for i := range out.Sends {
		n.send(&out.Sends[i], out)
	}
	n.flush(out)
	for i := range out.Pulls {
		n.pull(out.Pulls[i])
	}
	for i := range out.tasks {
		t := &out.tasks[i]
		if t.absent() || t.service != nil && t.service.call.Inline && t.call.Kind != broadcast.Created {
			out.back = append(out.back, t.run())
			continue
		}
		n.workers.do(t.queue(), t)
	}
	if len(out.Ends) > 0 {
		n.ends(out.Ends)
	}
	if len(out.Denials) > 0 {
		n.denials.report(n.log, time.Now(), out.Denials)
	}
	clear(out.tasks)
	out.tasks = out.tasks[:0]
	out.Reset()
	return out.back
}

// task returns what a call is about. The caller holds the lock.
func (n *Node) task(c *broadcast.Call) (task, bool) {
	t := task{node: n, call: *c}
	if c.Kind == broadcast.Created {
		made, ok := n.creations[c.Group]
		delete(n.creations, c.Group)
		t.creation = made
		return t, ok
	}
	t.service = n.services[c.Service]
	if t.service == nil {
		return t, false // cannot be: it is not unregistered before its requests have ended
	}
	t.request = n.requests[c.Request]
	switch c.Kind {
	case broadcast.PreRequest:
		if t.refused = n.refuses(t.service); t.refused != nil {
			break // nobody will hear of it
		}
		v, _ := n.core.Request(c.Request)
		r := t.request
		if r == nil {
			r = &Request{node: n, service: t.service, id: c.Request}
			n.requests[c.Request], t.service.requests[c.Request] = r, r
			t.request = r
			r.look(&v)
		}
		r.payload = v.Payload // of what else the root has seen nothing changes, for it may be looking
	case broadcast.IncomingRequest:
		if v, err := n.core.Request(c.Request); err == nil && !v.IsRoot {
			t.request.bulkStatus = Status(v.BulkStatus)
		}
	case broadcast.Map:
		t.refused = n.refuses(t.service)
	default:
	}
	return t, true
}

// refuses returns why a service takes no new request. The caller holds the lock.
func (n *Node) refuses(s *Service) error {
	switch {
	case s.closing:
		return errStopping
	case n.workers.length(&s.queue) >= n.cfg.Waiting:
		return errCrowded
	}
	return nil
}

// ends notifies who waits for requests that they have ended.
func (n *Node) ends(all []broadcast.End) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range all {
		e := &all[i]
		if r := n.requests[e.Request]; r != nil {
			r.finish(public(e.Err), publicOutcome(&e.Outcome))
			n.counts.ended(e)
		}
		if c := n.destroys[e.Request]; c != nil {
			delete(n.destroys, e.Request)
			c <- public(e.Err)
		}
	}
	if n.ended != nil {
		close(n.ended)
		n.ended = nil
	}
}

// expose lets children read memory.
func (n *Node) expose(e *broadcast.Expose) {
	memory, to := [][]byte{e.Bytes}, make([]string, len(e.To))
	for i := range e.To {
		to[i] = string(e.To[i].Node)
	}
	if e.Bytes == nil {
		n.mu.Lock()
		memory = nil
		if r := n.requests[e.Request]; r != nil {
			memory = r.bulk
		}
		n.mu.Unlock()
	}
	if err := n.bulk.Expose(e.Key, to, memory); err != nil {
		// Children find nothing, and report that.
		n.log.Warn("bulk data cannot be exposed", slog.Any("error", err))
	}
}
