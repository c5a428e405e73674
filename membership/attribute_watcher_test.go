package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/loopback"
)

// drain takes all that waits for a reader of attributes; nothing if nothing does.
func drain(t *testing.T, w *AttributeWatcher) []AttributeChange {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all, err := w.Next(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return all
}

// TestSlowAttributeReader lets nodes write, delete and leave at random while a
// reader reads now and then: what it was given adds up to what there is, and what
// waits is bounded by what there is and what it knows.
func TestSlowAttributeReader(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	w := newAttributeWatcher(&Node{})
	is, reported := map[string]string{}, map[string]string{}
	for round := range 30_000 {
		node, key := fmt.Sprintf("n%d", random.IntN(8)), fmt.Sprintf("k%d", random.IntN(8))
		switch random.IntN(8) {
		case 0:
			w.left(node)
			maps.DeleteFunc(is, func(at, _ string) bool { return at[:3] == node+"/" })
		case 1, 2:
			w.take(AttributeChange{Node: node, Attribute: Attribute{Key: key}, Deleted: true})
			delete(is, node+"/"+key)
		default:
			// Names that are met once, too: they must not pile up.
			once := fmt.Sprintf("once%d", round)
			w.take(AttributeChange{Node: once, Attribute: Attribute{Key: key}})
			w.left(once)
			is[node+"/"+key] = fmt.Sprint(round)
			w.take(AttributeChange{Node: node, Attribute: Attribute{key, []byte(is[node+"/"+key])}})
		}
		if len(w.of) > 8 || len(w.news.order) > 2*64+17 {
			t.Fatalf("%d nodes and %d places are kept of 8 nodes with 8 keys", len(w.of), len(w.news.order))
		}
		if random.IntN(50) > 0 {
			continue
		}
		for _, c := range drain(t, w) {
			at := c.Node + "/" + c.Key
			if _, known := reported[at]; c.Deleted && !known {
				t.Fatalf("%s is deleted, of which nothing was reported", at)
			}
			if reported[at] = string(c.Value); c.Deleted {
				delete(reported, at)
			}
		}
		if !maps.Equal(reported, is) {
			t.Fatalf("the reader knows %v, and there is %v", reported, is)
		}
	}
}

// TestAttributesOfWhoLeft: a reader gets nothing of a node that has left but
// that what it knew of it is gone; also when the node starts again at once.
func TestAttributesOfWhoLeft(t *testing.T) {
	state := filepath.Join(t.TempDir(), "incarnation")
	nodes := zoneOf(t, 3, func(i int, c *Config) {
		if i == 1 {
			c.State, c.Listen = state, loopback.Address(t)
		}
	})
	agree(t, nodes...)
	settle(t, nodes...)
	knows, asleep := nodes[2].AttributeWatcher(), nodes[2].AttributeWatcher()
	defer knows.Close()
	defer asleep.Close()
	if err := nodes[1].Set(within(t), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if all, err := knows.Next(within(t)); err != nil || len(all) != 1 || all[0].Deleted || all[0].Node != "n1" {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := nodes[1].Leave(within(t), 0); err != nil {
		t.Fatal(err)
	}
	agree(t, nodes[0], nodes[2])
	if all := drain(t, asleep); len(all) != 0 {
		t.Errorf("one that slept is notified of who is gone: %+v", all)
	}
	if all := drain(t, knows); len(all) != 1 || !all[0].Deleted || all[0].Key != "k" || all[0].Version != 0 {
		t.Errorf("one that knew is reported %+v", all)
	}
	again := join(t, Config{Name: "n1", Listen: nodes[1].Addr().String(), Bootstrap: []string{nodes[0].Addr().String()}, State: state})
	agree(t, nodes[0], again, nodes[2])
	if err := again.Set(within(t), "other", []byte("w")); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*AttributeWatcher{knows, asleep} {
		if all, err := w.Next(within(t)); err != nil || len(all) != 1 || all[0].Key != "other" || all[0].Deleted {
			t.Errorf("after the restart: %+v, %v", all, err)
		}
	}
}
