package runner

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A reply goes to who waits for its number, once, and to nobody who has left.
func TestDesk(t *testing.T) {
	var d Desk[string]
	var asked []uint64
	got, err := d.Ask(t.Context(), nil, func(req uint64) error {
		asked = append(asked, req)
		d.Answer(req+1, "another's")
		d.Answer(req, "own")
		d.Answer(req, "again")
		return nil
	})
	if err != nil || got != "own" {
		t.Errorf("%q, %v", got, err)
	}
	number := func(req uint64) error { asked = append(asked, req); return nil }
	gone := make(chan struct{})
	close(gone)
	if _, err := d.Ask(t.Context(), gone, number); !errors.Is(err, ErrClosed) {
		t.Errorf("who answers has gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Ask(ctx, nil, number); !errors.Is(err, context.Canceled) {
		t.Errorf("who asks has gone: %v", err)
	}
	why := errors.New("it cannot be sent")
	if _, err := d.Ask(t.Context(), nil, func(uint64) error { return why }); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
	if asked[0] == asked[1] || asked[1] == asked[2] || len(d.takes) != 0 {
		t.Errorf("numbers %v, and %d wait still", asked, len(d.takes))
	}
}

func TestPause(t *testing.T) {
	if err := Pause(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Pause(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}
