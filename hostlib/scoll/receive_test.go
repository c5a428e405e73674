package scoll

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/tributary-fabric/tributary/internal/core/collective"
	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// frames returns messages as they travel.
func frames(messages ...[]byte) []byte {
	var b []byte
	for _, m := range messages {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(m))), m...)
	}
	return b
}

// received returns what a reader hands on of a stream, and its error.
func received(t testing.TB, most int, stream io.Reader) ([][]byte, error) {
	n := &Node{chunks: &chunks{}}
	n.inbox = newInbox(n.chunks)
	r := reader{node: n, from: "x", most: most}
	err := r.read(stream)
	batch, _ := n.inbox.take(nil, false)
	var all [][]byte
	for _, in := range batch {
		if in.Kind != collective.Message || in.Node != "x" {
			t.Fatalf("%+v", in)
		}
		all = append(all, bytes.Clone(in.Bytes))
	}
	n.inbox.release()
	if n.chunks.lent != 0 {
		t.Fatalf("%d chunks are lent", n.chunks.lent)
	}
	return all, err
}

// TestReader: messages of all sizes, however the stream is cut.
func TestReader(t *testing.T) {
	var want [][]byte
	for i, size := range []int{1, 54, 4096, 1, urgentMost, 3, 1<<20 + 100, 7, 3 << 19, 1} {
		want = append(want, bytes.Repeat([]byte{byte(i + 1)}, size))
	}
	for range 300 {
		want = append(want, []byte("a small one"))
	}
	stream := frames(want...)
	for name, r := range map[string]io.Reader{
		"whole":      bytes.NewReader(stream),
		"halves":     iotest.HalfReader(bytes.NewReader(stream)),
		"data, EOF":  iotest.DataErrReader(bytes.NewReader(stream)),
		"with a cut": io.MultiReader(bytes.NewReader(stream[:len(stream)-5]), bytes.NewReader(stream[len(stream)-5:])),
	} {
		got, err := received(t, largeMost, r)
		if !errors.Is(err, io.EOF) || len(got) != len(want) {
			t.Fatalf("%s: %d messages of %d, %v", name, len(got), len(want), err)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("%s: message %d has changed", name, i)
			}
		}
	}
}

// TestReaderBelievesWhatCame: a length alone takes no memory.
func TestReaderBelievesWhatCame(t *testing.T) {
	n := &Node{chunks: &chunks{}}
	n.inbox = newInbox(n.chunks)
	r := reader{node: n, from: "x", most: largeMost}
	if err := r.read(bytes.NewReader(binary.BigEndian.AppendUint32(nil, largeMost))); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if size := len(r.chunk.memory); size != chunkClasses[0] {
		t.Errorf("%d bytes for a length", size)
	}
}

// FuzzReader: against cutting the stream by hand.
func FuzzReader(f *testing.F) {
	f.Add(frames([]byte("one"), []byte("two"), make([]byte, 5000)), byte(3))
	f.Add([]byte{0, 0, 0, 0}, byte(1))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, byte(1))
	f.Fuzz(func(t *testing.T, stream []byte, step byte) {
		var want [][]byte
		unsound := false
		for b := stream; len(b) >= frameLength; {
			size := int(binary.BigEndian.Uint32(b))
			if unsound = size > urgentMost; unsound || len(b) < frameLength+size {
				break
			}
			if size > 0 { // otherwise it only asks whether the node is there
				want = append(want, b[frameLength:frameLength+size])
			}
			b = b[frameLength+size:]
		}
		got, err := received(t, urgentMost, &slow{stream, int(step) + 1})
		if unsound != errors.Is(err, errFrame) || !unsound && !errors.Is(err, io.EOF) {
			t.Fatalf("%v, unsound: %v", err, unsound)
		}
		if len(got) != len(want) {
			t.Fatalf("%d messages, want %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("message %d has changed", i)
			}
		}
	})
}

// slow reads so many bytes at a time.
type slow struct {
	rest []byte
	step int
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(s.step, len(b))], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// TestStatuses: the public names are those of the wire, all of them.
func TestStatuses(t *testing.T) {
	all := map[Status]bool{
		StatusOK: true, StatusNoService: true, StatusNoGroup: true, StatusWrongParent: true, StatusDisagree: true, StatusNoTree: true,
		StatusNotMember: true, StatusStaleRoot: true, StatusRefused: true, StatusNoBuffer: true, StatusFailed: true,
		StatusBulkFailed: true, StatusAborted: true, StatusNoReply: true, StatusUnsent: true, StatusDead: true,
		StatusRebooted: true, StatusExpired: true, StatusOverflow: true, StatusUnreadable: true, StatusRootDied: true, StatusOutdated: true,
	}
	for s := range 256 {
		status := Status(s)
		if collect.Status(s).Valid() != all[status] {
			t.Errorf("%v: %v", status, all[status])
		}
		if (status.Err() == nil) != (status == StatusOK) || all[status] && (status.Type() == NoError) != (status == StatusOK) {
			t.Errorf("%v is of type %v, error %v", status, status.Type(), status.Err())
		}
	}
}
