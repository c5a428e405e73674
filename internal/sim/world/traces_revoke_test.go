package world

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/topology"
)

// TestRevokeFreesSwitches: a communicator is revoked in the middle of an operation, and one member alone
// is notified, while another may be dead, the lowest rank included. The switches are free at once, not after the
// time for leaving, and not by their leases. Another communicator keeps its tree.
func TestRevokeFreesSwitches(t *testing.T) {
	for notified := range 4 {
		for dead := range 4 {
			name := fmt.Sprintf("rank %d/nobody is dead", notified)
			if dead != notified {
				name = fmt.Sprintf("rank %d/rank %d is dead", notified, dead)
			}
			t.Run(name, func(t *testing.T) {
				e := newEstate(t, nil)
				other, err := e.NewGroup("other", []topology.NodeID{0, 2}, endpoint.Config{Group: 2, Cookie: 8, ChunkBytes: chunkBytes, Window: 4, Timing: timing()})
				if err != nil {
					t.Fatal(err)
				}
				e.until("both have trees", func() bool {
					return e.Hosts[0].Core().Epoch() > endpoint.FirstEpoch && other.Hosts[0].Core().Epoch() > endpoint.FirstEpoch
				})
				e.run(5 * time.Millisecond) // windows are shared out
				k := e.sum(400)
				e.startAll(k)
				e.until("some chunks are done", func() bool { return e.Hosts[3].Core().Counters().Results >= 10 })

				group, _ := e.ManagerNode().Core().Find("all")
				if !e.holds(group) {
					t.Fatalf("no switch holds anything of group %d", group)
				}
				at := e.w.Now()
				if dead != notified {
					e.w.Crash(e.node(dead))
				}
				e.Notify(uint32(notified), endpoint.Input{Kind: endpoint.Failed, News: &endpoint.News{Fail: wire.Fail{Kind: wire.FailRevoked, Rank: 1}}})
				e.until("its slots are free", func() bool { return !e.holds(group) })
				if took := e.w.Now().Sub(at); took > managerConfig().ReleaseGrace/2 {
					t.Errorf("it took %v", took)
				}
				e.run(managerConfig().Lease)
				for i := range e.Switches {
					if n := e.Switch(i).Expired; n > 0 {
						t.Errorf("%d leases have run out at switch %d", n, i)
					}
				}
				for r, h := range other.Hosts {
					if h.Ended != nil || len(h.Losses) > 0 || h.Core().Epoch() == endpoint.FirstEpoch {
						t.Errorf("rank %d of the other: epoch %d, lost %v, ended %+v", r, h.Core().Epoch(), h.Losses, h.Ended)
					}
				}
			})
		}
	}
}

// holds reports whether a switch has slots reserved for a group.
func (e *estate) holds(group uint32) bool {
	for i := range e.Switches {
		for _, h := range e.Switch(i).Agent().Holds() {
			if h.Group == group {
				return true
			}
		}
	}
	return false
}
