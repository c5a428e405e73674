package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/pki"
)

// ErrConfig is wrapped by the errors of an unusable Config.
var ErrConfig = errors.New("mesh: invalid configuration")

// ErrClosed is returned by what was asked of a closed Mesh.
var ErrClosed = errors.New("mesh: closed")

// Handler takes a connection on which another node has called. It runs on a
// goroutine of its own until the connection is done with, which is closed then;
// it is closed, too, when ctx ends.
type Handler func(ctx context.Context, from Peer, conn net.Conn)

// Config is what a node is told once.
type Config struct {
	Self    Peer
	Listen  string                            // TCP address
	Resolve func(node string) (string, error) // the TCP address of another node
	TLS     *pki.Source                       // of a host; nil: plaintext
	Lanes   map[Lane]Handler
	// Latest returns the latest incarnation that is known of a node: who calls in
	// an earlier one is refused, and who is called and is in an earlier one refuses.
	// nil: nobody is known.
	Latest func(node string) uint64

	GreetWithin time.Duration // for a call and its greeting
	DeadAfter   time.Duration // a peer that acknowledges nothing for so long is gone
	Log         *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case c.Self.Name == "" || len(c.Self.Name) > MaxName:
		return fmt.Errorf("%w: a node's name of %d bytes, want 1 to %d", ErrConfig, len(c.Self.Name), MaxName)
	case c.Resolve == nil || c.Log == nil:
		return fmt.Errorf("%w: no Resolve, or no Log", ErrConfig)
	case c.GreetWithin <= 0 || c.DeadAfter <= 0:
		return fmt.Errorf("%w: calls within %v, dead after %v, want more than 0", ErrConfig, c.GreetWithin, c.DeadAfter)
	}
	if c.TLS == nil {
		return nil
	}
	if err := c.TLS.Expect(pki.Want{Role: pki.Host, Name: c.Self.Name}); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// Mesh is one node's connections to others.
type Mesh struct {
	cfg      Config
	listener net.Listener
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	tasks    sync.WaitGroup
	unsound  atomic.Uint64
	once     sync.Once
	end      error // of Close
}

// Listen makes a node reachable for others.
func Listen(ctx context.Context, c Config) (*Mesh, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	m := &Mesh{cfg: c, listener: listener}
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.tasks.Go(m.accept)
	return m, nil
}

// Addr returns the TCP address on which others reach this node.
func (m *Mesh) Addr() string { return m.listener.Addr().String() }

// Unsound returns how many connections were ended because they did not begin
// with a sound greeting, for this node.
func (m *Mesh) Unsound() uint64 { return m.unsound.Load() }

// Close ends all connections that others have called on, and waits for their
// handlers. Connections that Dial has returned are their callers'.
func (m *Mesh) Close() error {
	m.once.Do(func() {
		m.stop()
		m.end = m.listener.Close()
		m.tasks.Wait()
	})
	return m.end
}

// Dial calls a node for a lane. The connection is the caller's to close.
func (m *Mesh) Dial(ctx context.Context, node string, lane Lane) (Peer, net.Conn, error) {
	if m.ctx.Err() != nil {
		return Peer{}, nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.GreetWithin)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	address, err := m.cfg.Resolve(node)
	if err != nil {
		return Peer{}, nil, fmt.Errorf("mesh: the address of %s: %w", node, err)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return Peer{}, nil, fmt.Errorf("mesh: calling %s: %w", node, err)
	}
	tune(conn, lane, m.cfg.DeadAfter)
	undo := context.AfterFunc(ctx, func() { conn.Close() })
	secure, incarnation, err := m.greet(ctx, conn, node, lane)
	if !undo() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return Peer{}, nil, fmt.Errorf("mesh: calling %s: %w", node, err)
	}
	return Peer{node, incarnation}, secure, nil
}

