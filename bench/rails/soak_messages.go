package rails

import (
	"context"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/rail"
)

// messages sends a stream of numbered messages to the next host, and takes that of the host
// before, until both have ended.
func (s *soak) messages(ctx context.Context) (err error) {
	n := len(s.cfg.Addresses)
	next, err := s.rails.Peer(hostName((s.cfg.Host + 1) % n))
	if err != nil {
		return err
	}
	before, err := s.rails.Peer(hostName((s.cfg.Host + n - 1) % n))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	both.Go(func() {
		if err := s.send(ctx, next); err != nil {
			cancel(fmt.Errorf("sending to %s: %w", next.Name(), err))
		}
	})
	if err := s.receive(ctx, before); err != nil {
		cancel(fmt.Errorf("receiving from %s: %w", before.Name(), err))
	}
	both.Wait()
	return context.Cause(ctx)
}

// soakWindow is how many messages to a host are under way at once.
const soakWindow = 8

// sizeOf returns the bytes of a message: a few, up to what is sent at once, or more.
func (s *soak) sizeOf(number uint64) int {
	most := [...]int{64, 4 << 10, 64 << 10, s.cfg.Largest}[number%4]
	return headBytes + int(number*7919%uint64(min(most, s.cfg.Largest)))
}

func (s *soak) send(ctx context.Context, to *rail.Peer) error {
	var under [soakWindow]*rail.Request
	for last := false; !last; {
		i := s.sent.Load()
		at := &under[i%soakWindow]
		if *at != nil {
			if _, err := (*at).Wait(ctx); err != nil {
				return err
			}
		}
		select {
		case <-s.stop:
			last = true
		default:
		}
		b := make([]byte, s.sizeOf(i))
		fill(b, i, last)
		*at = to.StartSend(messageTag, b)
		s.sent.Add(1)
	}
	for _, r := range under {
		if r == nil {
			continue
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) receive(ctx context.Context, from *rail.Peer) error {
	var ledger Ledger
	b := make([]byte, headBytes+s.cfg.Largest)
	for {
		status, err := from.Recv(ctx, messageTag, b)
		if err != nil {
			return err
		}
		number, wanted := ledger.Arrived, s.sizeOf(ledger.Arrived)
		last := ledger.Add(b[:status.Size])
		if !ledger.Exact() || status.Size != wanted || ledger.next != ledger.Arrived {
			return fmt.Errorf("%w: message %d has %d bytes, want %d: %v", ErrWrong, number, status.Size, wanted, &ledger)
		}
		s.arrived.Add(1)
		if last {
			return nil
		}
	}
}
