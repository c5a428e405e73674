package soft_test

import (
	"runtime"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
)

// idleBudget is the bytes that an idle tree may take on a switch, stacks included.
const idleBudget = 16 << 10

// TestIdleTreeMemory: what a tree takes that was installed, and has nothing to do.
func TestIdleTreeMemory(t *testing.T) {
	if racing {
		t.Skip("the race detector takes memory of its own")
	}
	const trees = 200
	b := newBench(t, nil)
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC() // twice: what is in pools goes with the second
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	m := newMember(t, 1)
	before := inUse()
	for i := range trees {
		c := m.config
		c.Group, c.Window = uint32(i+1), 16
		b.Open(uint64(i+1), c.Group)
		next[dataplane.Opened](b)
		b.Install(uint64(i+1), &c)
		next[dataplane.Installed](b)
	}
	// Loops that have only just started hold memory to receive into, before they sleep.
	n := int64(idleBudget + 1)
	for ctx := testContext(t); n > idleBudget && ctx.Err() == nil; {
		n = (inUse() - before) / trees
	}
	if n > idleBudget {
		t.Errorf("an idle tree takes %d bytes, want at most %d", n, idleBudget)
	}
	t.Logf("%d bytes each", n)
}
