package hostlib

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
)

// TestEndOfAnEarlierLife: the end of a host's earlier life is no death of the member that it is now: of a neighbour by
// the incarnation that its link has met, of another by when it was connected last.
func TestEndOfAnEarlierLife(t *testing.T) {
	formed := time.Now()
	c := &Communicator{links: map[int]*link{1: {name: "neighbour", life: 5}}, over: make(chan struct{})}
	c.recovery.formedAt = formed
	for _, test := range []struct {
		peer        string
		reason      error
		incarnation uint64
		up          time.Duration // after it was formed
		want        bool
	}{
		{"neighbour", rail.ErrRestarted, 4, time.Hour, true},
		{"neighbour", rail.ErrAbsent, 4, time.Hour, true},
		{"neighbour", rail.ErrLost, 4, -time.Hour, false},
		{"neighbour", rail.ErrRestarted, 5, -time.Hour, false},
		{"neighbour", rail.ErrAbsent, 6, -time.Hour, false},
		{"other", rail.ErrRestarted, 9, -time.Millisecond, true},
		{"other", rail.ErrRestarted, 9, restartGrace / 2, true}, // noticed late
		{"other", rail.ErrAbsent, 9, restartGrace / 2, true},
		{"other", rail.ErrUnreachable, 9, -time.Hour, false},
		{"other", rail.ErrRestarted, 9, restartGrace, false},
		{"other", rail.ErrAbsent, 9, time.Hour, false},
	} {
		err := fmt.Errorf("a request: %w", &rail.PeerError{Peer: test.peer, Incarnation: test.incarnation, Reason: test.reason, LastUp: formed.Add(test.up)})
		if got := c.isOfEarlierLife(err); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
	if c.isOfEarlierLife(nil) || c.isOfEarlierLife(errors.New("another")) {
		t.Error("no error of a peer's, and it is of an earlier life")
	}
	close(c.over)
	for _, up := range []time.Duration{-time.Millisecond, 0} {
		err := &rail.PeerError{Peer: "other", Reason: rail.ErrRestarted, LastUp: formed.Add(up)}
		if got := c.isOfEarlierLife(err); got != (up < 0) {
			t.Errorf("%v after it was formed, which has ended since: %t", up, got)
		}
	}
}
