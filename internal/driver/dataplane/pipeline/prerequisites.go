package pipeline

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/p4"
)

// What a target lacks that the program needs, beside P4Runtime.
var (
	ErrNoLoop = fmt.Errorf("pipeline: what the target sends by port %d does not arrive at its port %d: connect these two ports, of bmv2 by a veth pair (-i %[1]d@loop-out -i %[2]d@loop-in)",
		p4.LoopOutPort, p4.LoopInPort)
	ErrNoCPUPort = fmt.Errorf("pipeline: the target passes no packets to its agent: start it with the CPU port %d, bmv2 with --cpu-port %[1]d", p4.CPUPort)
	ErrNoPorts   = errors.New("pipeline: no port of the target has an address: give it in the agent's file (ports), to the interface, or to the link's end in the manager's topology")
	ErrSetDown   = errors.New("pipeline: the target receives nothing at any port while an interface of its own is set down, as bmv2 does: set it up (ip link set NAME up)")
	errUnchecked = errors.New("its CPU port and its loop are being checked")
)

// Checks are made every checkInterval, and quickChecks of them quicker times as often
// after an interface was set down or up. What did not come back of maxMissed in a row is not there; what
// comes late counts for those before.
const (
	checkInterval = time.Second
	quicker       = 10
	quickChecks   = 2 * maxMissed
	maxMissed     = 5
)

// way is one that a check takes through the target.
type way uint8

const (
	cpuWay  way = iota // out by the CPU port, which is back at once
	loopWay            // out by one port of the loop, in by the other
	ways
)

// leaves and arrives are the ports of each way, missing is what is said without it.
var (
	leaves  = [ways]uint64{p4.CPUPort, p4.LoopOutPort}
	arrives = [ways]uint16{p4.CPUPort, p4.LoopInPort}
	missing = [ways]error{ErrNoCPUPort, ErrNoLoop}
)

// checks finds out, again and again, whether a target has what the program needs.
// Frames could be lost on a way that is there, as on any link, and wait behind others
// where the target is busy: a way is missing when several in a row are, and the loop's
// only count where those to the CPU port come back.
type checks struct {
	lack   error // nil: nothing is missing
	next   time.Time
	quick  int // checks to come in a part of their interval
	nonce  [8]byte
	back   [ways]bool // since the last were sent
	missed [ways]int  // in a row
	known  [ways]bool // one has come back, and no more than maxMissed were missed since
}

// restart begins anew with another target, or another life of it.
func (c *checks) restart() {
	*c = checks{lack: errUnchecked}
	_, _ = rand.Read(c.nonce[:]) // never fails
}

// frames takes what came back of the last frames, and returns the next.
func (c *checks) frames(now time.Time, every time.Duration) []p4rt.Packet {
	sent := !c.next.IsZero()
	if c.quick > 0 {
		c.quick--
		every /= quicker
	}
	c.next = now.Add(every)
	if sent {
		c.count()
	}
	c.back = [ways]bool{}
	packets := make([]p4rt.Packet, ways)
	for w := range ways {
		// To all, from an address that bridges take: something may be on the way.
		frame := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0}
		frame = binary.BigEndian.AppendUint16(frame, p4.CheckType)
		frame = append(append(frame, byte(w)), c.nonce[:]...)
		packets[w] = p4rt.Packet{Header: []p4rt.Meta{{ID: p4.PacketOutPort, Value: leaves[w]}}, Payload: frame}
	}
	return packets
}

// count counts what has come back of the last frames.
func (c *checks) count() {
	for w := range ways {
		switch {
		case c.back[w]:
			c.missed[w] = 0
		case w == cpuWay || c.back[cpuWay]:
			c.missed[w]++
		}
		if c.missed[w] >= maxMissed {
			c.known[w] = false
		}
	}
	c.judge()
}

// judge sets what is missing.
func (c *checks) judge() {
	for w := range ways {
		switch {
		case c.known[w]:
			continue
		case c.missed[w] >= maxMissed:
			c.lack = missing[w]
		default:
			c.lack = errUnchecked
		}
		return
	}
	c.lack = nil
}

// returned takes a frame that has come back by a port.
func (c *checks) returned(port uint16, payload []byte) {
	w := way(payload[0])
	if w >= ways || port != arrives[w] || !slices.Equal(payload[1:], c.nonce[:]) {
		return
	}
	c.back[w], c.missed[w], c.known[w] = true, 0, true
	c.judge()
}

// checkOf returns what a packet from the target says that is a check.
func checkOf(p *p4rt.Packet) (port uint16, payload []byte, is bool) {
	if len(p.Payload) < ethernetSize+9 || binary.BigEndian.Uint16(p.Payload[12:]) != p4.CheckType {
		return 0, nil, false
	}
	var in p4.PacketIn
	for _, m := range p.Header {
		in.Take(m.ID, m.Value)
	}
	return in.Port, p.Payload[ethernetSize : ethernetSize+9], true
}

// prerequisite returns what the target lacks.
func (d *driver) prerequisite() error {
	if errors.Is(d.checks.lack, ErrNoLoop) && len(d.down) > 0 && (d.isDown || d.checks.quick > 0) {
		return fmt.Errorf("%w: %s", ErrSetDown, strings.Join(d.down, ", "))
	}
	return d.checks.lack
}

// setDown takes the interfaces that are set down. Once there are none, the last ones are
// the reason until the target had time to hear again.
func (d *driver) setDown(names []string) {
	isDown := len(names) > 0
	if isDown == d.isDown && (!isDown || slices.Equal(names, d.down)) {
		return
	}
	before := d.prerequisite()
	if d.isDown = isDown; isDown {
		d.down = names
	}
	d.checks.quick, d.checks.next = quickChecks, time.Now()
	d.next = d.checks.next
	d.lacks(before)
}

// check sends the next frames if they are due.
func (d *driver) check(now time.Time) {
	if d.stage != usable || now.Before(d.checks.next) {
		return
	}
	before := d.prerequisite()
	d.plane.give(d.checks.frames(now, d.plane.cfg.checkInterval())...)
	d.lacks(before)
}

// returned takes a frame that has come back.
func (d *driver) returned(port uint16, payload []byte) {
	before := d.prerequisite()
	d.checks.returned(port, payload)
	d.lacks(before)
}

// lacks reports if another thing is missing than before.
func (d *driver) lacks(before error) {
	lack := d.prerequisite()
	if d.stage != usable || fmt.Sprint(before) == fmt.Sprint(lack) {
		return
	}
	switch log := d.plane.cfg.Log.With(slog.String("target", d.plane.cfg.Target.Address)); {
	case lack == nil:
		log.Info("the P4 target is usable")
	case errors.Is(lack, errUnchecked):
		log.Info("checking the P4 target's CPU port and loop")
	default:
		log.Warn("the P4 target cannot be used", slog.Any("reason", lack))
	}
	d.offer()
}
