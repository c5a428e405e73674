package pipeline

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// Why there is no tree or epoch.
var (
	ErrFull   = errors.New("pipeline: the switch is full")
	ErrNoTree = errors.New("pipeline: the tree is not open")
	ErrStale  = errors.New("pipeline: a later epoch of the tree was there already")
	ErrLimit  = errors.New("pipeline: the program cannot do that")
)

// ledger reports what of the target belongs to whom. It knows no target and has no
// clock.
type ledger struct {
	trees  map[uint64]*tree // by socket
	places [p4.Trees]*tree  // by index
	epochs [p4.Epochs]*epoch

	// Where the search for a free index begins: those that were given back are
	// used again as late as possible, because packets may still be under way.
	nextTree, nextEpoch int

	serial uint64 // the last that was given
	// seen has the target's traffic counters, as they were read last.
	seen [p4.Epochs * p4.Traffics]uint64
}

// tree is an open tree.
type tree struct {
	socket uint64
	index  int
	group  uint32

	newest uint32   // largest epoch ever installed; 0: none
	epochs []*epoch // in rising order
}

// epoch is an epoch that the target holds, or is to hold.
type epoch struct {
	tree   *tree
	index  int
	serial uint64
	slots  region
	cfg    *switchreduce.Config // read only

	lease core.Time // when it runs out
	sent  core.Time // when something last went to the parent

	before []exchanged // its cells in the target, as they were read first
}

func newLedger() *ledger { return &ledger{trees: map[uint64]*tree{}} }

// open gives a tree its place.
func (l *ledger) open(socket uint64, group uint32) (*tree, error) {
	for i := range l.places {
		index := (l.nextTree + i) % len(l.places)
		if l.places[index] == nil {
			t := &tree{socket: socket, index: index, group: group}
			l.places[index], l.trees[socket] = t, t
			l.nextTree = index + 1
			return t, nil
		}
	}
	return nil, fmt.Errorf("%w: it has %d trees, as many as the program has room for", ErrFull, len(l.places))
}

// shut gives the place of a tree back, and those of its epochs.
func (l *ledger) shut(t *tree) {
	for len(t.epochs) > 0 {
		l.retire(t.epochs[0])
	}
	delete(l.trees, t.socket)
	l.places[t.index] = nil
}

// install gives an epoch of a tree its place. Errors wrap ErrFull, ErrStale or
// ErrLimit.
func (l *ledger) install(now core.Time, t *tree, c *switchreduce.Config) (*epoch, error) {
	if err := fits(c); err != nil {
		return nil, err
	}
	switch {
	case c.Group != t.group:
		return nil, fmt.Errorf("%w: group %d, on the tree of group %d", ErrLimit, c.Group, t.group)
	case c.Epoch <= t.newest:
		return nil, fmt.Errorf("%w: epoch %d, after %d", ErrStale, c.Epoch, t.newest)
	case l.serial >= p4.MaxSerial:
		return nil, fmt.Errorf("%w: the serial numbers of epochs are used up; push the program anew", ErrFull)
	}
	index, err := l.freeEpoch()
	if err != nil {
		return nil, err
	}
	own, others := l.regions(t)
	slots, err := place(2*int(c.Window), own, others)
	if err != nil {
		return nil, err
	}
	l.serial++
	e := &epoch{tree: t, index: index, serial: l.serial, slots: slots, cfg: c, sent: now}
	e.renew(now)
	l.epochs[index], l.nextEpoch = e, index+1
	t.epochs, t.newest = append(t.epochs, e), c.Epoch
	return e, nil
}

// fits reports what of a configuration the program cannot do.
func fits(c *switchreduce.Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	switch {
	case c.Protection != wire.Plain:
		return fmt.Errorf("%w: packets that are %v", ErrLimit, c.Protection)
	case len(c.Children) > p4.Children:
		return fmt.Errorf("%w: %d children, it has room for %d", ErrLimit, len(c.Children), p4.Children)
	case c.ChunkBytes > p4.Chunk:
		return fmt.Errorf("%w: chunks of %d bytes, its largest have %d", ErrLimit, c.ChunkBytes, p4.Chunk)
	case 2*int(c.Window) > p4.Slots:
		return fmt.Errorf("%w: a window of %d chunks, its largest is %d", ErrLimit, c.Window, p4.Slots/2)
	}
	return nil
}

