package hostlib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/rails"
)

// MaxRails is the most rails of a host.
const MaxRails = rail.MaxRails

// RailKind is what carries the connections of a rail.
type RailKind uint8

// The kinds of rails.
const (
	RailTCP = RailKind(rail.TCP)
	RailUDP = RailKind(rail.UDP)
)

// String returns the kind's name.
func (k RailKind) String() string { return rail.Kind(k).String() }

// Rail is one of a host's independent paths to others. It has an Interface or an Address,
// or both.
type Rail struct {
	// Name is unique on the host: at most 63 bytes of printable UTF-8; by default that of
	// the interface, or the address, followed by "/udp" for rails of that kind.
	Name string
	// Interface is the network interface, whose first address it is that other machines can
	// reach, of IPv4 if it has one, unless there is an Address.
	Interface string
	// Address is an IP address of this machine with or without a port: "10.0.0.1:7000",
	// "10.0.0.1", "[fd00::1]:7000". Without one any free port is taken, or that of
	// Config.Listen if the host listens there.
	Address string
	// Kind has to be the same on both sides of a path.
	Kind RailKind
	// Bandwidth in bit/s is that from which measuring begins; by default what the
	// interface's driver reports, if it does.
	Bandwidth uint64
	// Network names the network that the rail is in: at most 63 bytes of printable UTF-8.
	// Rails of two hosts are joined that have the same. Those without are joined by the
	// prefix of their addresses, and if they have none in common, routed.
	Network string
}

// wish returns a rail as it is resolved.
func (r *Rail) wish() (w rails.Wish, err error) {
	w = rails.Wish{Name: r.Name, Interface: r.Interface, Kind: rail.Kind(r.Kind), Bandwidth: r.Bandwidth, Network: r.Network}
	switch {
	case r.Kind != RailTCP && r.Kind != RailUDP:
		return w, fmt.Errorf("kind %d", r.Kind)
	case r.Address == "" && r.Interface == "":
		return w, errors.New("neither an interface nor an address")
	case r.Address == "":
		return w, nil
	}
	if at, err := netip.ParseAddrPort(r.Address); err == nil {
		w.Address, w.Port = at.Addr(), at.Port()
	} else if w.Address, err = netip.ParseAddr(r.Address); err != nil {
		return w, fmt.Errorf("%q is not an IP address, with or without a port", r.Address)
	}
	return w, nil
}

// checkRails reports what is wrong with a list of rails, as far as that is known without the
// machine.
func checkRails(list []Rail) error {
	shown := make([]rail.Rail, len(list))
	for i := range list {
		w, err := list[i].wish()
		if err != nil {
			return fmt.Errorf("rail %d: %w", i+1, err)
		}
		// What is to be found out is not in the way.
		shown[i] = rail.Rail{Name: w.Name, Kind: w.Kind, Network: w.Network, Address: netip.AddrPortFrom(w.Address.Unmap(), w.Port)}
		if w.Name == "" {
			shown[i].Name = fmt.Sprint("\u2026", i)
		}
		if !w.Address.IsValid() {
			shown[i].Address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 255, 255, byte(i)}), 1)
		} else if w.Port == 0 {
			shown[i].Address = netip.AddrPortFrom(shown[i].Address.Addr(), uint16(i+1))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return rail.Check(shown)
}

// railSet is a host's rails.
type railSet struct {
	set    *rails.Set
	listen netip.Addr // unspecified: rails are found
	follow sync.Once

	changes sync.Mutex // held, before mu, while they are changed and set is given them; never by what set calls

	mu      sync.Mutex // held while they are changed
	made    []rails.Rail
	new     map[string]bool // names of those that came later
	removed map[string]bool // interfaces of those that are not to be found again
}

// interfaces returns what reports the machine's interfaces.
func (h *Host) interfaces() nic.Source {
	if h.hooks.Interfaces != nil {
		return h.hooks.Interfaces
	}
	return nic.System()
}

