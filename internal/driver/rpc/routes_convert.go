package rpc

import (
	"maps"
	"net/netip"
	"slices"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
)

func setRoutesRequest(a portmap.Assignment) *pb.SetRoutesRequest {
	return &pb.SetRoutesRequest{
		Ports: each(slices.Sorted(maps.Keys(a.Addresses)), func(port uint16) *pb.PortAddress {
			return &pb.PortAddress{Port: uint32(port), Address: a.Addresses[port].String()}
		}),
		Routes: each(a.Routes, func(x portmap.Route) *pb.Route {
			return &pb.Route{Prefix: x.Prefix.String(), Port: uint32(x.Port), NextHop: x.Next.String()}
		}),
	}
}

func (r *reader) assignment(m *pb.SetRoutesRequest) portmap.Assignment {
	a := portmap.Assignment{Routes: each(m.GetRoutes(), func(x *pb.Route) portmap.Route {
		prefix, err := netip.ParsePrefix(x.GetPrefix())
		if err != nil {
			r.fail("routes.prefix", "%q is no prefix", x.GetPrefix())
		}
		return portmap.Route{Prefix: prefix, Port: r.uint16("routes.port", x.GetPort()), Next: r.plainIP("routes.next_hop", x.GetNextHop())}
	})}
	for _, p := range m.GetPorts() {
		if a.Addresses == nil {
			a.Addresses = map[uint16]netip.Addr{}
		}
		a.Addresses[r.uint16("ports.port", p.GetPort())] = r.plainIP("ports.address", p.GetAddress())
	}
	return a
}
