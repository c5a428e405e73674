package peer

import (
	"testing"
	"time"
)

// TestSampleAfterStop: time in which this process was stopped does not count against the other side.
func TestSampleAfterStop(t *testing.T) {
	c := &Conn{host: &Host{}}
	c.host.cfg.DeadAfter = 5 * time.Second
	begin := time.Now()
	for _, s := range []struct{ at, heard time.Duration }{
		{0, 0}, {1 * time.Second, 1 * time.Second}, {5 * time.Second, 5 * time.Second}, {60 * time.Second, 5 * time.Second}, {62 * time.Second, 7 * time.Second},
	} {
		if got := c.sample(begin.Add(s.at)).Heard; got != s.heard {
			t.Errorf("after %v nothing has come for %v, want %v", s.at, got, s.heard)
		}
	}
	c.reads.Add(1)
	if got := c.sample(begin.Add(99 * time.Second)).Heard; got != 0 {
		t.Errorf("something has come, and nothing for %v", got)
	}
}
