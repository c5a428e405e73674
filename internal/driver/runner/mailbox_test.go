package runner_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

func TestMailboxKeepsOrder(t *testing.T) {
	const count = 1000
	var box runner.Mailbox[int]
	go func() {
		for i := range count {
			if !box.Put(i) {
				t.Error("refused", i)
			}
		}
		box.Close()
	}()
	var got []int
	for {
		items, err := box.Take(t.Context())
		if errors.Is(err, runner.ErrClosed) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, items...)
	}
	if len(got) != count || !slices.IsSorted(got) {
		t.Errorf("got %d items, sorted: %v", len(got), slices.IsSorted(got))
	}
}

func TestMailboxLimit(t *testing.T) {
	box := runner.Mailbox[string]{Limit: 2}
	if !box.Put("a") || box.Put("b", "c") || !box.Put("d") || box.Put("e") {
		t.Error("the limit is not two")
	}
	got, err := box.Take(t.Context())
	if err != nil || !slices.Equal(got, []string{"a", "d"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if !box.Put("f") {
		t.Error("no room after Take")
	}
}

func TestMailboxClose(t *testing.T) {
	var box runner.Mailbox[int]
	box.Put(1)
	box.Close()
	if box.Put(2) {
		t.Error("Put after Close")
	}
	if got, err := box.Take(t.Context()); err != nil || !slices.Equal(got, []int{1}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := box.Take(t.Context()); !errors.Is(err, runner.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestMailboxContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box runner.Mailbox[int]
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { _, err := box.Take(ctx); ended <- err }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
