package lldp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/neighbor"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// retry is the pause after what the kernel refused.
const retry = time.Second

// Service is LLDP on this machine, or waits until another process ends it there. Its
// methods are safe for concurrent use.
type Service struct {
	cfg     Config
	sockets sockets
	clock   runner.Clock
	core    *neighbor.Core // owned by loop
	loop    *runner.Loop[neighbor.Input, neighbor.Output]

	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	failure error               // written before loop ends
	stirred chan struct{}       // the interfaces are to be looked at
	early   chan neighbor.Input // before their ports were up

	mu    sync.Mutex
	ports map[neighbor.PortID]*port
	heard map[neighbor.PortID]Port // when it changed last
	own   lldpdu.Announcement

	frame    []byte            // owned by loop
	reported map[string]string // neighbours, by port; owned by loop
	logSince core.Time         // owned by loop, as is logged: lines since then
	logged   int
}

// Port is what is known of a port.
type Port struct {
	Neighbors []neighbor.Neighbor
	Latency   time.Duration // of its link in one direction; 0: not known
}

// port is one with a socket. It is replaced when its interface changes.
type port struct {
	nic.Interface
	conn  conn
	ended chan struct{} // closed when nobody reads from conn any more
}

// Start begins. The errors wrap ErrConfig, ErrPermission or ErrUnsupported, or are the
// kernel's. The caller owns the service and must Close it.
func Start(c Config) (*Service, error) { return start(c, system()) }

// Permitted returns why this process may not take part in LLDP: an error that wraps
// ErrPermission or ErrUnsupported; nil: it may.
func Permitted() error { return system().permitted() }

func start(c Config, with sockets) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	all, err := c.filled(nil).Interfaces.Read()
	if err != nil {
		return nil, fmt.Errorf("lldp: %w", err)
	}
	if err := with.permitted(); err != nil {
		return nil, err
	}
	s := &Service{cfg: c.filled(all), sockets: with, clock: runner.NewClock(), ports: map[neighbor.PortID]*port{},
		stirred: make(chan struct{}, 1), early: make(chan neighbor.Input, 64)}
	s.own = s.cfg.Own
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // it never fails
	if s.core, err = neighbor.New(neighbor.Config{Interval: c.Interval, Seed: binary.NativeEndian.Uint64(seed[:])}); err != nil {
		return nil, fmt.Errorf("lldp: %w", err)
	}
	s.loop, err = runner.Start(runner.Config[neighbor.Input, neighbor.Output]{Core: s.core, Clock: s.clock, Apply: s.apply})
	if err != nil {
		return nil, fmt.Errorf("lldp: %w", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	s.running.Go(func() { s.run(ctx) })
	return s, nil
}

// Own returns what all ports announce.
func (s *Service) Own() lldpdu.Announcement { return s.own }

// Ports returns what is known of the ports that take part, by the names of their
// interfaces.
func (s *Service) Ports() map[string]Port {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Port, len(s.ports))
	for id, p := range s.ports {
		all[p.Name] = s.heard[id]
	}
	return all
}

// Counters returns those of the ports that take part, by the names of their interfaces.
// The error is that of the context, or runner.ErrClosed.
func (s *Service) Counters(ctx context.Context) (map[string]neighbor.Counters, error) {
	all := map[string]neighbor.Counters{}
	err := s.loop.Do(ctx, func() {
		for id, name := range s.names() {
			all[name], _ = s.core.Counters(id)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("lldp: %w", err)
	}
	return all, nil
}

// names returns the names of the ports that take part.
func (s *Service) names() map[neighbor.PortID]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[neighbor.PortID]string, len(s.ports))
	for id, p := range s.ports {
		names[id] = p.Name
	}
	return names
}

// Done is closed when the service has ended.
func (s *Service) Done() <-chan struct{} { return s.loop.Done() }

// Err returns, once Done is closed, why the service has ended; nil if it was closed.
func (s *Service) Err() error {
	<-s.loop.Done()
	return s.failure
}

// Close announces that all ports shut down, and ends the service.
func (s *Service) Close() {
	s.cancel(errClosed)
	s.running.Wait()
}

// Kill ends the service as the death of its process would: neighbours find out by
// themselves.
func (s *Service) Kill() {
	s.cancel(errKilled)
	s.running.Wait()
}

// Causes of the end of a service.
var (
	errClosed = errors.New("lldp: closed")
	errKilled = errors.New("lldp: killed")
)

