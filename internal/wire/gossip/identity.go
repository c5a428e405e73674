package gossip

import (
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrID is wrapped by the errors of MakeID and ID.Validate.
var ErrID = errors.New("gossip: invalid ID")

// MaxID is the largest length of an ID in bytes.
const MaxID = 255

// ID is a node's name with its endpoints, in the form name@ip:port,ip:port...
// An endpoint takes datagrams and streams alike; the first is tried first. A
// node with another endpoint is another node.
type ID string

// MakeID returns the ID of a name and endpoints.
func MakeID(name string, endpoints ...netip.AddrPort) (ID, error) {
	var b strings.Builder
	b.WriteString(name)
	for i, e := range endpoints {
		b.WriteByte("@,"[min(i, 1)])
		b.WriteString(e.String())
	}
	id := ID(b.String())
	return id, id.Validate()
}

// Anonymous reports whether id has endpoints alone: that of a node whose name is
// not known yet.
func (id ID) Anonymous() bool {
	return strings.HasPrefix(string(id), "@") && ("-"+id).Validate() == nil
}

// Validate reports what is wrong with id; the error wraps ErrID.
func (id ID) Validate() error {
	name, list, found := strings.Cut(string(id), "@")
	switch {
	case len(id) > MaxID:
		return fmt.Errorf("%w: %q has %d bytes, at most %d are sent", ErrID, id, len(id), MaxID)
	case name == "" || !found:
		return fmt.Errorf("%w: %q is not name@ip:port", ErrID, id)
	}
	for text := range strings.SplitSeq(list, ",") {
		e, err := netip.ParseAddrPort(text)
		if err != nil || e.Port() == 0 || e.String() != text {
			return fmt.Errorf("%w: %q: endpoint %q, want ip:port in its shortest form", ErrID, id, text)
		}
	}
	return nil
}

// Name returns the node's name.
func (id ID) Name() string {
	name, _, _ := strings.Cut(string(id), "@")
	return name
}

// Endpoints returns the node's endpoints, none if the ID is not valid.
func (id ID) Endpoints() []netip.AddrPort {
	_, list, _ := strings.Cut(string(id), "@")
	var endpoints []netip.AddrPort
	for text := range strings.SplitSeq(list, ",") {
		if e, err := netip.ParseAddrPort(text); err == nil {
			endpoints = append(endpoints, e)
		}
	}
	return endpoints
}

// Key returns the node's place on the ring, which also stands for the ID in
// messages to those who know it.
func (id ID) Key() Key {
	sum := sha1.Sum([]byte(id))
	return Key(binary.BigEndian.Uint64(sum[:]))
}

// Key is the first 8 bytes of the SHA-1 of an ID.
type Key uint64

// Life returns the number of one incarnation of a node: the same everywhere, and
// another for every start.
func (k Key) Life(incarnation uint64) Life {
	return Life(mix(uint64(k) ^ mix(incarnation)))
}

// Life is one incarnation of a node.
type Life uint64

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014): a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// MaxMinor is the largest minor that is read: nobody raises its own so often.
const MaxMinor = 1 << 31

// Version is what is known of a node. The incarnation rises strictly at every
// start; the minor begins at 1 and is raised by the node alone.
type Version struct {
	Incarnation uint64
	Minor       uint32
}

// Compare compares by incarnation, then by minor.
func (v Version) Compare(w Version) int {
	if c := cmp.Compare(v.Incarnation, w.Incarnation); c != 0 {
		return c
	}
	return cmp.Compare(v.Minor, w.Minor)
}

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool { return v.Compare(w) < 0 }

// String returns the version as incarnation.minor.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Incarnation, v.Minor) }

// Exit is how a node left: with a code if Given.
type Exit struct {
	Given bool
	Code  uint8
}

// String returns the code, or - if there is none.
func (e Exit) String() string {
	if !e.Given {
		return "-"
	}
	return fmt.Sprint(e.Code)
}
