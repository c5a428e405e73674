package hostlib

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/rpc"
)

// managerClient is what a communicator asks of an offload manager.
type managerClient interface {
	PlanGroup(ctx context.Context, c manager.Create) (rpc.GroupPlan, error)
	CreateGroup(ctx context.Context, c manager.Create) (group uint32, found bool, err error)
	WatchGroup(ctx context.Context, w manager.Watch, event func(rpc.GroupEvent) error) error
	ReportEpoch(ctx context.Context, r manager.Report) error
	ReleaseGroup(ctx context.Context, group uint32) error
	Explain(ctx context.Context, which rpc.GroupRef) (rpc.Explanation, error)
	Close() error
}

// dialManager returns a client of the manager at address, which need not be
// there yet.
func dialManager(address string, encryption *tls.Config) (managerClient, error) {
	return rpc.DialManager(address, rpc.ClientConfig{TLS: encryption})
}

// forGood are the manager's errors after which the same call cannot help.
var forGood = []error{
	manager.ErrRequest, manager.ErrTooFew, manager.ErrTooMany, manager.ErrDuplicate, manager.ErrUnknownHost,
	manager.ErrUnknownRank, manager.ErrBundle, manager.ErrExists, manager.ErrReleased, manager.ErrUnknownGroup, rpc.ErrUnsupported,
}

func isForGood(err error) bool {
	for _, e := range forGood {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// linkOf returns an offer as a session's way into the tree.
func linkOf(o *manager.Offer) session.Link {
	return session.Link{
		Group: o.Group, Epoch: o.Epoch, Tree: o.Tree, Cookie: o.Cookie, Window: o.Window,
		Parent: o.Parent, Index: o.Index, Probes: o.Probes, Idle: o.Idle,
	}
}
