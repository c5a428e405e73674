package hostlib

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/rails"
)

// silentRails are the rails whose interfaces are up and that carry nothing all the same: all
// paths on them to other hosts are lost, while another rail has paths. Their switches are
// taken to be out of reach, too, which is known sooner than a tree is found to be silent, and
// until when.
type silentRails struct {
	mu     sync.Mutex
	seen   map[string]bool  // at the last look
	faults map[string]error // by name: of those that were so twice
}

// look takes the rails as they are now, and returns the names of those that have become
// silent or have ended to be so.
func (s *silentRails) look(all []peer.RailStatus) (changed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen, s.faults = map[string]bool{}, map[string]error{}
	}
	carries := slices.ContainsFunc(all, func(r peer.RailStatus) bool { return r.Paths > 0 })
	for i := range all {
		r := &all[i]
		name, is := r.Rail.Name, carries && r.Paths == 0 && r.Missing > 0 && r.Lost > 0
		switch {
		case is && s.seen[name] && s.faults[name] == nil:
			s.faults[name] = fmt.Errorf("it has no path to another host: %w", r.Fault)
			changed = append(changed, name)
		case s.faults[name] != nil && (r.Paths > 0 || r.Missing == 0):
			delete(s.faults, name)
			changed = append(changed, name)
		}
		s.seen[name] = is
	}
	return changed
}

// over returns the rails with these faults, where their interfaces have none.
func (s *silentRails) over(states []rails.State) []rails.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range states {
		if f := s.faults[states[i].Name]; f != nil && states[i].Fault == nil {
			states[i].Fault = f
		}
	}
	return states
}

// Looks at the paths of rails: as often, but for no more than a hundredth of a processor.
const (
	lookPeriod = 25 * time.Millisecond
	lookShare  = 100
)

// watchSilentRails follows whether rails are silent, while there are communicators.
func (h *Host) watchSilentRails() {
	timer := time.NewTimer(lookPeriod)
	defer timer.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(max(lookPeriod, lookShare*h.lookAtRails()))
	}
}

// lookAtRails looks once, and returns for how long that took.
func (h *Host) lookAtRails() time.Duration {
	h.mu.Lock()
	idle := len(h.comms) == 0
	h.mu.Unlock()
	if idle {
		return 0
	}
	begun := time.Now()
	all, _ := h.peers.Status()
	took := time.Since(begun)
	for _, name := range h.data.silent.look(all) {
		h.silenceChanged(name)
	}
	return took
}

func (h *Host) silenceChanged(name string) {
	own := h.rails.set.States()
	i := slices.IndexFunc(own, func(s rails.State) bool { return s.Name == name })
	if i < 0 || own[i].Fault != nil {
		return // which was said, or will be when it ends
	}
	state := h.data.silent.over(own[i : i+1])[0]
	h.reportRails()
	if state.Fault == nil {
		h.cfg.Log.Info("a rail carries again", slog.String("rail", name))
		return
	}
	h.cfg.Log.Warn("a rail is silent", slog.String("rail", name), slog.Any("error", state.Fault))
	h.loseTrees(state.Rail, state.Fault)
}
