package discoverer

import (
	"testing"
	"testing/synctest"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
)

// TestOneReportWaits: while the loop is busy, no target has a second report made.
func TestOneReportWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := Start(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		free := make(chan struct{})
		go func() { _ = d.loop.Do(t.Context(), func() { <-free }) }()
		synctest.Wait()
		made := 0
		go func() {
			for ; made < 3; made++ {
				d.report(t.Context(), "10.0.0.1:74", &discovery.Facts{})
			}
		}()
		synctest.Wait()
		if made != 0 {
			t.Errorf("%d reports were made before the first was taken", made)
		}
		close(free)
		synctest.Wait()
		if made != 3 {
			t.Errorf("%d reports were made", made)
		}
	})
}

// TestLimitsAreTheCores: a collector reads what the core takes, and some more, so that the core
// can report that there is more.
func TestLimitsAreTheCores(t *testing.T) {
	l := (&Config{Core: discovery.Config{MaxPorts: 7, MaxNeighbors: 3}}).target("10.0.0.1:74").Limits
	if l.Ports != 7+collector.Spare || l.Neighbors != 3+collector.Spare {
		t.Errorf("%+v", l)
	}
}
