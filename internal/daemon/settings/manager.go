package settings

import (
	_ "embed" // the schema
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// DefaultManagerListen is where a manager listens that is reported nothing else.
const DefaultManagerListen = "127.0.0.1:7400"

// Manager is a manager's configuration.
type Manager struct {
	Topology  string // specification, or path of a file
	Graph     *topology.Graph
	Agents    map[string]string // "host:port" by the switch's name
	Listen    string
	Serving   rpc.Limits // zero fields have their defaults
	Store     string     // path; empty: nothing survives a restart
	Admin     Admin
	TLS       TLS
	Plaintext bool // without certificates on other addresses than loopback, too
	Log       Log
	Audit     string // path of the audit log; empty: there is none

	Heartbeat, Call, Connect time.Duration // as in managerd.Config; 0: its defaults
	Verify                   time.Duration // likewise; below 0: off
	Core                     manager.Config
	Membership               Membership
	Model                    pathsel.Model // by which trees are chosen; the zero value is the default
	Discovery                Discovery     // Topology is the operator's part then, and may be empty
}

// ReadManagerFile is ReadManager for the file at path.
func ReadManagerFile(path string) (*Manager, error) { return readFile(path, ReadManager) }

// ReadManager reads a manager's configuration, and the topology that it names.
// The name, usually the file's path, begins every error.
func ReadManager(r io.Reader, name string) (*Manager, error) {
	m := &Manager{Listen: DefaultManagerListen, Log: Log{"info", "text"}, Agents: map[string]string{}}
	return read(r, name, m, (*reader).manager)
}

func (d *reader) manager(top field, m *Manager) {
	var limits, periods field
	given := false
	d.object(top, map[string]func(field){
		"version": d.version, "topology": func(f field) { given = true; d.topology(f, m) }, "agents": func(f field) { d.agents(f, m) },
		"limits": func(f field) { limits = f }, "periods": func(f field) { periods = f }, "planning": func(f field) { d.planning(f, m) },
		"listen": d.address(&m.Listen), "connections": d.connections(&m.Serving), "store": d.filePath(&m.Store), "admin": d.admin(&m.Admin),
		"tls": d.tls(&m.TLS), "plaintext": d.boolean(&m.Plaintext), "log": d.log(&m.Log),
		"audit": d.filePath(&m.Audit), "quotas": func(f field) { d.quotas(f, &m.Core.Quotas) },
		"membership": d.membership(&m.Membership), "discovery": func(f field) {
			given = true
			d.discovery(&m.Discovery)(f)
		},
	}, "version!", "agents")
	if !given {
		d.failf(top, "topology is missing, and there is no discovery")
	}
	if m.Graph == nil && m.Topology == "" {
		m.Graph, _ = (&topology.Builder{}).Build() // without anything that could be wrong
	}
	d.core(limits, periods, m)
}

// topology reads the fabric.
func (d *reader) topology(f field, m *Manager) {
	text, ok := d.text(f)
	if !ok {
		return
	}
	m.Topology = text
	g, err := topology.Open(text)
	if errors.Is(err, fs.ErrNotExist) { // it is the path of a file
		m.Topology = d.resolve(text)
		g, err = topology.Open(m.Topology)
	}
	var inFile *topology.FileError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.failf(f, "%q is neither a specification such as leaf-spine:4,2,2 nor a file", text)
	case errors.As(err, &inFile):
		d.add(err) // has its own place
	case err != nil:
		d.fail(f, err)
	default:
		m.Graph = g
	}
}

// agents reads the agents' addresses.
func (d *reader) agents(f field, m *Manager) {
	taken := map[string]string{}
	for _, i := range d.items(f) {
		var address string
		d.address(&address)(i)
		if address == "" {
			continue
		}
		if other := taken[address]; other != "" {
			d.failf(i, "%s is the address of %s, too", address, other)
		}
		taken[address] = i.Key
		m.Agents[i.Key] = address
		if m.Graph == nil || m.Discovery.Given() {
			continue // reported already, or it may be discovered
		}
		if n, ok := m.Graph.Lookup(i.Key); !ok || !m.Graph.IsSwitch(n) {
			d.fail(i, fmt.Errorf("the topology has no switch %q: %w", i.Key, topology.ErrUnknownNode))
		}
	}
}

// core reads the bounds and periods.
func (d *reader) core(limits, periods field, m *Manager) {
	c, before := &m.Core, len(d.errs)
	if limits != nil {
		d.object(limits, map[string]func(field){
			"groups":       count(d, &c.MaxGroups, 1, 1<<20),
			"members":      count(d, &c.MaxMembers, 2, 1<<24),
			"window":       count(d, &c.MaxWindow, 1, switchreduce.MaxWindow),
			"first-window": count(d, &c.StartWindow, 1, switchreduce.MaxWindow),
			"group-slots":  count(d, &c.GroupSlots, 16, 1<<30),
			"switch-slots": count(d, &c.SwitchSlots, 16, 1<<30),
			"attempts":     count(d, &c.MaxAttempts, 1, 1<<10),
			"history":      count(d, &c.MaxHistory, 1, 1<<16),
		})
	}
	if periods != nil {
		d.object(periods, map[string]func(field){
			"heartbeat": d.period(&m.Heartbeat), "call": d.period(&m.Call), "connect": d.period(&m.Connect),
			"verify": d.periodOrOff(&m.Verify),
			"answer": d.period(&c.Answer), "repeat": d.period(&c.Repeat),
			"retry-min": d.period(&c.RetryMin), "retry-max": d.period(&c.RetryMax),
			"lease": d.period(&c.Lease), "suspicion": d.period(&c.Suspicion), "absence": d.period(&c.Absence),
			"release-grace": d.period(&c.ReleaseGrace), "abandon": d.period(&c.Abandon),
			"settle": d.period(&c.Settle),
			"hold":   d.period(&c.Hold), "idle": d.period(&c.Idle),
		})
	}
	if err := c.Validate(); err != nil && len(d.errs) == before && !errors.Is(err, quota.ErrConfig) { // which is reported already
		at := limits
		if at == nil {
			at = periods
		}
		d.fail(at, fmt.Errorf("%w: %w", err, topology.ErrField))
	}
}

// Config returns what the file says of a manager; store, certificates and
// logger are the caller's to add.
func (m *Manager) Config() managerd.Config {
	return managerd.Config{
		Topology: m.Graph, Agents: m.Agents, Core: m.Core, Model: m.Model, Listen: m.Listen, Limits: m.Serving, AllowPlaintext: m.Plaintext,
		Heartbeat: m.Heartbeat, Call: m.Call, Connect: m.Connect, Verify: m.Verify,
	}
}
