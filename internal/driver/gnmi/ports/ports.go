package ports

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// errUnread: nothing has been heard of the target yet.
var errUnread = errors.New("it has not been reached yet")

// Config says which target, and how it is reached.
type Config struct {
	Address            string                      // "host:port" of its gNMI server
	TLS                func() (*tls.Config, error) // nil: in plain text
	Username, Password string                      // empty: it asks for none
	Log                *slog.Logger
}

// Source reports the interfaces of a target. It implements nic.Source.
type Source struct {
	cfg Config

	mu   sync.Mutex
	all  []nic.Interface
	lack error // nil: all are as the target reported them last
}

// New returns a Source, which knows nothing until somebody watches it.
func New(c Config) *Source { return &Source{cfg: c, lack: errUnread} }

// Read implements nic.Source. While the target cannot be reached it fails.
func (s *Source) Read() ([]nic.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lack != nil {
		return nil, fmt.Errorf("gnmi ports: target %s: %w", s.cfg.Address, s.lack)
	}
	return slices.Clone(s.all), nil
}

// Watch implements nic.Source.
func (s *Source) Watch(ctx context.Context, changed func()) error {
	c := collector.Config{
		Address: s.cfg.Address, Username: s.cfg.Username, Password: s.cfg.Password, Plaintext: true, Log: s.cfg.Log,
		Connected: func(string) {},
		Report:    func(d *openconfig.Device) { s.set(interfaces(d), nil); changed() },
		Ended:     func(err error) { s.set(nil, err); changed() },
	}
	if s.cfg.TLS != nil {
		var err error
		if c.TLS, err = s.cfg.TLS(); err != nil {
			return fmt.Errorf("gnmi ports: target %s: %w", s.cfg.Address, err)
		}
	}
	changed()
	if err := collector.Run(ctx, c); err != nil {
		return fmt.Errorf("gnmi ports: %w", err)
	}
	return ctx.Err()
}

func (s *Source) set(all []nic.Interface, lack error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.lack = all, lack
}

// interfaces returns those of a device, by name.
func interfaces(d *openconfig.Device) []nic.Interface {
	var all []nic.Interface
	for _, i := range d.Interfaces {
		x := nic.Interface{
			Name: i.Name, Index: int(i.Index), Port: i.Port, Enabled: i.Enabled(), Up: i.Up(), Ethernet: i.Type == "ethernetCsmacd",
			MTU: int(i.MTU), Speed: i.Speed,
		}
		x.MAC, _ = net.ParseMAC(i.MAC) // nil: not reported
		for _, a := range i.Addresses {
			x.Addresses, x.Bits = append(x.Addresses, a.Addr()), append(x.Bits, a.Bits())
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b nic.Interface) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
