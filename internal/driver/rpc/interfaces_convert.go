package rpc

import (
	"net/netip"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// interfaces returns nil for nil.
func interfaces(x *Interfaces) *pb.Interfaces {
	if x == nil {
		return nil
	}
	return &pb.Interfaces{Unavailable: x.Unavailable, Interfaces: each(x.List, func(i nic.Interface) *pb.Interface {
		return &pb.Interface{
			Name: i.Name, Up: i.Up, Traffic: linkTraffic(i.Traffic), Addresses: each(i.Addresses, netip.Addr.String),
		}
	})}
}

// interfaces returns nil for nil.
func (r *reader) interfaces(m *pb.Interfaces) *Interfaces {
	if m == nil {
		return nil
	}
	return &Interfaces{Unavailable: m.GetUnavailable(), List: each(m.GetInterfaces(), func(i *pb.Interface) nic.Interface {
		return nic.Interface{
			Name: i.GetName(), Up: i.GetUp(), Traffic: readLinkTraffic(i.GetTraffic()), Addresses: each(i.GetAddresses(), r.ip),
		}
	})}
}

func (r *reader) ip(text string) netip.Addr { return r.plainIP("interfaces.addresses", text) }

func (r *reader) plainIP(field, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil {
		r.fail(field, "%q is no IP address", text)
	}
	return a
}

func linkTraffic(t nic.Traffic) *pb.Traffic {
	return &pb.Traffic{PacketsIn: t.PacketsIn, BytesIn: t.BytesIn, PacketsOut: t.PacketsOut, BytesOut: t.BytesOut}
}

func readLinkTraffic(m *pb.Traffic) nic.Traffic {
	return nic.Traffic{PacketsIn: m.GetPacketsIn(), BytesIn: m.GetBytesIn(), PacketsOut: m.GetPacketsOut(), BytesOut: m.GetBytesOut()}
}

func traffic(m *pb.Traffic) switchreduce.Traffic {
	return switchreduce.Traffic{
		PacketsIn: m.GetPacketsIn(), BytesIn: m.GetBytesIn(), PacketsOut: m.GetPacketsOut(), BytesOut: m.GetBytesOut(), Forged: m.GetForged(),
	}
}

func trafficMessage(t switchreduce.Traffic) *pb.Traffic {
	return &pb.Traffic{PacketsIn: t.PacketsIn, BytesIn: t.BytesIn, PacketsOut: t.PacketsOut, BytesOut: t.BytesOut, Forged: t.Forged}
}

func epochTrafficMessage(e EpochTraffic) *pb.EpochTraffic {
	m := &pb.EpochTraffic{Group: e.Group, Epoch: e.Epoch, Children: each(e.Children, trafficMessage)}
	if e.Parent != nil {
		m.Parent = trafficMessage(*e.Parent)
	}
	return m
}

func epochTraffic(m *pb.EpochTraffic) EpochTraffic {
	e := EpochTraffic{
		Group:        m.GetGroup(),
		EpochTraffic: switchreduce.EpochTraffic{Epoch: m.GetEpoch(), Children: each(m.GetChildren(), traffic)},
	}
	if m.GetParent() != nil {
		parent := traffic(m.GetParent())
		e.Parent = &parent
	}
	return e
}
