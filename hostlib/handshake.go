package hostlib

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// word is what two hosts say to each other about a link of one of their communicators, or about
// the end of one: a frame of stream 0.
type word struct {
	kind kind
	to   uint32 // stream of who hears it; 0 in an open, and in a close of one that has no answer
	from uint32 // stream of who says it; 0 in a refusal and a last word
	own  attempt

	hello        // of an open
	rest  []byte // of a refusal why, of a last word the frame, of a revocation the notice
}

// hello is what a member says of itself in an open.
type hello struct {
	group    digest
	rank, of uint32  // the caller's rank, and that which is called
	met      attempt // number of the communicator that is called; 0: the two have not met yet
	name     string  // of the communicator
}

// kind is the kind of a word.
type kind uint8

// The kinds of words.
const (
	opens    kind = 1 + iota // from, own, hello
	accepts                  // to, from, own
	refuses                  // to, rest
	confirms                 // to
	lastWord                 // to, rest: the communicator has ended
	closes                   // to, from: the sender has that stream no more
	revokes                  // rest: the communicator is revoked
	kinds
)

const (
	wordSize = 4 + 4 + 4 + 8             // bytes of a word before what is the kind's own
	openSize = wordSize + 32 + 4 + 4 + 8 // bytes of an open before the name
	maxName  = 255                       // bytes of a communicator's or a host's name
)

var errWord = errors.New("hostlib: malformed word about a link")

// bytes returns the word as it is sent.
func (w *word) bytes() []byte {
	b := []byte{byte(w.kind), 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, w.to)
	b = binary.BigEndian.AppendUint32(b, w.from)
	b = binary.BigEndian.AppendUint64(b, uint64(w.own))
	if w.kind != opens {
		return append(b, w.rest...)
	}
	b = append(b, w.group[:]...)
	b = binary.BigEndian.AppendUint32(b, w.rank)
	b = binary.BigEndian.AppendUint32(b, w.of)
	b = binary.BigEndian.AppendUint64(b, uint64(w.met))
	return append(b, w.name...)
}

func (w *word) frame() *peer.Send { return &peer.Send{Service: peer.Communicators, Body: w.bytes()} }

// readWord reads a word, which keeps no part of b but rest.
func readWord(b []byte) (w word, err error) {
	if len(b) < wordSize || b[1]|b[2]|b[3] != 0 {
		return w, fmt.Errorf("%w: %d bytes", errWord, len(b))
	}
	w.kind, w.rest = kind(b[0]), b[wordSize:]
	w.to, w.from = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	w.own = attempt(binary.BigEndian.Uint64(b[12:]))
	isGood := w.to <= maxStream && w.from <= maxStream
	switch w.kind {
	case opens:
		if isGood = isGood && w.to == 0 && w.from != 0 && w.own != 0 && len(b) > openSize && len(b) <= openSize+maxName; !isGood {
			break
		}
		w.group = digest(w.rest[:32])
		w.rank, w.of = binary.BigEndian.Uint32(w.rest[32:]), binary.BigEndian.Uint32(w.rest[36:])
		w.met, w.name = attempt(binary.BigEndian.Uint64(w.rest[40:])), string(b[openSize:])
		w.rest = nil
	case accepts:
		isGood = isGood && w.to != 0 && w.from != 0 && w.own != 0 && len(w.rest) == 0
	case refuses:
		isGood = isGood && w.to != 0 && w.from == 0 && w.own == 0 && len(w.rest) > 0
	case confirms:
		isGood = isGood && w.to != 0 && w.from == 0 && w.own == 0 && len(w.rest) == 0
	case lastWord:
		isGood = isGood && w.to != 0 && w.from == 0 && w.own == 0 && len(w.rest) > 0
	case closes:
		isGood = isGood && w.to|w.from != 0 && w.own == 0 && len(w.rest) == 0
	case revokes:
		isGood = w.to|w.from == 0 && w.own == 0 && len(w.rest) == revoke.NoticeSize
	default:
		isGood = false
	}
	if !isGood {
		return word{}, fmt.Errorf("%w: kind %d in %d bytes", errWord, b[0], len(b))
	}
	return w, nil
}
