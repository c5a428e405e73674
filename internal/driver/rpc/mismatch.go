package rpc

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
	return slices.ContainsFunc(m.Trees, func(t TreeShare) bool { return t.Group == group })
}

// String reports the mismatch in one line.
func (m *LinkMismatch) String() string {
	trees := each(m.Trees, func(t TreeShare) string { return fmt.Sprintf("group %d epoch %d", t.Group, t.Epoch) })
	return fmt.Sprintf("link %s: switch %s %s %d bytes of %s over it, and its interface %s carried %d",
		m.Link, m.Switch, m.Direction(), m.Expected, strings.Join(trees, ", "), m.Interface, m.Seen)
}

func linkMismatch(m LinkMismatch) *pb.LinkMismatch {
	return &pb.LinkMismatch{
		Link: m.Link, Switch: m.Switch, Interface: m.Interface, Sent: m.Sent, Expected: m.Expected, Seen: m.Seen, Since: timestamp(m.Since),
		Trees: each(m.Trees, func(t TreeShare) *pb.TreeShare { return &pb.TreeShare{Group: t.Group, Epoch: t.Epoch, Bytes: t.Bytes} }),
	}
}

func mismatchOf(m *pb.LinkMismatch) LinkMismatch {
	return LinkMismatch{
		Link: m.GetLink(), Switch: m.GetSwitch(), Interface: m.GetInterface(), Sent: m.GetSent(),
		Expected: m.GetExpected(), Seen: m.GetSeen(), Since: timeOf(m.GetSince()),
		Trees: each(m.GetTrees(), func(t *pb.TreeShare) TreeShare { return TreeShare{t.GetGroup(), t.GetEpoch(), t.GetBytes()} }),
	}
}
