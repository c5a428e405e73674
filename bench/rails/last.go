package rails

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
)

// Last is what became of requests under way when the last rail between two hosts failed.
type Last struct {
	Fault  string        `json:"fault"`
	Failed int           `json:"failed"`   // requests of both hosts
	After  time.Duration `json:"after_ns"` // all of them had failed
	Back   time.Duration `json:"back_ns"`  // after the rails were repaired: until all carried messages again
	Error  string        `json:"error"`    // that of one
}

// lose has requests under way that cannot end until the peer is lost: messages that no
// receive takes, and receives without messages. It fails unless each of them reports the
// loss, with the names of the peer and of all rails.
func lose(ctx context.Context, port Port, r Request, reply *Reply) error {
	p, ok := port.(*messagePort)
	if !ok {
		return errors.New("only messages of package hostlib/rail can lose the last rail")
	}
	const lostTag = messageTag + 1
	data := make([]byte, r.Bytes)
	var under []*rail.Request
	for range r.Iterations {
		under = append(under, p.peer.StartSend(lostTag, data), p.peer.StartRecv(lostTag+1, make([]byte, r.Bytes)))
	}
	for _, one := range under {
		_, err := one.Wait(ctx)
		var lost *rail.PeerError
		if !errors.As(err, &lost) || lost.Peer != p.peer.Name() {
			return fmt.Errorf("%w: a request ends with %w", ErrWrong, err)
		}
		for name := range strings.SplitSeq(r.Rails, ",") {
			if !strings.Contains(err.Error(), name) {
				return fmt.Errorf("%w: an error does not name %s: %w", ErrWrong, name, err)
			}
		}
		reply.Failed++
		reply.Why = err.Error()
	}
	return nil
}
