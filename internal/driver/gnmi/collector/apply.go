package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// maxText is the longest value that is kept, in bytes.
const maxText = 1024

// What counts as one update, beside an update, for Limits.Rate.
const (
	perJSON   = 64 // bytes of JSON: about those of a leaf
	perLooked = 8  // leaves that a delete has to be compared with
)

// take applies a notification, as fast as the target may have it read. The error is that
// there was too much that is malformed, or that the context has ended.
func (s *stream) take(ctx context.Context, n *pb.Notification) error {
	work, err := s.apply(ctx, n)
	if err != nil {
		return err
	}
	s.wake()
	return s.pace.wait(ctx, work)
}

// apply returns what is still to be paid for.
func (s *stream) apply(ctx context.Context, n *pb.Notification) (work int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := n.GetDelete()
	if n.GetAtomic() && len(n.GetUpdate()) > 0 {
		gone = append(gone, nil) // the updates are all that there is at the prefix
	}
	for _, d := range gone {
		p, err := pathOf(n.GetPrefix(), d)
		if err != nil {
			if err := s.mistake(err); err != nil {
				return 0, err
			}
			continue
		}
		if err := s.pace.wait(ctx, 1+s.device.Delete(p)/perLooked); err != nil { // many may cost much, and change nothing
			return 0, err
		}
	}
	for _, u := range n.GetUpdate() {
		text, _ := message.JSON(u.GetVal())
		work += 1 + len(text)/perJSON
		if err := s.update(n.GetPrefix(), u); err != nil {
			if err := s.mistake(err); err != nil {
				return 0, err
			}
		}
	}
	return work + 1, nil
}

// mistake counts what is malformed. The error is that it is too much.
func (s *stream) mistake(err error) error {
	s.cfg.Counts.Malformed.Add(1)
	text := printable.Text(fmt.Sprintf("%.200s", err.Error()))
	if s.mistakes++; s.mistakes == 1 {
		s.cfg.Log.Warn("malformed update, dropped", slog.String("target", s.cfg.Address), slog.String("error", text))
	}
	if s.mistakes >= s.cfg.Limits.Mistakes {
		return fmt.Errorf("%w: %d updates, the last: %s", ErrMalformed, s.mistakes, text)
	}
	return nil
}

// update applies an update. The error is the first of those that it has: one is enough to
// name, and there can be millions.
func (s *stream) update(prefix *pb.Path, u *pb.Update) error {
	p, err := pathOf(prefix, u.GetPath())
	if err != nil {
		return err
	}
	var first error
	for l, err := range message.Leaves(p, u.GetVal()) {
		at, _ := openconfig.Find(l.Path)
		switch isWanted := s.wanted[at]; {
		case err == nil && isWanted:
			err = s.set(l.Path, l.Value)
		case err == nil:
			s.cfg.Counts.Ignored.Add(1)
		case errors.Is(err, message.ErrValue) && !isWanted:
			continue
		case first == nil:
			err = fmt.Errorf("%w at %s", err, l.Path)
		}
		first = cmp.Or(first, err)
	}
	return first
}

// set applies one leaf, if it is within the limits.
func (s *stream) set(p openconfig.Path, v openconfig.Value) error {
	if v.Size() > maxText || !s.fits(p) {
		s.cfg.Counts.Beyond.Add(1)
		return nil
	}
	known, err := s.device.Set(p, v)
	if err == nil && known {
		s.cfg.Counts.Updates.Add(1)
	}
	return err
}

// fits reports whether a leaf is of an entry of a list that is there already, or for which
// there is room.
func (s *stream) fits(p openconfig.Path) bool {
	var at *openconfig.Interface
	var of *openconfig.Neighbor
	for i := range p {
		if len(p[i].Keys) != 1 {
			continue
		}
		switch key := p[i].Keys[0].Value; p[i].Name {
		case "interface":
			if at = s.device.Interfaces[key]; at == nil {
				return len(s.device.Interfaces) < s.cfg.Limits.Ports
			}
		case "address":
			return at == nil || len(at.Addresses) < s.cfg.Limits.Entries ||
				slices.ContainsFunc(at.Addresses, func(a openconfig.Address) bool { return a.Addr().String() == key })
		case "neighbor":
			if at == nil {
				return true
			}
			n := slices.IndexFunc(at.Neighbors, func(n openconfig.Neighbor) bool { return n.ID == key })
			if n < 0 {
				return len(at.Neighbors) < s.cfg.Limits.Neighbors
			}
			of = &at.Neighbors[n]
		case "capability":
			return of == nil || len(of.Capabilities) < s.cfg.Limits.Entries ||
				slices.ContainsFunc(of.Capabilities, func(c openconfig.Capability) bool { return c.Name == openconfig.Unqualified(key) })
		case "mgmt-address":
			return of == nil || len(of.Management) < s.cfg.Limits.Entries ||
				slices.ContainsFunc(of.Management, func(a netip.Addr) bool { return a.String() == key })
		}
	}
	return true
}
