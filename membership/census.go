package membership

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
)

// Zone is what the census says of one base zone.
type Zone struct {
	Number      uint32   `json:"zone"`
	Size        int      `json:"size"`        // nodes in its view
	Delegates   int      `json:"delegates"`   // that are connected to a supervisor
	Supervisors []string `json:"supervisors"` // their names
}

// Census returns all base zones that are known, by number. The error is ErrRole
// if this is no management node.
func (n *Node) Census(ctx context.Context) (all []Zone, err error) {
	err = n.supervising(ctx, func(t *tier) { all = t.census() })
	return all, err
}

// Fetch returns the view of a base zone, by name, from one of its supervisors, or
// as it is known here if this node follows the zone. The errors are ErrRole if this
// is no management node, ErrUnknown if nobody is known to supervise that zone, which
// may be so for a moment while its supervisors change, and that of ctx.
func (n *Node) Fetch(ctx context.Context, number uint32) ([]Member, error) {
	v, err := answered(ctx, n, func(t *tier, to chan<- hierarchy.View) { t.fetch(number, to) })
	if err != nil {
		return nil, fmt.Errorf("membership: fetching zone %d: %w", number, err)
	}
	if v.Err != nil {
		return nil, fmt.Errorf("%w: zone %d: %w", ErrUnknown, number, v.Err)
	}
	all := make([]Member, len(v.Members))
	for i, m := range v.Members {
		all[i] = memberOf(m.ID, m.Version)
	}
	slices.SortFunc(all, byName)
	return all, nil
}

// answered asks a management node for something that is answered later.
func answered[T any](ctx context.Context, n *Node, ask func(t *tier, to chan<- T)) (answer T, err error) {
	to := make(chan T, 1)
	if err = n.supervising(ctx, func(t *tier) { ask(t, to) }); err != nil {
		return answer, err
	}
	select {
	case answer = <-to:
		return answer, nil
	case <-n.done:
		return answer, n.refused()
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// BelowWatcher returns a reader of future changes in the base zones that this
// management node supervises or follows; Notice.Zone has the zone. Fetch returns present
// members. Changes of a zone that others supervise are reported only if it is followed.
func (n *Node) BelowWatcher() *Watcher {
	w := newWatcher(n)
	w.isBelow = true
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watchers[w] = struct{}{}
	return w
}

// supervising runs f between two steps of a management node.
func (n *Node) supervising(ctx context.Context, f func(t *tier)) error {
	if !n.cfg.Management {
		return fmt.Errorf("%w: %s is in zone %d", ErrRole, n.cfg.Name, n.cfg.Zone)
	}
	return n.ask(ctx, func(s *stepper) { f(s.tier) })
}

// census returns what the role knows of all base zones.
func (t *tier) census() []Zone {
	all := []Zone{}
	for _, r := range t.supervisor.Census() {
		z := Zone{Number: uint32(r.Zone), Size: r.Size, Delegates: r.Delegates, Supervisors: []string{}}
		for _, id := range r.Supervisors {
			z.Supervisors = append(z.Supervisors, id.Name())
		}
		slices.Sort(z.Supervisors)
		all = append(all, z)
	}
	return all
}
