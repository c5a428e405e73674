package hostlib

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/pathsel"
)

// maxHistory is how many epochs a communicator remembers, for operations that
// began in one of them.
const maxHistory = 64

// status is what an operation reports its way.
type status struct {
	epoch   uint32
	epochs  []uint32 // that one alone, for all outcomes
	offload bool
	source  netip.Addr                       // of packets to the switches of the present epoch; zero: that of the data socket
	why     string                           // why the present epoch runs as it does
	past    []chapter                        // the last epochs entered, in order, the present one included
	trees   [][]manager.TreeReducer          // what reduces in the present epoch, for all outcomes; nil: it is over hosts
	offered map[uint32][]manager.TreeReducer // what reduces in epochs that were not entered yet
	isFinal bool                             // settled is closed
	isLate  bool                             // no tree has come in time

	links pathsel.Links // as the manager knows them
}

// chapter is an epoch that was entered.
type chapter struct {
	epoch uint32
	why   string                  // why the epoch before it ended
	trees [][]manager.TreeReducer // as status.trees
}

// learn keeps what reduces in an epoch that is offered.
func (s *status) learn(o *manager.Offer) {
	if o.Epoch <= s.epoch || len(o.Reducers) == 0 {
		return
	}
	if s.offered == nil {
		s.offered = map[uint32][]manager.TreeReducer{}
	}
	s.offered[o.Epoch] = o.Reducers
}

// enter notes a new epoch.
func (s *status) enter(e endpoint.Entered) {
	if len(s.past) == 0 {
		s.past = append(s.past, chapter{s.epoch, s.why, s.trees})
	}
	s.epoch, s.epochs, s.offload, s.why, s.trees = e.Epoch, []uint32{e.Epoch}, e.Offload, e.Reason, nil
	if by := s.offered[e.Epoch]; by != nil {
		s.trees = [][]manager.TreeReducer{by}
	}
	maps.DeleteFunc(s.offered, func(epoch uint32, _ []manager.TreeReducer) bool { return epoch <= e.Epoch })
	if len(s.past) == maxHistory {
		s.past = slices.Delete(s.past, 0, 1)
	}
	s.past = append(s.past, chapter{e.Epoch, e.Reason, s.trees})
}

// during returns the epochs from first to last, and why an operation that ran
// in them went its way: the reason of every change, or of the only epoch; and what
// reduced in those of them that were over switches.
func (s *status) during(first, last uint32) (epochs []uint32, why string, trees [][]manager.TreeReducer) {
	if first == last && first == s.epoch {
		return s.epochs, s.why, s.trees
	}
	epochs, why = []uint32{first}, s.why
	var changes []string
	for _, c := range s.past {
		if c.epoch >= first && c.epoch <= last {
			trees = append(trees, c.trees...)
		}
		switch {
		case c.epoch == first && first != s.epoch:
			why = c.why
		case c.epoch > first && c.epoch <= last:
			epochs = append(epochs, c.epoch)
			changes = append(changes, c.why)
		}
	}
	if len(changes) > 0 {
		why = strings.Join(changes, "; then ")
	}
	return epochs, why, trees
}

// tally is HostCounters that several goroutines add to.
type tally struct {
	framesIn, bytesIn   atomic.Uint64
	framesOut, bytesOut atomic.Uint64
}

func (t *tally) in(bytes int) {
	t.framesIn.Add(1)
	t.bytesIn.Add(uint64(bytes))
}

func (t *tally) out(bytes int) {
	t.framesOut.Add(1)
	t.bytesOut.Add(uint64(bytes))
}

func (t *tally) counters() HostCounters {
	return HostCounters{
		FramesIn: t.framesIn.Load(), BytesIn: t.bytesIn.Load(),
		FramesOut: t.framesOut.Load(), BytesOut: t.bytesOut.Load(),
	}
}
