package switchreduce

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// busy is a FastPath that holds nothing.
type busy struct{ taken uint64 }

func (*busy) Take(uint32, bool, func([]byte)) bool { return true }
func (b *busy) Taken() uint64                      { return b.taken }

// TestFastPathRenewsLease: an epoch of which only its fast path takes packets is in use;
// it begins with the first packet that the core has admitted, once.
func TestFastPathRenewsLease(t *testing.T) {
	tr := newTrial()
	fast := &busy{}
	cfg := tr.config(map[string]string{"epoch": "2", "window": "2", "children": "0,3", "lease": "3s"})
	cfg.FastPath = fast
	var out Output
	at := func(d time.Duration) core.Time { return core.Time(0).Add(d) }
	step := func(now core.Time, in ...Input) {
		out.Reset()
		tr.core.Step(now, in, &out)
	}
	step(0, Input{Kind: Install, Config: cfg})
	tr.cfg = *cfg
	step(0, tr.packet([]string{"a", "probe", "5"}, nil))
	if !slices.Equal(out.Begun, []uint32{2}) {
		t.Fatalf("begun: %d", out.Begun)
	}
	step(at(time.Second), tr.packet([]string{"a", "probe", "5"}, nil))
	if len(out.Begun) > 0 {
		t.Fatalf("begun again: %d", out.Begun)
	}
	for n := range time.Duration(5) {
		fast.taken++
		now := at(time.Second + (n+1)*3*time.Second)
		if got := tr.core.Deadline(); got != now {
			t.Fatalf("deadline %v, want %v", got, now)
		}
		if step(now); len(out.Expired) > 0 {
			t.Fatalf("expired after %v, although in use", time.Duration(now))
		}
	}
	if step(tr.core.Deadline()); !slices.Equal(out.Expired, []uint32{2}) {
		t.Fatalf("expired: %d", out.Expired)
	}
}