// run is the service's life.
func (s *Service) run(ctx context.Context) {
	log := s.cfg.Log
	defer s.loop.Close()
	release, err := s.sockets.claim(ctx, func(pid int) {
		log.Info("another process sends LLDP on this machine; this one waits until that ends", slog.Int("pid", pid))
	})
	if err != nil {
		if ctx.Err() == nil {
			s.failure = err
			log.Warn("LLDP is not sent", slog.Any("error", err))
		}
		return
	}
	defer release()
	log.Info("LLDP is sent and heard", slog.String("chassis", s.own.Chassis.String()), slog.String("name", s.own.SystemName))
	s.follow(ctx)
	s.shutdown(context.Cause(ctx) != errKilled)
}

// follow makes ports of the interfaces whenever they change, until the context ends.
func (s *Service) follow(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { s.watch(ctx) })
	var again <-chan time.Time
	isIdle := false
	for {
		var in *neighbor.Input
		select {
		case <-s.stirred:
		case <-again:
		case early := <-s.early:
			in = &early
		case <-ctx.Done():
			return
		}
		again = nil
		if err := s.reconcile(ctx); err != nil {
			s.cfg.Log.Warn("reading the interfaces failed", slog.Any("error", err), slog.Duration("retry", retry))
			again = time.After(retry)
		} else if was := isIdle; was != (len(s.names()) == 0) {
			if isIdle = !was; isIdle {
				s.cfg.Log.Warn("no interface takes part in LLDP; waiting for one", slog.Any("interfaces", s.cfg.Include), slog.Any("exclude", s.cfg.Exclude))
			}
		}
		if in != nil {
			_ = s.loop.Post(ctx, *in) // an error says that the service ends
		}
	}
}

// look has the interfaces be looked at.
func (s *Service) look() {
	select {
	case s.stirred <- struct{}{}:
	default: // they are about to be
	}
}

// watch reports changes of the interfaces until the context ends.
func (s *Service) watch(ctx context.Context) {
	for {
		err := s.cfg.Interfaces.Watch(ctx, s.look)
		if ctx.Err() != nil || errors.Is(err, nic.ErrUnsupported) {
			return
		}
		s.cfg.Log.Warn("watching the interfaces failed", slog.Any("error", err), slog.Duration("retry", retry))
		if runner.Pause(ctx, retry) != nil {
			return
		}
	}
}

// reconcile makes ports of the interfaces that there are.
func (s *Service) reconcile(ctx context.Context) error {
	all, err := s.cfg.Interfaces.Read()
	if err != nil {
		return err
	}
	before := s.names()
	gone := maps.Clone(before)
	for _, i := range all {
		if !s.cfg.takes(&i) {
			continue
		}
		id := neighbor.PortID(i.Index)
		if p := s.opened(ctx, id, i); p != nil {
			delete(gone, id)
			// An error says that the service ends.
			_ = s.loop.Post(ctx, neighbor.Input{Kind: neighbor.Set, Port: id, Up: i.Up, MAC: hardware(i.MAC), Own: s.cfg.announcement(i)})
		}
	}
	s.remove(slices.Sorted(maps.Keys(gone)))
	if !maps.Equal(before, s.names()) {
		s.notify()
	}
	return nil
}

func (s *Service) isUp(id neighbor.PortID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ports[id]
	return p != nil && p.Up
}

// opened returns the port of an interface, with a socket; nil: that cannot be had.
func (s *Service) opened(ctx context.Context, id neighbor.PortID, i nic.Interface) *port {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.ports[id]; p != nil {
		s.ports[id] = &port{i, p.conn, p.ended}
		return s.ports[id]
	}
	c, err := s.sockets.port(i.Index)
	if err != nil {
		// It may be gone already: then a change follows.
		s.cfg.Log.Warn("no LLDP on an interface", slog.String("interface", i.Name), slog.Any("error", err))
		return nil
	}
	p := &port{Interface: i, conn: c, ended: make(chan struct{})}
	s.ports[id] = p
	s.running.Go(func() {
		defer close(p.ended)
		s.read(ctx, c, id)
	})
	return p
}

