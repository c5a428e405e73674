package transport

import (
	"fmt"
	"strings"
	"time"
)

// Features are what a UDP does to be fast, each of which can be left out.
// Those that the kernel cannot do are left out by themselves: a UDP finds out
// by trying.
type Features uint16

// The features.
const (
	// Batching moves several datagrams a system call (recvmmsg, sendmmsg).
	// Without it, there are no GSO batches either.
	Batching Features = 1 << iota
	// Segmentation hands the kernel datagrams to one destination as one, which
	// it cuts at the last moment, or never (UDP_SEGMENT, Linux 4.18).
	Segmentation
	// Coalescing takes from the kernel as one what arrived as one, or could
	// have (UDP_GRO, Linux 5.0).
	Coalescing
	// Lending gives the receiver the memory that the kernel has written to.
	// Without it, each datagram is copied out of that.
	Lending
	// Polling looks again and again for a while, before it sleeps.
	Polling
	// Sleeping sleeps, for a while after the last datagram, in a system call: the
	// kernel then wakes the very thread that reads, where otherwise the Go
	// runtime's poller does so by way of others. An idle UDP costs no thread.
	Sleeping
	// GROBatches gives what was taken as one as one Packet, where Config.Batches asks
	// for that.
	GROBatches
	// Adapting has a UDP look for a shorter time where polls have been empty.
	Adapting

	// AllFeatures are all of them.
	AllFeatures = Batching | Segmentation | Coalescing | Lending | Polling | Sleeping | GROBatches | Adapting
)

var featureNames = [...]string{"batching", "segmentation", "coalescing", "lending", "polling", "sleeping", "gro-batches", "adapting"}

// String returns the features' names, separated by commas, or "none".
func (f Features) String() string {
	var names []string
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// ParseFeatures reads names as String writes them; "all" stands for all
// features, and "none" or nothing for none.
func ParseFeatures(s string) (Features, error) {
	var f Features
next:
	for name := range strings.SplitSeq(s, ",") {
		switch name {
		case "", "none":
			continue
		case "all":
			f = AllFeatures
			continue
		}
		for i, known := range featureNames {
			if name == known {
				f |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("transport: no feature %q, there are %v", name, AllFeatures)
	}
	return f, nil
}

// DefaultPoll is how long a UDP looks for datagrams before it sleeps.
const DefaultPoll = 300 * time.Microsecond

// sleepFor is how long after the last datagram a UDP sleeps in the kernel.
const sleepFor = 20 * time.Millisecond

// maxPoll bounds Config.Poll: whoever looks keeps a processor busy.
const maxPoll = 10 * time.Millisecond

// Config says how to open a socket. Its zero value works.
type Config struct {
	// ReceiveBuffer is the bytes asked of the kernel for datagrams that wait
	// to be read; 0 leaves the system's default. The kernel accounts for more
	// than the payload of each, and grants at most net.core.rmem_max to who is
	// not root: UDP.ReceiveBuffer reports what was granted.
	ReceiveBuffer int

	// SendBuffer is the bytes asked of the kernel for datagrams that wait to be sent,
	// likewise. While they do, a WriteBatch waits.
	SendBuffer int

	// Without are the features to be left out, by default none.
	Without Features

	// Netpoll has a ReadBatch wait in the Go runtime's poller alone, as a read of a TCP
	// connection does. It neither polls nor sleeps in system calls, which take the
	// processor from other goroutines: for who has others deal with what comes, which are
	// to run at once.
	Netpoll bool

	// Batches has a ReadBatch give datagrams that the kernel has received as one as
	// one Packet, with their Size. So whoever reads them looks once at what they
	// have in common.
	Batches bool

	// Poll is how long after a datagram, or after a Wake, a ReadBatch looks for
	// the next one, at the most, before it sleeps; 0: DefaultPoll. Between two
	// looks it offers the processor to others. A UDP whose neighbours are silent
	// does not look, and one that hears of them less often than that looks
	// shorter.
	Poll time.Duration
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.ReceiveBuffer < 0 || c.SendBuffer < 0:
		return fmt.Errorf("transport: buffers of %d and %d bytes", c.ReceiveBuffer, c.SendBuffer)
	case c.Without&^AllFeatures != 0:
		return fmt.Errorf("transport: without features %#x, which there are not", uint16(c.Without&^AllFeatures))
	case c.Poll < 0 || c.Poll > maxPoll:
		return fmt.Errorf("transport: polling for %v, want 0 to %v", c.Poll, maxPoll)
	}
	return nil
}
