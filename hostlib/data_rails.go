package hostlib

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/client"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rails"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// dataPlane is how a host's packets to switches take its rails.
type dataPlane struct {
	bind     netip.Addr // of the sockets
	reported netip.Addr // to the manager, for trees on links without addresses
	only     bool       // the rails are those of Config.Rails, without which no link is used

	silent    silentRails
	reporting sync.Mutex // held while rails are read and posted
}

// init decides how packets to switches are sent from a host that listens there. With
// rails on several addresses it is from that at the end of a tree's link.
func (d *dataPlane) init(c *Config, listens string, made []rails.Rail) (err error) {
	if d.reported, err = c.dataAddress(listens); err != nil {
		return err
	}
	d.bind = d.reported
	several := slices.ContainsFunc(made, func(r rails.Rail) bool { return r.Address.Addr() != d.reported })
	if d.only = len(c.Rails) > 0 && several && !c.Data.IsValid(); !d.only {
		return nil
	}
	if d.bind = netip.IPv6Unspecified(); d.reported.Is4() {
		d.bind = netip.IPv4Unspecified()
	}
	return nil
}

// followsRails reports whether packets are sent from the rail of a tree's link.
func (d *dataPlane) followsRails() bool { return d.bind.IsUnspecified() }

// reportRails reports the host's rails to the manager, for the links that trees take.
func (h *Host) reportRails() {
	if h.manager == nil || !h.data.followsRails() {
		return
	}
	h.data.reporting.Lock()
	defer h.data.reporting.Unlock()
	var all []manager.Rail
	for _, s := range h.dataRails() {
		r := manager.Rail{Name: s.Name, Address: s.Address.Addr()}
		if s.Fault != nil {
			r.Fault = shorten(s.Fault.Error())
		}
		known := slices.ContainsFunc(all, func(o manager.Rail) bool { return o.Address == r.Address })
		if !known && r.Address.Is4() == h.data.bind.Is4() {
			all = append(all, r)
		}
	}
	h.manager.post(client.Input{Kind: client.Rails, Rails: all, OnlyRails: h.data.only})
}

// dataRails returns the host's rails, and whether they carry packets to switches.
func (h *Host) dataRails() []rails.State { return h.data.silent.over(h.rails.set.States()) }

// shorten returns the beginning of a text that is too long for a message.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), wire.MaxReason)], "")
}

// loseTrees ends the use of trees over a rail that is down: here at once, since the manager
// may be behind it.
func (h *Host) loseTrees(r rails.Rail, fault error) {
	h.mu.Lock()
	comms := slices.Collect(maps.Values(h.comms))
	h.mu.Unlock()
	for _, c := range comms {
		c.mu.Lock()
		epoch, lost := c.status.epoch, c.status.offload && c.status.source == r.Address.Addr()
		c.mu.Unlock()
		if lost {
			c.news(endpoint.Withdraw, endpoint.News{Epoch: epoch, Reason: h.downText(r, fault)})
		}
	}
}

func (h *Host) downText(r rails.Rail, fault error) string {
	return shorten(fmt.Sprintf("rail %s of %s is down: %v", r.Name, h.name, fault))
}

// takeRail has packets to the switches of a new epoch sent from the rail at the end of the
// tree's link. Where that is down it returns that the tree is lost.
func (s *stepper) takeRail(e endpoint.Entered) (lost []item) {
	if !e.Offload || s.conn == nil || !s.host.data.followsRails() {
		return nil
	}
	source := e.Link.Source
	s.mu.Lock()
	s.status.source = source
	s.mu.Unlock()
	device := 0
	for _, state := range s.host.dataRails() {
		if state.Address.Addr() != source {
			continue
		}
		if state.Fault != nil {
			news := endpoint.News{Epoch: e.Epoch, Reason: s.host.downText(state.Rail, state.Fault)}
			lost = append(lost, item{in: endpoint.Input{Kind: endpoint.Withdraw, News: &news}})
		}
		device = deviceOf(state.Rail, e.Link.Parent.Addr())
		break
	}
	if !s.conn.SetSource(source, device) {
		s.host.cfg.Log.Warn("packets to switches take what routes say, and not the rail of the tree",
			slog.String("communicator", s.name), slog.Any("rail", source))
	}
	return lost
}

// deviceOf returns the number of a rail's interface if a switch is in its subnet; otherwise 0:
// routes, which may know the rail's address, say over which interface that is reached.
func deviceOf(r rails.Rail, to netip.Addr) int {
	if r.Interface == "" || !netip.PrefixFrom(r.Address.Addr(), int(r.Bits)).Contains(to) {
		return 0
	}
	i, err := net.InterfaceByName(r.Interface)
	if err != nil {
		return 0
	}
	return i.Index
}
