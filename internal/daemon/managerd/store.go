package managerd

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/manager"
)

// Store keeps a manager's records over its restarts. It is used by one manager
// at a time, and closed by who made it.
type Store interface {
	// Load returns the last record of every key (Kind, Group) that was not
	// deleted, in no order. What they point to is the caller's to read only.
	Load() ([]manager.Record, error)

	// Save keeps records, all or none, in their order. When it returns nil
	// they survive a restart of the manager.
	Save(records []manager.Record) error
}

// Memory is a Store that survives a restart of the manager, but not of the
// process. Its zero value is empty. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	records map[memoryKey]manager.Record
}

// forgetful returns the Memory of a manager that keeps nothing. Its groups'
// numbers begin anywhere, so that members which still have a number from the
// manager's life before do not meet another group under it.
func forgetful() *Memory {
	m := new(Memory)
	begin := manager.Record{Kind: manager.FleetRecord, Fleet: &manager.Fleet{LastGroup: rand.Uint32N(1 << 31)}}
	_ = m.Save([]manager.Record{begin}) // it never fails
	return m
}

type memoryKey struct {
	kind  manager.RecordKind
	group uint32
}

// Load implements Store.
func (m *Memory) Load() ([]manager.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]manager.Record, 0, len(m.records))
	for _, r := range m.records {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b manager.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}

// Save implements Store.
func (m *Memory) Save(records []manager.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[memoryKey]manager.Record{}
	}
	for _, r := range records {
		key := memoryKey{r.Kind, r.Group}
		if r.Delete {
			delete(m.records, key)
		} else {
			m.records[key] = r
		}
	}
	return nil
}
