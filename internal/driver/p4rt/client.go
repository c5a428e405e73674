package p4rt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// Client controls one target. It is safe for concurrent use; calls that write
// take their turns.
type Client struct {
	cfg    Config // filled
	schema *Schema

	mu      sync.Mutex
	session session
	link    *link // nil: there is no stream

	events  *box
	packets runner.Mailbox[Packet]
	writing turn // one writer at a time
	looking turn // what the target holds is looked at, or changed, by one at a time

	counts struct{ sessions, in, dropped, out, faults atomic.Uint64 }

	stop context.CancelFunc
	done chan struct{}
}

// Stats counts since Dial.
type Stats struct {
	Sessions uint64 // that had a stream
	In       uint64 // packets that the target punted
	Dropped  uint64 // of these, how many Packets had no room for
	Out      uint64 // packets that were given to the target
	Faults   uint64 // errors that the target reported, and what could not be understood
}

// Dial returns a client, which begins to connect and goes on to until Close: it
// does not wait for a connection. Errors wrap ErrConfig.
func Dial(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	schema, err := c.Pipeline.Schema()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	client := &Client{
		cfg: c.filled(), schema: schema,
		session: session{program: c.Pipeline.fingerprint()},
		events:  newBox(),
		writing: make(turn, 1), looking: make(turn, 1),
		stop: stop, done: make(chan struct{}),
	}
	client.packets.Limit = client.cfg.Packets
	go client.run(ctx)
	return client, nil
}

// Close ends the session and waits until nothing of the client runs. Calls
// under way fail. The target keeps what it has.
func (c *Client) Close() {
	c.stop()
	<-c.done
}

// Events waits for news of the session and returns all that there are, in
// order. The error is the context's or, after Close, ErrClosed.
func (c *Client) Events(ctx context.Context) ([]Event, error) { return c.events.take(ctx) }

// Packets waits for packets that the target punts, and returns all that there
// are, in order. The error is the context's or, after Close, ErrClosed.
func (c *Client) Packets(ctx context.Context) ([]Packet, error) {
	packets, err := c.packets.Take(ctx)
	if errors.Is(err, runner.ErrClosed) {
		err = ErrClosed
	}
	return packets, err
}

// Stats returns what the client has counted.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{n.sessions.Load(), n.in.Load(), n.dropped.Load(), n.out.Load(), n.faults.Load()}
}

// run holds sessions, one after the other, with a pause between two. The pause
// grows as long as the target does not get so far as to report who is primary.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	defer c.packets.Close()
	defer c.events.close()
	pause := c.cfg.MinPause
	for {
		reported, err := c.hold(ctx)
		if ctx.Err() != nil {
			c.step(func(s *session) []Event {
				c.link = nil
				s.end(ErrClosed) // who closes knows
				return nil
			})
			return
		}
		c.part(err)
		if reported {
			pause = c.cfg.MinPause
		}
		_ = runner.Pause(ctx, pause)
		pause = min(2*pause, c.cfg.MaxPause)
	}
}

// step steps the session's state machine and reports what comes of it.
func (c *Client) step(f func(*session) []Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := f(&c.session)
	for _, e := range events {
		level := slog.LevelInfo
		if e.Err != nil {
			level = slog.LevelWarn
		}
		c.cfg.Log.Log(context.Background(), level, "p4runtime session", slog.String("target", c.cfg.Target),
			slog.String("event", e.Kind.String()), slog.Uint64("session", e.Session), slog.Any("error", e.Err))
	}
	c.events.put(events...)
}

// fault reports an error that does not end the session.
func (c *Client) fault(err error) {
	c.counts.faults.Add(1)
	c.step(func(s *session) []Event {
		return []Event{{Kind: Fault, Session: s.number, Count: 1, Err: err}}
	})
}

// fail puts the operation and the target before an error.
func (c *Client) fail(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: target %s: %w", operation, c.cfg.Target, err)
}

// connected returns the link of a primary, or why this is none.
func (c *Client) connected() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.session.refusal(); err != nil {
		return nil, err
	}
	return c.link, nil
}

// ready returns the link of a primary whose target holds the program, as far as
// is known.
func (c *Client) ready() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.session.refusal(); err != nil {
		return nil, err
	}
	return c.link, c.session.lack()
}

// cookie returns that of the push that the target holds, as far as is known.
func (c *Client) cookie() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.known
}

// A turn is taken by one at a time.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for an earlier call: %w", ctx.Err())
	}
}

func (t turn) give() { <-t }
