package scoll_test

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// locks are the locks that clients hold at a server. A request's payload names a
// client to evict; replies are empty, because the outcome says that all have run it.
type locks struct {
	mu   sync.Mutex
	held map[string]int
}

func (l *locks) callbacks() scoll.Callbacks {
	return scoll.Callbacks{
		PreRequest: func(r *scoll.Request) error {
			for i := range r.NumChildren() {
				if err := r.PostReplySize(i, 0, nil); err != nil {
					return err
				}
			}
			return nil
		},
		IncomingRequest: func(r *scoll.Request) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.held, string(r.Payload()))
			return nil
		},
		PostReply: func(r *scoll.Request) { _ = r.Reply(nil) },
	}
}

func (l *locks) of(client string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[client]
}

// This evicts a client from all servers in one broadcast: it creates the delayed
// group, and is its last, so it also frees it.
func Example_clientEviction() {
	var servers []*locks
	f := launch("mds", 8, 5, func(string) scoll.Callbacks {
		l := &locks{held: map[string]int{"client-17": 3, "client-18": 1}}
		servers = append(servers, l)
		return l.callbacks()
	})
	defer f.close()
	g := f.group(scoll.GroupSpec{Name: "eviction of client-17", Delayed: true})
	if err := run(g, scoll.Broadcast{Payload: []byte("client-17"), Last: true}); err != nil {
		fmt.Println(err)
	}
	held := 0
	for _, l := range servers {
		held += l.of("client-17")
	}
	fmt.Println("locks of client-17:", held)
	fmt.Println("locks of client-18 at the last server:", servers[7].of("client-18"))
	_, err := g.NewRequest(scoll.Broadcast{})
	fmt.Println("the group is gone:", errors.Is(err, scoll.ErrGroup))
	// Output:
	// locks of client-17: 0
	// locks of client-18 at the last server: 1
	// the group is gone: true
}
