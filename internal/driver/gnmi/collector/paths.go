package collector

import (
	"fmt"
	"slices"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// ownModule is Tributary's YANG module.
const ownModule = "tributary"

// unused are leaves that say nothing about the fabric.
var unused = []string{"physical", "last-change", "ttl", "system-description", "boot-time", "software-version", "data-plane", "drain", "unusable"}

// isWanted reports whether a leaf is one that a map is made of.
func isWanted(l *openconfig.Leaf) bool {
	return !l.Counter && !l.Config && !slices.Contains(unused, l.Path[len(l.Path)-1].Name)
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

// attempt is a way to subscribe.
type attempt struct {
	mode  pb.SubscriptionMode
	depth int // of the paths; what is below them is wanted only in part
}

// attempts are tried in order: a target that cannot report all of it on change may know a
// mode that it can, and one that lacks a leaf refuses the path of that (gNMI specification,
// section 3.5.2.4).
var attempts = []attempt{
	{pb.SubscriptionMode_ON_CHANGE, openconfig.MaxDepth},
	{pb.SubscriptionMode_TARGET_DEFINED, openconfig.MaxDepth},
	{pb.SubscriptionMode_ON_CHANGE, 2},
	{pb.SubscriptionMode_TARGET_DEFINED, 2},
}

// request returns the subscription to everything that is wanted.
func (s *stream) request(encoding pb.Encoding, a attempt, models []string) *pb.SubscribeRequest {
	list := &pb.SubscriptionList{Mode: pb.SubscriptionList_STREAM, Encoding: encoding}
	s.wanted = map[*openconfig.Leaf]bool{}
	asked := map[string]bool{}
	for _, l := range leaves(models) {
		s.wanted[l] = true
		p := openconfig.AnyKeys(l.Path[:min(len(l.Path), a.depth)])
		if name := p.String(); !asked[name] {
			asked[name] = true
			list.Subscription = append(list.Subscription, &pb.Subscription{Path: message.OfPath(p), Mode: a.mode})
		}
	}
	return &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: list}}
}

// pathOf reads a path of a notification.
func pathOf(prefix, path *pb.Path) (openconfig.Path, error) {
	p, err := message.Path(prefix, path)
	if err == nil && slices.ContainsFunc(p, func(e openconfig.Elem) bool { return e.Name == openconfig.AnyDepth }) {
		err = fmt.Errorf("%w: a target may not use %s", openconfig.ErrPath, openconfig.AnyDepth)
	}
	return p, err
}
