package report

import (
	"fmt"
	"strings"

	"github.com/tributary-fabric/tributary/bench/timing"
)

// Bytes of a full frame, Ethernet header included, and of the payload of a TCP
// segment with timestamps in it.
const (
	frame      = 1514
	tcpPayload = 1448
)

// Contention is how several shared a link.
type Contention struct {
	Kind   string  `json:"kind"` // KindContention
	Fabric Fabric  `json:"fabric"`
	Bytes  int     `json:"bytes"` // of the vectors of the groups' members
	Shares []Share `json:"shares"`
	Jain   float64 `json:"jain"` // Jain's index of the shares: 1 if all are equal, 1/n if one has all
}

// KindContention is what Contention.Kind says.
const KindContention = "contention"

// Share is what one of them had.
type Share struct {
	Name string  `json:"name"`
	Link float64 `json:"link"` // of what the link carries, headers included
}

// Flow is one group's operations.
type Flow struct {
	Bytes int // of each operation's vector
	Spans []timing.Span
}

// GroupShares returns the share of a link of so many bit/s that each group had
// while all of them were at it: from when the last began to when the first was
// done. An operation that was cut by that counts in part.
func GroupShares(flows []Flow, rate int64) []Share {
	from, to := int64(0), int64(1<<63-1)
	for _, f := range flows {
		if len(f.Spans) == 0 {
			return nil
		}
		from, to = max(from, f.Spans[0].Begun), min(to, f.Spans[len(f.Spans)-1].Ended)
	}
	var all []Share
	for i, f := range flows {
		bytes := 0.0
		for _, s := range f.Spans {
			if within := min(s.Ended, to) - max(s.Begun, from); within > 0 {
				bytes += float64(f.Bytes) * float64(within) / float64(s.Ended-s.Begun)
			}
		}
		share := 0.0
		if to > from {
			share = onLink(bytes, timing.ChunkBytes, float64(to-from)/1e9, rate)
		}
		all = append(all, Share{fmt.Sprintf("group %d", i), share})
	}
	return all
}

// StreamShare returns the share that a TCP stream had which carried so many
// bytes of payload within some seconds.
func StreamShare(bytes uint64, seconds float64, rate int64) Share {
	return Share{"TCP stream", onLink(float64(bytes), tcpPayload, seconds, rate)}
}

// onLink returns what bytes of payload, so many a frame, took of a link.
func onLink(bytes, payload, seconds float64, rate int64) float64 {
	if seconds <= 0 || rate <= 0 {
		return 0
	}
	return bytes / payload * frame * 8 / seconds / float64(rate)
}

// Jain returns the index of fairness of R. Jain, D. Chiu and W. Hawe (A
// quantitative measure of fairness and discrimination, 1984): the square of the
// sum by n times the sum of the squares.
func Jain(shares []Share) float64 {
	sum, squares := 0.0, 0.0
	for _, s := range shares {
		sum += s.Link
		squares += s.Link * s.Link
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Words returns c in lines of English.
func (c *Contention) Words() string {
	var b strings.Builder
	for _, s := range c.Shares {
		fmt.Fprintf(&b, "  %s had %.3f of the link, %.3f of its even share\n", s.Name, s.Link, s.Link*float64(len(c.Shares)))
	}
	fmt.Fprintf(&b, "  Jain's index %.4f\n", c.Jain)
	return b.String()
}