// findRails returns the host's first rails: those of Config.Rails; or, if it listens on all
// addresses, what the machine has; or the address on which it listens.
func (h *Host) findRails(listen string) ([]rails.Rail, error) {
	at, noAddress := netip.ParseAddrPort(listen)
	if len(h.cfg.Rails) == 0 && (noAddress != nil || at.Addr().IsLoopback()) {
		return alone(at, nil), nil
	}
	all, err := h.interfaces().Read()
	if err != nil && !errors.Is(err, nic.ErrUnsupported) {
		h.cfg.Log.Warn("cannot read interfaces", slog.Any("error", err))
	}
	if len(h.cfg.Rails) > 0 {
		found, err := resolveRails(h.cfg.Rails, all)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		return found, nil
	}
	if at.Addr().IsUnspecified() {
		h.rails.listen = at.Addr()
		return rails.Find(all, at.Addr()), nil
	}
	return alone(at, all), nil
}

// alone returns the rail of a host that listens on one address; none where it is not the
// machine's, or a name.
func alone(at netip.AddrPort, all []nic.Interface) []rails.Rail {
	if !at.IsValid() {
		return nil
	}
	found, err := rails.Resolve([]rails.Wish{{Address: at.Addr(), Port: at.Port()}}, all)
	if err != nil {
		return nil
	}
	found[0].Interface = "" // who gives an address alone does not bind to its interface
	return found
}

func resolveRails(list []Rail, all []nic.Interface) ([]rails.Rail, error) {
	wishes := make([]rails.Wish, len(list))
	for i := range list {
		var err error
		if wishes[i], err = list[i].wish(); err != nil {
			return nil, err
		}
	}
	return rails.Resolve(wishes, all)
}

// ofPeer returns rails as package peer takes them.
func ofPeer(list []rails.Rail) []peer.Rail {
	all := make([]peer.Rail, len(list))
	for i, r := range list {
		all[i] = peer.Rail{Rail: r.Rail, Interface: r.Interface}
	}
	return all
}

// followRails has the rails' interfaces followed until the host is closed, if there are any.
func (h *Host) followRails() {
	h.rails.set = rails.New(rails.Config{
		Rails: h.rails.made, Source: h.interfaces(), Finds: h.rails.listen.IsValid(), Listen: h.rails.listen, Log: h.cfg.Log,
		Changed: h.railChanged, Found: h.railFound,
	})
	if h.rails.listen.IsValid() || slices.ContainsFunc(h.rails.made, func(r rails.Rail) bool { return r.Interface != "" }) {
		h.runRails()
	}
	h.reportRails()
	if h.manager != nil && h.data.followsRails() {
		h.tasks.Go(h.watchSilentRails)
	}
}

func (h *Host) runRails() {
	h.rails.follow.Do(func() { h.tasks.Go(func() { h.rails.set.Run(h.ctx) }) })
}

func (h *Host) railChanged(r rails.Rail, fault error) {
	if fault == nil {
		h.cfg.Log.Info("a rail is back", slog.String("rail", r.Name))
		h.reportRails()
		return
	}
	h.cfg.Log.Warn("a rail is down", slog.String("rail", r.Name), slog.Any("error", fault))
	h.peers.LoseRail(r.Name, fault)
	h.reportRails()
	h.loseTrees(r, fault)
}

// railFound takes a rail that has appeared on an interface.
func (h *Host) railFound(r rails.Rail) bool {
	h.rails.mu.Lock()
	defer h.rails.mu.Unlock()
	if h.rails.removed[r.Interface] {
		return false
	}
	if slices.ContainsFunc(h.rails.made, func(o rails.Rail) bool {
		return o.Name == r.Name && o.Interface == r.Interface && o.Address == r.Address
	}) {
		return true // the Set was given an older list since it was found
	}
	err := h.addRailLocked(h.ctx, r)
	if err != nil {
		h.cfg.Log.Warn("a rail that was found cannot be used", slog.String("rail", r.Name), slog.Any("error", err))
	}
	return err == nil
}

// show returns an address as Rail.Address has it.
func show(a netip.AddrPort) string {
	if a.Port() == 0 {
		return a.Addr().String()
	}
	return a.String()
}

