package membership

import (
	"context"
	"strings"
)

// AttributeChange reports that a node has written an attribute, or that it has left
// and its attributes with it.
type AttributeChange struct {
	Node string // its name
	Attribute
	Deleted bool   // Value is nil then
	Version uint64 // of the node's attributes, which rises by one with each write; at least the change's own. 0: the node has left
}

// AttributeWatcher reads the nodes' writes, starting with the present attributes: the
// last value of each key, in the order of each node's last writes. When a node leaves
// the view, also for a restart, the reader gets deletions of those of its attributes
// that it knows, and no news of others. So the queue of a slow reader is bounded by the
// present attributes and those that it knows.
type AttributeWatcher struct {
	news *feed[AttributeChange]
	node *Node
	of   map[string]map[string]*attributeNews // by node and key
}

// attributeNews is what a reader knows of an attribute, and what is.
type attributeNews struct {
	known bool // the reader has been notified that it is there
	last  AttributeChange
}

func newAttributeWatcher(n *Node) *AttributeWatcher {
	w := &AttributeWatcher{node: n, of: map[string]map[string]*attributeNews{}}
	w.news = newFeed(n, w.merge)
	return w
}

// place is a key of the feed. Names have no zero bytes.
func place(node, key string) string { return node + "\x00" + key }

// take notes a change.
func (w *AttributeWatcher) take(c AttributeChange) {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	w.note(c)
}

// note is take for who holds the feed's lock.
func (w *AttributeWatcher) note(c AttributeChange) {
	a := w.of[c.Node][c.Key]
	switch {
	case a == nil && c.Deleted:
		return
	case a == nil:
		a = &attributeNews{}
		if w.of[c.Node] == nil {
			w.of[c.Node] = map[string]*attributeNews{}
		}
		w.of[c.Node][c.Key] = a
	case c.Deleted && !a.known:
		w.news.drop(place(c.Node, c.Key))
		w.remove(c.Node, c.Key)
		return
	}
	a.last = c
	w.news.changed(place(c.Node, c.Key))
}

// left notes that a node is not there any more.
func (w *AttributeWatcher) left(node string) {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	for key := range w.of[node] {
		w.note(AttributeChange{Node: node, Attribute: Attribute{Key: key}, Deleted: true})
	}
}

// merge appends what the reader is to get of an attribute.
func (w *AttributeWatcher) merge(all []AttributeChange, at string) []AttributeChange {
	node, key, _ := strings.Cut(at, "\x00")
	a := w.of[node][key]
	all = append(all, a.last)
	if a.known = !a.last.Deleted; a.known {
		a.last = AttributeChange{} // the value is the reader's now
	} else {
		w.remove(node, key)
	}
	return all
}

func (w *AttributeWatcher) remove(node, key string) {
	delete(w.of[node], key)
	if len(w.of[node]) == 0 {
		delete(w.of, node)
	}
}

// Next waits for changes and returns all that there are. The error is that of
// ctx, or ErrClosed after the last change of a node that has left.
func (w *AttributeWatcher) Next(ctx context.Context) ([]AttributeChange, error) {
	return w.news.next(ctx)
}

// Close ends the watcher and discards its queue.
func (w *AttributeWatcher) Close() {
	w.node.mu.Lock()
	delete(w.node.readers, w)
	w.node.mu.Unlock()
	w.news.end(ErrClosed)
}
