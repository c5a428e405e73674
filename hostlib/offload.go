package hostlib

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/client"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/wire"
)

const maxGroupName = 200 // bytes of a communicator's name in that of the manager's group

// wishes returns what the group is to be.
func (c *Communicator) wishes() manager.Create {
	functions, types := c.options.needs(len(c.members))
	g := manager.Create{
		Name: groupName(c.name, c.own), ChunkBytes: c.chunkBytes(), Window: c.host.cfg.Window, Protection: c.options.protection,
		Functions: functions, Types: types, Purpose: c.options.purpose, Bundle: c.bundle(),
	}
	for _, m := range c.members {
		g.Members = append(g.Members, m.Host)
	}
	return g
}

// groupName returns the name at the manager of the group that the lowest rank's
// attempt makes.
func groupName(communicator string, lowest attempt) string {
	return fmt.Sprintf("%s%016x", groupPrefix(communicator), uint64(lowest))
}

// groupPrefix returns what the names of all of a communicator's groups begin with.
func groupPrefix(communicator string) string {
	return strings.ToValidUTF8(communicator[:min(len(communicator), maxGroupName)], "?") + "/"
}

// takePart has the communicator take part at the manager: rank 0 creates the
// group, and gives the others its number.
func (c *Communicator) takePart() {
	j := &client.Joined{
		Rank: uint32(c.rank), Of: groupPrefix(c.name), Data: netip.AddrPortFrom(c.host.data.reported, c.conn.LocalAddr().Port()),
		Report: manager.Report{Entered: endpoint.FirstEpoch, Transport: manager.HostTree, Demand: 1},
	}
	if c.rank == 0 {
		g := c.wishes()
		j.Create = &g
	}
	c.manager.join(c, j)
}

// report sends the manager what is new. It is the loop's alone.
func (c *Communicator) report(r manager.Report) {
	if c.member != 0 {
		c.manager.post(client.Input{Kind: client.News, Member: c.member, Report: r})
	}
}

// leavePart has the communicator take no part any more, once. It does not wait.
func (c *Communicator) leavePart() {
	if c.member != 0 && !c.hasParted {
		c.hasParted = true
		c.manager.post(client.Input{Kind: client.Leave, Member: c.member, Over: c.isRevoked()})
	}
}

// endPart does so, and waits until the manager knows. If it cannot be notified, it finds out by itself
// that nobody watches.
func (c *Communicator) endPart() {
	if c.member == 0 {
		return
	}
	c.leavePart()
	if err := c.manager.left(c.part); err != nil {
		c.host.cfg.Log.Info("cannot release the group", slog.String("communicator", c.name), slog.Any("error", err))
	}
}

// noticed takes what the manager said to rank 0: the group's number, under
// which every member watches, or why there is none.
func (s *stepper) noticed(n *wire.Notice) {
	if s.member == 0 {
		return
	}
	s.number.Store(n.Group)
	s.manager.post(client.Input{Kind: client.Number, Member: s.member, Group: n.Group})
	if n.Group == 0 {
		s.settle("no tree of switches: " + n.Reason)
	}
}
