package hostlib

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/reduce"
)

// sockets returns how many sockets this process has.
func sockets(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, f := range all {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && len(to) > 7 && to[:7] == "socket:" {
			n++
		}
	}
	return n
}

// TestRailsChurn: rails of both kinds are added and removed at random, 100 times, on three hosts,
// while allreduces of all sizes run. All results are right, and when the hosts are closed
// nothing is left of any rail.
func TestRailsChurn(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	idle, before := runtime.NumGoroutine(), sockets(t)
	source := loopback()
	var hosts []*Host
	var members []Member
	for i := range 3 {
		h, err := Join(hookedInterfaces(t, source), Config{Name: fmt.Sprint("h", i), Rails: []Rail{{Name: "r0", Address: fmt.Sprint("127.0.0.", i+1)}}})
		if err != nil {
			t.Fatal(err)
		}
		hosts, members = append(hosts, h), append(members, h.Member())
	}
	comms := form(t, "c", hosts, members, OnTree())

	var isOver atomic.Bool
	ended := make(chan struct{})
	var rounds atomic.Int64
	go func() {
		defer close(ended)
		for last := false; !last; {
			last = isOver.Load()
			n := []int{1, 1000, 100_000, 400_000}[rounds.Add(1)%4]
			each(len(comms), func(i int) {
				vector := make([]int32, n)
				for k := range vector {
					vector[k] = int32(k + i)
				}
				if _, err := Allreduce(within(t), comms[i], reduce.Sum, vector, vector); err != nil {
					t.Error(err)
					isOver.Store(true)
					return
				}
				for k, x := range vector {
					if x != int32(3*k+3) {
						t.Errorf("element %d of %d is %d", k, n, x)
						return
					}
				}
			})
		}
	}()
	added, removed := 0, 0
	for k := 0; k < 100 && !isOver.Load(); k++ {
		if k%12 == 0 {
			now := rounds.Load()
			until(within(t), t, "the next allreduce", func() bool { return rounds.Load() > now || isOver.Load() })
		}
		h := random.IntN(3)
		rails := hosts[h].Rails()
		if len(rails) > 1 && random.IntN(2) == 0 || len(rails) == MaxRails {
			// One of kind TCP stays, so that hosts have a rail in common.
			tcp := slices.DeleteFunc(slices.Clone(rails), func(r RailStatus) bool { return r.Kind != RailTCP })
			r := rails[random.IntN(len(rails))]
			if r.Kind == RailTCP && len(tcp) == 1 {
				continue
			}
			if err := hosts[h].RemoveRail(t.Context(), r.Name); err != nil {
				t.Errorf("removing: %v", err)
			}
			removed++
			continue
		}
		r := Rail{Name: fmt.Sprint("n", k), Kind: RailKind(random.IntN(2))}
		for r.Address == "" || slices.ContainsFunc(rails, func(o RailStatus) bool { return o.Kind == r.Kind && strings.HasPrefix(o.Address, r.Address+":") }) {
			r.Address = fmt.Sprint("127.0.0.", random.IntN(9)+1)
		}
		if err := hosts[h].AddRail(t.Context(), r); err != nil {
			t.Errorf("adding: %v", err)
		}
		added++
	}
	isOver.Store(true)
	<-ended
	t.Logf("%d rails added, %d removed, under %d allreduces", added, removed, rounds.Load())

	for i, h := range hosts {
		want := len(h.Rails())
		until(within(t), t, "all rails are used", func() bool {
			addUp(t, comms, 1000)
			return !slices.ContainsFunc(h.Rails(), func(r RailStatus) bool { return r.Missing > 0 }) && len(h.Rails()) == want
		})
		for _, p := range h.Paths("") {
			if p.Rail == "" {
				t.Errorf("h%d has a path on no rail: %+v", i, p)
			}
		}
	}
	each(len(hosts), func(i int) {
		if err := hosts[i].Close(context.Background()); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	until(within(t), t, "all sockets are closed", func() bool { return sockets(t) <= before })
	until(within(t), t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= idle })
}

// hookedInterfaces returns a context for hosts of a machine.
func hookedInterfaces(t *testing.T, source nic.Source) context.Context {
	return hooks.With(t.Context(), hooks.Hooks{Interfaces: source})
}
