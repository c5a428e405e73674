package scoll

import "sync"

// Liveness reports which nodes live. A node of which it has said nothing counts
// as alive.
type Liveness interface {
	// Watch calls up and down for all nodes that are known, and then for every
	// change, never two at a time, until cancel is called, which waits for a
	// call that is under way. The incarnation is that of the host there
	// (hostlib.Host.Incarnation). In up a larger one than before is a reboot, also
	// without a down between. In down it is that of the life that has ended; of a
	// node that is known in a later one nothing follows from it. 0 ends whichever
	// is known. The functions do not wait.
	Watch(up, down func(node string, incarnation uint64)) (cancel func())
}

// News is a Liveness that passes on what it is given: for systems that learn of
// deaths in their own way, and for tests. Its zero value is ready.
type News struct {
	mu       sync.Mutex
	known    map[string]life
	watchers map[*watcher]struct{}
}

type life struct {
	incarnation uint64
	dead        bool
}

type watcher struct{ up, down func(string, uint64) }

func (w *watcher) report(node string, l life) {
	if l.dead {
		w.down(node, l.incarnation)
	} else {
		w.up(node, l.incarnation)
	}
}

// Watch implements Liveness.
func (n *News) Watch(up, down func(node string, incarnation uint64)) (cancel func()) {
	w := &watcher{up, down}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watchers == nil {
		n.watchers = map[*watcher]struct{}{}
	}
	n.watchers[w] = struct{}{}
	for node, l := range n.known {
		w.report(node, l)
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watchers, w)
	}
}

// Up reports that a node lives in an incarnation.
func (n *News) Up(node string, incarnation uint64) { n.set(node, life{incarnation: incarnation}) }

// Down reports that a node is dead, in the incarnation of the last Up.
func (n *News) Down(node string) {
	n.mu.Lock()
	incarnation := n.known[node].incarnation
	n.mu.Unlock()
	n.set(node, life{incarnation, true})
}

func (n *News) set(node string, l life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]life{}
	}
	n.known[node] = l
	for w := range n.watchers {
		w.report(node, l)
	}
}
