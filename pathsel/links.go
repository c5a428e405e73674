package pathsel

import "fmt"

// Links are what joins the hosts of members to the fabric. The zero value: that is not known.
type Links struct {
	Rate int64 // bit/s of a member's link, in each direction
	// Uplink is the bit/s that a member has of its leaf's links to other switches when all members at
	// that leaf use them, and Leaf how many they are. 0: leaves are not known, or there is one.
	Uplink int64
	Leaf   int
}

// maxLinkRate is the most of both rates.
const maxLinkRate = 1e18

// Validate reports what is out of range.
func (l Links) Validate() error {
	for name, rate := range map[string]int64{"rate": l.Rate, "uplink": l.Uplink} {
		if rate < 0 || rate > maxLinkRate {
			return fmt.Errorf("%w: links.%s of %d bit/s is not within 0 and %d", ErrModel, name, rate, int64(maxLinkRate))
		}
	}
	if l.Leaf < 0 || l.Leaf > MaxLeaf {
		return fmt.Errorf("%w: links.leaf of %d members is not within 0 and %d", ErrModel, l.Leaf, MaxLeaf)
	}
	return nil
}

// MaxLeaf is the most that Links.Leaf may be.
const MaxLeaf = 1 << 24

// String says it in words, such as "200 Mbit/s, 100 Mbit/s to other leaves".
func (l Links) String() string {
	switch {
	case l.Rate == 0:
		return "unknown rate"
	case l.Uplink == 0 || l.Uplink >= l.Rate:
		return bitRate(l.Rate)
	}
	return fmt.Sprintf("%s, %s to other leaves", bitRate(l.Rate), bitRate(l.Uplink))
}

// take returns the nanoseconds that the bytes of the busiest member take on links; 0: it is not known.
// Of a leaf's members that all send to one so far away, that share sends to another leaf.
func (l Links) take(w *Work) float64 {
	if l.Rate <= 0 {
		return 0
	}
	mib := w.Busiest[Link]
	if l.Uplink > 0 && l.Leaf > 0 {
		narrow := float64(l.Rate) / float64(l.Uplink)
		for i, far := range w.Far {
			leave := min(1, float64(int(1)<<i)/float64(l.Leaf))
			mib += far * max(0, leave*narrow-1)
		}
	}
	return mib * (1 << 20) * 8e9 / float64(l.Rate)
}
