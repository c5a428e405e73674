package rpc

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
)

// LinkMismatch is a link that has not carried what trees exchanged over it:
// they are not where they were planned.
type LinkMismatch struct {
	Link      string // such as "leaf-0:5--spine-0:1"
	Switch    string // at whose end this was counted
	Interface string // of the switch, where the link ends
	Sent      bool   // by the switch; false: it has received it
	Expected  uint64 // bytes of the trees
	Seen      uint64 // bytes that the interface has carried meanwhile
	Trees     []TreeShare
	Since     time.Time
}

// TreeShare is what one tree has contributed to Expected. Those of a
// LinkMismatch stand in falling order.
type TreeShare struct {
	Group, Epoch uint32
	Bytes        uint64
}

// Direction returns "sent" or "received".
func (m *LinkMismatch) Direction() string {
	if m.Sent {
		return "sent"
	}
	return "received"
}

// Of reports whether a group's tree is concerned.
func (m *LinkMismatch) Of(group uint32) bool {
	for _, t := range m.Trees {
		if t.Group == group {
			return true
		}
	}
	return false
}

// String reports the mismatch in one line.
func (m *LinkMismatch) String() string {
	var trees []string
	for _, t := range m.Trees {
		trees = append(trees, fmt.Sprintf("group %d epoch %d", t.Group, t.Epoch))
	}
	return fmt.Sprintf("link %s: switch %s %s %d bytes of %s over it, and its interface %s carried %d",
		m.Link, m.Switch, m.Direction(), m.Expected, strings.Join(trees, ", "), m.Interface, m.Seen)
}

func linkMismatches(all []LinkMismatch) (list []*pb.LinkMismatch) {
	for _, m := range all {
		x := &pb.LinkMismatch{
			Link: m.Link, Switch: m.Switch, Interface: m.Interface, Sent: m.Sent, Expected: m.Expected, Seen: m.Seen,
		}
		for _, t := range m.Trees {
			x.Trees = append(x.Trees, &pb.TreeShare{Group: t.Group, Epoch: t.Epoch, Bytes: t.Bytes})
		}
		if !m.Since.IsZero() {
			x.Since = timestamppb.New(m.Since)
		}
		list = append(list, x)
	}
	return list
}

func (r *reader) linkMismatches(list []*pb.LinkMismatch) (all []LinkMismatch) {
	for _, x := range list {
		m := LinkMismatch{
			Link: x.GetLink(), Switch: x.GetSwitch(), Interface: x.GetInterface(), Sent: x.GetSent(),
			Expected: x.GetExpected(), Seen: x.GetSeen(),
		}
		for _, t := range x.GetTrees() {
			m.Trees = append(m.Trees, TreeShare{t.GetGroup(), t.GetEpoch(), t.GetBytes()})
		}
		if x.GetSince() != nil {
			m.Since = x.GetSince().AsTime()
		}
		all = append(all, m)
	}
	return all
}
