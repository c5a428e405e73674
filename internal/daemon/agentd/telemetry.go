package agentd

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/neighbor"
	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/ground/version"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// reporter is what the agent reports by gNMI. It implements gnmi.Source.
type reporter struct {
	daemon  *Daemon
	address string // of the gRPC server
	boot    uint64 // of the machine, in nanoseconds since 1970; 0: not known
	began   uint64 // the agent, likewise

	mu    sync.Mutex // of what one reading leaves to the next
	links map[string]change
	cpu   processor.Time
	share openconfig.Count // percent of the processors that was in use before
}

// change is when an interface went up or down.
type change struct {
	status openconfig.Status
	at     time.Time // zero: before the agent was started
}

func newReporter(d *Daemon, address net.Addr) *reporter {
	r := &reporter{daemon: d, address: address.String(), began: uint64(time.Now().UnixNano()), links: map[string]change{}}
	if boot, err := processor.ReadBoot(); err == nil {
		r.boot = uint64(boot.UnixNano())
	}
	return r
}

// Read implements gnmi.Source.
func (r *reporter) Read(ctx context.Context, p telemetry.Part) (*openconfig.Device, error) {
	select {
	case <-r.daemon.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d := &openconfig.Device{}
	switch p {
	case telemetry.Events:
		return d, r.events(ctx, d)
	case telemetry.Interfaces:
		return d, r.traffic(d)
	case telemetry.System:
		r.system(d)
	case telemetry.Agent:
		return d, r.counters(ctx, d)
	}
	return d, nil
}

// Drain implements gnmi.Source.
func (r *reporter) Drain(ctx context.Context, on bool) error { return r.daemon.Drain(ctx, on) }

// events are all leaves but counters.
func (r *reporter) events(ctx context.Context, d *openconfig.Device) error {
	var s rpc.AgentState
	if err := r.daemon.loop.Do(ctx, func() { s = r.daemon.state() }); err != nil {
		return r.daemon.excuse(err)
	}
	if name, err := os.Hostname(); err == nil {
		d.Name = name
	}
	d.BootTime, d.Software = r.boot, s.Version
	if m, err := processor.ReadMemory(); err == nil {
		d.MemoryPhysical = m.Physical
	}
	c := s.Capability
	d.Agent = &openconfig.Agent{
		Switch: s.Switch, Version: version.String(), Address: r.address, Incarnation: s.Incarnation, DataPlane: "software",
		Draining: s.Draining, Unusable: s.Unusable,
		Slots: uint32(c.Slots), Children: uint32(c.Children), Chunk: uint32(c.Chunk), Window: uint32(c.Window),
	}
	if r.daemon.cfg.Target != nil {
		d.Agent.DataPlane = "p4"
	}
	d.Agent.ReduceBytes, d.Agent.ReducePackets = reduction(c.Speed.Bytes), reduction(c.Speed.Packets)
	for _, f := range c.Functions.List() {
		d.Agent.Functions = append(d.Agent.Functions, f.String())
	}
	for _, t := range c.Types.List() {
		d.Agent.Types = append(d.Agent.Types, t.String())
	}
	all, err := r.interfaces()
	if err != nil {
		return err
	}
	d.Interfaces = map[string]*openconfig.Interface{}
	for i := range all {
		d.Interfaces[all[i].Name] = describe(&all[i])
	}
	if n := r.daemon.network; n != nil {
		for _, p := range n.of(all).Ports {
			if i := d.Interfaces[p.Interface]; i != nil {
				i.Port = uint32(p.Number)
			}
		}
	}
	r.neighbors(d)
	r.changes(d.Interfaces)
	return nil
}

// neighbors are those that the ports hear by LLDP, and what is announced there.
func (r *reporter) neighbors(d *openconfig.Device) {
	s := r.daemon.neighbors
	if s == nil {
		return
	}
	own := s.Own()
	d.LLDP, d.SystemName, d.SystemDescription = true, own.SystemName, own.SystemDescription
	d.Chassis, d.ChassisType = own.Chassis.String(), own.Chassis.Subtype.String()
	for name, p := range s.Ports() {
		i := d.Interfaces[name]
		if i == nil {
			i = &openconfig.Interface{Name: name}
			d.Interfaces[name] = i
		}
		i.LLDP, i.Latency = true, uint64(p.Latency)
		for n := range p.Neighbors {
			i.Neighbors = append(i.Neighbors, heard(&p.Neighbors[n]))
		}
	}
}

// heard is what a neighbour has announced.
func heard(a *neighbor.Neighbor) openconfig.Neighbor {
	n := openconfig.Neighbor{
		ID:      strconv.FormatUint(a.ID, 10),
		Chassis: a.Chassis.String(), ChassisType: a.Chassis.Subtype.String(), Port: a.Port.String(), PortType: a.Port.Subtype.String(),
		PortDescription: a.PortDescription, SystemName: a.SystemName, SystemDescription: a.SystemDescription, TTL: a.TTL,
		Management: a.Management,
	}
	for bit, name := range capabilities {
		if a.Capabilities>>bit&1 != 0 {
			n.Capabilities = append(n.Capabilities, openconfig.Capability{Name: name, Enabled: a.Enabled>>bit&1 != 0})
		}
	}
	if t := a.Tributary; t.Role != lldpdu.None {
		n.Tributary = openconfig.Tributary{Role: t.Role.String(), Name: t.Name, AgentPort: t.AgentPort, Port: t.PortNumber}
	}
	return n
}

// capabilities are OpenConfig's identities for the bits of lldpdu.Capabilities.
var capabilities = [...]string{
	"OTHER", "REPEATER", "MAC_BRIDGE", "WLAN_ACCESS_POINT", "ROUTER", "TELEPHONE", "DOCSIS_CABLE_DEVICE", "STATION_ONLY",
	"C_VLAN", "S_VLAN", "TWO_PORT_MAC_RELAY",
}

// reduction returns how much the switch reduces in a second: none is reported as 0.
func reduction(n int64) openconfig.Count {
	if n == 0 {
		return openconfig.Count{} // not known
	}
	return openconfig.Counted(uint64(max(n, 0)))
}

// interfaces returns those of the switch; none where they are not reported.
func (r *reporter) interfaces() ([]nic.Interface, error) {
	if r.daemon.cfg.Interfaces == nil {
		return nil, nil
	}
	all, err := r.daemon.cfg.Interfaces.Read()
	if err != nil {
		return nil, fmt.Errorf("agentd: reading interfaces: %w", err)
	}
	if n := r.daemon.network; n != nil {
		n.address(all)
	}
	return all, nil
}

func describe(i *nic.Interface) *openconfig.Interface {
	x := &openconfig.Interface{
		Name: i.Name, Type: "other", Index: uint32(i.Index), Admin: openconfig.StatusOf(i.Enabled), Oper: openconfig.StatusOf(i.Up),
		MAC: i.MAC.String(), Speed: i.Speed,
	}
	if i.Ethernet {
		x.Type = "ethernetCsmacd"
	}
	if i.MTU < 1<<16 {
		x.MTU = uint16(i.MTU)
	}
	for n := range i.Addresses {
		x.Addresses = append(x.Addresses, openconfig.Address{Prefix: i.Prefix(n)})
	}
	return x
}

// changes notes when interfaces went up or down.
func (r *reporter) changes(all map[string]*openconfig.Interface) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for name, i := range all {
		last, known := r.links[name]
		switch {
		case !known:
			last = change{status: i.Oper}
		case last.status != i.Oper:
			last = change{i.Oper, now}
		}
		r.links[name] = last
		if !last.at.IsZero() {
			i.LastChange = uint64(last.at.UnixNano())
		}
	}
	for name := range r.links {
		if all[name] == nil {
			delete(r.links, name)
		}
	}
}

