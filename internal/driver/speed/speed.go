package speed

import (
	"errors"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// errRounds says that there was not enough time for a measurement.
var errRounds = errors.New("speed: too few rounds in the time given")

// Result is a measurement.
type Result struct {
	Speed topology.Speed
	// Disturbed is how much longer a round took on average than counts: 0.1 is a tenth.
	Disturbed float64
}

// Calm reports whether the machine did little else meanwhile.
func (r Result) Calm() bool { return r.Disturbed < calm }

// Best returns the best of two results, of bytes and of packets: disturbances only slow
// down, be it that another process has the other half of the processor all the time,
// which shows in no round.
func (r Result) Best(other Result) Result {
	return Result{Speed: topology.Speed{Bytes: max(r.Speed.Bytes, other.Speed.Bytes), Packets: max(r.Speed.Packets, other.Speed.Packets)}}
}

// Better reports whether r has more than another result, by more than a tenth of it.
func (r Result) Better(other Result) bool {
	more := func(x, y int64) bool { return x-y > y/10 }
	return more(r.Speed.Bytes, other.Speed.Bytes) || more(r.Speed.Packets, other.Speed.Packets)
}

const (
	calm      = 0.5 // a time slice lost in every tenth round, say
	minRounds = 8
)

// A Round takes chunks through what is measured, and returns how long that took.
type Round func() (time.Duration, error)

// Measure runs rounds of small and of usual packets for about half of a time each, and
// at least some: rounds of that many packets, with that many bytes of payload each.
func Measure(budget time.Duration, packets, payload int, small, large Round) (Result, error) {
	least, slowed, err := quartile(budget/2, small)
	if err != nil {
		return Result{}, err
	}
	most, slowedToo, err := quartile(budget/2, large)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Speed:     topology.Speed{Bytes: rate(packets*payload, most), Packets: rate(packets, least)},
		Disturbed: max(slowed, slowedToo),
	}, nil
}

// rate returns so many things in a time as a number a second.
func rate(n int, took time.Duration) int64 { return max(int64(float64(n)/took.Seconds()), 1) }

// quartile returns what a quarter of the rounds take at most, and how much more the
// mean is.
func quartile(budget time.Duration, round Round) (took time.Duration, more float64, err error) {
	var all []time.Duration
	begun := time.Now()
	for sum := time.Duration(0); len(all) < minRounds || sum < budget; sum = time.Since(begun) {
		if sum > 20*budget+time.Second {
			return 0, 0, errRounds
		}
		one, err := round()
		if err != nil {
			return 0, 0, err
		}
		all = append(all, max(one, 1))
	}
	all = all[1:] // the first warms up
	sum := time.Duration(0)
	for _, d := range all {
		sum += d
	}
	slices.Sort(all)
	took = all[len(all)/4]
	return took, float64(sum)/float64(len(all))/float64(took) - 1, nil
}

// Children and Window are those of the tree that is measured, and Payload the usual one
// of its packets, in bytes.
const (
	Children = 4
	Window   = 16
	Payload  = 1408
)
