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
	m := &pb.Interfaces{Unavailable: x.Unavailable}
	for _, i := range x.List {
		t := i.Traffic
		one := &pb.Interface{Name: i.Name, Up: i.Up, Traffic: &pb.Traffic{
			PacketsIn: t.PacketsIn, BytesIn: t.BytesIn, PacketsOut: t.PacketsOut, BytesOut: t.BytesOut,
		}}
		for _, a := range i.Addresses {
			one.Addresses = append(one.Addresses, a.String())
		}
		m.Interfaces = append(m.Interfaces, one)
	}
	return m
}

// interfaces returns nil for nil.
func (r *reader) interfaces(m *pb.Interfaces) *Interfaces {
	if m == nil {
		return nil
	}
	x := &Interfaces{Unavailable: m.GetUnavailable()}
	for _, one := range m.GetInterfaces() {
		i := nic.Interface{Name: one.GetName(), Up: one.GetUp(), Traffic: nic.Traffic(traffic(one.GetTraffic()))}
		for _, text := range one.GetAddresses() {
			a, err := netip.ParseAddr(text)
			if err != nil {
				r.fail("interfaces.addresses", "%q is no IP address", text)
			}
			i.Addresses = append(i.Addresses, a)
		}
		x.List = append(x.List, i)
	}
	return x
}

func traffic(m *pb.Traffic) switchreduce.Traffic {
	return switchreduce.Traffic{
		PacketsIn: m.GetPacketsIn(), BytesIn: m.GetBytesIn(), PacketsOut: m.GetPacketsOut(), BytesOut: m.GetBytesOut(),
	}
}

func trafficMessage(t switchreduce.Traffic) *pb.Traffic {
	return &pb.Traffic{PacketsIn: t.PacketsIn, BytesIn: t.BytesIn, PacketsOut: t.PacketsOut, BytesOut: t.BytesOut}
}

func epochTrafficMessage(e EpochTraffic) *pb.EpochTraffic {
	m := &pb.EpochTraffic{Group: e.Group, Epoch: e.Epoch}
	if e.Parent != nil {
		m.Parent = trafficMessage(*e.Parent)
	}
	for _, t := range e.Children {
		m.Children = append(m.Children, trafficMessage(t))
	}
	return m
}

func (r *reader) epochTraffic(m *pb.EpochTraffic) EpochTraffic {
	e := EpochTraffic{
		Group:        m.GetGroup(),
		EpochTraffic: switchreduce.EpochTraffic{Epoch: m.GetEpoch()},
	}
	if m.GetParent() != nil {
		parent := traffic(m.GetParent())
		e.Parent = &parent
	}
	for _, t := range m.GetChildren() {
		e.Children = append(e.Children, traffic(t))
	}
	return e
}