// traffic are the counters of interfaces, where they are known.
func (r *reporter) traffic(d *openconfig.Device) error {
	if r.daemon.cfg.Elsewhere {
		return nil
	}
	all, err := r.interfaces()
	if err != nil {
		return err
	}
	d.Interfaces = map[string]*openconfig.Interface{}
	for _, i := range all {
		d.Interfaces[i.Name] = &openconfig.Interface{Name: i.Name, Counters: openconfig.Counters{
			InPackets: openconfig.Counted(i.Traffic.PacketsIn), InBytes: openconfig.Counted(i.Traffic.BytesIn),
			InErrors: openconfig.Counted(i.Losses.ErrorsIn), InDiscards: openconfig.Counted(i.Losses.DropsIn),
			OutPackets: openconfig.Counted(i.Traffic.PacketsOut), OutBytes: openconfig.Counted(i.Traffic.BytesOut),
			OutErrors: openconfig.Counted(i.Losses.ErrorsOut), OutDiscards: openconfig.Counted(i.Losses.DropsOut),
		}}
	}
	return nil
}

// system is how busy the machine is. What it does not report is left out.
func (r *reporter) system(d *openconfig.Device) {
	d.CPU = r.spent()
	if m, err := processor.ReadMemory(); err == nil {
		d.MemoryUsed, d.MemoryFree = m.Physical-m.Available, m.Available
	}
	if p, err := processor.ReadProcess(); err == nil {
		d.Processes = map[uint64]*openconfig.Process{uint64(os.Getpid()): {
			Name: "switch-agent", Start: r.began,
			User: openconfig.Counted(uint64(p.User)), System: openconfig.Counted(uint64(p.System)), Memory: openconfig.Counted(p.Resident),
		}}
	}
}

// spent returns how many percent of the processors were in use since the call before; at
// the first one, since the machine was started.
func (r *reporter) spent() openconfig.Count {
	if r.daemon.cfg.Processor == nil {
		return openconfig.Count{}
	}
	now, err := r.daemon.cfg.Processor()
	if err != nil {
		r.daemon.log.Debug("the processor's time cannot be read", slog.Any("error", err))
		return openconfig.Count{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if share, ok := now.Since(r.cpu); ok {
		r.share = openconfig.Counted(uint64(100*share + 0.5))
		r.cpu = now
	}
	return r.share
}

// counters are those of the agent and its trees.
func (r *reporter) counters(ctx context.Context, d *openconfig.Device) error {
	n, err := r.daemon.census(ctx)
	if err != nil {
		return err
	}
	a := &openconfig.Agent{
		SlotsUsed: uint32(n.used), Events: n.sum.Events, Drops: maps.Collect(drops(&n.sum)), Trees: map[uint32]*openconfig.Tree{},
		PacketsIn: n.sum.PacketsIn, BytesIn: n.sum.BytesIn, PacketsOut: n.sum.PacketsOut, BytesOut: n.sum.BytesOut,
		Refused: n.sum.Refused, Overflowed: n.sum.Overflowed,
	}
	d.Agent = a
	for i := range n.trees {
		t := &n.trees[i]
		of := a.Trees[t.Group]
		if of == nil {
			of = &openconfig.Tree{}
			a.Trees[t.Group] = of
		}
		of.PacketsIn, of.BytesIn = of.PacketsIn+t.PacketsIn, of.BytesIn+t.BytesIn
		of.PacketsOut, of.BytesOut = of.PacketsOut+t.PacketsOut, of.BytesOut+t.BytesOut
		for _, count := range drops(t) {
			of.Dropped += count
		}
	}
	return nil
}
