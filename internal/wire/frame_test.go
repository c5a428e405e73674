package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/reduce"
)

func numbersOf(first uint32, n int, set ...uint32) Numbers {
	var s Numbers
	s.Init(first, n)
	for _, v := range set {
		s.Set(v)
	}
	return s
}

// frame is what the message kinds have in common.
type frame interface{ Append(b []byte) []byte }

func frames() []frame {
	sum := allreduceOf(reduce.Int32, reduce.Sum, 1000, 2)
	other := sum
	other.Operation++
	return []frame{
		&Alarm{Epoch: 4, Rank: 7, Reason: "no answer to 8 probes"},
		&Alarm{},
		&Collect{Round: 2, Epoch: 4},
		&Report{Round: 2, Base: 40, Offers: []uint32{6, 8}, Held: numbersOf(38, 64, 38, 41), Lack: numbersOf(38, 128, 40, 150)},
		&Report{Offers: []uint32{}, Held: Numbers{Bits: []uint64{}}, Lack: Numbers{Bits: []uint64{}}},
		&Decide{Round: 2, Epoch: 6, Base: 40, Rank: 7, Held: numbersOf(40, 64, 41), Give: numbersOf(40, 64, 41), Reason: "switch 3 died"},
		&Fill{Round: 2, Chunk: 41, Exponent: -128, Data: []byte{1, 2, 3, 4}},
		&Fill{Data: []byte{}},
		&Holding{Epoch: 6}, &Settled{Number: 1<<32 - 1},
		&Fail{Kind: FailDisagree, Rank: 5, Error: ErrorBody{Mismatch, [2]uint32{5, 6}, [2]Signature{sum, other}}, Reason: "ranks 5 and 6"},
		&Fail{Kind: FailDead, Rank: 5},
		&Fail{Kind: FailCancel, Rank: 5, Reason: "context canceled"},
		&Fail{Kind: FailInternal},
		&Waiting{Position: 1 << 31, Round: 3, Rank: 7, Tag: 1 << 63},
		&Late{Position: 9, Round: 255, Rank: MaxRank},
		&Fail{Kind: FailCalls, Rank: 5, Calls: [2]Called{{5, 1 << 60, 80}, {6, 3, 1 << 40}}},
		&Fail{Kind: FailRevoked, Rank: MaxRank},
		&Notice{Group: 9},
		&Notice{Reason: "no manager"},
		&Missing{Ranks: []uint32{3, 65536}, Setting: []byte{}},
		&Missing{Ranks: []uint32{1, 2, 3, 4, 5, 6, 7, 8}, More: true, Setting: []byte{}},
		&Missing{Ranks: []uint32{}, Setting: []byte{}},
		&Missing{Ranks: []uint32{}, Life: 1 << 63, Setting: []byte("by these costs")},
		&Setting{Round: 1 << 31, Step: SettingAsk, Value: []byte{}},
		&Setting{Round: 2, Step: SettingPromise, Position: 1 << 31, Value: []byte{}},
		&Setting{Round: 3, Step: SettingDecide, Position: 7, Value: bytes.Repeat([]byte{1}, MaxSetting)},
	}
}

