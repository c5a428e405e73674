//go:build !race

package hostlib

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// idleBudget is the bytes that an idle communicator may take, stacks included.
const idleBudget = 64 << 10

// inUse returns the bytes of the heap and of stacks.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC() // twice: what is in pools goes with the second
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestIdleCommunicatorMemory: what a communicator takes when it is new, and when
// it rests after operations that used its whole window. Not under the race
// detector, whose own memory is in what a process uses.
func TestIdleCommunicatorMemory(t *testing.T) {
	names := []string{"h0", "h1", "h2", "h3"}
	t.Run("plaintext", func(t *testing.T) {
		hosts, members := joinAs(t, names)
		idleMemory(t, hosts, members)
	})
	t.Run("tls", func(t *testing.T) {
		files := trusted(t, names...)
		hosts, members := make([]*Host, len(names)), make([]Member, len(names))
		for i, n := range names {
			hosts[i] = joinOne(t, n, func(c *Config) { c.TLS = files[n] })
			members[i] = hosts[i].Member()
		}
		idleMemory(t, hosts, members)
	})
}

func idleMemory(t *testing.T, hosts []*Host, members []Member) {
	const groups = 16
	before := inUse()
	comms := make([]*Communicator, groups*len(hosts))
	each(len(comms), func(i int) {
		c, err := hosts[i%len(hosts)].Communicator(within(t), fmt.Sprint("job", i/len(hosts)), members, OnTree())
		if err != nil {
			t.Error(err)
		}
		comms[i] = c
	})
	if t.Failed() {
		t.FailNow()
	}
	perCommunicator := func() int64 { return (inUse() - before) / int64(len(comms)) }
	until(within(t), t, "a new communicator takes no more than it may", func() bool { return perCommunicator() <= idleBudget })
	t.Logf("new: %d bytes each", perCommunicator())
	for range 2 {
		each(len(comms), func(i int) {
			v := make([]float32, DefaultWindow*1432/4)
			if _, err := Allreduce(within(t), comms[i], reduce.Sum, v, v); err != nil {
				t.Error(err)
			}
		})
	}
	until(within(t), t, "a communicator that rests takes no more than it may", func() bool { return perCommunicator() <= idleBudget })
	t.Logf("rested: %d bytes each", perCommunicator())
	for g := range groups {
		leave(t, comms[g*len(hosts):][:len(hosts)])
	}
}
