package netlab

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
)

// bridgeName is that of the bridge in a rail's namespace, whose ports have the hosts' names.
const bridgeName = "bridge"

// Rails is a fabric of hosts with several rails each. Its methods may be called from any
// goroutine. Every link can fail, recover, and change its rate at run time.
type Rails struct {
	cfg  RailsConfig
	log  *slog.Logger
	lock *os.File

	mu       sync.Mutex
	closed   bool
	hosts    []*place
	networks []*place     // by rail
	links    [][]railLink // by host and rail
}

// BuildRails builds a rails fabric, after it has removed what an earlier process may
// have left of one with that prefix. The caller owns it and must Close it.
func BuildRails(c RailsConfig) (*Rails, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: this is user %d", ErrPrivilege, os.Geteuid())
	}
	lock, err := claim(c.Prefix)
	if err != nil {
		return nil, err
	}
	f := &Rails{cfg: c, log: c.Log, lock: lock}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if err := sweep(c.Prefix, f.log); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := f.build(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.log.Info("rails built", slog.String("prefix", c.Prefix), slog.Int("hosts", c.Hosts), slog.Any("rates", c.Rates))
	return f, nil
}

func (f *Rails) build() error {
	for rail := range f.cfg.Rates {
		p, err := enter(fmt.Sprintf("%s-rail-%d", f.cfg.Prefix, rail))
		if err != nil {
			return err
		}
		f.networks = append(f.networks, p)
		if err := errors.Join(p.configure(false), p.bridge(bridgeName)); err != nil {
			return err
		}
	}
	for host := range f.cfg.Hosts {
		p, err := enter(f.cfg.Prefix + "-" + RailHost(host))
		if err != nil {
			return err
		}
		f.hosts = append(f.hosts, p)
		f.links = append(f.links, make([]railLink, len(f.cfg.Rates)))
		if err := errors.Join(p.configure(false), p.setLink("lo", true)); err != nil {
			return err
		}
		if f.cfg.Pin {
			if err := p.pin(host, f.cfg.Hosts); err != nil {
				return err
			}
		}
		for rail, rate := range f.cfg.Rates {
			f.links[host][rail].rate = rate
			if err := f.apply(host, rail); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect makes a host's link to a rail.
func (f *Rails) connect(host, rail int) error {
	p, network := f.hosts[host], f.networks[rail]
	if err := p.joinTo(RailInterface(rail), network, RailHost(host)); err != nil {
		return err
	}
	if err := network.join(RailHost(host), bridgeName); err != nil {
		return err
	}
	f.links[host][rail].isMade = true
	// Made again it is the same card: others have its hardware address.
	if err := p.setHardware(RailInterface(rail), net.HardwareAddr{2, 0, 0, 0, byte(rail), byte(host)}); err != nil {
		return err
	}
	return p.assign(RailInterface(rail), railAddress(host, rail))
}

// disconnect deletes a host's link to a rail, and keeps what it has carried.
func (f *Rails) disconnect(host, rail int) (err error) {
	link := &f.links[host][rail]
	if link.oldSent, link.oldReceived, err = f.counts(host, rail); err != nil {
		return err
	}
	link.isMade = false
	return f.hosts[host].remove(RailInterface(rail))
}

// apply brings a link into its state. Where both ends are up it waits until the kernel has
// noticed: only then does the bridge forward.
func (f *Rails) apply(host, rail int) error {
	link := f.links[host][rail]
	switch {
	case link.fault == Deleted && link.isMade:
		return f.disconnect(host, rail)
	case link.fault == Deleted:
		return nil
	case !link.isMade:
		if err := f.connect(host, rail); err != nil {
			return err
		}
	}
	err := errors.Join(
		send(f.hosts[host], RailInterface(rail), link.rate, link.sends()),
		send(f.networks[rail], RailHost(host), link.rate, link.receives()),
		f.networks[rail].setLink(RailHost(host), link.fault != Carrier),
		f.hosts[host].setLink(RailInterface(rail), link.fault != Disabled),
	)
	if err != nil || link.fault == Carrier || link.fault == Disabled {
		return err
	}
	return errors.Join(f.hosts[host].awaitUp(RailInterface(rail)), f.networks[rail].awaitUp(RailHost(host)))
}

// send sets what an interface sends: all, at a rate, or nothing.
func send(p *place, device string, rate int64, sends bool) error {
	switch {
	case !sends:
		return p.silence(device)
	case rate > 0:
		return p.shape(device, rate)
	}
	return p.open(device)
}

// Hosts and Rails return how many there are; Rates returns the rates that rails were built with.
func (f *Rails) Hosts() int     { return f.cfg.Hosts }
func (f *Rails) Rails() int     { return len(f.cfg.Rates) }
func (f *Rails) Rates() []int64 { return f.cfg.Rates }

// Addr returns the address of a host on a rail.
func (f *Rails) Addr(host, rail int) netip.Addr { return railAddress(host, rail).Addr() }

// SetFault makes a host's link to a rail fail in a way, or work again. It keeps its rate.
func (f *Rails) SetFault(host, rail int, fault Fault) error {
	return f.change(host, rail, func(l *railLink) { l.fault = fault })
}

// SetRate changes the rate of a host's link to a rail, in both directions.
func (f *Rails) SetRate(host, rail int, rate int64) error {
	if rate < 0 || rate > MaxRate {
		return fmt.Errorf("%w: a rate of %d bit/s, the most is %d", ErrConfig, rate, int64(MaxRate))
	}
	return f.change(host, rail, func(l *railLink) { l.rate = rate })
}

func (f *Rails) change(host, rail int, by func(*railLink)) error {
	return f.at(host, rail, func() error {
		link := &f.links[host][rail]
		by(link)
		f.log.Info("link changed", slog.Int("host", host), slog.Int("rail", rail), slog.String("fault", link.fault.String()), slog.Int64("rate", link.rate))
		return f.apply(host, rail)
	})
}

// at runs g if there is such a link, and the fabric is not closed.
func (f *Rails) at(host, rail int, g func() error) error {
	if host < 0 || host >= f.cfg.Hosts || rail < 0 || rail >= len(f.cfg.Rates) {
		return fmt.Errorf("%w: rail %d of host %d", ErrUnknown, rail, host)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	return g()
}

// Start starts a process on a host. It is killed, at the latest, when this process ends
// or the fabric is closed; the caller waits for it.
func (f *Rails) Start(host int, cmd *exec.Cmd) error {
	return f.at(host, 0, func() error { return f.hosts[host].start(cmd) })
}

// Do runs g on a thread in a host's namespace: sockets that it opens are that host's. It
// must not start goroutines that have to be there, too.
func (f *Rails) Do(host int, g func() error) error {
	return f.at(host, 0, func() error { return f.hosts[host].do(g) })
}

// Counts returns what a host's link to a rail has carried so far: what the host has
// sent, and what it has received.
func (f *Rails) Counts(host, rail int) (sent, received Count, err error) {
	err = f.at(host, rail, func() (err error) {
		sent, received, err = f.counts(host, rail)
		return err
	})
	return sent, received, err
}

func (f *Rails) counts(host, rail int) (sent, received Count, err error) {
	link := f.links[host][rail]
	if link.isMade {
		if sent, err = f.hosts[host].sent(RailInterface(rail)); err != nil {
			return sent, received, err
		}
		if received, err = f.networks[rail].sent(RailHost(host)); err != nil {
			return sent, received, err
		}
	}
	return sent.plus(link.oldSent), received.plus(link.oldReceived), nil
}

// Namespace returns the name of a host's namespace.
func (f *Rails) Namespace(host int) string { return f.cfg.Prefix + "-" + RailHost(host) }

// Close removes the fabric: its processes are killed, its namespaces and with them the
// links go. It may be called again.
func (f *Rails) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	for _, p := range append(f.hosts, f.networks...) {
		p.leave()
	}
	return errors.Join(sweep(f.cfg.Prefix, f.log), f.lock.Close())
}
