package scoll_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// fleet is servers of the examples, each with one entity, on the loopback
// interface.
type fleet struct {
	*directory
	nodes    []*server
	services []*scoll.Service
}

// launch starts n servers and registers a service at each.
func launch(name string, n int, id scoll.ServiceID, service func(node string) scoll.Callbacks) *fleet {
	f := &fleet{directory: &directory{}}
	for i := range n {
		node, err := open(context.Background(), f.settings(fmt.Sprintf("%s%d", name, i)))
		if err != nil {
			panic(err)
		}
		s, err := node.Register(id, service(node.Name()))
		if err != nil {
			panic(err)
		}
		f.set(node.Name(), node.host.Addr())
		f.nodes, f.services = append(f.nodes, node), append(f.services, s)
	}
	return f
}

func (f *fleet) targets() []scoll.Target {
	all := make([]scoll.Target, len(f.nodes))
	for i, n := range f.nodes {
		all[i] = scoll.Target{Node: n.Name(), Tags: []scoll.Tag{{1}}}
	}
	return all
}

// group makes a group of all, with the first for its root.
func (f *fleet) group(spec scoll.GroupSpec) *scoll.Group {
	if spec.Targets == nil {
		spec.Targets = f.targets()
	}
	var group *scoll.Group
	var wait sync.WaitGroup
	wait.Add(1)
	err := f.services[0].CreateGroup(spec, func(g *scoll.Group, err error) {
		defer wait.Done()
		if err != nil {
			panic(err)
		}
		group = g
	})
	if err != nil {
		panic(err)
	}
	wait.Wait()
	return group
}

// run broadcasts, and waits for the end.
func run(g *scoll.Group, b scoll.Broadcast) error {
	r, err := g.NewRequest(b)
	if err != nil {
		return err
	}
	if err := r.Send(); err != nil {
		return err
	}
	<-r.Done()
	return r.Err()
}

func (f *fleet) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var group sync.WaitGroup
	for _, n := range f.nodes {
		group.Go(func() {
			if err := n.Close(ctx); err != nil {
				panic(err)
			}
		})
	}
	group.Wait()
}

// tally adds up the replies of a subtree's nodes, four bytes each: the examples
// that only count use it.
type tally struct {
	mu sync.Mutex
	n  uint32
}

func (t *tally) add(n uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n += n
}
