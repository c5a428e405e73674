package broadcastmsg

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
)

// Bounds of what names and lists may be.
const (
	MaxNode = 64    // bytes of a node's name
	MaxName = 64    // bytes of a group's name
	MaxTags = 65535 // entities on one node
)

// ErrTargets is wrapped by all errors about a list of targets.
var ErrTargets = errors.New("collect: invalid targets")

// Node is the name of a server, unique among all of them; 1 to MaxNode bytes.
type Node string

// Service identifies a collective service: assigned once and agreed upon by
// all servers. 0 is none.
type Service uint32

// Tag identifies an entity on a node within a service: (service, node, tag)
// identifies an object globally, and one (node, tag) is two objects under two
// services.
type Tag = [16]byte

// Target is a node with the entities on it that a group is about.
type Target struct {
	Node Node
	Tags []Tag // at least one, all different
}

// Digest is a SHA-256 sum over an ordered list of targets.
type Digest [sha256.Size]byte

// Index is the part of a group's identity beside its digest: unique for groups
// that a node has created, opaque bits of the service's for out-of-band ones.
type Index [24]byte

// MakeIndex returns the index of the count-th group that creator makes in its
// incarnation. It does not name the creator: other members may be roots, too.
func MakeIndex(creator Node, incarnation, count uint64) Index {
	var i Index
	name := sha256.Sum256([]byte(creator))
	copy(i[:8], name[:])
	binary.BigEndian.PutUint64(i[8:], incarnation)
	binary.BigEndian.PutUint64(i[16:], count)
	return i
}

// NamedAfter reports whether creator made the group of index i, in whichever
// incarnation.
func (i Index) NamedAfter(creator Node) bool {
	name := sha256.Sum256([]byte(creator))
	return string(i[:8]) == string(name[:8])
}

// MadeBy reports whether creator made the group of index i in its incarnation.
func (i Index) MadeBy(creator Node, incarnation uint64) bool {
	return i == MakeIndex(creator, incarnation, binary.BigEndian.Uint64(i[16:]))
}

// DigestOf returns the digest of the service's targets in the order given. A
// tree's root does not matter for it.
func DigestOf(s Service, targets []Target) Digest {
	h := sha256.New()
	b := binary.BigEndian.AppendUint32([]byte("tributary/collect/1 "), uint32(s))
	h.Write(binary.BigEndian.AppendUint32(b, uint32(len(targets))))
	for i := range targets {
		c := cursor.Cursor{B: b[:0], Writes: true}
		targets[i].fields(&c)
		b = c.B
		h.Write(b)
	}
	var d Digest
	h.Sum(d[:0])
	return d
}

// Creation is what makes a group at a member.
type Creation struct {
	Name    string
	Targets []Target
}

// Size returns the bytes that c takes in a message.
func (c *Creation) Size() int {
	n := 1 + len(c.Name) + 4
	for i := range c.Targets {
		n += 1 + len(c.Targets[i].Node) + 2 + len(Tag{})*len(c.Targets[i].Tags)
	}
	return n
}

// Append appends c to b.
func (c *Creation) Append(b []byte) []byte {
	out := cursor.Cursor{B: b, Writes: true}
	c.fields(&out)
	return out.B
}

// DecodeCreation reads all of b. The targets share nothing with it.
func DecodeCreation(b []byte) (*Creation, error) {
	in, c := cursor.Cursor{B: b}, &Creation{}
	c.fields(&in)
	if in.Bad || len(in.B) > 0 {
		return nil, fmt.Errorf("%w: %d bytes are no list of them", ErrTargets, len(b))
	}
	return c, nil
}

// fields are those of a creation. Memory is taken for what is there, not for what is
// announced.
func (c *Creation) fields(f *cursor.Cursor) {
	count := len(c.Targets)
	cursor.Text(f, &c.Name)
	cursor.Uint32(f, &count)
	if !f.Writes {
		f.Bad = f.Bad || len(c.Name) > MaxName || count == 0 || count > len(f.B)/(4+len(Tag{}))
		if f.Bad {
			return
		}
		c.Targets = make([]Target, count)
	}
	for i := range c.Targets {
		c.Targets[i].fields(f)
		if !f.Writes && (f.Bad || ValidTarget(i, &c.Targets[i]) != nil) {
			f.Bad = true
			return
		}
	}
}

func (t *Target) fields(f *cursor.Cursor) {
	tags := len(t.Tags)
	cursor.Text(f, &t.Node)
	cursor.Uint16(f, &tags)
	if !f.Writes {
		t.Tags = make([]Tag, min(tags, len(f.B)/len(Tag{})))
		f.Bad = f.Bad || len(t.Tags) < tags
	}
	for i := range t.Tags {
		f.Bytes(t.Tags[i][:])
	}
}

// ValidTarget reports what is wrong with the i-th target of a list; that its
// node is not there twice is for the list's owner to check.
func ValidTarget(i int, t *Target) error {
	switch {
	case len(t.Node) == 0 || len(t.Node) > MaxNode:
		return fmt.Errorf("%w: the name of node %d has %d bytes, want 1 to %d", ErrTargets, i, len(t.Node), MaxNode)
	case len(t.Tags) == 0 || len(t.Tags) > MaxTags:
		return fmt.Errorf("%w: node %q has %d entities, want 1 to %d", ErrTargets, t.Node, len(t.Tags), MaxTags)
	}
	if len(t.Tags) == 1 {
		return nil // as of most nodes of a large group
	}
	seen := make(map[Tag]struct{}, len(t.Tags))
	for _, tag := range t.Tags {
		if _, twice := seen[tag]; twice {
			return fmt.Errorf("%w: node %q has entity %x twice", ErrTargets, t.Node, tag)
		}
		seen[tag] = struct{}{}
	}
	return nil
}
