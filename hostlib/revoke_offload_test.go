package hostlib

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/reduce"
)

// keeping has the manager keep the trees of groups that are left, far longer than a test takes.
func (f *fabric) keeping() *fabric {
	f.Helper()
	f.manager.Kill()
	f.cfg.Core.ReleaseGrace = time.Hour
	f.startManager()
	return f
}

// empty waits until no group holds slots.
func (f *fabric) empty() {
	f.Helper()
	until(within(f), f, "all slots are free", func() bool { return f.held() == 0 })
}

func allreduce(elements int) func(ctx context.Context, c *Communicator) error {
	return func(ctx context.Context, c *Communicator) error {
		v := make([]int64, elements)
		_, err := Allreduce(ctx, c, reduce.Sum, v, v)
		return err
	}
}

// TestRevokeFreesSlots: those of the communicator, at once, whoever revokes it, in the middle of an operation in
// switches; others go on in theirs, and so does what it is shrunk to.
func TestRevokeFreesSlots(t *testing.T) {
	f := newFabric(t, 2, nil).keeping()
	hosts, members := f.join(patient)
	for by := range hosts {
		comms := form(t, fmt.Sprint("test", by), hosts, members, Stripes(1+by%2))
		offloaded(t, comms, 0)
		interrupt(t, comms, by, allreduce(20_000))
		f.empty()
	}
	other := form(t, "other", hosts, members)
	offloaded(t, other, 0)
	epoch := other[0].Stats().Epoch
	comms := form(t, "test", hosts, members)
	offloaded(t, comms, 0)
	interrupt(t, comms, 1, allreduce(20_000))
	again := shrink(t, comms)
	offloaded(t, again, 0)
	wantTransport(t, sum(t, again, 1000), Offload)
	wantTransport(t, sum(t, other, 1000), Offload)
	if now := other[0].Stats().Epoch; now != epoch {
		t.Errorf("the other communicator is in epoch %d, and was in %d", now, epoch)
	}
	again[3].Revoke()
	other[3].Revoke()
	f.empty()
}

// TestRevokeFreesSlotsOfTheDead: the lowest rank, which would release the group, may be dead.
func TestRevokeFreesSlotsOfTheDead(t *testing.T) {
	f := newFabric(t, 2, nil).keeping()
	hosts, members := f.join(patient)
	comms := form(t, "test", hosts, members)
	offloaded(t, comms, 0)
	kill(t, hosts[0])
	hosts[0].stop() // its stream with the manager
	comms[3].Revoke()
	f.empty()
	for _, c := range comms[1:] {
		_, err := Barrier(within(t), c)
		wantRevoked(t, err, 3)
		report(c.host, hosts[0].Name(), hosts[0].Incarnation())
	}
	smaller := shrink(t, without(comms, 0))
	offloaded(t, smaller, 0)
	wantTransport(t, sum(t, smaller, 1000), Offload)
	smaller[0].Revoke()
	f.empty()
}

// TestRevokeOfProcessesFreesSlots: those of their leaders' communicator.
func TestRevokeOfProcessesFreesSlots(t *testing.T) {
	f := newFabric(t, 2, nil).keeping()
	hosts, members := joinProcesses(t, []int{2, 1, 2, 1}, patient, func(c *Config) { c.Manager, c.OfferWait = f.front.addr(), patience })
	for by := range hosts {
		comms := form(t, "test", hosts, members)
		for rank, o := range sum(t, comms, 1000) {
			if o.Transport != Offload {
				t.Errorf("rank %d: %+v", rank, o)
			}
		}
		interrupt(t, comms, by, allreduce(20_000))
		f.empty()
	}
}