func TestFrameRoundTrip(t *testing.T) {
	for _, m := range frames() {
		b := m.Append([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Errorf("%T is not appended: %q", m, b)
		}
		got, err := ReadFrame(b[len("before"):])
		if err != nil {
			t.Errorf("%T: %v", m, err)
			continue
		}
		if diff := cmp.Diff(any(m), got); diff != "" {
			t.Errorf("%T (-written +read):\n%s", m, diff)
		}
	}
}

func TestFrameOfPacket(t *testing.T) {
	g := goldens()[0]
	var head [HeaderSize]byte
	g.header.Put(head[:])
	got, err := ReadFrame(AppendPacket(nil, &head, g.payload))
	if packet, ok := got.([]byte); err != nil || !ok || !bytes.Equal(packet, g.packet()) {
		t.Errorf("read %x, %v", got, err)
	}
}

func TestFrameGoodbye(t *testing.T) {
	if got, err := ReadFrame(AppendGoodbye(nil)); got != FrameGoodbye || err != nil {
		t.Errorf("read %v, %v", got, err)
	}
}

// TestFrameMalformed: each frame, cut or lengthened anywhere, is an error, but for
// those that may have any length.
func TestFrameMalformed(t *testing.T) {
	for _, m := range frames() {
		if _, open := m.(*Fill); open {
			continue
		}
		whole := append(m.Append(nil), 0)
		for n := range len(whole) + 1 {
			if n == len(whole)-1 {
				continue
			}
			if _, err := ReadFrame(whole[:n]); !errors.Is(err, ErrFrame) {
				t.Errorf("%T of %d bytes cut to %d: error %v", m, len(whole)-1, n, err)
			}
		}
	}
	large := MaxSpan/64 + 1
	for name, b := range map[string][]byte{
		"unknown kind":     {0},
		"short fill":       {byte(FrameFill), 0, 0, 0, 0, 0, 0, 0, 0},
		"long goodbye":     {byte(FrameGoodbye), 0},
		"failure kind":     {byte(FrameFail), byte(FailRevoked) + 1, 0, 0, 0, 0, 0, 0},
		"too many offers":  append(append([]byte{byte(FrameReport), 0, 0, 0, 0, 0, 0, 0, 0, MaxOffers + 1}, make([]byte, 4*(MaxOffers+1))...), make([]byte, 12)...),
		"too many missing": append([]byte{byte(FrameMissing), 0, MaxMissing + 1}, make([]byte, 4*(MaxMissing+1))...),
		"more than nobody": {byte(FrameMissing), 1, 0},
		"more of neither":  {byte(FrameMissing), 2, 1, 0, 0, 0, 1},
		"setting's step":   {byte(FrameSetting), 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0},
		"asked with value": {byte(FrameSetting), 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 9},
		"too long setting": append([]byte{byte(FrameSetting), 0, 0, 0, 1, 3, 0, 0, 0, 0, MaxSetting >> 8, MaxSetting&0xff + 1}, make([]byte, MaxSetting+1)...),
		"too long reason":  append([]byte{byte(FrameNotice), 0, 0, 0, 0, MaxReason >> 8, MaxReason&0xff + 1}, make([]byte, MaxReason+1)...),
		"too wide a set":   append([]byte{byte(FrameReport), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(large >> 8), byte(large)}, make([]byte, 8*large+6)...),
	} {
		if m, err := ReadFrame(b); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: read %v, error %v", name, m, err)
		}
	}
}

// TestFrameReasonIsCut: a reason too long to read is not written.
func TestFrameReasonIsCut(t *testing.T) {
	m := Notice{Reason: strings.Repeat("x", MaxReason+1)}
	got, err := ReadFrame(m.Append(nil))
	if n, ok := got.(*Notice); err != nil || !ok || n.Reason != m.Reason[:MaxReason] {
		t.Errorf("read %v, %v", got, err)
	}
}

func FuzzReadFrame(f *testing.F) {
	for _, m := range frames() {
		f.Add(m.Append(nil))
	}
	f.Add(AppendGoodbye(nil))
	f.Add(append([]byte{byte(FramePacket)}, goldens()[0].packet()...))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadFrame(b)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Errorf("error %v", err)
			}
			return
		}
		if m, ok := got.(frame); ok && !bytes.Equal(m.Append(nil), b) {
			t.Errorf("%x is read as %+v and written as %x", b, m, m.Append(nil))
		}
	})
}

// TestFrameReasonIsCutBetweenRunes: a reason stays readable.
func TestFrameReasonIsCutBetweenRunes(t *testing.T) {
	m := Notice{Reason: strings.Repeat("x", MaxReason-1) + "é"}
	got, err := ReadFrame(m.Append(nil))
	if n, ok := got.(*Notice); err != nil || !ok || n.Reason != m.Reason[:MaxReason-1] {
		t.Errorf("read %v, %v", got, err)
	}
}
