package aggregate

import (
	"errors"
	"fmt"
)

// ErrBody is wrapped by the errors about replies that cannot be read. Such a
// reply has changed nothing.
var ErrBody = errors.New("aggregate: not a reply of this kind")

// An Aggregator gathers the reply of a node and those of its children.
type Aggregator interface {
	// Add takes the reply of a child, which has a number from 0 on. No child's is
	// added twice. The body is read during the call only. Errors wrap ErrBody.
	Add(child int, body []byte) error
	// AppendTo appends the aggregated reply to dst.
	AppendTo(dst []byte) []byte
}

var (
	_ Aggregator = (*Statuses)(nil)
	_ Aggregator = (*Parts)(nil)
	_ Aggregator = (*Vector)(nil)
)

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBody, fmt.Sprintf(format, args...))
}
