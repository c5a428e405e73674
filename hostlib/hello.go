package hostlib

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
)

const (
	helloMagic   = "TRIB"
	helloVersion = 2   // 2: frames of kinds settled and missing
	maxName      = 255 // bytes of a communicator's or a host's name

	helloTimeout = 5 * time.Second  // for a greeting, or its answer, to arrive
	parkTimeout  = 30 * time.Second // a caller waits so long for its communicator to be made here
	maxParked    = 4096             // callers that wait for a communicator at once
	maxTombs     = 4096             // ended communicators whose last word is kept
)

// Answers to a greeting, and the caller's answer to accepted.
const (
	accepted  = 0
	refused   = 1
	confirmed = 2
)

var errHello = errors.New("hostlib: malformed greeting")

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
	_ = binary.Write(h, binary.BigEndian, [5]uint32{uint32(len(members)), uint32(chunkBytes), window, uint32(t.functions), uint32(t.onSwitches())})
	for _, m := range members {
		text(m.Host)
		text(m.Addr)
	}
	if p := t.purpose; p != (pathsel.Purpose{}) {
		_ = binary.Write(h, binary.BigEndian, p)
	}
	if t.wantsMultitree() {
		text("several trees")
		_ = binary.Write(h, binary.BigEndian, [2]uint32{uint32(t.stripes), uint32(t.roots)})
	}
	return digest(h.Sum(nil))
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

// hello is what a member says first on a connection to its parent in the tree
// of hosts.
type hello struct {
	group    digest
	from, to uint32  // ranks
	own      attempt // the caller's
	of       attempt // that of the communicator that is called; 0: not met yet
	name     string  // of the communicator
}

const helloFixed = 4 + 1 + 32 + 4 + 4 + 8 + 8 + 1 // bytes before the name

// bytes returns the greeting as it is sent.
func (h *hello) bytes() []byte {
	b := []byte(helloMagic)
	b = append(b, helloVersion)
	b = append(b, h.group[:]...)
	b = binary.BigEndian.AppendUint32(b, h.from)
	b = binary.BigEndian.AppendUint32(b, h.to)
	b = binary.BigEndian.AppendUint64(b, uint64(h.own))
	b = binary.BigEndian.AppendUint64(b, uint64(h.of))
	b = append(b, byte(len(h.name)))
	return append(b, h.name...)
}

// headSize is the part of a greeting that is the same in all versions: the
// magic number, and the version.
const headSize = len(helloMagic) + 1

// versionError is what a greeting of another version is answered.
type versionError byte

func (v versionError) Error() string {
	return fmt.Sprintf("the greeting is of version %d of the host connections' protocol, and this host speaks version %d", byte(v), helloVersion)
}

func readHello(r io.Reader) (hello, error) {
	var fixed [helloFixed]byte
	if _, err := io.ReadFull(r, fixed[:headSize]); err != nil {
		return hello{}, fmt.Errorf("%w: %w", errHello, err)
	}
	if string(fixed[:len(helloMagic)]) != helloMagic {
		return hello{}, fmt.Errorf("%w: it is not of this protocol", errHello)
	}
	if v := fixed[headSize-1]; v != helloVersion {
		return hello{}, fmt.Errorf("%w: %w", errHello, versionError(v))
	}
	if _, err := io.ReadFull(r, fixed[headSize:]); err != nil {
		return hello{}, fmt.Errorf("%w: %w", errHello, err)
	}
	h := hello{
		group: digest(fixed[5:37]),
		from:  binary.BigEndian.Uint32(fixed[37:]), to: binary.BigEndian.Uint32(fixed[41:]),
		own: attempt(binary.BigEndian.Uint64(fixed[45:])), of: attempt(binary.BigEndian.Uint64(fixed[53:])),
	}
	name := make([]byte, fixed[helloFixed-1])
	if _, err := io.ReadFull(r, name); err != nil {
		return hello{}, fmt.Errorf("%w: %w", errHello, err)
	}
	h.name = string(name)
	if h.own == 0 || h.name == "" {
		return hello{}, fmt.Errorf("%w: the caller has no number, or the communicator no name", errHello)
	}
	return h, nil
}

