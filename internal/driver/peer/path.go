package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// Path is one physical connection, from its first byte on: of a shared class one of those
// of a Conn.
type Path struct {
	host   *Host
	id     peering.ID
	raw    net.Conn
	socket *socket       // raw, if the host's poller reads it; else nil
	try    tryWriter     // nil: not on this kind of connection
	seal   *seal         // nil: plaintext
	tls    *tls.Conn     // over seal
	shown  pki.Handshake // that tls has made
	spare  atomic.Pointer[Burst]

	verdict chan peering.Action // what package peering says: has room for one

	// From the greeting on; of one that was accepted, before its verdict.
	peer    Peer
	class   Class
	channel *Channel                 // of a shared class
	conn    *Conn                    // from the verdict on: of a shared class
	rails   atomic.Pointer[RailPair] // that it lies on; nil: not known
	place   int                      // of the pair for which this host has dialled it
	health  health                   // of who watches rails

	// Of its channel's lock.
	queue   queue
	isReady bool // the answer to the call is there: frames may be written
	isBusy  bool // a goroutine writes
	isOver  bool // nothing is read, nor written, on it any more
	writer  sync.WaitGroup
	writes  func() bool // write, on a goroutine
	writing []mark      // of what is being written by the goroutine
	front   lent        // of its writer: what it writes from where it lies,
	vectors [3][]byte   // and as what
	begun   int         // bytes of the first of the queue's lent frames that are written
	buffers net.Buffers // the same, as far as it is not written
	lending Service     // whose frame it writes from where it lies; 0: none
	unacked unacked
	slot    int // in its connection's stripe; -1: none

	unwritten int       // of unacked: frames that are lent, and not written yet
	written   sync.Cond // one more is
	account

	saidGoaway bool // this side sends nothing more
	isFinished bool // nor does the other

	end      sync.Once
	unfollow atomic.Pointer[func()] // its certificate is not watched any more; nil: it never was
	hangUp   atomic.Pointer[func()] // ends the call, and then the connection
	done     chan struct{}          // closed with the connection
	reason   atomic.Pointer[error]

	received atomic.Uint64 // bytes
	isDeaf   atomic.Bool   // a handler has what came
	isLate   atomic.Bool   // it is acknowledged by a timer, or was meanwhile
	taken    atomic.Uint32 // frames to be acknowledged that have come
	said     atomic.Uint32 // up to where they are acknowledged

	isEntered bool        // frames go over it; of its reader
	silent    *time.Timer // closes it, if nothing comes; likewise
}

func (h *Host) newPath(id peering.ID) *Path {
	p := &Path{host: h, id: id, verdict: make(chan peering.Action, 1), done: make(chan struct{})}
	p.writes = h.tasks.Repeated(p.write)
	return p
}

// connected gives a Path its connection; it is closed if that was closed meanwhile.
func (p *Path) connected(raw net.Conn) {
	if wrap := p.host.cfg.Wrap; wrap != nil {
		raw = wrap(raw)
	}
	p.raw = raw
	hangUp := func() { raw.Close() }
	p.hangUp.Store(&hangUp)
	if p.reason.Load() != nil {
		raw.Close()
	}
}

// Conn returns the connection that the path is of.
func (p *Path) Conn() *Conn { return p.conn }

// Rails returns the rails of both hosts that the path lies on; nil where hosts have one rail.
func (p *Path) Rails() *RailPair { return p.rails.Load() }

func (p *Path) setRails(pair RailPair) { p.rails.Store(&pair) }

// close ends the path, at whatever stage. The first reason stands.
func (p *Path) close(reason error) {
	p.end.Do(func() {
		p.reason.Store(&reason)
		close(p.done)
		if hangUp := p.hangUp.Load(); hangUp != nil {
			(*hangUp)()
		}
		if unfollow := p.unfollow.Load(); unfollow != nil {
			(*unfollow)()
		}
	})
}

// Break ends the path for a service that found it broken.
func (p *Path) Break(reason error) { p.close(reason) }

// why returns why the path has ended: as it was reported, or otherwise err.
func (p *Path) why(err error) error {
	if r := p.reason.Load(); r != nil {
		return *r
	}
	return err
}

// Addresses returns the IP addresses of both ends.
func (p *Path) Addresses() (local, remote netip.Addr) {
	return addressOf(p.raw.LocalAddr()), addressOf(p.raw.RemoteAddr())
}

func addressOf(a net.Addr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	ap, _ := netip.ParseAddrPort(a.String())
	return ap.Addr().Unmap()
}

// run reads frames until the path ends, and notifies the services.
func (p *Path) run() {
	c := p.conn
	if p.class.isTracked() {
		defer p.detach()()
	}
	if p.isUnproved() {
		p.silent = time.AfterFunc(p.host.cfg.GreetWithin, func() { p.close(errSilentCaller) })
		defer p.silent.Stop()
	} else if !p.enter() {
		return
	}
	err := p.read()
	if errors.Is(err, ErrFrame) {
		p.host.counts.malformed.Add(1)
		c.close(err) // nothing of it is known any more
	}
	if p.isFinished && errors.Is(err, io.EOF) {
		err = peering.ErrDone
	}
	p.close(err)
	if !p.isEntered {
		return
	}
	p.stopWriting()
	c.leave(p, p.why(err))
}

// errSilentCaller is the end of a further path on which nothing came after the answer.
var errSilentCaller = errors.New("peer: nothing came after the answer: it may not have arrived")

// isUnproved reports that the answer to the call may not have arrived: the other side has called
// for a further path, and nothing has come on it yet. The rail may carry one direction alone, so
// nothing is sent on it before that.
func (p *Path) isUnproved() bool {
	return !p.isEntered && p.id != p.conn.id && p.id&peering.Dialled == 0
}

// enter has frames go over the path.
func (p *Path) enter() bool {
	if p.silent != nil {
		p.silent.Stop()
	}
	p.isEntered = p.conn.enter(p)
	if !p.isEntered {
		p.close(peering.ErrSuperseded)
	}
	return p.isEntered
}
