package p4rt

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Whose deadline has passed does not depend on who noticed first.
func TestWhoseDeadline(t *testing.T) {
	late := status.Error(codes.DeadlineExceeded, "the target noticed")
	soon, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, test := range []struct {
		name   string
		outer  context.Context
		within time.Duration
		want   error
	}{
		{"the caller's", soon, 2 * time.Hour, context.DeadlineExceeded},
		{"the client's", soon, time.Minute, ErrWedged},
		{"the client's alone", t.Context(), time.Minute, ErrWedged},
	} {
		err := call(test.outer, test.within, func(context.Context) error { return late })
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// A call that ends with its session fails for the reason of that.
func TestCallOfABrokenSession(t *testing.T) {
	l := &link{cancel: func(error) {}}
	gone := status.Error(codes.Canceled, "the connection is closing")
	ended := func() error {
		return l.call(t.Context(), time.Minute, func(context.Context) error { return gone })
	}
	if err := ended(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a reason: %v", err)
	}
	l.end(ErrWedged)
	l.end(ErrClosed) // too late to be the reason
	if err := ended(); !errors.Is(err, ErrWedged) {
		t.Errorf("with one: %v", err)
	}
}

// emptyTarget is one that holds nothing.
type emptyTarget struct{ p4v1.P4RuntimeClient }

func (emptyTarget) GetForwardingPipelineConfig(context.Context, *p4v1.GetForwardingPipelineConfigRequest, ...grpc.CallOption) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	return nil, status.Error(codes.FailedPrecondition, "nothing")
}

// A look that ends after its session reports nothing of the next.
func TestLookOfAnEarlierSession(t *testing.T) {
	earlier, now := &link{api: emptyTarget{}}, &link{api: emptyTarget{}}
	c := &Client{cfg: Config{}.filled(), events: newBox(), looking: make(turn, 1), link: now}
	c.session = session{phase: primary, held: holding{any: true, cookie: 1}}
	for l, want := range map[*link]bool{earlier: true, now: false} {
		c.session.held.any = true
		if err := c.look(t.Context(), l); err != nil || c.session.held.any != want {
			t.Errorf("holding %v, %v; want %v", c.session.held.any, err, want)
		}
	}
}

func TestWriteErrorReportsAFew(t *testing.T) {
	e := &WriteError{Tried: 9, Left: 2}
	for range 5 {
		e.Failed = append(e.Failed, UpdateError{Words: "insert x", Err: ErrExists})
	}
	text := e.Error()
	if !strings.HasPrefix(text, "5 of 9 updates refused, 2 not tried") ||
		strings.Count(text, "insert x") != wordsOfFailures || !strings.HasSuffix(text, "and 2 more") {
		t.Errorf("text: %s", text)
	}
	if !errors.Is(e, ErrExists) || errors.Is(e, ErrMissing) {
		t.Error("it does not unwrap to its causes")
	}
}