// caller is a connection on which another member has greeted.
type caller struct {
	conn  net.Conn
	hello hello
	from  string      // the host that it is
	timer *time.Timer // while it is parked; guarded by Host.mu
}

// accept answers the greeting for the communicator own, and waits until the
// caller confirms that it is still there: it may have given up long ago.
func (k *caller) accept(own attempt) error {
	if err := k.answer(accepted, own, ""); err != nil {
		return err
	}
	_ = k.conn.SetReadDeadline(time.Now().Add(helloTimeout))
	var b [1]byte
	if _, err := io.ReadFull(k.conn, b[:]); err != nil {
		return fmt.Errorf("hostlib: greeting: %w", err)
	}
	if b[0] != confirmed {
		return fmt.Errorf("%w: it was confirmed by %d", errHello, b[0])
	}
	return k.conn.SetReadDeadline(time.Time{})
}

// refuse answers the greeting by a refusal, and ends the connection.
func (k *caller) refuse(why string) {
	_ = k.answer(refused, 0, why)
	hangUp(k.conn, helloTimeout)
}

func (k *caller) answer(code byte, own attempt, why string) error {
	_ = k.conn.SetWriteDeadline(time.Now().Add(helloTimeout))
	why = why[:min(len(why), 255)]
	b := binary.BigEndian.AppendUint64([]byte{code}, uint64(own))
	b = append(append(b, byte(len(why))), why...)
	if _, err := k.conn.Write(b); err != nil {
		return fmt.Errorf("hostlib: greeting: %w", err)
	}
	return k.conn.SetWriteDeadline(time.Time{})
}

// last sends the last word of a communicator that has ended, and ends the
// connection.
func (k *caller) last(frame []byte) {
	if k.answer(accepted, k.hello.of, "") == nil {
		_ = k.conn.SetWriteDeadline(time.Now().Add(helloTimeout))
		_ = writeFrame(k.conn, frame)
	}
	hangUp(k.conn, helloTimeout)
}

// hangUp ends a connection on which the other side may still be sending. To
// close it at once would reset it, and what was sent last might be lost.
func hangUp(conn net.Conn, patience time.Duration) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, _ = io.Copy(io.Discard, conn)
	}
	conn.Close()
}

// readAnswer reads the answer to a greeting: who has accepted, or 0 and why
// not.
func readAnswer(r io.Reader) (by attempt, why string, err error) {
	var b [10]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, "", fmt.Errorf("hostlib: greeting: %w", err)
	}
	by = attempt(binary.BigEndian.Uint64(b[1:]))
	if b[0] != accepted && b[0] != refused || (by != 0) != (b[0] == accepted) {
		return 0, "", fmt.Errorf("%w: the answer is not of this protocol", errHello)
	}
	text := make([]byte, b[9])
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, "", fmt.Errorf("hostlib: greeting: %w", err)
	}
	return by, string(text), nil
}

// tombs keep the last words of communicators that have ended, the newest ones,
// for neighbours that missed them.
type tombs struct {
	words map[attempt][]byte
	order []attempt
}

func (t *tombs) put(a attempt, frame []byte) {
	if t.words == nil {
		t.words = map[attempt][]byte{}
	}
	if _, have := t.words[a]; !have {
		t.order = append(t.order, a)
	}
	t.words[a] = frame
	if len(t.order) > maxTombs {
		delete(t.words, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *tombs) get(a attempt) ([]byte, bool) {
	f, ok := t.words[a]
	return f, ok
}

// numbers returns what a group calls itself on its tree of hosts.
func (d digest) numbers() (group uint32, cookie uint64) {
	return binary.BigEndian.Uint32(d[:]), binary.BigEndian.Uint64(d[4:]) & wire.CookieMask
}
