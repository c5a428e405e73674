package peer

import (
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestAhead compares what is ahead of the first segment that is not acknowledged with a list.
func TestAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a ahead
		type entry struct {
			number uint64
			size   int
		}
		var all []entry // not acknowledged
		sizes := []int{0}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(all) == 0 || rapid.IntRange(0, 2).Draw(t, "push") > 0 {
				e := entry{uint64(len(sizes)), rapid.IntRange(0, 100).Draw(t, "size")}
				sizes = append(sizes, e.size)
				all = append(all, e)
				a.push(e.size)
			} else {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				a.confirm(all[i].number)
				all = append(all[:i:i], all[i+1:]...)
			}
			n, size := 0, 0
			if len(all) > 0 {
				n = len(sizes) - int(all[0].number)
				for _, s := range sizes[all[0].number:] {
					size += s
				}
			}
			if a.n != n || a.size != size {
				t.Fatalf("%d segments of %d bytes, want %d of %d", a.n, a.size, n, size)
			}
		}
	})
}

// TestEarlySegmentsAreBounded: who sends all segments but the first fills no more memory than
// a limit, however small they are and however few of them a burst has.
func TestEarlySegmentsAreBounded(t *testing.T) {
	a, _ := newTown().settle(t, "a", 1, nil)
	for _, size := range []int{0, 1, 9 << 10, 64 << 10} {
		p := &Path{host: a, class: Data, conn: &Conn{host: a, class: Data}}
		in := &p.conn.in
		var err error
		for n := uint64(2); err == nil; n++ {
			b := a.bursts.get(burstClasses[2], nil)
			frame := binary.BigEndian.AppendUint64(b.memory[:0], n)
			err = p.segments([]Frame{{Bytes: frame[:segmentHead+size]}}, b)
			b.Release()
			if n > 1<<20 {
				t.Fatalf("%d segments of %d bytes are kept", len(in.early), size)
			}
		}
		if !errors.Is(err, ErrFrame) {
			t.Errorf("segments of %d bytes: %v", size, err)
		}
		if k := a.Counters(); k.BurstBytes > earlyMost+1<<20 {
			t.Errorf("segments of %d bytes: %d bytes of memory", size, k.BurstBytes)
		}
		in.drop()
		if k := a.Counters(); k.Bursts != 0 || in.size != 0 {
			t.Errorf("segments of %d bytes: %d bursts stay, %d bytes", size, k.Bursts, in.size)
		}
	}
}
