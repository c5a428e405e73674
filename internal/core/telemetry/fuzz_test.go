package telemetry

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// FuzzInputs: no sequence of inputs brings the core into a state that cannot be, has it
// send anything to a stream that is not open, or wake at once for ever.
func FuzzInputs(f *testing.F) {
	f.Add("/interfaces", []byte{0, 1, 3, 1, 5, 0, 7, 9, 2, 1, 4, 1})
	f.Add("/.../in-octets", []byte{0, 65, 5, 0, 6, 1, 8, 255, 3, 1, 9, 20, 3, 1})
	f.Fuzz(func(t *testing.T, path string, b []byte) {
		p, err := openconfig.ParsePath(path)
		if err != nil {
			return
		}
		x := newTrial(Config{Streams: 3, Batch: 2})
		open := map[uint64]bool{}
		for ; len(b) >= 2; b = b[2:] {
			kind, y := b[0]%10, b[1]
			stream := uint64(y % 4)
			switch kind {
			case 0, 1:
				o := Open{Stream: stream, Mode: Mode(y>>2) % 3, UpdatesOnly: kind == 1}
				o.Subscriptions = []Subscription{{
					Path: p, Trigger: Trigger(y >> 4 & 3), Suppress: y>>6&1 != 0,
					Interval: time.Duration(int8(y)) * time.Second, Heartbeat: time.Duration(int8(y)) << 50,
				}}
				x.step(o)
				open[stream] = true
			case 2:
				x.step(Close{stream})
				delete(open, stream)
			case 3:
				x.step(Ready{stream})
			case 4:
				x.step(Poll{stream})
			case 5, 6, 7:
				in := Snapshot{Part: Part(kind - 5 + y>>7), At: int64(y)}
				for i, s := range short {
					if y>>i&1 != 0 {
						in.Leaves = append(in.Leaves, Leaf{long(s.name + ":a"), openconfig.Number(uint64(y))}, Leaf{path, openconfig.Of(true)})
					}
				}
				x.step(in)
			default:
				x.now = x.now.Add(time.Duration(y) << 28)
				x.step()
			}
			for _, batch := range x.out.Batches {
				if !open[batch.Stream] || len(batch.Entries) == 0 || len(batch.Entries) > 2 {
					t.Fatalf("a batch of %d for stream %d", len(batch.Entries), batch.Stream)
				}
			}
			for _, e := range x.out.Ended {
				if x.c.streamOf[e.Stream] == nil {
					delete(open, e.Stream)
				}
			}
			if at := x.c.Deadline(); at <= x.now {
				t.Fatalf("it is %v, and the deadline %v", x.now, at)
			}
			x.c.verify(t)
		}
	})
}
