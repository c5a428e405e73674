package timing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/bench/turn"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/topology"
)

// TestPlayer takes two turns over hosts, and one that must run over switches,
// which there are not.
func TestPlayer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := topology.LeafSpine(3, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := embedded.Start(ctx, embedded.Config{Topology: g, WithoutManager: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fabric.Close(); err != nil {
			t.Error(err)
		}
	}()
	comms, err := fabric.Communicators(ctx, "players")
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []turn.Request{{Variant: "default", Bytes: 8, Warmup: 2, Iterations: 5}, {Variant: "default", Bytes: 100_000, Iterations: 1}} {
		err := embedded.Each(comms, func(rank int, comm *hostlib.Communicator) error {
			reply, err := timing.Player(ctx, comm, former(comm), timing.DefaultConfig())(request)
			if err != nil {
				return err
			}
			if !reply.Right || reply.Transport != "host-tree" && reply.Transport != "hosts" || len(reply.Times) != request.Iterations || reply.Times[0] <= 0 {
				t.Errorf("rank %d: %+v", rank, reply)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for _, of := range timing.Collectives() {
		for _, variant := range []string{"default", timing.Hosts} {
			request := turn.Request{Variant: variant + ":" + string(of), Bytes: 96, Warmup: 1, Iterations: 2}
			err := embedded.Each(comms, func(rank int, comm *hostlib.Communicator) error {
				reply, err := timing.Player(ctx, comm, former(comm), timing.DefaultConfig())(request)
				if err == nil && (!reply.Right || len(reply.Times) != 2) {
					t.Errorf("rank %d, %s: %+v", rank, request.Variant, reply)
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", request.Variant, err)
			}
		}
	}
	must := timing.DefaultConfig()
	must.Transport = timing.Offload
	err = embedded.Each(comms, func(_ int, comm *hostlib.Communicator) error {
		_, err := timing.Player(ctx, comm, former(comm), must)(turn.Request{Variant: "default", Bytes: 8, Warmup: 1, Iterations: 1})
		return err
	})
	if !errors.Is(err, timing.ErrTransport) {
		t.Errorf("%v", err)
	}
	if _, err := timing.Player(ctx, comms[0], former(comms[0]), must)(turn.Request{Variant: "default", Bytes: 7}); !errors.Is(err, timing.ErrConfig) {
		t.Errorf("half an element: %v", err)
	}
}

// former returns one that has no other communicator.
func former(comm *hostlib.Communicator) timing.Former {
	return func(string, ...hostlib.GroupOption) (*hostlib.Communicator, error) { return comm, nil }
}
