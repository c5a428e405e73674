package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/pathsel"
)

// ErrNoTree: the group has no tree of switches at the moment.
var ErrNoTree = errors.New("embedded: the group has no tree")

// Explain returns what the manager says of a communicator's group; of several
// communicators of that name, one after the other, of the last. The other trees
// of a communicator that has several are those of NAME/stripe-1, NAME/part-0 and so
// on.
func (f *Fabric) Explain(ctx context.Context, communicator string) (rpc.Explanation, error) {
	m := f.liveManager()
	if m == nil {
		return rpc.Explanation{}, fmt.Errorf("%w: there is no manager to explain %q", ErrState, communicator)
	}
	return Explain(ctx, m, communicator)
}

// Explainer is a manager, here or elsewhere.
type Explainer interface {
	Groups(context.Context) ([]manager.Summary, error)
	Explain(context.Context, rpc.GroupRef) (rpc.Explanation, error)
}

// Explain is Fabric.Explain at any manager.
func Explain(ctx context.Context, m Explainer, communicator string) (rpc.Explanation, error) {
	all, err := m.Groups(ctx)
	if err != nil {
		return rpc.Explanation{}, fmt.Errorf("embedded: explaining %q: %w", communicator, err)
	}
	// Members add to the name what distinguishes groups of one name.
	ours := slices.DeleteFunc(all, func(s manager.Summary) bool {
		rest, ok := strings.CutPrefix(s.Name, communicator+"/")
		return !ok || strings.Contains(rest, "/")
	})
	if len(ours) == 0 {
		return rpc.Explanation{}, fmt.Errorf("%w: the manager has no group of %q", ErrUnknown, communicator)
	}
	last := slices.MaxFunc(ours, func(a, b manager.Summary) int { return cmp.Compare(a.Group, b.Group) })
	e, err := m.Explain(ctx, rpc.GroupRef{Group: last.Group})
	if err != nil {
		return rpc.Explanation{}, fmt.Errorf("embedded: explaining %q: %w", communicator, err)
	}
	return e, nil
}

// Active returns the tree that a group runs over; ErrNoTree while there is none.
func Active(e *rpc.Explanation) (*rpc.TreeState, error) {
	for i := range e.Trees {
		if t := &e.Trees[i]; t.Stage == manager.TreeActive && t.Epoch == e.Epoch {
			return t, nil
		}
	}
	if e.Refusal != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTree, e.Refusal)
	}
	return nil, fmt.Errorf("%w: it is %s", ErrNoTree, e.State)
}

// Tree is a tree of switches that a group has been given.
type Tree struct {
	Epoch  uint32
	Tree   pathsel.Tree
	Reason string // why this root
}

// ActiveTree returns a communicator's tree; ErrNoTree while there is none.
func (f *Fabric) ActiveTree(ctx context.Context, communicator string) (Tree, error) {
	e, err := f.Explain(ctx, communicator)
	if err != nil {
		return Tree{}, err
	}
	t, err := Active(&e)
	if err != nil {
		return Tree{}, err
	}
	tree, err := t.In(f.graph)
	if err != nil {
		return Tree{}, fmt.Errorf("embedded: the tree of %q: %w", communicator, err)
	}
	return Tree{t.Epoch, tree, t.Reason}, nil
}

// AwaitTree waits until a communicator has a tree of a later epoch than after,
// or the manager says that there is none (ErrNoTree).
func (f *Fabric) AwaitTree(ctx context.Context, communicator string, after uint32) (tree Tree, err error) {
	var last error
	err = await(ctx, func() (bool, error) {
		tree, last = f.ActiveTree(ctx, communicator)
		var refusal *manager.Refusal
		switch {
		case last == nil:
			return tree.Epoch > after, nil
		case !errors.Is(last, ErrNoTree) || errors.As(last, &refusal):
			return false, last
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil {
		return Tree{}, fmt.Errorf("embedded: waiting for a tree of %q after epoch %d: %w", communicator, after, errors.Join(err, last))
	}
	return tree, err
}
