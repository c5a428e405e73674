package hostlib

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// TestWithout runs over switches where switches, or hosts, or both do without
// what makes sockets fast.
func TestWithout(t *testing.T) {
	for _, test := range []struct{ hosts, switches string }{
		{"all", "none"}, {"none", "all"}, {"polling,sleeping", "segmentation"}, {"coalescing", "polling,lending"},
	} {
		t.Run("hosts "+test.hosts+" switches "+test.switches, func(t *testing.T) {
			features, err := transport.ParseFeatures(test.switches)
			if err != nil {
				t.Fatal(err)
			}
			without, err := transport.ParseFeatures(test.hosts)
			if err != nil {
				t.Fatal(err)
			}
			f := newFabric(t, 1, func(c *agentd.Config) { c.Without = features })
			hosts, members := f.hooked(hooks.Hooks{Without: without})
			comms := form(t, "job", hosts, members)
			offloaded(t, comms, 0)
			wantTransport(t, sum(t, comms, 50_000), Offload)
			leave(t, comms)
		})
	}
}

// TestStartAndGo: operations that were begun go on while nobody waits for any
// of them, also after one that was waited for.
func TestStartAndGo(t *testing.T) {
	f := newFabric(t, 1, nil)
	hosts, members := f.join()
	comms := form(t, "job", hosts, members)
	offloaded(t, comms, 0)
	for range 20 {
		each(len(comms), func(i int) {
			if _, err := Barrier(within(t), comms[i]); err != nil {
				t.Error(err)
			}
		})
		for _, c := range comms {
			r := StartBarrier(c)
			defer func() {
				if _, err := r.Wait(within(t)); err != nil {
					t.Error(err)
				}
			}()
		}
		last := StartBarrier(comms[0])
		for _, c := range comms[1:] {
			StartBarrier(c)
		}
		select {
		case <-last.Done():
		case <-within(t).Done():
			t.Fatal("nothing happens while nobody waits")
		}
	}
	leave(t, comms)
}
