package p4rt

import (
	"context"
	"errors"
	"strconv"
	"testing"
)

func TestBoxCountsFaults(t *testing.T) {
	b := newBox()
	text := func(i int) error { return errors.New(strconv.Itoa(i)) }
	b.put(Event{Kind: Fault, Count: 1, Err: text(1)}, Event{Kind: Fault, Count: 1, Err: text(1)})
	b.put(Event{Kind: Backup}, Event{Kind: Backup}, Event{Kind: Fault, Count: 1, Err: text(1)})
	events, err := b.take(t.Context())
	if err != nil || len(events) != 4 || events[0].Count != 2 || events[3].Count != 1 {
		t.Fatalf("%+v, %v", events, err)
	}
	const flood = 3 * boxedEvents
	for i := range flood {
		b.put(Event{Kind: Fault, Count: 1, Err: text(i)})
	}
	b.put(Event{Kind: Lost, Err: text(0)})
	events, err = b.take(t.Context())
	total := uint64(0)
	for _, e := range events {
		total += e.Count
	}
	if err != nil || total != flood || len(events) != boxedEvents+1 || events[boxedEvents].Kind != Lost {
		t.Errorf("%d events for %d faults, %v; want %d for %d, and the other", len(events), total, err, boxedEvents+1, flood)
	}
}

func TestBoxEnds(t *testing.T) {
	b := newBox()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.take(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("context: %v", err)
	}
	b.put(Event{Kind: Lost})
	b.close()
	if events, err := b.take(t.Context()); err != nil || len(events) != 1 {
		t.Errorf("what was there: %v, %v", events, err)
	}
	for range 2 {
		if _, err := b.take(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}
