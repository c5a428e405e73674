package scoll

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestRefusalsWhileClosing: requests that come between the last callback of a
// service that stops and its end are refused, each, and nothing remembers them.
func TestRefusalsWhileClosing(t *testing.T) {
	s := &storm{t: t, addresses: map[string]string{}, ran: map[[2]int]int{}}
	s.start()
	stopping := s.made[1]
	stopping.stop()
	<-stopping.drained
	if err := s.made[0].CreateGroup(GroupSpec{Targets: []Target{{"n0", []Tag{{}}}, {"n1", []Tag{{}}}}, Delayed: true}, func(g *Group, _ error) {
		for range 10 {
			r, err := g.NewRequest(Broadcast{Payload: make([]byte, 4)})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Send(); err != nil {
				t.Fatal(err)
			}
			<-r.Done()
			if o := r.Outcome(); len(o.Missing) != 1 || o.Missing[0] != (Missing{"n1", 1, StatusRefused, ""}) {
				t.Fatalf("%+v", o)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, h := range s.hosts {
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestPublicErrors: the core's errors are this package's.
func TestPublicErrors(t *testing.T) {
	if err := public(nil); err != nil {
		t.Error(err)
	}
	var incomplete *IncompleteError
	o := Outcome{Nodes: 9, Ran: 2}
	for i := range 6 {
		o.Missing = append(o.Missing, Missing{fmt.Sprint("n", i), 1, StatusDead, ""})
	}
	err := error(&IncompleteError{o})
	if want := "scoll: 2 of 9 nodes are known to have run the request; n0 (1 nodes) dead; n1 (1 nodes) dead; n2 (1 nodes) dead; n3 (1 nodes) dead, and 2 more subtrees"; err.Error() != want || !errors.As(err, &incomplete) {
		t.Errorf("%q", err)
	}
	if err := (&StatusError{Status(broadcastmsg.Refused), "why"}).Error(); err != "scoll: refused (service): why" {
		t.Errorf("%q", err)
	}
	inner := errors.New("inner")
	if err := (&PanicError{Callback: "post-reply", Value: inner}); !errors.Is(err, inner) || err.Error() != "scoll: the post-reply callback panicked: inner" {
		t.Errorf("%q", err)
	}
	if err := (&PanicError{Value: 3}); err.Unwrap() != nil {
		t.Error("a number is no error")
	}
}
