package field

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
)

// ErrNoTree: the group has no active tree.
var ErrNoTree = errors.New("the group has no tree")

// Look asks the manager at an address for the active tree of a communicator, and
// writes it to w as JSON: a rpc.TreeState. It is one process's work in the manager's
// namespace, for another outside of it.
func Look(ctx context.Context, w io.Writer, address, communicator string) error {
	client, err := rpc.DialManager(address, rpc.ClientConfig{})
	if err != nil {
		return fmt.Errorf("looking for the tree: %w", err)
	}
	t, err := look(ctx, client, communicator)
	if err = errors.Join(err, client.Close()); err != nil {
		return fmt.Errorf("looking for the tree: %w", err)
	}
	return json.NewEncoder(w).Encode(t)
}

func look(ctx context.Context, client *rpc.ManagerClient, communicator string) (*rpc.TreeState, error) {
	e, err := embedded.Explain(ctx, client, communicator)
	if err != nil {
		return nil, err
	}
	return embedded.Active(&e)
}
