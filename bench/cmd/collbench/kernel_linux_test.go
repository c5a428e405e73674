package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
)

var kills = flag.Duration("kills", 2*time.Second, "how long TestKernelAgentsKilled kills agents")

// TestKernelAgentsKilled kills agents of switches that reduce in their kernels, one after
// the other, each in the middle of an operation: every result is right.
func TestKernelAgentsKilled(t *testing.T) {
	needRoot(t)
	tr := newTrial(t, "cbkills", field.Config{Kernel: true})
	ctx, cancel := context.WithTimeout(t.Context(), patience+*kills)
	defer cancel()
	tr.ctx = ctx
	rng := rand.New(rand.NewPCG(1, 2))
	g := tr.Lab().Topology()
	ways := map[string]int{}
	for until := time.Now().Add(*kills); time.Now().Before(until); {
		name := g.Name(g.Switch(rng.IntN(g.Switches())))
		transport, result := tr.measure(size, func() error { return tr.KillAgent(name) })
		if result != "right" {
			t.Fatalf("%s was killed: %s, and the result is %s\n%s", name, transport, result, tr.log)
		}
		ways[transport]++
		if err := tr.StartAgent(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(ways)
}
