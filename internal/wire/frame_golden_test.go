package wire

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/reduce"
)

// piece is a field of a frame: its size in bytes and its name.
type piece struct {
	size int
	name string
}

// goldenFrame is one frame of each kind, with the fields that docs/protocol.md
// gives it.
type goldenFrame struct {
	name   string
	says   string
	frame  []byte
	pieces []piece
}

func textPieces(s string) []piece {
	return []piece{{2, "bytes of the reason"}, {len(s), "reason: " + s}}
}

func numbersPieces(name string, s *Numbers) []piece {
	ps := []piece{{4, name + ": first number"}, {2, name + ": words"}}
	for i := range s.Bits {
		ps = append(ps, piece{8, fmt.Sprintf("%s: numbers %d to %d, the first in the lowest bit", name, s.First+uint32(64*i), s.First+uint32(64*i+63))})
	}
	return ps
}

func pieces(fixed []piece, more ...[]piece) []piece {
	all := append([]piece{{1, "kind"}}, fixed...)
	for _, m := range more {
		all = append(all, m...)
	}
	return all
}

func goldenFrames() []goldenFrame {
	sum := allreduceOf(reduce.Int32, reduce.Sum, 1000, 2)
	other := sum
	other.Operation, other.Function = 8, reduce.Max
	held, lack, give := numbersOf(38, 8, 38, 41), numbersOf(38, 8, 40, 41), numbersOf(40, 4, 41)
	from := numbersOf(40, 4, 41)
	probe := goldens()[0]
	for _, g := range goldens() {
		if g.name == "probe" {
			probe = g
		}
	}
	var head [HeaderSize]byte
	probe.header.Put(head[:])
	alarm := Alarm{Epoch: 4, Rank: 7, Reason: "no answer"}
	report := Report{Round: 2, Base: 40, Offers: []uint32{6, 8}, Held: held, Lack: lack}
	decide := Decide{Round: 2, Epoch: 8, Base: 40, Rank: 7, Held: from, Give: give, Reason: "no answer"}
	fill := Fill{Round: 2, Chunk: 41, Exponent: -29, Data: []byte{1, 0, 0, 0, 255, 255, 255, 255}}
	disagree := Fail{Kind: FailDisagree, Rank: 5, Error: ErrorBody{Mismatch, [2]uint32{5, 6}, [2]Signature{sum, other}}}
	calls := Fail{Kind: FailCalls, Rank: 5, Calls: [2]Called{{5, 0x0001_4800_0000_0010, 64}, {6, 0x0001_4800_0000_0008, 32}}}
	called := []piece{{4, "rank"}, {8, "tag"}, {8, "bytes of the message"}}
	dead := Fail{Kind: FailDead, Rank: 5, Reason: "no answer"}
	revoked := Fail{Kind: FailRevoked, Rank: 5}
	notice := Notice{Group: 9}
	round, epoch, rank := piece{4, "round"}, piece{4, "epoch"}, piece{4, "rank"}
	failing := []piece{{1, "kind of failure"}, rank}
	return []goldenFrame{
		{"packet", "a probe, on the tree of hosts", AppendPacket(nil, &head, nil),
			pieces([]piece{{HeaderSize, "packet"}})},
		{"alarm", "rank 7: the tree of epoch 4 is lost", alarm.Append(nil),
			pieces([]piece{epoch, rank}, textPieces(alarm.Reason))},
		{"collect", "report for round 2, which ends epoch 4", (&Collect{Round: 2, Epoch: 4}).Append(nil),
			pieces([]piece{round, epoch})},
		{"report", "all beneath hold offers 6 and 8 and are done with what is before 40", report.Append(nil),
			pieces([]piece{round, {4, "base"}, {1, "offers"}, {4, "offer"}, {4, "offer"}}, numbersPieces("held", &held), numbersPieces("lack", &lack))},
		{"decide", "epoch 8 begins; 40 is reduced again, 41 is held, and comes from below", decide.Append(nil),
			pieces([]piece{round, epoch, {4, "base"}, rank}, numbersPieces("held", &from), numbersPieces("give", &give), textPieces(decide.Reason))},
		{"fill", "the result of number 41", fill.Append(nil),
			pieces([]piece{round, {4, "chunk"}, {1, "exponent"}, {len(fill.Data), "payload"}})},
		{"holding", "all beneath hold the offer of epoch 8", (&Holding{Epoch: 8}).Append(nil),
			pieces([]piece{epoch})},
		{"fail-disagree", "ranks 5 and 6 disagree", disagree.Append(nil),
			pieces(failing, []piece{{ErrorBodySize, "body of an error packet"}}, textPieces(""))},
		{"fail-dead", "rank 5 is dead", dead.Append(nil),
			pieces(failing, textPieces(dead.Reason))},
		{"fail-calls", "ranks 5 and 6 called allreduces of 16 and 8 elements", calls.Append(nil),
			pieces(failing, called, called, textPieces(""))},
		{"fail-revoked", "rank 5 has revoked the communicator", revoked.Append(nil),
			pieces(failing, textPieces(""))},
		{"goodbye", "the last barrier is done", AppendGoodbye(nil), pieces(nil)},
		{"notice", "the manager's number of the group is 9", notice.Append(nil),
			pieces([]piece{{4, "group"}}, textPieces(""))},
		{"settled", "all beneath have every result before 42", (&Settled{Number: 42}).Append(nil),
			pieces([]piece{{4, "number"}})},
		{"missing", "ranks 3 and 12 have not come, and others", (&Missing{Ranks: []uint32{3, 12}, More: true, Life: 7}).Append(nil),
			pieces([]piece{{1, "more"}, {1, "ranks"}, rank, rank, {8, "life"}, {2, "setting"}})},
		{"waiting", "rank 5 waits in operation 9, an allgather", (&Waiting{Position: 9, Round: 1, Rank: 5, Tag: 0x0009_4800_0000_0010}).Append(nil),
			pieces([]piece{{4, "position"}, {1, "round"}, rank, {8, "tag"}})},
		{"late", "rank 3 has not called operation 9", (&Late{Position: 9, Round: 1, Rank: 3}).Append(nil),
			pieces([]piece{{4, "position"}, {1, "round"}, rank})},
		{"all-there", "all have come", (&Missing{Life: 7, Setting: []byte{1, 2}}).Append(nil),
			pieces([]piece{{1, "more"}, {1, "ranks"}, {8, "life"}, {2, "setting"}, {2, ""}})},
		{"setting", "operations from 80 on are chosen by a setting of 2 bytes", (&Setting{Round: 1, Step: SettingDecide, Position: 80, Value: []byte{1, 2}}).Append(nil),
			pieces([]piece{{4, "round"}, {1, "step"}, {4, "position"}, {2, "value"}, {2, ""}})},
	}
}

