package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by every error about what is asked, before any planning.
var ErrConfig = errors.New("invalid question")

// Group is a group to plan for.
type Group struct {
	Name string `yaml:"name" json:"name"`
	// Hosts are names by rank; the one name "all" is every host, and
	// "random:N" or "random:N:SEED" are N of them by chance.
	Hosts []string `yaml:"hosts" json:"-"`
	// Function is a reduction function, or a collective: barrier, broadcast,
	// gather, scatter, all-to-all.
	Function string `yaml:"function" json:"function"`
	// Type is the type of the elements; empty: float32.
	Type string `yaml:"type" json:"type"`
	// Bytes are those of one vector; 0: not known.
	Bytes int64 `yaml:"bytes" json:"bytes"`
	// Window is in chunks; the tree reserves twice as many slots. 0: 256.
	Window int `yaml:"window" json:"window"`
	// Chunk is the largest payload of a packet, in bytes. 0: 1432.
	Chunk int `yaml:"chunk" json:"chunk"`
	// Criterion is one of pathsel's; Weights, such as "hops=1,load=2", stand in
	// its place.
	Criterion string `yaml:"criterion" json:"criterion"`
	Weights   string `yaml:"weights" json:"weights,omitempty"`
}

// Config is a question. Its zero fields are off.
type Config struct {
	Graph  *topology.Graph
	Group  Group
	Others []Group // planned before it, in their order
	// Down are switches and hosts by name, and links by their two ends, such as
	// "leaf-0:5--spine-1:1" or, for all links between two nodes,
	// "leaf-0--spine-1".
	Down    []string
	Stripes int  // plan so many stripes
	Roots   int  // plan so many parts, with a root each
	Forward bool // let switches that cannot reduce forward
	Slim    bool // let switches that could reduce forward where the tree is no worse
	OrHosts bool // let the answer be that hosts are faster
	Partial bool // leave out members that cannot be reached
	Model   pathsel.Model
}

// defaults of a group.
const (
	defaultWindow = hostlib.DefaultWindow
	defaultChunk  = 1432
	defaultType   = "float32"
)

// request turns a group into what to ask a planner.
func (c *Config) request(group *Group) (r pathsel.Request, err error) {
	if r.Members, err = c.members(group.Hosts); err != nil {
		return r, err
	}
	if len(r.Members) == 1 {
		return r, fmt.Errorf("a group of one host needs no tree: name two at least: %w", ErrConfig)
	}
	group.Type, group.Function = cmp.Or(group.Type, defaultType), cmp.Or(group.Function, "sum")
	group.Window, group.Chunk = cmp.Or(group.Window, defaultWindow), cmp.Or(group.Chunk, defaultChunk)
	element, err := reduce.ParseType(group.Type)
	if err != nil {
		return r, err
	}
	r.Types = topology.TypesOf(element)
	if function, notOne := reduce.ParseFunction(group.Function); notOne == nil {
		if !reduce.Defined(function, element) {
			return r, fmt.Errorf("%v is not defined on %v: %w", function, element, ErrConfig)
		}
		r.Functions, r.Collective = topology.FunctionsOf(function), pathsel.Allreduce
	} else if r.Collective, err = pathsel.ParseCollective(group.Function); err != nil || r.Collective.Reduces() {
		return r, fmt.Errorf("function %q is no reduction function, nor a collective that copies: %w", group.Function, ErrConfig)
	} else {
		r.Types = 0
	}
	if group.Weights != "" {
		if r.Weights, err = pathsel.ParseWeights(group.Weights); err != nil {
			return r, err
		}
	}
	if group.Criterion != "" {
		if r.Criterion, err = pathsel.ParseCriterion(group.Criterion); err != nil {
			return r, err
		}
	}
	if group.Window < 1 || group.Window > switchreduce.MaxWindow || group.Window&(group.Window-1) != 0 {
		return r, fmt.Errorf("a window of %d chunks, want a power of two up to %d: %w", group.Window, switchreduce.MaxWindow, ErrConfig)
	}
	if group.Chunk < switchreduce.MinChunk || group.Chunk > switchreduce.MaxChunk {
		return r, fmt.Errorf("chunks of %d bytes, want %d to %d: %w", group.Chunk, switchreduce.MinChunk, switchreduce.MaxChunk, ErrConfig)
	}
	r.Slots, r.ChunkBytes, r.Bytes = 2*group.Window, group.Chunk, group.Bytes
	r.Forward, r.Slim, r.Hosts = c.Forward, c.Slim, c.OrHosts
	return r, r.Validate(c.Graph)
}

