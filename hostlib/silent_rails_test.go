package hostlib

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/rails"
)

func TestSilentRails(t *testing.T) {
	status := func(name string, up, missing int, lost uint64) peer.RailStatus {
		return peer.RailStatus{Rail: rail.Rail{Name: name}, Paths: up, Missing: missing, PathCounters: peer.PathCounters{Lost: lost}, Fault: errors.New("reset")}
	}
	var s silentRails
	for i, look := range []struct {
		a, b    peer.RailStatus
		changed string
		faulty  string
	}{
		{status("a", 0, 2, 0), status("b", 2, 0, 0), "", ""}, // its paths are being made
		{status("a", 0, 2, 0), status("b", 2, 0, 0), "", ""},
		{status("a", 2, 0, 0), status("b", 2, 0, 0), "", ""},
		{status("a", 0, 2, 2), status("b", 2, 0, 0), "", ""}, // it may be back at once
		{status("a", 1, 1, 2), status("b", 2, 0, 0), "", ""},
		{status("a", 0, 2, 3), status("b", 2, 0, 0), "", ""},
		{status("a", 0, 2, 3), status("b", 2, 0, 0), "a", "a"},
		{status("a", 0, 2, 3), status("b", 2, 0, 0), "", "a"},
		{status("a", 0, 2, 3), status("b", 0, 2, 2), "", "a"}, // all are: the hosts are
		{status("a", 0, 2, 3), status("b", 0, 2, 2), "", "a"},
		{status("a", 1, 1, 3), status("b", 0, 2, 2), "a", ""},
		{status("a", 2, 0, 3), status("b", 0, 2, 2), "b", "b"},
		{status("a", 2, 0, 3), status("b", 0, 0, 2), "b", ""}, // there is nobody to say so
	} {
		changed := s.look([]peer.RailStatus{look.a, look.b})
		faulty := ""
		for _, state := range s.over([]rails.State{{Rail: rails.Rail{Rail: rail.Rail{Name: "a"}}}, {Rail: rails.Rail{Rail: rail.Rail{Name: "b"}}}}) {
			if state.Fault != nil {
				faulty += state.Name
			}
		}
		if strings.Join(changed, "") != look.changed || faulty != look.faulty {
			t.Errorf("look %d: %v has changed, faulty is %q; want %q and %q", i, changed, faulty, look.changed, look.faulty)
		}
	}
	down := []rails.State{{Rail: rails.Rail{Rail: rail.Rail{Name: "c"}}, Fault: rails.ErrNoCarrier}}
	if got := s.over(slices.Clone(down)); got[0].Fault != rails.ErrNoCarrier {
		t.Errorf("of an interface that is down: %v", got[0].Fault)
	}
}
