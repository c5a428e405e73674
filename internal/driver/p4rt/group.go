package p4rt

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/tributary-fabric/tributary/p4"
)

// normalGroup returns g with its replicas in order. Targets know them as a set.
func normalGroup(g p4.Group) (p4.Group, error) {
	if g.ID == 0 {
		return g, fmt.Errorf("%w: multicast group 0", ErrEntry)
	}
	g.Replicas = slices.Clone(g.Replicas)
	slices.SortFunc(g.Replicas, func(a, b p4.Replica) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Port, b.Port))
	})
	for i, r := range g.Replicas {
		if i > 0 && r == g.Replicas[i-1] {
			return g, fmt.Errorf("%w: multicast group %d copies twice to port %d as %d", ErrEntry, g.ID, r.Port, r.Instance)
		}
	}
	return g, nil
}

// encodeGroup returns a group as it is written. From version 1.4 of P4Runtime
// on a port is bytes; before, it is a number. bmv2 takes both, but not port 0
// as bytes.
func encodeGroup(g p4.Group, portBytes bool) (*p4v1.MulticastGroupEntry, error) {
	g, err := normalGroup(g)
	if err != nil {
		return nil, err
	}
	m := &p4v1.MulticastGroupEntry{MulticastGroupId: g.ID}
	for _, r := range g.Replicas {
		replica := &p4v1.Replica{Instance: uint32(r.Instance)}
		if portBytes {
			replica.PortKind = &p4v1.Replica_Port{Port: trim(binary.BigEndian.AppendUint16(nil, r.Port))}
		} else {
			replica.PortKind = &p4v1.Replica_EgressPort{EgressPort: uint32(r.Port)} //nolint:staticcheck // deprecated, and all that older targets know
		}
		m.Replicas = append(m.Replicas, replica)
	}
	return m, nil
}

// decodeGroup is the inverse of encodeGroup, of both forms. Errors wrap
// ErrMalformed.
func decodeGroup(m *p4v1.MulticastGroupEntry) (p4.Group, error) {
	g := p4.Group{ID: m.GetMulticastGroupId()}
	for _, r := range m.GetReplicas() {
		var port uint32
		switch kind := r.GetPortKind().(type) {
		case *p4v1.Replica_EgressPort:
			port = kind.EgressPort //nolint:staticcheck // deprecated, and all that older targets know
		case *p4v1.Replica_Port:
			b, err := lengthen(kind.Port, 32)
			if err != nil {
				return g, fmt.Errorf("%w: multicast group %d: %w", ErrMalformed, g.ID, err)
			}
			port = binary.BigEndian.Uint32(b)
		default:
			return g, fmt.Errorf("%w: multicast group %d copies to no port", ErrMalformed, g.ID)
		}
		if port > math.MaxUint16 || r.GetInstance() > math.MaxUint16 {
			return g, fmt.Errorf("%w: multicast group %d copies to port %d as %d", ErrMalformed, g.ID, port, r.GetInstance())
		}
		g.Replicas = append(g.Replicas, p4.Replica{Port: uint16(port), Instance: uint16(r.GetInstance())})
	}
	g, err := normalGroup(g)
	if err != nil {
		return g, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return g, nil
}
