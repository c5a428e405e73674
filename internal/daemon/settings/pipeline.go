package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// What reduces in a switch.
const (
	PipelineAuto   = "auto"   // the switch's kernel where it can, otherwise the agent
	PipelineSoft   = "soft"   // the agent
	PipelineKernel = "kernel" // the switch's kernel; the agent has what that does not take
	PipelineP4     = "p4"     // a P4 target beside the agent
)

var pipelines = []string{PipelineAuto, PipelineSoft, PipelineKernel, PipelineP4}

var kernels = map[string]agentd.Kernel{PipelineAuto: agentd.AnyKernel, PipelineKernel: agentd.NeedsKernel}

// CheckPipeline reports whether a name is that of a pipeline.
func CheckPipeline(name string) error {
	if !slices.Contains(pipelines, name) {
		return fmt.Errorf("%q is not one of %s: %w", name, strings.Join(pipelines, ", "), topology.ErrField)
	}
	return nil
}

// CheckP4Runtime reports what is wrong with the address of a P4Runtime server.
func CheckP4Runtime(address string) error {
	t := pipeline.Target{Address: address}
	_, err := t.Remote()
	return err
}

// complete reports what a P4 target is lacking in the file, and is not given by
// flags either.
func (a *Agent) complete() error {
	if a.Pipeline != PipelineP4 {
		return nil
	}
	var errs []error
	if a.Target.Address == "" {
		errs = append(errs, errors.New("pipeline p4: the file has no p4runtime.address, and there is no --p4runtime"))
	}
	if len(a.Target.Ports)+len(a.Ports) == 0 {
		errs = append(errs, errors.New("pipeline p4: the file has no ports: name the interfaces that are the target's ports, such as {interface: \"leaf-0-eth*\"}, or give number, address and mac of each"))
	}
	if a.TargetGNMI != "" {
		if len(a.Ports) == 0 {
			errs = append(errs, errors.New("p4runtime.gnmi reports interfaces, and none is a port: name those that are (ports: [{interface: ...}])"))
		}
		gnmi := pipeline.Target{Address: a.TargetGNMI}
		if remote, err := gnmi.Remote(); err == nil && remote && a.TargetTLS.Authority == "" && (!a.Plaintext || a.TargetLogin.User != "") {
			errs = append(errs, fmt.Errorf("p4runtime.gnmi: %s is not on this machine, and is talked to without encryption: give it certificates (p4runtime: tls), or, without a password, allow that by plaintext", a.TargetGNMI))
		}
	}
	return errors.Join(errs...)
}

// p4runtime returns a reader of where the target is.
func (d *reader) p4runtime(a *Agent) func(field) {
	to := &a.Target
	return func(f field) {
		d.object(f, map[string]func(field){
			"address": parsed(d, &to.Address, func(text string) (string, error) { return text, CheckP4Runtime(text) }),
			"gnmi":    d.address(&a.TargetGNMI),
			"device":  count(d, &to.Device, 0, 1<<62),
			"replace": d.boolean(&to.Replace), "tls": d.targetTLS(&a.TargetTLS), "login": d.targetLogin(&a.TargetLogin),
		}, "address!")
	}
}

// ports reads the target's ports, in the order of the file.
func (d *reader) ports(f field, a *Agent) {
	d.list(f, func(f field) {
		var s portmap.Spec
		before := len(d.errs)
		d.object(f, map[string]func(field){
			"interface": d.into(&s.Interface), "number": count(d, &s.Number, 1, p4.Ports),
			"address": parsed(d, &s.Addr, parseIPv4), "mac": parsed(d, &s.MAC, parseMAC),
		})
		if len(d.errs) > before || d.more > 0 {
			return
		}
		taken := func(o portmap.Spec) bool { return o.Number != 0 && o.Number == s.Number }
		err := s.Check()
		if err == nil && slices.ContainsFunc(a.Ports, taken) {
			err = fmt.Errorf("%w: port %d twice", portmap.ErrSpec, s.Number)
		}
		switch {
		case err != nil:
			d.fail(f, fmt.Errorf("%w: %w", err, topology.ErrField))
		case s.Interface != "":
			a.Ports = append(a.Ports, s)
		default:
			p := p4.Port{Number: s.Number, Addr: s.Addr, MAC: s.MAC}
			d.adds(f, before, &p4.State{Ports: append(a.Target.Ports[:len(a.Target.Ports):len(a.Target.Ports)], p), Routes: a.Target.Routes}, a)
		}
	})
}

// routes reads the ways to hosts and neighbours. The ports are known.
func (d *reader) routes(f field, a *Agent) {
	d.list(f, func(f field) {
		var r p4.Route
		before := len(d.errs)
		d.object(f, map[string]func(field){
			"prefix": parsed(d, &r.Prefix, parsePrefix), "port": count(d, &r.Port, 1, p4.Ports), "mac": parsed(d, &r.MAC, parseMAC),
		}, "prefix!", "port!", "mac!")
		t := &a.Target
		d.adds(f, before, &p4.State{Ports: t.Ports, Routes: append(t.Routes[:len(t.Routes):len(t.Routes)], r)}, a)
	})
}

// list calls read for each item of a list.
func (d *reader) list(f field, read func(field)) {
	if f.Kind != document.List {
		d.failf(f, "must be a list, not %s", f.Kind)
		return
	}
	for _, item := range f.Items {
		read(item)
	}
}

// adds takes ports and routes with one more than before, unless that is wrong. Where
// some ports are interfaces, whatever port a route names may be one of these.
func (d *reader) adds(f field, before int, state *p4.State, a *Agent) {
	if len(d.errs) > before || d.more > 0 {
		return
	}
	checked := *state
	for _, r := range state.Routes {
		known := slices.ContainsFunc(checked.Ports, func(p p4.Port) bool { return p.Number == r.Port })
		if len(a.Ports) > 0 && !known {
			unknown := p4.Port{Number: r.Port, Addr: netip.AddrFrom4([4]byte{0, 0, byte(r.Port >> 8), byte(r.Port)})}
			checked.Ports = append(checked.Ports[:len(checked.Ports):len(checked.Ports)], unknown)
		}
	}
	if err := checked.Validate(); err != nil {
		d.fail(f, fmt.Errorf("%w: %w", err, topology.ErrField))
		return
	}
	a.Target.Ports, a.Target.Routes = state.Ports, state.Routes
}

func parseIPv4(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() || a.IsMulticast() {
		err = fmt.Errorf("%q is not an IPv4 address that packets can be sent to", text)
	}
	return a, err
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || !p.Addr().Is4() || p != p.Masked() {
		err = fmt.Errorf("%q is not an IPv4 prefix such as 10.0.1.0/24, without bits beyond its length", text)
	}
	return p, err
}

func parseMAC(text string) (mac p4.MAC, err error) {
	b, err := net.ParseMAC(text)
	if err != nil || len(b) != len(mac) {
		return mac, fmt.Errorf("%q is not a hardware address such as 02:00:00:00:00:01", text)
	}
	return p4.MAC(b), nil
}
