package agentd_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestLiveLoss: of the packets between hosts and a bmv2 the first of each kind is lost,
// for every chunk and host: contributions, probes, their answers, results. Every result
// is right, reduced by the program and by the agent.
func TestLiveLoss(t *testing.T) {
	l := newLive(t)
	_, c := start(t, l.config())
	events, _ := watch(t, c)
	epoch, port := l.install(c, usable(t, events), 2)
	l.lost = map[packet]bool{}
	const chunks = 1
	for chunk := range uint32(chunks) {
		l.allreduce(&epoch, port, 2*chunk, reduce.Int32, []uint32{chunk, 7}, chunk+7)
		l.allreduce(&epoch, port, 2*chunk+1, reduce.Float32,
			[]uint32{math.Float32bits(1.5), math.Float32bits(float32(chunk))}, math.Float32bits(1.5+float32(chunk)))
	}
	counted, err := c.Counters(testContext(t))
	if err != nil || len(counted.Trees) != 1 {
		t.Fatalf("%+v, %v", counted, err)
	}
	n := counted.Trees[0].Events
	if n["results"] != 2*chunks || n["wants"] == 0 || n["repeated"] < 2*chunks || n["looped"] < chunks {
		t.Errorf("after %d lost packets: %+v", len(l.lost), n)
	}
}

// TestLiveKilled: a bmv2 that is killed with half of a chunk takes its epoch with it.
// The next one knows nothing of that: in a new epoch the result is of the new
// contributions alone, and packets of the old epoch change nothing.
func TestLiveKilled(t *testing.T) {
	l := newLive(t)
	_, c := start(t, l.config())
	events, _ := watch(t, c)
	incarnation := usable(t, events)
	old, port := l.install(c, incarnation, 2)
	l.allreduce(&old, port, 0, reduce.Int32, []uint32{1, 2}, 3)
	for _, element := range []reduce.Type{reduce.Int32, reduce.Float32} { // held by the target, and by the agent
		l.say(&old, port, 1+uint32(element), element, 0, wire.Contribution, 1000)
	}
	l.kill()
	for e := range events {
		if e.State != nil && e.State.Unusable != "" {
			break
		}
	}
	if _, _, err := l.try(c, incarnation, 4); err == nil {
		t.Error("an epoch is installed without a target")
	}
	l.start()
	ended(t, events, 7)
	usable(t, events)
	epoch, port := l.install(c, incarnation, 6)
	l.say(&old, port, 1, reduce.Int32, 1, wire.Contribution, 1000)
	l.allreduce(&epoch, port, 1, reduce.Int32, []uint32{5, 6}, 11)
	l.allreduce(&epoch, port, 2, reduce.Float32, []uint32{math.Float32bits(5), math.Float32bits(6)}, math.Float32bits(11))
}

// TestLiveLoop cuts the loop of a bmv2 while it runs, and connects it again.
func TestLiveLoop(t *testing.T) {
	l := newLive(t)
	_, c := start(t, l.config())
	events, _ := watch(t, c)
	incarnation := usable(t, events)
	epoch, port := l.install(c, incarnation, 2)
	l.set("loop-in-far", false)
	for e := range events {
		if e.State != nil && strings.Contains(e.State.Unusable, pipeline.ErrNoLoop.Error()) {
			break
		}
	}
	l.allreduce(&epoch, port, 0, reduce.Int32, []uint32{1, 2}, 3) // what is there goes on
	l.set("loop-in-far", true)
	usable(t, events)
	epoch, port = l.install(c, incarnation, 4)
	l.allreduce(&epoch, port, 0, reduce.Int32, []uint32{1, 2}, 3)
}
