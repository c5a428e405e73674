package membership

import (
	"context"
	"fmt"
)

// Watcher reads notices, from the whole view on. Several may read, each at its
// own pace; see the package's text for what becomes of notices that wait.
type Watcher struct {
	news *feed[Notice]
	node *Node
	of   map[string]*subject // by name and address
	// isBelow: it reads notices of the base zones below. What was there at the beginning was not
	// reported, and counts as known.
	isBelow bool
}

// subject is what a reader knows of a node, and what is.
type subject struct {
	zone     uint32
	known    bool // the reader has been notified that it is there
	there    bool
	reported Member // what it was given, if known
	member   Member
	cause    Cause // of the last leave
	exit     *uint8
}

func newWatcher(n *Node) *Watcher {
	w := &Watcher{node: n, of: map[string]*subject{}}
	w.news = newFeed(n, w.merge)
	return w
}

// take notes a notice.
func (w *Watcher) take(n Notice) {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	key := fmt.Sprintf("%d %s", n.Zone, n.Member.key())
	s := w.of[key]
	if s == nil {
		s = &subject{known: w.isBelow && n.Kind == Left, reported: n.Member}
		w.of[key] = s
	}
	s.zone, s.there, s.member = n.Zone, n.Kind == Joined, n.Member
	if n.Kind == Left {
		s.cause, s.exit = n.Cause, n.Exit
	}
	w.news.changed(key)
}

// merge appends what brings the reader from what it knows to what is.
func (w *Watcher) merge(all []Notice, key string) []Notice {
	s := w.of[key]
	same := s.reported.Version.Incarnation == s.member.Version.Incarnation && s.reported.Deaths == s.member.Deaths
	if s.known && !(s.there && same) {
		all = append(all, Notice{Zone: s.zone, Kind: Left, Member: s.reported, Cause: s.cause, Exit: s.exit})
		s.known = false
	}
	if s.there && !s.known {
		all = append(all, Notice{Zone: s.zone, Kind: Joined, Member: s.member})
		s.known, s.reported = true, s.member
	}
	if !s.known {
		delete(w.of, key)
	}
	return all
}

// Next waits for notices and returns all that there are, in order. The error is
// that of ctx, or ErrClosed after the last notice of a node that has left.
func (w *Watcher) Next(ctx context.Context) ([]Notice, error) { return w.news.next(ctx) }

// Close ends the watcher: what waits for it is forgotten.
func (w *Watcher) Close() {
	w.node.mu.Lock()
	delete(w.node.watchers, w)
	w.node.mu.Unlock()
	w.news.end(ErrClosed)
}
