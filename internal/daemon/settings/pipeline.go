package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/topology"
)

// What reduces in a switch.
const (
	PipelineSoft = "soft" // the agent
	PipelineP4   = "p4"   // a P4 target beside it
)

// CheckPipeline reports whether a name is that of a pipeline.
func CheckPipeline(name string) error {
	if name != PipelineSoft && name != PipelineP4 {
		return fmt.Errorf("%q is not one of %s, %s: %w", name, PipelineSoft, PipelineP4, topology.ErrField)
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
	if len(a.Target.Ports) == 0 {
		errs = append(errs, errors.New("pipeline p4: the file has no ports: the agent needs number, address and mac of each"))
	}
	return errors.Join(errs...)
}

// p4runtime returns a reader of where the target is.
func (d *reader) p4runtime(to *pipeline.Target, encryption *TargetTLS) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){
			"address": parsed(d, &to.Address, func(text string) (string, error) { return text, CheckP4Runtime(text) }),
			"device":  count(d, &to.Device, 0, 1<<62),
			"replace": d.boolean(&to.Replace), "tls": d.targetTLS(encryption),
		}, "address!")
	}
}

// ports reads the target's ports, in the order of the file.
func (d *reader) ports(f field, to *pipeline.Target) {
	d.list(f, func(f field) {
		var p p4.Port
		before := len(d.errs)
		d.object(f, map[string]func(field){
			"number": count(d, &p.Number, 1, p4.Ports), "address": parsed(d, &p.Addr, parseIPv4), "mac": parsed(d, &p.MAC, parseMAC),
		}, "number!", "address!", "mac!")
		d.adds(f, before, &p4.State{Ports: append(to.Ports[:len(to.Ports):len(to.Ports)], p), Routes: to.Routes}, to)
	})
}

// routes reads the ways to hosts and neighbours. The ports are known.
func (d *reader) routes(f field, to *pipeline.Target) {
	d.list(f, func(f field) {
		var r p4.Route
		before := len(d.errs)
		d.object(f, map[string]func(field){
			"prefix": parsed(d, &r.Prefix, parsePrefix), "port": count(d, &r.Port, 1, p4.Ports), "mac": parsed(d, &r.MAC, parseMAC),
		}, "prefix!", "port!", "mac!")
		d.adds(f, before, &p4.State{Ports: to.Ports, Routes: append(to.Routes[:len(to.Routes):len(to.Routes)], r)}, to)
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

// adds takes ports and routes with one more than before, unless that is wrong.
func (d *reader) adds(f field, before int, state *p4.State, to *pipeline.Target) {
	if len(d.errs) > before || d.more > 0 {
		return
	}
	if err := state.Validate(); err != nil {
		d.fail(f, fmt.Errorf("%w: %w", err, topology.ErrField))
		return
	}
	to.Ports, to.Routes = state.Ports, state.Routes
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
