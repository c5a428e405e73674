package broadcast

import (
	"context"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// ending is the service by which the root notifies members that nothing follows.
const ending scoll.ServiceID = 5

// shutdown is a member's part in the end.
type shutdown struct {
	service  *scoll.Service
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

// End notifies all nodes, of which this one is the root, that nothing follows.
func (m *Member) End(ctx context.Context, nodes []string) error {
	g, err := group(m.end.service, nodes, scoll.Flat())
	if err != nil {
		return err
	}
	r, err := g.NewRequest(scoll.Broadcast{Last: true})
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
