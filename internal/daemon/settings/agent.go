package settings

import (
	_ "embed" // the schema
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/ports"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/topology"
)

// DefaultAgentListen is where an agent listens that is reported nothing else.
const DefaultAgentListen = "127.0.0.1:7410"

// Agent is an agent's configuration. It names no manager: an agent serves who
// calls it and may.
type Agent struct {
	Switch        string
	Capability    topology.Capability
	Measure       bool // its speed, where Capability has none
	Listen        string
	Serving       rpc.Limits // zero fields have their defaults
	Data          netip.Addr
	ReceiveBuffer int                // bytes; 0: the default of package soft
	Without       transport.Features // that the trees' sockets are to do without
	PrepareLease  time.Duration      // 0: the core's default
	Pipeline      string             // one of those of pipeline.go
	Target        pipeline.Target
	Ports         []portmap.Spec // of the target that are interfaces; its others are Target.Ports
	TargetTLS     TargetTLS
	TargetLogin   TargetLogin
	TargetGNMI    string // "host:port" of its own gNMI server, which reports its ports; empty: they are this machine's
	LLDP          LLDP
	Admin         Admin
	TLS           TLS
	Plaintext     bool // without certificates on other addresses than loopback, too
	Log           Log
}

// ReadAgentFile is ReadAgent for the file at path.
func ReadAgentFile(path string) (*Agent, error) { return readFile(path, ReadAgent) }

// ReadAgent reads an agent's configuration. The name, usually the file's path,
// begins every error.
func ReadAgent(r io.Reader, name string) (*Agent, error) {
	a := &Agent{
		Listen: DefaultAgentListen, Data: netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		Capability: topology.DefaultCapability(), Measure: true, Pipeline: PipelineSoft, LLDP: LLDP{Mode: LLDPAuto}, Log: Log{"info", "text"},
	}
	return read(r, name, a, (*reader).agent)
}

func (d *reader) agent(top field, a *Agent) {
	d.object(top, map[string]func(field){
		"version": d.version, "switch": d.into(&a.Switch),
		"capability": d.capability(&a.Capability), "measure": d.boolean(&a.Measure),
		"listen": d.address(&a.Listen), "connections": d.connections(&a.Serving), "data": parsed(d, &a.Data, parseData),
		"receive-buffer": count(d, &a.ReceiveBuffer, 1, 1<<30),
		"without":        parsed(d, &a.Without, parseFeatures),
		"prepare-lease":  d.period(&a.PrepareLease),
		"pipeline":       d.oneOf(&a.Pipeline, pipelines...),
		"p4runtime":      d.p4runtime(a),
		"ports":          func(f field) { d.ports(f, a) },
		"routes":         func(f field) { d.routes(f, a) },
		"lldp":           d.lldp(&a.LLDP),
		"admin":          d.admin(&a.Admin),
		"tls":            d.tls(&a.TLS), "plaintext": d.boolean(&a.Plaintext), "log": d.log(&a.Log),
	}, "version!", "switch!", "ports", "routes")
}

// parseData reads the address of the trees' sockets.
func parseData(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.IsMulticast() {
		err = fmt.Errorf("%q is not an IP address that packets can be sent to", text)
	}
	return a, err
}

// parseFeatures reads what the trees' sockets are to do without.
func parseFeatures(text string) (transport.Features, error) {
	f, err := transport.ParseFeatures(text)
	if err != nil {
		err = fmt.Errorf("%q: %w", text, err)
	}
	return f, err
}

// capability returns a reader of what a switch can do, as in topology files.
func (d *reader) capability(to *topology.Capability) func(field) {
	return func(f field) {
		const most = 1 << 30 // as in topology
		d.object(f, map[string]func(field){
			"functions": func(f field) { to.Functions = topology.FunctionsOf(set(d, f, topology.AllFunctions().List())...) },
			"types":     func(f field) { to.Types = topology.TypesOf(set(d, f, topology.AllTypes().List())...) },
			"slots":     count(d, &to.Slots, 0, most), "children": count(d, &to.Children, 0, most), "chunk": count(d, &to.Chunk, 0, most),
			"window": count(d, &to.Window, 0, most), "speed": d.reduction(&to.Speed),
		})
	}
}

// reduction returns a reader of how fast a switch reduces, as in topology files.
func (d *reader) reduction(to *topology.Speed) func(field) {
	return func(f field) {
		*to = topology.Speed{}
		rate := func(n *int64) func(field) {
			return func(f field) {
				x, err := topology.ParseRate(f.Text)
				if err != nil || f.Kind != document.Number && f.Kind != document.String {
					d.failf(f, "must be a number a second, as a whole number or like 12G, or line-rate")
					return
				}
				*n = x
			}
		}
		d.object(f, map[string]func(field){"bytes": rate(&to.Bytes), "packets": rate(&to.Packets)})
	}
}

// set reads "all", "none" or a list of names.
func set[T interface {
	comparable
	String() string
}](d *reader, f field, all []T) (chosen []T) {
	switch {
	case f.Kind == document.String && f.Text == "all":
		return all
	case f.Kind == document.String && f.Text == "none":
		return nil
	case f.Kind != document.List:
		d.failf(f, "must be all, none, or a list of names")
		return nil
	}
	for _, at := range f.Items {
		name, ok := d.text(at)
		if !ok {
			continue
		}
		k := slices.IndexFunc(all, func(x T) bool { return x.String() == name })
		switch {
		case k < 0:
			d.failf(at, "%q is not among %v", name, all)
		case slices.Contains(chosen, all[k]):
			d.failf(at, "%q is there twice", name)
		default:
			chosen = append(chosen, all[k])
		}
	}
	return chosen
}

// Config returns what the file says of an agent; certificates and logger are
// the caller's to add. An error reports what it needs besides.
func (a *Agent) Config() (agentd.Config, error) {
	c := agentd.Config{
		Switch: a.Switch, Capability: a.Capability, Listen: a.Listen, Limits: a.Serving, Data: a.Data, AllowPlaintext: a.Plaintext, Measure: a.Measure,
		ReceiveBuffer: a.ReceiveBuffer, Without: a.Without, PrepareLease: a.PrepareLease, LLDP: a.LLDP.config(),
	}
	if a.Pipeline != PipelineP4 {
		c.Kernel = kernels[a.Pipeline]
		return c, nil
	}
	target := a.Target
	encryption, err := a.TargetTLS.config()
	login, refused := a.TargetLogin.login()
	target.TLS, target.Login = encryption, login
	c.Target, c.Capability = &target, pipeline.Within(a.Capability)
	if len(a.Ports) > 0 {
		c.Ports, c.Routes = a.Ports, target.Routes
		for _, p := range target.Ports {
			c.Ports = append(c.Ports, portmap.Spec{Number: p.Number, Addr: p.Addr, MAC: p.MAC})
		}
		target.Ports, target.Routes = nil, nil
	}
	if a.TargetGNMI != "" {
		c.Elsewhere, c.Interfaces = true, ports.New(ports.Config{
			Address: a.TargetGNMI, TLS: encryption, Username: login.User, Password: login.Password,
		})
	}
	return c, errors.Join(a.complete(), err, refused)
}
