package scaling

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/topology"
)

// Measure measures costs on this machine, as root, in a lab of one host and one switch, in rounds of
// which the middle of each cost counts. other returns a command whose process calls Look and prints its
// result: looks are measured among several processes. Times are of the process alone, where the
// kernel knows them, or those that a quarter of the calls take at most: so a machine that does other
// things changes them little.
func Measure(ctx context.Context, prefix string, rounds int, other func(context.Context) *exec.Cmd) (c Costs, err error) {
	lab, err := netlab.Build(netlab.Config{Prefix: prefix, HostsPerLeaf: 1, Leaves: 1})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	var all []Costs
	for range max(1, rounds) {
		one, err := measure(ctx, lab, other)
		if err != nil {
			return c, err
		}
		all = append(all, one)
	}
	c = middle(all)
	c.Taken = fmt.Sprintf("%s, %d processors, Linux %s", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), kernel())
	return c, nil
}

// measure is one round.
func measure(ctx context.Context, lab *netlab.Lab, other func(context.Context) *exec.Cmd) (c Costs, err error) {
	if err := c.measureBatches(lab); err != nil {
		return c, fmt.Errorf("batches: %w", err)
	}
	if c.Look, err = looks(ctx, 3*runtime.NumCPU(), other); err != nil {
		return c, fmt.Errorf("looks: %w", err)
	}
	if c.Alone, err = looks(ctx, 1, other); err != nil {
		return c, fmt.Errorf("looks of one: %w", err)
	}
	sleepers, err := endsOf(lab, transport.Config{Batches: true, Without: transport.Polling})
	if err != nil {
		return c, err
	}
	defer sleepers.close()
	turn, err := sleepers.pingPong()
	if err != nil {
		return c, fmt.Errorf("wake: %w", err)
	}
	small := wire.HeaderSize + 8
	c.Wake = max(0, float64(turn)-float64(c.Send.of(1, small)+c.Receive.of(1, small)))
	if err := c.measureCores(); err != nil {
		return c, fmt.Errorf("cores: %w", err)
	}
	return c, nil
}

// measureBatches measures on all processors at once: what they share counts then, too.
func (c *Costs) measureBatches(lab *netlab.Lab) error {
	all, err := together(runtime.NumCPU(), func() (batchTimes, error) {
		e, err := endsOf(lab, transport.Config{Batches: true})
		if err != nil {
			return batchTimes{}, err
		}
		defer e.close()
		return e.batches()
	})
	if err != nil {
		return err
	}
	var sent, received [][]point
	for _, t := range all {
		sent, received = append(sent, t.sent), append(received, t.received)
		c.Cold += t.cold / float64(len(all))
	}
	if c.Send, err = fit(mean(sent)); err != nil {
		return err
	}
	if c.Receive, err = fit(mean(received)); err != nil {
		return err
	}
	small := wire.HeaderSize + 8
	c.Cold -= float64(c.Send.of(1, small) + c.Receive.of(1, small))
	return nil
}

// kernel returns the kernel's release up to its second number.
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "?"
	}
	parts := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// ends are two sockets, in the namespaces of the two ends of a link.
type ends struct{ host, leaf *transport.UDP }

func endsOf(lab *netlab.Lab, c transport.Config) (e ends, err error) {
	g := lab.Topology()
	c.ReceiveBuffer = 4 << 20
	link := topology.LinkID(0)
	listen := func(n topology.NodeID, u **transport.UDP) error {
		return lab.Do(n, func() (err error) {
			*u, err = transport.ListenUDP(netip.AddrPortFrom(g.AddressAt(link, n), 0), c)
			return err
		})
	}
	if err = listen(0, &e.host); err == nil {
		err = listen(1, &e.leaf)
	}
	if err != nil {
		e.close()
	}
	return e, err
}

func (e *ends) close() {
	for _, u := range []*transport.UDP{e.host, e.leaf} {
		if u != nil {
			_ = u.Close() // nothing is to be had from it any more
		}
	}
}

// patience is how long a packet may be under way within the machine.
const patience = 5 * time.Second