// remove ends ports, which announce that they shut down.
func (s *Service) remove(ids []neighbor.PortID) {
	if len(ids) == 0 {
		return
	}
	for _, id := range ids {
		s.loop.Add(neighbor.Input{Kind: neighbor.Removed, Port: id})
	}
	s.settle()
	for _, id := range ids {
		s.mu.Lock()
		p := s.ports[id]
		delete(s.ports, id)
		s.mu.Unlock()
		p.conn.close()
		<-p.ended
	}
}

// shutdown ends all ports, which announce that or not.
func (s *Service) shutdown(says bool) {
	if says {
		s.loop.Add(neighbor.Input{Kind: neighbor.Close})
		s.settle()
	} else {
		s.loop.Close()
	}
	s.mu.Lock()
	ports := s.ports
	s.ports = nil // nobody adds any more
	s.mu.Unlock()
	for _, p := range ports {
		p.conn.close()
		<-p.ended
	}
}

// settle waits until the loop has stepped what was added to it, and sent what comes of
// that.
func (s *Service) settle() {
	_ = s.loop.Do(context.Background(), func() {}) // it has ended: there is nothing to wait for
}

// Of one socket so many frames are read in a while. What is beyond that the kernel drops,
// so that a flood costs little.
const (
	readMost  = 1000
	readWhile = 100 * time.Millisecond
)

// read passes on what comes at a port.
func (s *Service) read(ctx context.Context, c conn, id neighbor.PortID) {
	var b [mostFrame]byte
	var since core.Time
	asked := core.Time(-readWhile)
	var before error
	for n := 0; ; n++ {
		a, err := c.read(b[:])
		now := s.clock.Now()
		if now.Sub(since) >= readWhile {
			since, n = now, 0
		}
		pause := time.Duration(0)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil && before != nil: // once is that the interface went down
			pause = readWhile
		case n >= readMost:
			pause = since.Add(readWhile).Sub(now)
		}
		if pause > 0 && runner.Pause(ctx, pause) != nil || ctx.Err() != nil {
			return
		}
		if before = err; err != nil || a.size < headerSize {
			continue
		}
		in := neighbor.Input{Kind: neighbor.Heard, Port: id, MAC: source(b[:]), Data: slices.Clone(b[headerSize:a.size]), At: now.Add(-a.waits)}
		if now.Sub(asked) >= readWhile && !s.isUp(id) {
			// It has a carrier, which the kernel reports up to a second late.
			asked = now
			select {
			case s.early <- in:
				continue
			default: // others are first
			}
		}
		if s.loop.Post(ctx, in) != nil {
			return
		}
	}
}

// apply sends what a step wants to be sent, in its loop.
func (s *Service) apply(_ core.Time, out *neighbor.Output) (more []neighbor.Input) {
	defer out.Reset()
	for i := range out.Sends {
		send := &out.Sends[i]
		s.mu.Lock()
		p := s.ports[send.Port]
		s.mu.Unlock()
		if p == nil {
			continue
		}
		s.frame = header(s.frame[:0], hardware(p.MAC))
		if send.Delay.Kind == 0 {
			s.frame = append(s.frame, send.PDU...)
			s.write(p)
			continue
		}
		d, at := send.Delay, s.clock.Now()
		if d.Kind == lldpdu.DelayResponse {
			d.Hold = at.Sub(send.Received)
		} else {
			more = append(more, neighbor.Input{Kind: neighbor.Sent, Port: send.Port, Nonce: d.Nonce, At: at})
		}
		with, err := lldpdu.AppendDelay(s.frame, send.PDU, d)
		if err != nil { // the names are too long for a measurement
			with = append(s.frame, send.PDU...)
		}
		s.frame = with
		s.write(p)
	}
	if out.Changed {
		s.publish()
	}
	return more
}

// write sends the frame from a port. An error is that of an interface that has gone down:
// nothing depends on a single frame.
func (s *Service) write(p *port) {
	s.frame = padded(s.frame)
	if err := p.conn.write(s.frame); err != nil {
		s.cfg.Log.Debug("sending by LLDP failed", slog.String("interface", p.Name), slog.Any("error", err))
	}
}

// publish makes what the core knows that of Ports.
func (s *Service) publish() {
	heard := map[neighbor.PortID]Port{}
	for id := range s.names() {
		heard[id] = Port{s.core.Neighbors(id), s.core.Delay(id)}
	}
	s.mu.Lock()
	s.heard = heard
	s.mu.Unlock()
	s.report()
	s.notify()
}

func (s *Service) notify() {
	if s.cfg.Changed != nil {
		s.cfg.Changed()
	}
}
