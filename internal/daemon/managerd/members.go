package managerd

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

var _ rpc.Membership = (*Daemon)(nil)

// MemberOf implements rpc.Membership.
func (d *Daemon) MemberOf(ctx context.Context, which rpc.GroupRef, host string) error {
	members, err := d.members(ctx, which)
	if err == nil && !slices.Contains(members, host) {
		err = rpc.ErrNotMember
	}
	return err
}

// RankIs implements rpc.Membership.
func (d *Daemon) RankIs(ctx context.Context, group, rank uint32, host string) error {
	members, err := d.members(ctx, rpc.GroupRef{Group: group})
	if err == nil && (uint64(rank) >= uint64(len(members)) || members[rank] != host) {
		err = rpc.ErrNotMember
	}
	return err
}

// members returns the host names of a group by rank, not to be changed.
func (d *Daemon) members(ctx context.Context, which rpc.GroupRef) ([]string, error) {
	var spec *manager.Spec
	found := false
	err := d.loop.Do(ctx, func() {
		id, named := which.Group, true
		if which.Name != "" {
			id, named = d.core.Find(which.Name)
		}
		if named {
			spec, found = d.core.Spec(id)
		}
	})
	switch {
	case err != nil:
		return nil, d.excuse(err)
	case !found:
		return nil, fmt.Errorf("%s: %w", which, manager.ErrUnknownGroup)
	}
	return spec.Members, nil
}
