package revoke

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

func golden() Notice {
	n := Notice{Of: Identity{Life: 0x1122334455667788}, By: 299, Reason: 7}
	for i := range n.Of.Group {
		n.Of.Group[i] = byte(0xe0 + i)
	}
	return n
}

// TestGoldenNotice: the bytes of a notice are those in testdata/messages.
func TestGoldenNotice(t *testing.T) {
	notice := golden()
	raw := notice.Append(nil)
	text, at := "# notice\n", 0
	for _, f := range []struct {
		size int
		what string
	}{{32, "digest of the group"}, {8, "life"}, {4, "rank that has revoked"}, {4, "its reason"}} {
		text += fmt.Sprintf("%4d  %x %s\n", at, raw[at:at+f.size], f.what)
		at += f.size
	}
	transcript.Listings(t, "testdata/messages", []transcript.Listing{{Name: "notice", Text: text, Read: func(t *testing.T, raw []byte) {
		got, err := Read(raw)
		if diff := cmp.Diff(notice, got); err != nil || diff != "" || len(raw) != NoticeSize {
			t.Errorf("%d bytes, %v (-want +got):\n%s", len(raw), err, diff)
		}
		for n := range raw {
			if _, err := Read(raw[:n]); err == nil {
				t.Errorf("%d of %d bytes are read", n, len(raw))
			}
		}
		if _, err := Read(append(raw, 0)); err == nil {
			t.Error("a byte too many is read")
		}
	}}})
}

// FuzzNotice: what can be read has one form.
func FuzzNotice(f *testing.F) {
	notice := golden()
	f.Add(notice.Append(nil))
	f.Add(make([]byte, NoticeSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Read(b)
		if err != nil {
			return
		}
		if again := n.Append(nil); string(again) != string(b) || len(b) != NoticeSize {
			t.Fatalf("%x is read as %+v, which is %x", b, n, again)
		}
	})
}

// FuzzStep: no inputs make a member panic, deliver twice or send to who is no neighbour. It delivers
// only once it is formed, and sends to each neighbour once, and once for each new connection.
func FuzzStep(f *testing.F) {
	notice := noticeOf(1, 3)
	f.Add(uint32(5), uint32(300), append([]byte{byte(Formed), 0, 1, byte(Message), 4, NoticeSize}, notice.Append(nil)...))
	f.Add(uint32(0), uint32(7), []byte{byte(Formed), 0, 1, byte(Dead), 1, 0, byte(Revoke), 0, 9, byte(Connected), 2, 0, byte(Connected), 2, 0})
	f.Add(uint32(1), uint32(2), append([]byte{byte(Message), 0, NoticeSize}, append(notice.Append(nil), byte(Formed), 0, 1)...))
	f.Fuzz(func(t *testing.T, rank, size uint32, b []byte) {
		c, err := New(Config{Rank: rank, Size: int(size), Group: group})
		if err != nil {
			return
		}
		var out Output
		delivered, most := 0, map[uint32]int{}
		for len(b) > 2 {
			in := Input{Kind: InputKind(b[0] % 6), From: rank + uint32(int8(b[1])), Life: uint64(b[2]), Reason: uint32(b[2])}
			n := min(int(b[2]), len(b)-3)
			if b = b[3:]; in.Kind == Message {
				in.Bytes, b = b[:n], b[n:]
			}
			isFormed := c.state != forming
			out.Reset()
			c.Step([]Input{in}, &out)
			if in.Kind == Connected {
				most[in.From]++
			}
			if out.Delivered {
				delivered++
				for w := range Neighbours(int(size), rank, 0) {
					most[w]++
				}
			}
			for _, s := range out.Sends {
				if most[s.To]--; most[s.To] < 0 || !AreNeighbours(int(size), rank, s.To) {
					t.Fatalf("a notice to %d of %d", s.To, size)
				}
			}
			if delivered > 1 || out.Delivered && !isFormed && in.Kind != Formed {
				t.Fatalf("delivered %d times, formed: %v", delivered, isFormed)
			}
		}
	})
}
