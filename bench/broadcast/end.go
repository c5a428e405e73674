package broadcast

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// ending is the service by which the root notifies members that nothing follows.
const ending scoll.ServiceID = 5

// shutdown is a member's part in the end.
type shutdown struct {
	service  *scoll.Service
	group    *scoll.Group // of all members, at the root
	notified chan struct{}
}

func (f *shutdown) register(node *scoll.Node) (err error) {
	f.notified = make(chan struct{})
	report := sync.OnceFunc(func() { close(f.notified) })
	f.service, err = node.Register(ending, scoll.Callbacks{
		PreRequest:      func(r *scoll.Request) error { return post(r, 0) },
		IncomingRequest: func(*scoll.Request) error { return nil },
		PostReply:       func(r *scoll.Request) { _ = r.Reply(nil) }, // as in the services that are measured
		ReplyOut:        func(*scoll.Request, error) { report() },
		Inline:          true,
	})
	return err
}

// Notified is closed when the root has said that nothing follows.
func (m *Member) Notified() <-chan struct{} { return m.end.notified }

// Await waits until all nodes have the services of a measurement; members start in any order.
func (m *Member) Await(ctx context.Context, nodes []string) error {
	for {
		var err error
		if m.end.group, err = group(m.end.service, nodes, scoll.Flat()); err == nil || !notYet(err) {
			return err
		}
		if cause := runner.Pause(ctx, 10*time.Millisecond); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

// notYet reports whether some node has no service yet, which is all that is wrong.
func notYet(err error) bool {
	var incomplete *scoll.IncompleteError
	if !errors.As(err, &incomplete) {
		return false
	}
	return !slices.ContainsFunc(incomplete.Missing, func(m scoll.Missing) bool { return m.Status != scoll.StatusNoService })
}

// End notifies all nodes that Await has waited for, of which this one is the root, that nothing follows.
func (m *Member) End(ctx context.Context) error {
	r, err := m.end.group.NewRequest(scoll.Broadcast{Last: true})
	if err == nil {
		err = r.Send()
	}
	if err != nil {
		return err
	}
	select {
	case <-r.Done():
		return r.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
