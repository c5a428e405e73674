package topology

// assembly makes a graph's arrays from links that are known to be valid.
type assembly struct {
	hosts, switches int
	ends            [][2]NodeID
	ports           [][2]Port
}

// layerRun says that the next count nodes are in a layer.
type layerRun struct{ layer, count int }

func newAssembly(hosts, switches, links int) *assembly {
	return &assembly{
		hosts: hosts, switches: switches,
		ends: make([][2]NodeID, 0, links), ports: make([][2]Port, 0, links),
	}
}

func (a *assembly) link(x, xPort, y, yPort int) {
	a.ends = append(a.ends, [2]NodeID{NodeID(x), NodeID(y)})
	a.ports = append(a.ports, [2]Port{Port(xPort), Port(yPort)})
}

// attach links hosts to switches, so many to each.
func (a *assembly) attach(hosts, each, first int) {
	for h := range hosts {
		a.link(h, 1, first+h/each, h%each+1)
	}
}

// mesh links each of many nodes from x on to each of others from y on. Ports of the
// first count from xPort in the order of the second, those of the second from yPort in
// the order of the first.
func (a *assembly) mesh(x, many, xPort, y, others, yPort int) {
	for i := range many {
		for j := range others {
			a.link(x+i, xPort+j, y+j, yPort+i)
		}
	}
}

// graph finishes a generated fabric, all of whose links and switches are alike.
func (a *assembly) graph(e Equipment, fabric string, names namer, runs []layerRun) *Graph {
	g := &Graph{
		fabric: fabric, hosts: int32(a.hosts), names: names, hostSpeed: e.Host,
		ends: a.ends, ports: a.ports,
		spec: make([]uint32, len(a.ends)), specs: []LinkSpec{e.Link},
		layers: make([]uint8, 0, a.hosts+a.switches),
		caps:   make([]uint32, a.switches), capSets: []Capability{e.Switch},
	}
	for _, r := range runs {
		for range r.count {
			g.layers = append(g.layers, uint8(r.layer))
		}
	}
	g.index(a.hosts + a.switches)
	return g
}

// index fills offset and adjacent from ends and ports: two counting sorts, by
// port and then, keeping that order, by node.
func (g *Graph) index(nodes int) {
	byPort := g.halvesByPort()
	g.offset = make([]int32, nodes+1)
	for _, e := range g.ends {
		g.offset[e[0]+1]++
		g.offset[e[1]+1]++
	}
	for n := range nodes {
		g.offset[n+1] += g.offset[n]
	}
	g.adjacent = make([]LinkID, 2*len(g.ends))
	next := make([]int32, nodes)
	copy(next, g.offset)
	for _, half := range byPort {
		l, n := LinkID(half>>1), g.ends[half>>1][half&1]
		g.adjacent[next[n]] = l
		next[n]++
	}
}

// halvesByPort returns the ends of all links (2*link + which end) by ascending
// port.
func (g *Graph) halvesByPort() []uint32 {
	starts := make([]uint32, 1<<16+1)
	for _, p := range g.ports {
		starts[uint32(p[0])+1]++
		starts[uint32(p[1])+1]++
	}
	for i := range len(starts) - 1 {
		starts[i+1] += starts[i]
	}
	halves := make([]uint32, 2*len(g.ports))
	for l, p := range g.ports {
		for end := range uint32(2) {
			halves[starts[p[end]]] = uint32(l)<<1 | end
			starts[p[end]]++
		}
	}
	return halves
}

// layersFromHosts returns for every node its distance to the nearest host, and
// one more than the greatest of these for switches that reach none.
func (g *Graph) layersFromHosts() []uint8 {
	const unseen = 255
	layers := make([]uint8, g.Nodes())
	queue := make([]NodeID, 0, g.Nodes())
	for n := range layers {
		layers[n] = unseen
		if n < g.Hosts() {
			layers[n] = 0
			queue = append(queue, NodeID(n))
		}
	}
	deepest := uint8(0)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		deepest = max(deepest, layers[n])
		for _, l := range g.Adjacent(n) {
			if m := g.Across(l, n); layers[m] == unseen {
				layers[m] = min(layers[n]+1, unseen-2)
				queue = append(queue, m)
			}
		}
	}
	for n := range layers {
		if layers[n] == unseen {
			layers[n] = deepest + 1
		}
	}
	return layers
}
