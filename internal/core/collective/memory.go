package collective

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// memory holds the broadcasts that have ended here, so that a copy of their
// request does not run again. It forgets those whose parent cannot send any
// more, and the oldest where they are too many.
type memory struct {
	until map[collect.Key]core.Time
	ring  []collect.Key // in the order of their ends, from head
	head  int
	most  int
}

func newMemory(most int) memory {
	return memory{until: map[collect.Key]core.Time{}, most: most}
}

func (m *memory) has(k collect.Key) bool {
	_, ok := m.until[k]
	return ok
}

func (m *memory) add(k collect.Key, until core.Time) {
	m.until[k] = until
	m.ring = append(m.ring, k)
	if len(m.until) > m.most {
		m.drop()
	}
}

func (m *memory) drop() {
	delete(m.until, m.ring[m.head])
	m.ring[m.head] = collect.Key{}
	if m.head++; m.head > len(m.ring)/2 {
		n := copy(m.ring, m.ring[m.head:])
		clear(m.ring[n:])
		m.ring, m.head = m.ring[:n], 0
	}
}

// forget drops the oldest as far as their time has passed; one that waits
// behind another that is remembered longer is remembered as long.
func (m *memory) forget(now core.Time) {
	for m.head < len(m.ring) && m.until[m.ring[m.head]] < now {
		m.drop()
	}
}
