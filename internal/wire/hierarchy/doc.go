// Package hierarchy lays out the messages of delegates and supervisors. They travel
// between the delegates of base zones and their supervisors, and between supervisors
// and other nodes of the management zone that want a base zone's view. They are the
// bodies of frames of type gossip.Hierarchy, in order, on connections of their own, and
// are sealed there.
//
// The first byte is the kind: 1 hello, 2 assign, 3 change, 4 beat, 5 fetch.
// Numbers are varints in their shortest form; every bit is defined, so that a
// valid message has exactly one form: Decode refuses what Append would not
// write. What a message means is for internal/core/hierarchy to judge.
// testdata/golden has one of each.
package hierarchy

import "errors"

// ErrMessage is wrapped by all errors of Decode.
var ErrMessage = errors.New("hierarchy: invalid message")

// Zone numbers a base zone, by configuration or by the platform.
type Zone uint32
