package arp

import (
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrUnsupported: this system has no packet sockets.
var ErrUnsupported = errors.New("arp: packet sockets are of Linux only")

// socket receives and sends frames of ARP on all interfaces. Close ends receive.
type socket interface {
	receive(b []byte) (size, index int, err error)
	send(index int, frame []byte) error
	close()
}

// Service resolves, and answers. It is safe for concurrent use.
type Service struct {
	log     *slog.Logger
	changed func()
	socket  socket

	mu    sync.Mutex
	table table

	wake    chan struct{} // has room for one
	gone    chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

// Start returns a Service in the network namespace of the calling thread, which calls
// changed when it knows another hardware address than before; changed must not wait for
// it. Its error is ErrUnsupported, or the system's, which asks for the right to open
// packet sockets (CAP_NET_RAW). The caller owns the Service and must Close it.
func Start(log *slog.Logger, changed func()) (*Service, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	return startService(log, changed, s), nil
}

func startService(log *slog.Logger, changed func(), s socket) *Service {
	v := &Service{log: log, changed: changed, socket: s, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	v.running.Go(v.read)
	v.running.Go(v.ask)
	return v
}

// Close ends the Service.
func (s *Service) Close() {
	s.once.Do(func() {
		close(s.gone)
		s.socket.close()
		s.running.Wait()
	})
}

// Set replaces the ports to answer for, and the neighbours to find.
func (s *Service) Set(ports []Port, neighbours []Neighbour) {
	s.mu.Lock()
	s.table.set(time.Now(), ports, neighbours)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// MAC returns the hardware address of a neighbour, if it is known.
func (s *Service) MAC(n Neighbour) (MAC, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.table.neighbours[n]
	if e == nil {
		return MAC{}, false
	}
	return e.mac, e.mac != MAC{}
}

// readPause is the wait after the socket has failed.
const readPause = time.Second

func (s *Service) read() {
	b := make([]byte, 128)
	for {
		size, index, err := s.socket.receive(b)
		if err != nil {
			if !s.pause(readPause, nil) {
				return
			}
			s.log.Warn("receiving ARP failed", slog.Any("error", err))
			continue
		}
		s.mu.Lock()
		answer, changed := s.table.take(time.Now(), index, b[:size])
		s.mu.Unlock()
		if answer != nil {
			s.send(index, answer)
		}
		if changed {
			s.changed()
		}
	}
}

func (s *Service) ask() {
	for {
		s.mu.Lock()
		requests, next := s.table.ask(time.Now())
		s.mu.Unlock()
		for _, r := range requests {
			s.send(r.index, r.frame)
		}
		wait := longestPause
		if !next.IsZero() {
			wait = time.Until(next)
		}
		if !s.pause(wait, s.wake) {
			return
		}
	}
}

// send sends a frame. One that cannot be sent is lost, as one on a link that is down.
func (s *Service) send(index int, frame []byte) {
	if err := s.socket.send(index, frame); err != nil {
		s.log.Debug("sending ARP failed", slog.Int("index", index), slog.Any("error", err))
	}
}

// pause waits for a time, or a wake. It returns false when the Service ends.
func (s *Service) pause(d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-s.gone:
		return false
	case <-wake:
	case <-timer.C:
	}
	select {
	case <-s.gone:
		return false
	default:
		return true
	}
}
