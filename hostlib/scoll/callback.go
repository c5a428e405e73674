package scoll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// What a parent reads of a service that takes no request.
var (
	errStopping = errors.New("the service is stopping")
	errCrowded  = errors.New("too many callbacks of the service wait for others to return")
	errNoRoom   = errors.New("bulk data for a service without PreRequest, which would have room for them")
)

// task is a callback to be run.
type task struct {
	node     *Node
	call     broadcast.Call
	service  *Service
	request  *Request
	creation creation
	refused  error // without being asked
}

// absent reports whether the service has no such callback, or is not asked.
func (t *task) absent() bool {
	switch t.call.Kind {
	case broadcast.IncomingReply:
		return t.service.call.IncomingReply == nil
	case broadcast.ReplyOut:
		return t.service.call.ReplyOut == nil
	case broadcast.PreRequest, broadcast.Map:
		return t.refused != nil
	default:
		return false
	}
}

// queue returns where the callback waits for its turn.
func (t *task) queue() *queue {
	if t.service != nil {
		return &t.service.queue
	}
	return &t.creation.group.service.queue
}

// run runs the callback and returns that it has returned.
func (t *task) run() broadcast.Input {
	in := broadcast.Input{Kind: broadcast.Returned, Call: t.call.Kind, Request: t.call.Request, Child: t.call.Reply.Child}
	switch {
	case t.refused != nil:
		in.Err = t.refused
	case !t.absent():
		in.Err = t.guarded(&in)
	}
	return in
}

// guarded runs the callback; a panic is an error.
func (t *task) guarded(in *broadcast.Input) (err error) {
	defer t.node.recovered(t.call.Kind, &err)
	r := t.request
	switch c := &t.call; c.Kind {
	case broadcast.Created:
		if c.Err != nil {
			t.creation.created(nil, public(c.Err))
		} else {
			t.creation.created(t.creation.group, nil)
		}
	case broadcast.Map:
		in.Members, err = t.service.mapGroup(c.Index)
	case broadcast.PreRequest:
		err = t.service.prepare(r)
		in.Patience, in.PatienceSet, in.BulkRoom = r.timeout, r.timeoutSet, size(r.bulk)
	case broadcast.IncomingRequest:
		err = t.service.call.IncomingRequest(r)
	case broadcast.IncomingReply:
		reply := Reply{
			Request: r, Child: c.Reply.Child, Source: string(c.Reply.Source),
			Status: Status(c.Reply.Status), Reason: c.Reply.Reason, Body: c.Reply.Body,
		}
		if r.privates != nil {
			reply.Private = r.privates[reply.Child]
		}
		t.service.call.IncomingReply(&reply)
	case broadcast.PostReply:
		t.service.conclude(r)
	case broadcast.ReplyOut:
		t.service.call.ReplyOut(r, public(c.Err))
	}
	return err
}

// DefaultReply are the bytes that a service without PreRequest has room for in a
// child's reply, for each node of its subtree; up to 1 MiB.
const DefaultReply = 4 << 10

// prepare asks the service to prepare for a request, or does so for one that does
// not care.
func (s *Service) prepare(r *Request) error {
	if s.call.PreRequest != nil {
		return s.call.PreRequest(r)
	}
	if r.bulkLen > 0 && !r.isRoot {
		return errNoRoom
	}
	for i := range r.branches {
		size := min(r.branches[i].Nodes, broadcastmsg.MinPart/DefaultReply) * DefaultReply
		if err := r.PostReplySize(i, size, nil); err != nil && !errors.Is(err, ErrPosted) {
			return err
		}
	}
	return nil
}

// conclude notifies the service that all replies are there; one that does not care
// replies with what it has replied before, or nothing.
func (s *Service) conclude(r *Request) {
	if s.call.PostReply != nil {
		s.call.PostReply(r)
	} else if !r.isRoot {
		_ = r.Reply(r.Local()) // refused where the library replies itself
	}
}

// recovered turns a panic of a callback into its error. It is deferred.
func (n *Node) recovered(kind broadcast.CallKind, err *error) {
	v := recover()
	if v == nil {
		return
	}
	p := &PanicError{Callback: kind.String(), Value: v, Stack: debug.Stack()}
	*err = p
	n.counts.panics.Add(1)
	n.log.Error("a callback panicked", slog.String("callback", p.Callback), slog.Any("value", v), slog.String("stack", string(p.Stack)))
}

// mapGroup asks the service for an out-of-band group's members.
func (s *Service) mapGroup(index broadcastmsg.Index) (_ *broadcast.Members, err error) {
	defer s.node.recovered(broadcast.Map, &err)
	m, err := s.call.MapGroup(Index(index))
	if err != nil || m == nil {
		return nil, err
	}
	return m.core, nil
}

// workers run callbacks, of a service no more than so many at once, on goroutines
// that last as long as there is something to do.
type workers struct {
	most  int
	tasks sync.WaitGroup

	running atomic.Int64 // callbacks of all services

	mu      sync.Mutex
	waiting int // of all services
}

// queue is the callbacks of a service that wait. It is guarded by workers.mu.
type queue struct {
	tasks   []task
	head    int
	working int
}

// do runs a callback soon. There is a goroutine for each, up to the most: one
// that is free may be quicker than the new one.
func (w *workers) do(q *queue, t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q.tasks = append(q.tasks, *t)
	w.waiting++
	if q.working < w.most {
		q.working++
		w.tasks.Go(func() { w.work(q) })
	}
}

func (w *workers) work(q *queue) {
	for {
		t, more := w.next(q)
		if !more {
			return
		}
		in := t.run()
		w.running.Add(-1) // before anyone learns that it has returned
		if t.call.Kind != broadcast.Created {
			t.node.loop.Add(in)
		}
	}
}

// next returns the oldest task that waits.
func (w *workers) next(q *queue) (task, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.head == len(q.tasks) {
		q.tasks, q.head = q.tasks[:0], 0
		q.working--
		return task{}, false
	}
	t := q.tasks[q.head]
	q.tasks[q.head] = task{}
	w.waiting--
	w.running.Add(1)
	if q.head++; q.head > 64 && q.head > len(q.tasks)/2 {
		rest := copy(q.tasks, q.tasks[q.head:])
		clear(q.tasks[rest:])
		q.tasks, q.head = q.tasks[:rest], 0
	}
	return t, true
}

// length returns how many callbacks of a service wait.
func (w *workers) length(q *queue) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(q.tasks) - q.head
}

// wait waits until no callback runs, nor waits to.
func (w *workers) wait(ctx context.Context) error {
	if ctx.Err() == nil {
		done := make(chan struct{})
		go func() { w.tasks.Wait(); close(done) }()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
		}
	}
	if running, waiting := w.state(); running+waiting > 0 {
		return fmt.Errorf("%w: %d callbacks have not returned, %d have not run", ErrClosed, running, waiting)
	}
	w.tasks.Wait()
	return nil
}

// state returns how many callbacks run, and how many wait.
func (w *workers) state() (running, waiting int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.running.Load()), w.waiting
}
