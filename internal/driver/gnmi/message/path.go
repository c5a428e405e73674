package message

import (
	"fmt"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Path reads a path that begins with prefix.
func Path(prefix, path *pb.Path) (openconfig.Path, error) {
	var p openconfig.Path
	for _, m := range []*pb.Path{prefix, path} {
		if len(m.GetElem()) == 0 && len(m.GetElement()) > 0 { //nolint:staticcheck // it is to be refused
			return nil, fmt.Errorf("%w: it uses the field element, which was replaced by elem", openconfig.ErrPath)
		}
		if n := len(p) + len(m.GetElem()); n > openconfig.MaxDepth {
			return nil, fmt.Errorf("%w: %d elements, and %d are allowed", openconfig.ErrPath, n, openconfig.MaxDepth)
		}
		for _, e := range m.GetElem() {
			x := openconfig.Elem{Name: openconfig.Unqualified(e.GetName())}
			for name, value := range e.GetKey() {
				x.Keys = append(x.Keys, openconfig.Key{Name: openconfig.Unqualified(name), Value: value})
			}
			p = append(p, x)
		}
	}
	return p, p.Check()
}

// OfPath writes a path.
func OfPath(p openconfig.Path) *pb.Path {
	m := &pb.Path{Elem: make([]*pb.PathElem, len(p))}
	for i, e := range p {
		x := &pb.PathElem{Name: e.Name}
		if len(e.Keys) > 0 {
			x.Key = make(map[string]string, len(e.Keys))
			for _, k := range e.Keys {
				x.Key[k.Name] = k.Value
			}
		}
		m.Elem[i] = x
	}
	return m
}
