package managerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/rpc"
	"github.com/tributary-fabric/tributary/internal/runner"
)

// ErrSlowHost ends the session of a host that does not take its events.
var ErrSlowHost = errors.New("managerd: the host is too slow")

// maxEvents is the events that wait for one host at most: several of each group,
// where it has a thousand.
const maxEvents = 16384

// session is that of one host.
type session struct {
	d       *Daemon
	id      uint64 // Stream of its watches
	events  runner.Mailbox[manager.Event]
	watches map[watched]bool // the receiver's
}

// watched is a member that a session watches.
type watched struct{ group, rank uint32 }

// HostSession implements rpc.Manager.
func (d *Daemon) HostSession(ctx context.Context, host rpc.HostStream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{
		d: d, id: d.serial.Add(1), watches: map[watched]bool{},
		events: runner.Mailbox[manager.Event]{Limit: maxEvents},
	}
	d.admit(s)
	defer d.dismiss(s)
	ended := make(chan error, 1)
	go func() { // it ends with the stream, which ends when this returns
		err := s.receive(ctx, host)
		s.unwatch()
		cancel()
		ended <- err
	}()
	if err := s.forward(ctx, host); err != nil {
		return err
	}
	return <-ended
}

// receive takes what the host asks until it ends the session.
func (s *session) receive(ctx context.Context, host rpc.HostStream) error {
	for {
		q, err := host.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.take(ctx, q); err != nil {
			return s.d.excuse(err)
		}
	}
}

// take hands a request to the core, or answers that it is denied.
func (s *session) take(ctx context.Context, q rpc.HostRequest) error {
	if errors.Is(q.Denied, rpc.ErrDenied) {
		s.d.log.Warn("denied a host's request", slog.Any("error", q.Denied))
	}
	in := q.Input
	switch v := in.(type) {
	case manager.Create:
		if q.Denied != nil {
			s.put(manager.Event{Reply: &manager.Reply{Req: v.Req, Err: q.Denied}})
			return nil
		}
		if _, err := rand.Read(v.Secret[:]); err != nil {
			return fmt.Errorf("managerd: drawing a secret: %w", err)
		}
		v.Req = s.answers(v.Req)
		in = v
	case manager.Release:
		if q.Denied != nil {
			s.put(manager.Event{Reply: &manager.Reply{Req: v.Req, Group: v.Group, Err: q.Denied}})
			return nil
		}
		v.Req = s.answers(v.Req)
		in = v
	case manager.Watch:
		if q.Denied != nil {
			s.put(manager.Event{Notice: &manager.Notice{Group: v.Group, Rank: v.Rank, Err: q.Denied, End: true}})
			return nil
		}
		v.Stream = s.id
		s.watches[watched{v.Group, v.Rank}] = true
		in = v
	case manager.Unwatch:
		v.Stream = s.id
		delete(s.watches, watched{v.Group, v.Rank})
		in = v
	default: // a report, which has no answer
		if errors.Is(q.Denied, rpc.ErrDenied) {
			return q.Denied
		}
		if q.Denied != nil {
			return nil
		}
	}
	return s.d.loop.Post(ctx, in)
}

// answers returns the daemon's number of a request, whose reply goes to the host
// under its own.
func (s *session) answers(req uint64) uint64 {
	return s.d.await(func(r manager.Reply) {
		r.Req = req
		s.put(manager.Event{Reply: &r})
	})
}

// unwatch tells the core that nothing of the session's is watched any more.
func (s *session) unwatch() {
	for w := range s.watches {
		_ = s.d.post(manager.Unwatch{Group: w.group, Rank: w.rank, Stream: s.id}) // the error is that it ends
	}
}

// put hands an event to the session, and ends it if it is too slow.
func (s *session) put(e manager.Event) {
	if !s.events.Put(e) {
		s.events.Close()
	}
}

// forward hands on the session's events until ctx ends.
func (s *session) forward(ctx context.Context, host rpc.HostStream) error {
	for {
		events, err := s.events.Take(ctx)
		switch {
		case errors.Is(err, runner.ErrClosed) && s.d.ending():
			return rpc.ErrClosing
		case errors.Is(err, runner.ErrClosed):
			return ErrSlowHost
		case err != nil:
			return nil //nolint:nilerr // the receiver knows why
		}
		for _, e := range events {
			if err := host.Send(e); err != nil {
				return err
			}
		}
	}
}

func (d *Daemon) admit(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[s.id] = s
	if d.ending() {
		s.events.Close()
	}
}

func (d *Daemon) dismiss(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, s.id)
}

// tell hands an event to a session.
func (d *Daemon) tell(id uint64, e manager.Event) {
	d.mu.Lock()
	s := d.sessions[id]
	d.mu.Unlock()
	if s != nil {
		s.put(e)
	}
}
