package rails

import "time"

// BinTime is the width of a meter's bins.
const BinTime = 5 * time.Millisecond

// maxBins bounds a meter to an hour.
const maxBins = int(time.Hour / BinTime)

// Meter has the progress of a stream: the bytes that have arrived, by time.
type Meter struct {
	Bins   []int64       `json:"bins"`   // bytes, by BinTime after the start
	Gap    time.Duration `json:"gap"`    // the longest time without a message, from the first one on
	GapEnd time.Duration `json:"gapEnd"` // and when it ended
	First  time.Duration `json:"first"`  // when the first message was there
	Last   time.Duration `json:"last"`   // and the last one

	any bool
}

// Add counts bytes that have arrived at a time after the start.
func (m *Meter) Add(at time.Duration, bytes int) {
	at = max(at, 0)
	if gap := at - m.Last; m.any && gap > m.Gap {
		m.Gap, m.GapEnd = gap, at
	}
	if !m.any {
		m.First, m.any = at, true
	}
	m.Last = at
	bin := min(int(at/BinTime), maxBins)
	for len(m.Bins) <= bin {
		m.Bins = append(m.Bins, 0)
	}
	m.Bins[bin] += int64(bytes)
}

// Rate returns the bit/s between two times, by whole bins; 0 where there is none.
func (m *Meter) Rate(from, to time.Duration) float64 {
	first, end := int((from+BinTime-1)/BinTime), int(to/BinTime)
	if end <= first {
		return 0
	}
	var bytes int64
	for i := first; i < min(end, len(m.Bins)); i++ {
		bytes += m.Bins[i]
	}
	return float64(bytes) * 8 / (time.Duration(end-first) * BinTime).Seconds()
}

// Reaches returns when, after a time, the rate of a window first reaches so many bit/s;
// false: never.
func (m *Meter) Reaches(after, window time.Duration, rate float64) (time.Duration, bool) {
	for at := after; at+window <= m.Last; at += BinTime {
		if m.Rate(at, at+window) >= rate {
			return at + window, true
		}
	}
	return 0, false
}

// Mean returns the bit/s from a time at which the first message was begun to the last one.
func (m *Meter) Mean(begun time.Duration) float64 {
	if m.Last <= begun {
		return 0
	}
	var bytes int64
	for _, n := range m.Bins {
		bytes += n
	}
	return float64(bytes) * 8 / (m.Last - begun).Seconds()
}
