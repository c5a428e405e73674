package managerd

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/topology"
)

// hangingStore does not return from saving a map until it is released.
type hangingStore struct {
	Memory
	once              sync.Once
	entered, released chan struct{}
}

func (s *hangingStore) Save(records []manager.Record) error {
	if slices.ContainsFunc(records, func(r manager.Record) bool { return r.Kind == manager.MapRecord }) {
		s.once.Do(func() { close(s.entered) })
		<-s.released
	}
	return s.Memory.Save(records)
}

// TestOneMapWaitsForTheStore: of the maps that come while the store hangs the last is kept.
func TestOneMapWaitsForTheStore(t *testing.T) {
	store := &hangingStore{entered: make(chan struct{}), released: make(chan struct{})}
	d, err := Start(Config{Listen: "127.0.0.1:0", Store: store, Merge: func(Operator, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(store.released)
		d.Kill()
	})
	set := func(fabric string) {
		t.Helper()
		b := topology.Builder{Fabric: fabric}
		if _, err := b.AddHost("h0"); err != nil {
			t.Fatal(err)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.SetFabric(FabricChange{Graph: g, Cause: fabric}); err != nil {
			t.Fatal(err)
		}
	}
	set("the store hangs with this one")
	<-store.entered
	for i := range 8 {
		set(fmt.Sprint("map ", i))
	}
	if o := <-d.maps; o.Graph.Fabric() != "map 7" || len(d.maps) != 0 {
		t.Errorf("%s is to be stored, and %d after it", o.Graph.Fabric(), len(d.maps))
	}
}
