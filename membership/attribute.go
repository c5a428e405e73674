package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/internal/core/attribute"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/zone"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Attribute is an entry of a node's map.
type Attribute struct {
	Key   string
	Value []byte // not to be changed
}

// Set writes an attribute of this node's, for all others to read. Keys have 1 to
// 128 bytes and do not begin with "tributary."; values have up to 4 KiB, and all of a node's
// together up to 32 KiB. It returns when the node has it; the others follow.
func (n *Node) Set(ctx context.Context, key string, value []byte) error {
	return n.write(ctx, func(s *stepper) error {
		err := s.core.Set(key, value)
		if err == nil {
			s.changed(s.core.Self(), s.n.cfg.Name, []string{key})
		}
		return err
	})
}

// Delete deletes an attribute of this node's, if there is one of that key.
func (n *Node) Delete(ctx context.Context, key string) error {
	return n.write(ctx, func(s *stepper) error {
		err := s.core.Delete(key)
		switch {
		case errors.Is(err, attribute.ErrAbsent):
			return nil
		case err == nil:
			s.changed(s.core.Self(), s.n.cfg.Name, []string{key})
		}
		return err
	})
}

// SetMonitor has this node be a monitor, or no longer. Others know when they have
// the attribute that says so.
func (n *Node) SetMonitor(ctx context.Context, on bool) error {
	return n.write(ctx, func(s *stepper) error { return s.core.SetMonitor(on) })
}

func (n *Node) write(ctx context.Context, f func(s *stepper) error) error {
	var refused error
	if err := n.ask(ctx, func(s *stepper) { refused = f(s) }); err != nil {
		return err
	}
	if refused != nil {
		return fmt.Errorf("%w: %w", ErrAttribute, refused)
	}
	return nil
}

// Attribute returns an attribute of the node of that name, and whether it is
// there, as this node knows. The value must not be changed. The error is
// ErrUnknown if no node in the view is called so.
func (n *Node) Attribute(ctx context.Context, name, key string) (value []byte, there bool, err error) {
	err = n.about(ctx, name, func(s *stepper, i member.Index) {
		value, there = s.core.Attributes().Get(s.members().Life(i), key)
	})
	return value, there, err
}

// Attributes returns all attributes of the node of that name, as this node knows
// them, in the order in which they were written.
func (n *Node) Attributes(ctx context.Context, name string) (all []Attribute, err error) {
	err = n.about(ctx, name, func(s *stepper, i member.Index) { all = s.attributes(s.members().Life(i)) })
	return all, err
}

// AttributeWatcher returns a reader of changes, which are first those that made
// all attributes that there are.
func (n *Node) AttributeWatcher() *AttributeWatcher {
	w := newAttributeWatcher(n)
	err := n.ask(context.Background(), func(s *stepper) {
		for _, i := range s.members().View() {
			s.present(w, i)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.readers[w] = struct{}{}
	})
	if err != nil {
		w.news.end(err)
	}
	return w
}

// present notifies a reader of all attributes of a node in the view.
func (s *stepper) present(w *AttributeWatcher, i member.Index) {
	life := s.members().Life(i)
	version := s.core.Attributes().Version(life)
	for _, a := range s.attributes(life) {
		w.take(AttributeChange{Node: s.directory.ID(i).Name(), Attribute: a, Version: version})
	}
}

// moved notifies readers of attributes that a node has left, or of what there is of
// one that has come: another one of its name may have been there all the time.
func (s *stepper) moved(x *member.Notice) {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	if len(s.n.readers) == 0 {
		return
	}
	i, name := x.Node, s.directory.ID(x.Node).Name()
	there := s.members().Has(i)
	if x.Kind == member.Leave {
		i, there = s.find(name)
	}
	for w := range s.n.readers {
		if x.Kind == member.Leave {
			w.left(name)
		}
		if there {
			s.present(w, i)
		}
	}
}

// attributes returns those of a life that are not the service's own.
func (s *stepper) attributes(life gossip.Life) (all []Attribute) {
	for key, value := range s.core.Attributes().All(life) {
		if !strings.HasPrefix(key, zone.Reserved) {
			all = append(all, Attribute{key, value})
		}
	}
	return all
}

// learnt gives readers what the last step has learnt of others' attributes.
func (s *stepper) learnt(all []attribute.Notice) {
	for i := range all {
		if at, ok := s.members().FindLife(all[i].Life); ok {
			s.changed(all[i].Life, s.directory.ID(at).Name(), all[i].Keys)
		}
	}
}

func (s *stepper) changed(life gossip.Life, name string, keys []string) {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	if len(s.n.readers) == 0 {
		return
	}
	version := s.core.Attributes().Version(life)
	for _, key := range keys {
		if strings.HasPrefix(key, zone.Reserved) {
			continue
		}
		value, there := s.core.Attributes().Get(life, key)
		for w := range s.n.readers {
			w.take(AttributeChange{Node: name, Attribute: Attribute{key, value}, Deleted: !there, Version: version})
		}
	}
}
