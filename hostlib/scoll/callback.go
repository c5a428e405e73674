package scoll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/collective"
)

// errStopping is what a parent reads of a service that is being closed.
var errStopping = errors.New("the service is stopping")

// task is a callback to be run.
type task struct {
	node     *Node
	call     collective.Call
	service  *Service
	request  *Request
	creation creation
	refused  bool // without being asked
}

// absent reports whether the service has no such callback, or is not asked.
func (t *task) absent() bool {
	switch t.call.Kind {
	case collective.IncomingReply:
		return t.service.call.IncomingReply == nil
	case collective.ReplyOut:
		return t.service.call.ReplyOut == nil
	case collective.PreRequest, collective.Map:
		return t.refused
	default:
		return false
	}
}

// run runs the callback and returns that it has returned.
func (t *task) run() collective.Input {
	in := collective.Input{Kind: collective.Returned, Call: t.call.Kind, Request: t.call.Request, Child: t.call.Reply.Child}
	switch {
	case t.refused:
		in.Err = errStopping
	case !t.absent():
		in.Err = t.guarded(&in)
	}
	return in
}

// guarded runs the callback; a panic is an error.
func (t *task) guarded(in *collective.Input) (err error) {
	defer t.node.recovered(t.call.Kind, &err)
	r := t.request
	switch c := &t.call; c.Kind {
	case collective.Created:
		if c.Err != nil {
			t.creation.created(nil, public(c.Err))
		} else {
			t.creation.created(t.creation.group, nil)
		}
	case collective.Map:
		in.Members, err = t.service.mapGroup(c.Index)
	case collective.PreRequest:
		err = t.service.call.PreRequest(r)
		in.Patience, in.PatienceSet, in.BulkRoom = r.timeout, r.timeoutSet, size(r.bulk)
	case collective.IncomingRequest:
		err = t.service.call.IncomingRequest(r)
	case collective.IncomingReply:
		reply := Reply{
			Request: r, Child: c.Reply.Child, Source: string(c.Reply.Source),
			Status: Status(c.Reply.Status), Reason: c.Reply.Reason, Body: c.Reply.Body,
		}
		if r.privates != nil {
			reply.Private = r.privates[reply.Child]
		}
		t.service.call.IncomingReply(&reply)
	case collective.PostReply:
		t.service.call.PostReply(r)
	case collective.ReplyOut:
		t.service.call.ReplyOut(r, public(c.Err))
	}
	return err
}

// recovered turns a panic of a callback into its error. It is deferred.
func (n *Node) recovered(kind collective.CallKind, err *error) {
	v := recover()
	if v == nil {
		return
	}
	p := &PanicError{Callback: kind.String(), Value: v, Stack: debug.Stack()}
	*err = p
	n.counts.panics.Add(1)
	n.cfg.Log.Error("a callback panicked", slog.String("callback", p.Callback), slog.Any("value", v), slog.String("stack", string(p.Stack)))
}

// mapGroup asks the service for an out-of-band group's members.
func (s *Service) mapGroup(index Index) (_ *collective.Members, err error) {
	defer s.node.recovered(collective.Map, &err)
	m, err := s.call.MapGroup(index)
	if err != nil || m == nil {
		return nil, err
	}
	return m.core, nil
}

// workers run callbacks, no more than so many at once, on goroutines that last
// as long as there is something to do.
type workers struct {
	most  int
	tasks sync.WaitGroup

	mu      sync.Mutex
	queue   []task
	head    int
	working int
}

// do runs a callback soon. There is a goroutine for each, up to the most: one
// that is free may be quicker than the new one.
func (w *workers) do(t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, *t)
	if w.working < w.most {
		w.working++
		w.tasks.Go(w.work)
	}
}

func (w *workers) work() {
	for {
		t, more := w.next()
		if !more {
			return
		}
		in := t.run()
		if t.call.Kind != collective.Created {
			t.node.inbox.put(in)
		}
	}
}

// next returns the oldest task that waits.
func (w *workers) next() (task, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
		w.working--
		return task{}, false
	}
	t := w.queue[w.head]
	w.queue[w.head] = task{}
	if w.head++; w.head > 64 && w.head > len(w.queue)/2 {
		rest := copy(w.queue, w.queue[w.head:])
		clear(w.queue[rest:])
		w.queue, w.head = w.queue[:rest], 0
	}
	return t, true
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
	return w.working, len(w.queue) - w.head
}