// batches times system calls that send and receive batches, and those of one packet when the caches hold
// something else.
func (e *ends) batches() (t batchTimes, err error) {
	from := make([]byte, coldBytes)
	into := make([]transport.Packet, readBatches)
	cache := make([]byte, cacheBytes())
	const rounds = 400
	for _, cold := range []bool{false, true} {
		for _, size := range []int{wire.HeaderSize + 8, 512, wire.HeaderSize + 1432} {
			for _, n := range []int{1, 4, 16, wire.BatchChunks} {
				if cold && (n > 1 || size > wire.HeaderSize+8) {
					continue
				}
				var sends, reads []float64
				at := 0
				for range rounds {
					if at += n * size; at+n*size > len(from) {
						at = 0
					}
					m := []transport.Message{{To: e.leaf.LocalAddr(), Body: from[at : at+n*size], Size: size}}
					if cold {
						touch(cache)
					}
					begun := time.Now()
					if err := e.host.WriteBatch(m); err != nil {
						return t, err
					}
					written := time.Now()
					if cold {
						touch(cache)
					}
					reading := time.Now()
					got, err := e.leaf.ReadBatch(into, reading.Add(patience))
					if err != nil {
						return t, err
					}
					reads = append(reads, float64(time.Since(reading)))
					sends = append(sends, float64(written.Sub(begun)))
					if got != 1 || len(into[0].Data) != n*size {
						return t, fmt.Errorf("%d packets came as %d batches", n, got)
					}
				}
				if cold {
					t.cold = quartile(sends) + quartile(reads)
					continue
				}
				t.sent = append(t.sent, point{n, n * size, quartile(sends)})
				t.received = append(t.received, point{n, n * size, quartile(reads)})
			}
		}
	}
	return t, nil
}

// batchTimes are what batches has measured; cold is a packet's sending and receipt.
type batchTimes struct {
	sent, received []point
	cold           float64
}

// cacheBytes returns the size of a processor's own cache.
func cacheBytes() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/index2/size")
	k, failed := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(text)), "K"))
	if err != nil || failed != nil || k < 1 {
		return 1 << 20
	}
	return k << 10
}

// pingPong returns how long it takes from a packet's sending to the reaction of a process on the same
// processor that sleeps.
func (e *ends) pingPong() (time.Duration, error) {
	const rounds = 2000
	var now, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &now); err != nil {
		return 0, err
	}
	for cpu := range len(one) * 64 {
		if now.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	var turns []float64
	play := func(from, to *transport.UDP, serves bool) error {
		runtime.LockOSThread() // a thread of its own, which ends with it
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		into, begun := make([]transport.Packet, 1), time.Time{}
		ball := []transport.Message{{To: to.LocalAddr(), Body: make([]byte, wire.HeaderSize+8)}}
		for i := range 2 * rounds {
			if serves == (i%2 == 0) {
				begun = time.Now()
				if err := from.WriteBatch(ball); err != nil {
					return err
				}
			} else if _, err := from.ReadBatch(into, time.Now().Add(patience)); err != nil {
				return err
			} else if serves {
				turns = append(turns, float64(time.Since(begun)))
			}
		}
		return nil
	}
	failed := make(chan error)
	go func() { failed <- play(e.leaf, e.host, false) }()
	go func() { failed <- play(e.host, e.leaf, true) }()
	if err := errors.Join(<-failed, <-failed); err != nil {
		return 0, err
	}
	return time.Duration(quartile(turns) / 2), nil
}

// Look looks for packets for about a time, as a process of a fabric does that has none, and returns the
// processor time of a look in nanoseconds.
func Look(d time.Duration) (float64, error) {
	u, err := transport.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), transport.Config{Poll: 10 * time.Millisecond})
	if err != nil {
		return 0, err
	}
	defer func() { _ = u.Close() }()
	into := make([]transport.Packet, 1)
	user, system := gauge.Usage()
	before := u.Counters().WaitCalls
	for begun := time.Now(); time.Since(begun) < d; {
		if err := u.WriteBatch([]transport.Message{{To: u.LocalAddr(), Body: into[0].Data}}); err != nil {
			return 0, err
		}
		for until := time.Now().Add(8 * time.Millisecond); time.Now().Before(until); {
			_, _ = u.ReadBatch(into, until) // the packet, and then nothing until the deadline
		}
	}
	untilUser, untilSystem := gauge.Usage()
	looks := u.Counters().WaitCalls - before
	if looks == 0 {
		return 0, errors.New("there were no looks")
	}
	return float64(untilUser-user+untilSystem-system) / float64(looks), nil
}

// looks has n processes look at once, and returns the middle of their costs.
func looks(ctx context.Context, n int, other func(context.Context) *exec.Cmd) (float64, error) {
	type said struct {
		text []byte
		err  error
	}
	all := make(chan said, n)
	for range n {
		go func() {
			text, err := other(ctx).Output()
			all <- said{text, err}
		}()
	}
	var costs []float64
	var errs []error
	for range n {
		s := <-all
		x, err := strconv.ParseFloat(strings.TrimSpace(string(s.text)), 64)
		errs = append(errs, s.err, err)
		costs = append(costs, x)
	}
	slices.Sort(costs)
	return costs[n/2], errors.Join(errs...)
}
