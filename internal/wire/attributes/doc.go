// Package attributes lays out the messages that replicate attributes in a zone. They
// travel as the bodies of frames of type gossip.Attributes, in order, between
// neighbours, and are sealed there.
//
// The first byte is the kind: 1 digest, 2 request, 3 request that is a push, 4
// reply. Numbers are varints in their shortest form, lives are eight bytes,
// big-endian; every bit is defined, so that a valid message has exactly one
// form: Decode refuses what Append would not write. What a message means is for
// internal/core/attribute to judge. testdata/golden has one of each.
package attributes

import (
	"errors"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// ErrMessage is wrapped by all errors of Decode.
var ErrMessage = errors.New("attributes: invalid message")

// Life names one life of a member; 0 is none.
type Life = gossip.Life
