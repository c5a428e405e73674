package rails

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

// SoakSum is what a soak has come to: over all hosts.
type SoakSum struct {
	Seconds    float64 `json:"seconds"`
	Events     int     `json:"events"` // changes of links
	Allreduces uint64  `json:"allreduces"`
	Broadcasts uint64  `json:"broadcasts"`
	Runs       uint64  `json:"runs"` // of broadcasts
	Bulk       uint64  `json:"bulk_bytes"`
	Changes    uint64  `json:"changes"` // of attributes, seen by others
	Messages   uint64  `json:"messages"`
	Carried    []int64 `json:"carried"` // bytes sent over each rail
}

// String returns the sum in words.
func (s *SoakSum) String() string {
	return fmt.Sprintf("%.0f s, %d changes of links: %d allreduces, %d broadcasts run %d times with %d MiB of bulk data, %d messages, %d changes of attributes, MiB by rail %v",
		s.Seconds, s.Events, s.Allreduces, s.Broadcasts, s.Runs, s.Bulk>>20, s.Messages, s.Changes, mebi(s.Carried))
}

func mebi(all []int64) []int64 {
	scaled := slices.Clone(all)
	for i := range scaled {
		scaled[i] >>= 20
	}
	return scaled
}

// count adds up what hosts have done.
func (s *SoakSum) count(all []SoakReport) {
	for _, one := range all {
		s.Allreduces = max(s.Allreduces, one.Allreduces)
		s.Broadcasts += one.Broadcasts
		s.Bulk += one.Bulk
		s.Changes += one.Changes
		s.Messages += one.Arrived
		for _, n := range one.Ran {
			s.Runs += n
		}
	}
}

// agree reports what does not add up in the last reports: all hosts take part in the same
// allreduces, each broadcast runs once on every host, and each message arrives once.
func agree(all []SoakReport) error {
	for _, one := range all {
		if one.Allreduces != all[0].Allreduces {
			return fmt.Errorf("%w: %s ends after %d allreduces, %s after %d", ErrWrong, netlab.RailHost(one.Host), one.Allreduces, netlab.RailHost(0), all[0].Allreduces)
		}
		if next := all[(one.Host+1)%len(all)]; next.Arrived != one.Sent {
			return fmt.Errorf("%w: %s has received %d messages of %s, which sent %d", ErrWrong, netlab.RailHost(next.Host), next.Arrived, netlab.RailHost(one.Host), one.Sent)
		}
		for root, ran := range one.Ran {
			if ran != all[root].Broadcasts {
				return fmt.Errorf("%w: %s has run %d broadcasts of %s, which began %d", ErrWrong, netlab.RailHost(one.Host), ran, netlab.RailHost(root), all[root].Broadcasts)
			}
		}
	}
	return nil
}
