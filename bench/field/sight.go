package field

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrNoTree: the group has no active tree.
var ErrNoTree = errors.New("the group has no tree")

// Sight is where a manager has put a group's tree, by the names of nodes.
type Sight struct {
	Epoch    uint32
	Switches []rpc.TreeVertex // parents before children
	Members  []rpc.TreeLeaf   // by rank
}

// Look asks the manager at an address for the active tree of a communicator,
// and writes it to w as JSON: what Sight reads. It is one process's work in the
// manager's namespace, for another outside of it.
func Look(ctx context.Context, w io.Writer, address, communicator string) error {
	client, err := rpc.DialManager(address, rpc.ClientConfig{})
	if err != nil {
		return fmt.Errorf("looking for the tree: %w", err)
	}
	s, err := look(ctx, client, communicator)
	if err = errors.Join(err, client.Close()); err != nil {
		return fmt.Errorf("looking for the tree: %w", err)
	}
	return json.NewEncoder(w).Encode(s)
}

func look(ctx context.Context, client *rpc.ManagerClient, communicator string) (*Sight, error) {
	groups, err := client.Groups(ctx)
	if err != nil {
		return nil, err
	}
	last := uint32(0)
	for _, g := range groups {
		// Members add to the name what distinguishes groups of one name, and to that
		// of a stripe or part what it is.
		if rest, ok := strings.CutPrefix(g.Name, communicator+"/"); ok && !strings.Contains(rest, "/") {
			last = max(last, g.Group)
		}
	}
	if last == 0 {
		return nil, fmt.Errorf("%w: the manager has no group of %q", ErrNoTree, communicator)
	}
	e, err := client.Explain(ctx, rpc.GroupRef{Group: last})
	if err != nil {
		return nil, err
	}
	for _, t := range e.Trees {
		if t.Stage == manager.TreeActive && t.Epoch == e.Epoch {
			return &Sight{t.Epoch, t.Switches, t.Members}, nil
		}
	}
	if e.Refusal != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTree, e.Refusal)
	}
	return nil, fmt.Errorf("%w: it is %s", ErrNoTree, e.State)
}

// Tree returns the tree in g, whose nodes are joined by one link at most.
func (s *Sight) Tree(g *topology.Graph) (t pathsel.Tree, err error) {
	node := func(name string) topology.NodeID {
		n, ok := g.Lookup(name)
		if !ok && err == nil {
			err = fmt.Errorf("the manager's tree has a node %q that the fabric lacks", name)
		}
		return n
	}
	for _, v := range s.Switches {
		vertex := pathsel.Vertex{Switch: node(v.Switch), Parent: int32(v.Parent), Up: topology.NoLink}
		if v.Parent >= 0 && err == nil {
			vertex.Up = linkOf(g, vertex.Switch, t.Vertices[v.Parent].Switch)
		}
		t.Vertices = append(t.Vertices, vertex)
	}
	for _, m := range s.Members {
		leaf := pathsel.Leaf{Host: node(m.Host), Vertex: int32(m.Vertex)}
		if err == nil {
			leaf.Link = linkOf(g, leaf.Host, t.Vertices[m.Vertex].Switch)
		}
		t.Leaves = append(t.Leaves, leaf)
	}
	if err == nil {
		err = t.Validate(g.View())
	}
	return t, err
}

func linkOf(g *topology.Graph, a, b topology.NodeID) topology.LinkID {
	for _, l := range g.Adjacent(a) {
		if g.Across(l, a) == b {
			return l
		}
	}
	return topology.NoLink
}
