package membership

import "errors"

// Errors of nodes. They are wrapped; use errors.Is.
var (
	// ErrConfig: a Config cannot be used.
	ErrConfig = errors.New("membership: invalid configuration")
	// ErrClosed: the node has left, or was closed.
	ErrClosed = errors.New("membership: the node is closed")
	// ErrSuperseded: another process has the node's name and address, and started
	// later: this one has ended.
	ErrSuperseded = errors.New("membership: another process has the node's name and address, and started later")
	// ErrName: another node of the zone has the node's name, at another address, and
	// answers: this one, which started later, has ended.
	ErrName = errors.New("membership: two nodes have one name")
	// ErrUnknown: no node of that name is in the view, or no zone of that number in
	// the census.
	ErrUnknown = errors.New("membership: unknown")
	// ErrAttribute: a key or a value is too long, there are too many, or the key
	// is one of the service's own.
	ErrAttribute = errors.New("membership: invalid attribute")
	// ErrState: the file that keeps the incarnation cannot be read or written.
	ErrState = errors.New("membership: state file")
	// ErrRole: what was asked is for management nodes alone.
	ErrRole = errors.New("membership: not a management node")
)