// members finds hosts by name.
func (c *Config) members(names []string) ([]topology.NodeID, error) {
	if len(names) == 1 && (names[0] == "all" || strings.HasPrefix(names[0], "random:")) {
		return c.some(names[0])
	}
	members := make([]topology.NodeID, len(names))
	for i, name := range names {
		n, ok := c.Graph.Lookup(name)
		if !ok || !c.Graph.IsHost(n) {
			return nil, fmt.Errorf("there is no host %q in %s: %w", name, title(c.Graph), ErrConfig)
		}
		members[i] = n
	}
	return members, nil
}

// some returns all hosts, or so many by chance.
func (c *Config) some(which string) ([]topology.NodeID, error) {
	n, seed := c.Graph.Hosts(), uint64(1)
	if rest, random := strings.CutPrefix(which, "random:"); random {
		number, start, _ := strings.Cut(rest, ":")
		count, err := strconv.Atoi(number)
		if start != "" && err == nil {
			seed, err = strconv.ParseUint(start, 10, 64)
		}
		if err != nil || count < 1 || count > n {
			return nil, fmt.Errorf("%q is not random:N or random:N:SEED with N from 1 to %d: %w", which, n, ErrConfig)
		}
		members := make([]topology.NodeID, count)
		for i, h := range rand.New(rand.NewPCG(seed, 0)).Perm(n)[:count] {
			members[i] = topology.NodeID(h)
		}
		return members, nil
	}
	return c.Graph.AllHosts(), nil
}

// changes finds what is down.
func (c *Config) changes() ([]topology.Change, error) {
	var changes []topology.Change
	for _, name := range c.Down {
		if n, ok := c.Graph.Lookup(name); ok {
			changes = append(changes, topology.NodeState(n, false))
			continue
		}
		links, err := c.linksOf(name)
		if err != nil {
			return nil, err
		}
		if len(links) == 0 {
			return nil, fmt.Errorf("%q is no switch, no host and no link such as leaf-0--spine-1 of %s: %w", name, title(c.Graph), ErrConfig)
		}
		for _, l := range links {
			changes = append(changes, topology.LinkState(l, false))
		}
	}
	return changes, nil
}

// linksOf returns the links that a name means. Names of nodes may have dashes
// in them, so every place where two stand may be the one between the ends; the
// error is that several give links.
func (c *Config) linksOf(name string) (links []topology.LinkID, err error) {
	for i := range len(name) {
		if !strings.HasPrefix(name[i:], "--") {
			continue
		}
		found := c.between(name[:i], name[i+2:])
		if len(found) > 0 && len(links) > 0 {
			return nil, fmt.Errorf("%q may mean %s or %s: add the ports: %w", name, c.Graph.LinkName(links[0]), c.Graph.LinkName(found[0]), ErrConfig)
		}
		links = append(links, found...)
	}
	return links, nil
}

// between returns the links from one end to the other, each a node or, as
// node:port, one port of it.
func (c *Config) between(one, other string) (links []topology.LinkID) {
	a, portA := c.end(one)
	b, portB := c.end(other)
	if a == topology.NoNode || b == topology.NoNode {
		return nil
	}
	for _, l := range c.Graph.Adjacent(a) {
		ends := c.Graph.Link(l).Ends
		if ends[0].Node != a {
			ends[0], ends[1] = ends[1], ends[0]
		}
		if ends[1].Node == b && (portA == 0 || portA == ends[0].Port) && (portB == 0 || portB == ends[1].Port) {
			links = append(links, l)
		}
	}
	return links
}

// end returns the node that an end of a link names, NoNode if it names none, and
// the port; 0 if it names none.
func (c *Config) end(name string) (topology.NodeID, topology.Port) {
	if n, ok := c.Graph.Lookup(name); ok {
		return n, 0
	}
	if cut := strings.LastIndexByte(name, ':'); cut >= 0 {
		port, err := strconv.ParseUint(name[cut+1:], 10, 16)
		if n, ok := c.Graph.Lookup(name[:cut]); ok && err == nil && port > 0 {
			return n, topology.Port(port)
		}
	}
	return topology.NoNode, 0
}

// title names a fabric.
func title(g *topology.Graph) string {
	if g.Fabric() == "" {
		return "the fabric"
	}
	return "fabric " + g.Fabric()
}