// listing writes a golden frame for people and for transcript.Listings.
func (g *goldenFrame) listing() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", g.says)
	at := 0
	for _, p := range g.pieces {
		for name := p.name; p.size > 0; name = "" {
			n := min(p.size, 16)
			fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%3d  %-32x  %s", at, g.frame[at:at+n], name), " "))
			at, p.size = at+n, p.size-n
		}
	}
	return b.String()
}

// TestGoldenFrames: each frame is written and read as its file says.
func TestGoldenFrames(t *testing.T) {
	var listings []transcript.Listing
	for _, g := range goldenFrames() {
		listings = append(listings, transcript.Listing{Name: g.name, Text: g.listing(), Read: func(t *testing.T, raw []byte) {
			m, err := ReadFrame(raw)
			if err != nil {
				t.Fatal(err)
			}
			if again, ok := m.(frame); ok {
				if diff := cmp.Diff(raw, again.Append(nil)); diff != "" {
					t.Errorf("read as %+v and written anew (-file +written):\n%s", m, diff)
				}
			}
		}})
	}
	transcript.Listings(t, filepath.Join("testdata", "golden-frames"), listings)
}

// TestGoldenFramesOfAllKinds: none is forgotten.
func TestGoldenFramesOfAllKinds(t *testing.T) {
	seen := map[FrameKind]bool{}
	for _, g := range goldenFrames() {
		seen[FrameKind(g.frame[0])] = true
	}
	for k := FramePacket; k <= FrameSetting; k++ {
		if !seen[k] {
			t.Errorf("there is no golden frame of kind %d", k)
		}
	}
}
