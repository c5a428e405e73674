package hostlib

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire"
)

const (
	helloMagic   = "TRIB"
	helloVersion = 1
	maxName      = 255 // bytes of a communicator's or a host's name

	helloTimeout = 5 * time.Second  // for a greeting, or its answer, to arrive
	parkTimeout  = 30 * time.Second // a caller waits so long for its communicator to be made here
	maxParked    = 4096             // communicators that callers wait for
	maxTombs     = 4096             // ended communicators whose last word is kept
)

// Answers to a greeting.
const (
	accepted = 0
	refused  = 1
)

var errHello = errors.New("hostlib: unsound greeting")

// digest identifies a communicator on host connections: all that its members
// must agree upon, and how often it was formed before.
type digest [32]byte

// digestOf returns the digest of a name, the members in order, and the
// settings that have to be equal.
func digestOf(name string, members []Member, chunkBytes int, window uint32, t terms) digest {
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s)))
		h.Write([]byte(s))
	}
	text("tributary group 1")
	text(name)
	_ = binary.Write(h, binary.BigEndian, [5]uint32{uint32(len(members)), uint32(chunkBytes), window, uint32(t.functions), uint32(t.types)})
	for _, m := range members {
		text(m.Host)
		text(m.Addr)
	}
	return digest(h.Sum(nil))
}

// instance returns the digest of the n-th forming of the same group.
func (d digest) instance(n uint32) digest {
	return sha256.Sum256(binary.BigEndian.AppendUint32(d[:], n))
}

// hello is what a member says first on a connection to its parent in the tree
// of hosts.
type hello struct {
	group    digest
	from, to uint32 // ranks
	name     string // of the communicator
}

func (h *hello) append(b []byte) []byte {
	b = append(b, helloMagic...)
	b = append(b, helloVersion)
	b = append(b, h.group[:]...)
	b = binary.BigEndian.AppendUint32(b, h.from)
	b = binary.BigEndian.AppendUint32(b, h.to)
	b = append(b, byte(len(h.name)))
	return append(b, h.name...)
}

func readHello(r io.Reader) (hello, error) {
	var fixed [4 + 1 + 32 + 8 + 1]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return hello{}, fmt.Errorf("%w: %w", errHello, err)
	}
	if string(fixed[:4]) != helloMagic || fixed[4] != helloVersion {
		return hello{}, fmt.Errorf("%w: it is not of version %d of this protocol", errHello, helloVersion)
	}
	h := hello{
		group: digest(fixed[5:37]),
		from:  binary.BigEndian.Uint32(fixed[37:]), to: binary.BigEndian.Uint32(fixed[41:]),
	}
	name := make([]byte, fixed[45])
	if _, err := io.ReadFull(r, name); err != nil {
		return hello{}, fmt.Errorf("%w: %w", errHello, err)
	}
	h.name = string(name)
	return h, nil
}

// caller is a connection on which another member has greeted.
type caller struct {
	conn  net.Conn
	hello hello
	timer *time.Timer // while it is parked
}

// answer answers the greeting, and ends the connection if that is a refusal.
func (k *caller) answer(code byte, why string) {
	if k.timer != nil {
		k.timer.Stop()
	}
	_ = k.conn.SetWriteDeadline(time.Now().Add(helloTimeout))
	b := append([]byte{code}, byte(min(len(why), 255)))
	_, err := k.conn.Write(append(b, why[:min(len(why), 255)]...))
	_ = k.conn.SetWriteDeadline(time.Time{})
	if err != nil || code != accepted {
		k.conn.Close()
	}
}

// last sends a communicator's last word and ends the connection.
func (k *caller) last(frame []byte) {
	_ = k.conn.SetWriteDeadline(time.Now().Add(helloTimeout))
	_, _ = k.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	k.conn.Close()
}

// readAnswer reads the answer to a greeting: an error if it is a refusal.
func readAnswer(r io.Reader) (why string, ok bool, err error) {
	var b [2]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return "", false, fmt.Errorf("hostlib: greeting: %w", err)
	}
	text := make([]byte, b[1])
	if _, err := io.ReadFull(r, text); err != nil {
		return "", false, fmt.Errorf("hostlib: greeting: %w", err)
	}
	return string(text), b[0] == accepted, nil
}

// tombs keep the last words of communicators that have ended, the newest ones,
// for neighbours that missed them.
type tombs struct {
	words map[digest][]byte
	order []digest
}

func (t *tombs) put(d digest, frame []byte) {
	if t.words == nil {
		t.words = map[digest][]byte{}
	}
	if _, have := t.words[d]; !have {
		t.order = append(t.order, d)
	}
	t.words[d] = frame
	if len(t.order) > maxTombs {
		delete(t.words, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *tombs) get(d digest) ([]byte, bool) {
	f, ok := t.words[d]
	return f, ok
}

// numbers returns what a group calls itself on its tree of hosts.
func (d digest) numbers() (group uint32, cookie uint64) {
	return binary.BigEndian.Uint32(d[:]), binary.BigEndian.Uint64(d[4:]) & wire.CookieMask
}
