package hostlib

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

// digest identifies a group on host connections: all that its members must
// agree upon.
type digest [32]byte

// digestOf returns the digest of a name, the members in order, and the
// settings that have to be equal.
func digestOf(name string, members []Member, chunkBytes int, window uint32, t groupOptions) digest {
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s)))
		h.Write([]byte(s))
	}
	text("tributary group 1")
	text(name)
	_, types := t.needs(len(members))
	_ = binary.Write(h, binary.BigEndian, [5]uint32{uint32(len(members)), uint32(chunkBytes), window, uint32(t.functions), uint32(types)})
	for _, m := range members {
		text(m.process())
		text(m.Addr)
	}
	if slices.ContainsFunc(members, func(m Member) bool { return m.Leaf != "" }) {
		text("leaves")
		for _, m := range members {
			text(m.Leaf)
		}
	}
	if p := t.purpose; p != (pathsel.Purpose{}) {
		_ = binary.Write(h, binary.BigEndian, p)
	}
	for _, a := range t.algorithms {
		text(a.String())
	}
	switch {
	case t.noSwitches:
		text("on the tree of hosts")
	case t.onTree:
		text("on the tree")
	}
	if t.wantsMultitree() {
		text("several trees")
		_ = binary.Write(h, binary.BigEndian, [2]uint32{uint32(t.stripes), uint32(t.roots)})
	}
	if t.protection != wire.Plain {
		text(t.protection.String())
	}
	if t.reproducible {
		text("reproducible")
	}
	if t.compressed != reduce.NoType {
		text("compressed to " + t.compressed.String())
	}
	return digest(h.Sum(nil))
}

// numbers returns what a group calls itself on its tree of hosts.
func (d digest) numbers() (group uint32, cookie wire.Cookie) {
	return binary.BigEndian.Uint32(d[:]), wire.Cookie(binary.BigEndian.Uint64(d[4:]) & wire.CookieMask)
}

// attempt is a random number of one member's communicator, never 0. A group may
// be formed again and again, and members may fail at it, leave it, or restart
// at different times: that two of their communicators belong together is known
// by this pair of numbers alone.
type attempt uint64

func newAttempt() attempt {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return attempt(binary.BigEndian.Uint64(b[:]) | 1)
}

// maxTombstones are the most communicators that have ended whose last word is kept.
const maxTombstones = 4096

// tombstones keep the last words of communicators that have ended, the newest ones,
// for neighbours that missed them.
type tombstones struct {
	words map[attempt][]byte
	order []attempt
}

func (t *tombstones) put(a attempt, frame []byte) {
	if t.words == nil {
		t.words = map[attempt][]byte{}
	}
	if _, have := t.words[a]; !have {
		t.order = append(t.order, a)
	}
	t.words[a] = frame
	if len(t.order) > maxTombstones {
		delete(t.words, t.order[0])
		t.order = t.order[1:]
	}
}
