package collector

import (
	"fmt"
	"slices"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// ownModule is Tributary's YANG module.
const ownModule = "tributary"

// unused are leaves that say nothing about the fabric.
var unused = []string{"last-change", "ttl", "system-description", "boot-time", "software-version", "data-plane", "drain", "unusable"}

// isWanted reports whether a leaf is one that a map is made of.
func isWanted(l *openconfig.Leaf) bool {
	at := names(l.Path)
	for _, other := range []string{"/system/cpus/", "/system/memory/", "/tributary/trees/", "/tributary/drops/", "/tributary/events/"} {
		if strings.HasPrefix(at, other) {
			return false
		}
	}
	return !l.Counter && !l.Config && !slices.Contains(unused, l.Path[len(l.Path)-1].Name)
}

// names returns the path of a leaf's kind: the names of its elements.
func names(p openconfig.Path) string {
	var b strings.Builder
	for i := range p {
		b.WriteByte('/')
		b.WriteString(p[i].Name)
	}
	return b.String()
}

// leaves returns those to subscribe to at a target that has these models. One that names
// none is taken to have OpenConfig's.
func leaves(models []string) (all []*openconfig.Leaf) {
	isOwn := slices.Contains(models, ownModule)
	for l := range openconfig.Schema() {
		if isWanted(l) && !(l.Alias && isOwn) && has(models, l) {
			all = append(all, l)
		}
	}
	return all
}

func has(models []string, l *openconfig.Leaf) bool {
	for _, m := range l.Modules {
		if m != "" && !slices.Contains(models, m) && (len(models) > 0 || m == ownModule) {
			return false
		}
	}
	return true
}

// request returns the subscription to everything that is wanted.
func (s *stream) request(encoding pb.Encoding, mode pb.SubscriptionMode, models []string) *pb.SubscribeRequest {
	list := &pb.SubscriptionList{Mode: pb.SubscriptionList_STREAM, Encoding: encoding}
	s.wanted = map[string]bool{}
	for _, l := range leaves(models) {
		list.Subscription = append(list.Subscription, &pb.Subscription{Path: anyOf(l.Path), Mode: mode})
		s.wanted[names(l.Path)] = true
	}
	return &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: list}}
}

// anyOf writes the path of a leaf, with wildcards for keys.
func anyOf(p openconfig.Path) *pb.Path {
	m := &pb.Path{}
	for _, e := range p {
		x := &pb.PathElem{Name: e.Name}
		for _, k := range e.Keys {
			if x.Key == nil {
				x.Key = map[string]string{}
			}
			x.Key[k.Name] = openconfig.AnyElem
		}
		m.Elem = append(m.Elem, x)
	}
	return m
}

// pathOf reads the path of a leaf that begins with prefix.
func pathOf(prefix, path *pb.Path) (openconfig.Path, error) {
	if len(prefix.GetElement())+len(path.GetElement()) > 0 { //nolint:staticcheck // it is to be refused
		return nil, fmt.Errorf("%w: it uses the field element, which was replaced by elem", openconfig.ErrPath)
	}
	p := make(openconfig.Path, 0, len(prefix.GetElem())+len(path.GetElem()))
	for _, elems := range [][]*pb.PathElem{prefix.GetElem(), path.GetElem()} {
		for _, e := range elems {
			x := openconfig.Elem{Name: openconfig.Unqualified(e.GetName())}
			if x.Name == openconfig.AnyDepth {
				return nil, fmt.Errorf("%w: a target may not use %s", openconfig.ErrPath, x.Name)
			}
			for name, value := range e.GetKey() {
				x.Keys = append(x.Keys, openconfig.Key{Name: openconfig.Unqualified(name), Value: value})
			}
			p = append(p, x)
		}
	}
	return p, p.Check()
}