func (m *Mesh) greet(ctx context.Context, conn net.Conn, node string, lane Lane) (net.Conn, uint64, error) {
	if m.cfg.TLS != nil {
		secure := tls.Client(conn, m.cfg.TLS.Client(pki.Want{Role: pki.Host, Name: node}))
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, 0, err
		}
		conn = secure
	}
	g := greeting{lane, m.cfg.Self, Peer{node, m.latest(node)}}
	if _, err := conn.Write(g.bytes()); err != nil {
		return nil, 0, err
	}
	incarnation, err := readAnswer(conn)
	return conn, incarnation, err
}

func (m *Mesh) latest(node string) uint64 {
	if m.cfg.Latest == nil {
		return 0
	}
	return m.cfg.Latest(node)
}

// accept takes calls until the mesh is closed.
func (m *Mesh) accept() {
	for {
		conn, err := m.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			m.cfg.Log.Warn("cannot accept a connection", slog.Any("error", err))
			select {
			case <-m.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond): // out of descriptors, say
			}
			continue
		}
		m.tasks.Go(func() { m.answer(conn) })
	}
}

// answer hears a caller out and hands the connection to its lane.
func (m *Mesh) answer(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(m.ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(m.cfg.GreetWithin))
	secure, from, lane, err := m.hear(conn)
	if err != nil {
		if m.ctx.Err() == nil {
			m.unsound.Add(1)
			level := slog.LevelInfo
			if errors.Is(err, ErrFormer) {
				level = slog.LevelWarn
			}
			m.cfg.Log.Log(m.ctx, level, "a call was not taken", slog.Any("from", conn.RemoteAddr()), slog.Any("error", err))
		}
		return
	}
	tune(conn, lane, m.cfg.DeadAfter)
	_ = conn.SetDeadline(time.Time{})
	m.cfg.Lanes[lane](m.ctx, from, secure)
}

// hear reads a greeting and answers it.
func (m *Mesh) hear(conn net.Conn) (net.Conn, Peer, Lane, error) {
	certified := ""
	if m.cfg.TLS != nil {
		secure := tls.Server(conn, m.cfg.TLS.Server())
		if err := secure.HandshakeContext(m.ctx); err != nil {
			return nil, Peer{}, 0, err
		}
		identity, err := pki.IdentityOf(secure.ConnectionState().PeerCertificates[0])
		if err != nil {
			return nil, Peer{}, 0, err
		}
		if identity.Role == pki.Host {
			certified = identity.Name
		}
		conn = secure
	}
	g, err := readGreeting(conn)
	why, code, latest := "", byte(refused), uint64(0)
	if err == nil {
		latest = m.latest(g.caller.Name)
	}
	switch {
	case err != nil:
		why = err.Error()
	case m.cfg.TLS != nil && g.caller.Name != certified:
		why = "the certificate is not host " + g.caller.Name + "'s"
	case g.wanted.Name != m.cfg.Self.Name:
		why = "this is " + m.cfg.Self.Name + ", not " + g.wanted.Name
	case m.cfg.Lanes[g.lane] == nil:
		why = fmt.Sprintf("there is no lane %d", g.lane)
	case g.caller.Incarnation < latest:
		why, code = fmt.Sprintf("%s is known in incarnation %d, after %d", g.caller.Name, latest, g.caller.Incarnation), earlier
	case g.wanted.Incarnation > m.cfg.Self.Incarnation:
		why, code = fmt.Sprintf("this is %s in incarnation %d, which is known in %d: it has to begin with a larger one", g.wanted.Name, m.cfg.Self.Incarnation, g.wanted.Incarnation), former
	default:
		code = taken
	}
	if _, sent := conn.Write(answer(m.cfg.Self.Incarnation, code, why)); err == nil {
		err = sent
	}
	if why != "" {
		hangUp(conn)
	}
	switch {
	case err != nil || why == "":
	case code == former:
		err = fmt.Errorf("%w: %w: %s", ErrRefused, ErrFormer, why)
	default:
		err = fmt.Errorf("%w: %s", ErrRefused, why)
	}
	return conn, g.caller, g.lane, err
}

// hangUp ends a connection on which the other side may still be sending. To
// close it at once would reset it, and the answer might be lost.
func hangUp(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn) // until its deadline
	}
}
