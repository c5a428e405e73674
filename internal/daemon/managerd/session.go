package managerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// ErrSlowHost ends the session of a host that does not take its events.
var ErrSlowHost = errors.New("managerd: the host is too slow")

// maxEvents is the events that wait for one host at most: several of each group,
// where it has a thousand.
const maxEvents = 16384

// maxPosted is the requests of one host that wait for the core at most: those of others are
// behind them.
const maxPosted = 16

// session is that of one host.
type session struct {
	d      *Daemon
	id     uint32
	events runner.Mailbox[manager.Event]

	mu      sync.Mutex
	serial  uint32             // last number given to a watch
	watches map[watched]uint32 // by number, until the core or the host has ended them
}

// watched is a member that a session watches.
type watched struct{ group, rank uint32 }

// HostSession implements rpc.Manager.
func (d *Daemon) HostSession(ctx context.Context, host rpc.HostStream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{
		d: d, id: d.lastSession.Add(1), watches: map[watched]uint32{},
		events: runner.Mailbox[manager.Event]{Limit: maxEvents},
	}
	if c := d.cfg.Model.Costs; c != nil {
		s.events.Put(manager.Event{Costs: c})
	}
	d.admit(s)
	defer d.dismiss(s)
	ended := make(chan error, 1)
	d.running.Go(func() { // it ends with the stream, which ends when this returns
		err := s.receive(ctx, host)
		s.unwatchAll()
		cancel()
		ended <- err
	})
	if err := s.forward(ctx, host); err != nil {
		return err
	}
	return <-ended
}

// receive takes what the host asks until it ends the session.
func (s *session) receive(ctx context.Context, host rpc.HostStream) error {
	for n := 1; ; n++ {
		if n%maxPosted == 0 { // the core takes what this host has asked before the host asks for more
			if err := s.d.loop.Do(ctx, func() {}); err != nil {
				return s.d.excuse(err)
			}
		}
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
	in := q.Input
	if errors.Is(q.Denied, rpc.ErrDenied) {
		s.d.log.Warn("denied a host's request", slog.Any("error", q.Denied))
		s.record(ctx, in, 0, q.Denied)
	}
	switch v := in.(type) {
	case manager.Create:
		if q.Denied != nil {
			s.put(manager.Event{Reply: &manager.Reply{Req: v.Req, Err: q.Denied}})
			return nil
		}
		if _, err := rand.Read(v.Secret[:]); err != nil {
			return fmt.Errorf("managerd: drawing a secret: %w", err)
		}
		return s.request(ctx, v.Req, v, func(req uint64) manager.Input { v.Req = req; return v })
	case manager.Release:
		if q.Denied != nil {
			s.put(manager.Event{Reply: &manager.Reply{Req: v.Req, Group: v.Group, Err: q.Denied}})
			return nil
		}
		return s.request(ctx, v.Req, v, func(req uint64) manager.Input { v.Req = req; return v })
	case manager.Watch:
		if q.Denied != nil {
			s.put(manager.Event{Notice: &manager.Notice{Group: v.Group, Rank: v.Rank, Err: q.Denied, End: true}})
			return nil
		}
		v.Stream = s.watch(watched{v.Group, v.Rank})
		in = v
	case manager.Unwatch:
		stream, known := s.unwatch(watched{v.Group, v.Rank})
		if !known {
			return nil
		}
		v.Stream = stream
		in = v
		if v.Over { // which ends the group
			s.record(ctx, in, v.Group, nil)
		}
	case manager.Report: // which has no answer
		stream, known := s.watching(watched{v.Group, v.Rank})
		if q.Denied != nil || !known {
			s.d.log.Debug("dropped a host's report", slog.Uint64("group", uint64(v.Group)), slog.Uint64("rank", uint64(v.Rank)), slog.Any("error", q.Denied))
			return nil
		}
		v.Stream = stream
		in = v
	}
	return s.d.loop.Post(ctx, in)
}

// record records a request of the host, and its outcome.
func (s *session) record(ctx context.Context, in manager.Input, group uint32, err error) {
	method := strings.TrimPrefix(fmt.Sprintf("%T", in), "manager.")
	r := rpc.AuditOf(ctx, method, err)
	r.Group = group
	switch v := in.(type) {
	case manager.Create:
		r.Request = fmt.Sprintf("%s/%d", r.Request, v.Req)
		r.Object, r.Detail = v.Name, fmt.Sprintf("members=%d", len(v.Members))
	case manager.Release:
		r.Request = fmt.Sprintf("%s/%d", r.Request, v.Req)
		r.Group = v.Group
	case manager.Watch:
		r.Group, r.Detail = v.Group, fmt.Sprintf("rank=%d data=%v", v.Rank, v.DataAddr)
	case manager.Unwatch:
		r.Group, r.Detail = v.Group, fmt.Sprintf("rank=%d over=%v", v.Rank, v.Over)
	case manager.Report:
		r.Group, r.Detail = v.Group, fmt.Sprintf("rank=%d", v.Rank)
	}
	s.d.cfg.Audit.Record(r)
}

// request posts a request, whose reply goes to the host under the host's number.
func (s *session) request(ctx context.Context, number uint64, asked manager.Input, input func(req uint64) manager.Input) error {
	req := s.d.desk.Await(func(r manager.Reply) {
		s.record(ctx, asked, r.Group, r.Err)
		r.Req = number
		s.put(manager.Event{Reply: &r})
	})
	err := s.d.loop.Post(ctx, input(req))
	if err != nil {
		s.d.desk.Forget(req)
	}
	return err
}

// stream is the core's name of a session's watch.
func (s *session) stream(watch uint32) uint64 { return uint64(s.id)<<32 | uint64(watch) }

// watch notes a new watch, which takes the place of an earlier one of that member.
func (s *session) watch(w watched) (stream uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	s.watches[w] = s.serial
	return s.stream(s.serial)
}

// watching returns the stream of a member that the session watches.
func (s *session) watching(w watched) (stream uint64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.watches[w]
	return s.stream(n), known
}

func (s *session) unwatch(w watched) (stream uint64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.watches[w]
	delete(s.watches, w)
	return s.stream(n), known
}

// ended notes that the core has ended a watch. It reports false if that is not the
// member's last one.
func (s *session) ended(n *manager.Notice) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := watched{n.Group, n.Rank}
	if last, known := s.watches[w]; !known || s.stream(last) != n.Stream {
		return false
	}
	delete(s.watches, w)
	return true
}

// unwatchAll notifies the core that nothing of the session's is watched any more.
func (s *session) unwatchAll() {
	s.mu.Lock()
	watches := s.watches
	s.watches = nil
	s.mu.Unlock()
	for w, n := range watches {
		_ = s.d.post(manager.Unwatch{Group: w.group, Rank: w.rank, Stream: s.stream(n)}) // the error is that it ends
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
			return nil // the receiver knows why
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

// notify hands an event to the session that a watch is of.
func (d *Daemon) notify(stream uint64, e manager.Event) {
	d.mu.Lock()
	s := d.sessions[uint32(stream>>32)]
	d.mu.Unlock()
	if s == nil || e.Notice != nil && e.Notice.End && !s.ended(e.Notice) {
		return
	}
	s.put(e)
}
