package spread

import (
	"fmt"
	"math/rand/v2"

	"github.com/tributary-fabric/tributary/topology"
)

// LeastSwitches is the size of the smallest fabric that Irregular makes.
const LeastSwitches = 4

// Irregular returns a fabric of so many switches with parallel links, up to four
// at once, and switches of unequal numbers of links and hosts. In a layered one
// hosts are on the lowest of two or three layers and links join neighbouring
// layers; in others they join any two switches. The same arguments give the same
// fabric. Switches have slots for everything.
func Irregular(seed uint64, switches int, layered bool) (*topology.Graph, error) {
	if switches < LeastSwitches {
		return nil, fmt.Errorf("irregular fabric of %d switches: there must be %d", switches, LeastSwitches)
	}
	m := &maker{rng: rand.New(rand.NewPCG(seed, uint64(switches)))}
	kind := "meshed"
	if layered {
		kind = "layered"
	}
	m.Fabric = fmt.Sprintf("%s:%d:%d", kind, switches, seed)
	c := topology.DefaultEquipment().Switch
	c.Slots, c.Children = 1<<26, 1<<10
	for i := range switches {
		m.add(m.AddSwitch(fmt.Sprintf("s%d", i), c))
	}
	if layered {
		m.layers()
	} else {
		m.mesh()
	}
	if m.err != nil {
		return nil, fmt.Errorf("irregular fabric: %w", m.err)
	}
	return m.Build()
}

// maker is a fabric in the making.
type maker struct {
	topology.Builder
	rng      *rand.Rand
	switches []topology.Ref
	hosts    int
	err      error
}

func (m *maker) add(s topology.Ref, err error) {
	m.switches = append(m.switches, s)
	m.note(err)
}

func (m *maker) note(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *maker) join(x, y topology.Ref, links int) {
	for range links {
		_, err := m.Connect(x, 0, y, 0, topology.DefaultEquipment().Link)
		m.note(err)
	}
}

func (m *maker) addHosts(s topology.Ref, hosts int) {
	for range hosts {
		h, err := m.AddHost(fmt.Sprintf("h%d", m.hosts))
		m.note(err)
		m.join(h, s, 1)
		m.hosts++
	}
}

// layers joins the switches in two layers, or three where there are enough.
func (m *maker) layers() {
	lower, rest := m.cut(m.switches)
	for _, s := range lower {
		m.addHosts(s, 2+m.rng.IntN(14))
	}
	if len(rest) >= 6 && m.rng.IntN(2) == 0 {
		middle, top := m.cut(rest)
		m.between(lower, middle)
		lower, rest = middle, top
	}
	m.between(lower, rest)
	for _, s := range lower { // the fabric hangs together by one switch of the top
		m.join(s, rest[0], 1)
	}
}

// cut takes about two thirds of switches off.
func (m *maker) cut(switches []topology.Ref) (lower, rest []topology.Ref) {
	n := len(switches) * (55 + m.rng.IntN(20)) / 100
	return switches[:n], switches[n:]
}

// between joins two layers: each lower switch to up to four, each upper one to two
// at least.
func (m *maker) between(lower, upper []topology.Ref) {
	linked := make([]int, len(upper))
	for _, s := range lower {
		for _, u := range m.rng.Perm(len(upper))[:1+m.rng.IntN(min(len(upper), 4))] {
			m.join(s, upper[u], 1+m.rng.IntN(4))
			linked[u]++
		}
	}
	for u := range upper {
		for ; linked[u] < 2; linked[u]++ {
			m.join(lower[m.rng.IntN(len(lower))], upper[u], 1+m.rng.IntN(3))
		}
	}
}

// mesh joins the switches in a random tree and as many random pairs; three of four
// have hosts.
func (m *maker) mesh() {
	for i, s := range m.switches {
		if i > 0 {
			m.join(s, m.switches[m.rng.IntN(i)], 1+m.rng.IntN(4))
		}
		if i == 0 || m.rng.IntN(4) > 0 {
			m.addHosts(s, 1+m.rng.IntN(12))
		}
	}
	for range m.switches {
		x, y := m.rng.IntN(len(m.switches)), m.rng.IntN(len(m.switches))
		if x != y {
			m.join(m.switches[x], m.switches[y], 1+m.rng.IntN(4))
		}
	}
}
