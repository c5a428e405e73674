package members

import (
	"fmt"
	"slices"
	"time"
)

// What the comparison with memberlist is to reach.
const (
	fasterDetection = 10.0
	fasterBoot      = 2.0
)

// ContestRows returns the rows of a comparison of own and peer.
func ContestRows(c Contest, own, peer Score) []Row {
	rows := []Row{
		faster("real-killed", "killed process: last survivor knows", fasterDetection, own.last(Killed), peer.last(Killed)),
		faster("real-silent", "silent node: last survivor knows", fasterDetection, own.last(Silent), peer.last(Silent)),
		{
			Key: "real-traffic", What: "bytes per second a node at rest", Asked: fmt.Sprintf("<= %.0f B/s", peer.Rate),
			Measured: fmt.Sprintf("%.0f B/s", own.Rate), Reached: own.Rate <= peer.Rate,
			Figures: map[string]float64{"own_bytes_per_second": own.Rate, "memberlist_bytes_per_second": peer.Rate},
		},
		faster("real-boot", "all views have all nodes", fasterBoot, own.boot(), peer.boot()),
	}
	for i := range rows {
		rows[i].What = fmt.Sprintf("%d real nodes: %s", c.Nodes, rows[i].What)
	}
	rows[0].Notes = []string{
		fmt.Sprintf("%d false deaths of %s, %d of %s, in the whole comparison", own.Wrong, own.System, peer.Wrong, peer.System),
		fmt.Sprintf("boots that did not come to an end within %v: %d of %s, %d of %s", c.Patience, own.Missed, own.System, peer.Missed, peer.System),
		fmt.Sprintf("a datagram counts with %d bytes of headers, each %d bytes written to a connection with %d", DatagramHeader, SegmentPayload, SegmentHeader),
	}
	return rows
}

// faster returns the row for a time that is to be a fraction of the peer's.
func faster(key, what string, times float64, own, peer time.Duration) Row {
	ratio := float64(peer) / float64(own)
	return Row{
		Key: key, What: what, Asked: fmt.Sprintf("%.0fx faster than %s", times, brief(peer)),
		Measured: fmt.Sprintf("%s, %.1fx", brief(own), ratio), Reached: ratio >= times,
		Figures: map[string]float64{"own_ms": float64(own) / 1e6, "memberlist_ms": float64(peer) / 1e6, "ratio": ratio},
	}
}

func lasts(all []Knowledge) []time.Duration {
	out := make([]time.Duration, len(all))
	for i, k := range all {
		out[i] = k.Last
	}
	return out
}

// median returns the middle one, the later of two; 0 of none.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func least(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}
