package managerd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
)

var errFull = errors.New("/var/manager.db: no space left on device")

// fullStore is a Memory that refuses everything while it is full.
type fullStore struct {
	managerd.Memory
	full atomic.Bool
}

func (s *fullStore) Save(records []manager.Record) error {
	if s.full.Load() {
		return errFull
	}
	return s.Memory.Save(records)
}

// specs returns the numbers of the groups in a store.
func specs(t *testing.T, s managerd.Store) (groups []uint32) {
	t.Helper()
	all, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Kind == manager.SpecRecord {
			groups = append(groups, r.Group)
		}
	}
	return groups
}

// A store that refuses to write is named to all who ask for a group, and none of
// these groups exists afterwards, neither in the manager nor in the store.
func TestFullStore(t *testing.T) {
	kept := new(fullStore)
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) { c.Store = kept })
	g := f.newGroup(f.spec("job"))
	offers := g.offers(0)

	kept.full.Store(true)
	const groups = 59
	refused := make([]error, groups)
	var asking sync.WaitGroup
	for i := range refused {
		asking.Go(func() {
			_, _, refused[i] = f.client.CreateGroup(testContext(t), f.spec(fmt.Sprint("full-", i)))
		})
	}
	asking.Wait()
	for i, err := range refused {
		if !errors.Is(err, manager.ErrNotStored) || !strings.Contains(err.Error(), errFull.Error()) {
			t.Fatalf("group %d: %v", i, err)
		}
	}
	if err := f.client.DrainSwitch(testContext(t), "spine-0", false); err != nil && !errors.Is(err, manager.ErrNotStored) {
		t.Errorf("a drain: %v", err)
	}
	if all, err := f.client.Groups(testContext(t)); err != nil || len(all) != 1 {
		t.Errorf("the manager has %d groups, %v", len(all), err)
	}
	g.allreduce(offers, 0)

	kept.full.Store(false)
	for {
		id, found, err := f.client.CreateGroup(testContext(t), f.spec("later"))
		if errors.Is(err, manager.ErrNotStored) {
			continue // until the manager has retried
		}
		if err != nil || found {
			t.Fatalf("with room again: found %v, %v", found, err)
		}
		if in := specs(t, kept); len(in) != 2 || in[0] != g.id || in[1] != id {
			t.Errorf("the store has groups %v, want %d and %d", in, g.id, id)
		}
		return
	}
}