// AddRail adds a rail. Connections with other hosts use it as soon as they know. The errors
// are ErrArgument, such as for a rail that this machine does not have, or those of
// listening there; then nothing has changed.
func (h *Host) AddRail(ctx context.Context, r Rail) error {
	if err := checkRails([]Rail{r}); err != nil {
		return fmt.Errorf("hostlib: adding a rail: %w: %w", ErrArgument, err)
	}
	all, err := h.interfaces().Read()
	if err != nil && !errors.Is(err, nic.ErrUnsupported) {
		return fmt.Errorf("hostlib: adding a rail: %w", err)
	}
	found, err := resolveRails([]Rail{r}, all)
	if err != nil {
		return fmt.Errorf("hostlib: adding a rail: %w: %w", ErrArgument, err)
	}
	err = h.changeRails(func() error { return h.addRailLocked(ctx, found[0]) })
	if err != nil {
		return fmt.Errorf("hostlib: adding rail %s: %w", found[0].Name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.runRails()
	}
	return nil
}

// addRailLocked adds a rail, which the caller has the Set follow.
func (h *Host) addRailLocked(ctx context.Context, r rails.Rail) error {
	made := slices.Clone(h.rails.made)
	if slices.ContainsFunc(made, func(o rails.Rail) bool { return o.Name == r.Name }) {
		return fmt.Errorf("%w: there is a rail of that name", ErrArgument)
	}
	for i := range made {
		if err := r.Collides(&made[i]); err != nil {
			return fmt.Errorf("%w: %w", ErrArgument, err)
		}
	}
	if len(made) == MaxRails {
		return fmt.Errorf("%w: there are %d rails, which is the most", ErrArgument, MaxRails)
	}
	made = append(made, r)
	if err := h.peers.SetRails(ctx, ofPeer(made)); err != nil {
		return err
	}
	h.rails.made, h.rails.new[r.Name] = made, true
	delete(h.rails.removed, r.Interface)
	return nil
}

// RemoveRail removes a rail and ends the connections on it, whose frames other rails carry
// on. The errors are ErrArgument: there is no such rail, or it is the only one.
func (h *Host) RemoveRail(ctx context.Context, name string) error {
	var gone rails.Rail
	err := h.changeRails(func() (err error) {
		gone, err = h.removeRailLocked(ctx, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("hostlib: removing rail %s: %w", name, err)
	}
	h.loseTrees(gone, errRemoved)
	h.reportRails()
	return nil
}

// removeRailLocked removes a rail and returns it.
func (h *Host) removeRailLocked(ctx context.Context, name string) (gone rails.Rail, err error) {
	i := slices.IndexFunc(h.rails.made, func(r rails.Rail) bool { return r.Name == name })
	if i < 0 {
		return gone, fmt.Errorf("%w: there is no such rail; there are %s", ErrArgument, namesOf(h.rails.made))
	}
	if len(h.rails.made) == 1 {
		return gone, fmt.Errorf("%w: it is the only one", ErrArgument)
	}
	gone = h.rails.made[i]
	made := slices.Delete(slices.Clone(h.rails.made), i, i+1)
	if err = h.peers.SetRails(ctx, ofPeer(made)); err != nil {
		return gone, err
	}
	h.rails.removed[gone.Interface] = true
	h.rails.made = made
	delete(h.rails.new, name)
	return gone, nil
}

func namesOf(list []rails.Rail) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return strings.Join(names, ", ")
}

// changeRails has the rails changed, and the Set follow them as they are then: one change
// after the other, so that the Set has the last.
func (h *Host) changeRails(change func() error) error {
	h.rails.changes.Lock()
	defer h.rails.changes.Unlock()
	h.rails.mu.Lock()
	err := change()
	if errors.Is(err, peer.ErrClosed) {
		err = ErrClosed
	}
	made := h.rails.made
	h.rails.mu.Unlock()
	if err == nil {
		h.rails.set.Replace(made)
	}
	return err
}

var errRemoved = errors.New("it was removed")

// listenAddress returns the address on which a host is to listen.
func (c *Config) listenAddress(listener net.Listener) string {
	if c.Listen == "" && listener != nil {
		return listener.Addr().String()
	}
	return c.Listen
}