func (l *ledger) freeEpoch() (int, error) {
	for i := range l.epochs {
		if index := (l.nextEpoch + i) % len(l.epochs); l.epochs[index] == nil {
			return index, nil
		}
	}
	return 0, fmt.Errorf("%w: it has %d epochs, as many as the program has room for", ErrFull, len(l.epochs))
}

// regions returns the slots of a tree's epochs, and of all others.
func (l *ledger) regions(t *tree) (own, others []region) {
	for _, e := range l.epochs {
		switch {
		case e == nil:
		case e.tree == t:
			own = append(own, e.slots)
		default:
			others = append(others, e.slots)
		}
	}
	return own, others
}

// retire gives an epoch's place back.
func (l *ledger) retire(e *epoch) {
	e.tree.epochs = slices.DeleteFunc(e.tree.epochs, func(o *epoch) bool { return o == e })
	l.epochs[e.index] = nil
}

// find returns an epoch of a tree, or nil.
func (t *tree) find(number uint32) *epoch {
	for _, e := range t.epochs {
		if e.cfg.Epoch == number {
			return e
		}
	}
	return nil
}

// all returns the epochs of all trees, by index.
func (l *ledger) all() []*epoch {
	var held []*epoch
	for _, e := range l.epochs {
		if e != nil {
			held = append(held, e)
		}
	}
	return held
}

// state returns what a target that holds all this is configured with, beside
// its ports and routes.
func (l *ledger) state() (trees []p4.Tree, epochs []p4.Epoch) {
	for _, t := range l.places {
		if t != nil && t.newest != 0 {
			trees = append(trees, t.state())
		}
	}
	for _, e := range l.all() {
		epochs = append(epochs, e.state())
	}
	return trees, epochs
}

func (t *tree) state() p4.Tree { return p4.Tree{Index: t.index, Group: t.group, Newest: t.newest} }

func (e *epoch) state() p4.Epoch {
	c := e.cfg
	s := p4.Epoch{
		Tree: e.tree.index, Index: e.index, Serial: e.serial, SlotBase: e.slots.base,
		Epoch: c.Epoch, Window: c.Window, ChunkBytes: c.ChunkBytes,
		Parent: plain(c.Parent), Own: c.Index, Cookie: uint64(c.Cookie), Probes: min(c.Probes, p4.MaxProbes),
	}
	for _, child := range c.Children {
		s.Children = append(s.Children, p4.Child{Addr: plain(child.Addr), Lowest: child.Lowest, Cookie: uint64(child.Cookie)})
	}
	return s
}

// plain returns an address without the form that an IPv4 address may have in
// IPv6.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// reducer returns what reduces for e.
func (e *epoch) reducer() topology.Reducer {
	return topology.Reducer{Pipeline: topology.P4, Own: p4.Own(len(e.cfg.Children), e.slots.base+e.slots.size)}
}

func (e *epoch) renew(now core.Time) {
	e.lease = core.Never
	if e.cfg.Lease > 0 {
		e.lease = now.Add(e.cfg.Lease)
	}
}

// Reads of the traffic counters in a lease, at least, and the bounds of the
// time between two.
const (
	readsInLease = 12
	minRead      = 20 * time.Millisecond
	maxRead      = time.Second
)

// interval returns the time between two reads of the traffic counters.
func (l *ledger) interval() time.Duration {
	d := maxRead
	for _, e := range l.all() {
		if e.cfg.Lease > 0 {
			d = min(d, e.cfg.Lease/readsInLease)
		}
	}
	return max(d, minRead)
}

// baseline takes the traffic counters as those of a target that nobody has
// looked at yet.
func (l *ledger) baseline(cells []uint64) { copy(l.seen[:], cells) }

// read takes the traffic counters. It returns the epochs whose lease has run
// out, which it retires, and those whose parent is to get a keep-alive.
func (l *ledger) read(now core.Time, cells []uint64) (expired, quiet []*epoch) {
	for _, e := range l.all() {
		moved := func(kind int) bool {
			i := p4.TrafficIndex(e.index, kind)
			return cells[i] != l.seen[i]
		}
		children := moved(p4.TrafficChild)
		if children || moved(p4.TrafficParent) {
			e.renew(now)
		}
		if moved(p4.TrafficUp) {
			e.sent = now
		}
		if now >= e.lease {
			l.retire(e)
			expired = append(expired, e)
		} else if children && e.cfg.Lease > 0 && e.cfg.Parent.IsValid() && now.Sub(e.sent) >= e.cfg.Lease/3 {
			e.sent = now
			quiet = append(quiet, e)
		}
	}
	copy(l.seen[:], cells)
	return expired, quiet
}
