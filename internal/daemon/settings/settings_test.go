package settings_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/discoverer"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/collector"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

const examples = "../../../docs/examples/"

func TestManagerExample(t *testing.T) {
	m, err := settings.ReadManagerFile(examples + "manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if m.Graph.Hosts() != 8 || len(m.Agents) != 4 || m.Agents["spine-1"] != "127.0.0.1:7413" || m.Listen != "127.0.0.1:7400" ||
		m.Store != filepath.Clean(examples+"manager.db") || m.TLS.Given() || m.Plaintext || m.Admin.Listen != "" {
		t.Errorf("read %+v", m)
	}
	if m.Heartbeat != 500*time.Millisecond || m.Core.Lease != 30*time.Second || m.Core.MaxWindow != 4096 || m.Core.RetryMax != 0 {
		t.Errorf("read %+v", m)
	}
	if err := m.Config().Validate(); err != nil {
		t.Error(err)
	}
	if d := manager.DefaultConfig().Quotas; m.Core.Quotas.Host != d.Host || m.Core.Quotas.All != d.All || m.Audit != "" {
		t.Errorf("the example has quotas %+v, the defaults are %+v", m.Core.Quotas, d)
	}
}

// TestQuotas are read as they are written.
func TestQuotas(t *testing.T) {
	m, err := settings.ReadManager(strings.NewReader("version: 1\ntopology: leaf-spine:2,2,2\naudit: a.log\nquotas: {all: {slots: 5, plans: 9}, host: {groups: 3, slots: 4}, labels: {z: {hosts: [h0, \"h1*\"], weight: 3, plans: 7}, a: {hosts: [\"*\"], waiting: 2}}}\n"), "/x/f")
	if err != nil {
		t.Fatal(err)
	}
	want := quota.Config{
		All: quota.Limits{Slots: 5, Plans: 9}, Host: quota.Limits{Groups: 3, Slots: 4},
		Labels: []quota.Label{
			{Name: "z", Hosts: []string{"h0", "h1*"}, Weight: 3, Limits: quota.Limits{Plans: 7}},
			{Name: "a", Hosts: []string{"*"}, Limits: quota.Limits{Waiting: 2}},
		},
	}
	if diff := cmp.Diff(want, m.Core.Quotas); diff != "" || m.Audit != "/x/a.log" {
		t.Errorf("audit log %s; quotas (-want +got):\n%s", m.Audit, diff)
	}
}

func TestAgentExample(t *testing.T) {
	a, err := settings.ReadAgentFile(examples + "agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if a.Switch != "leaf-0" || a.Listen != "127.0.0.1:7410" || a.Data != netip.MustParseAddr("127.0.0.1") ||
		a.Capability != topology.DefaultCapability() || a.ReceiveBuffer != 4<<20 {
		t.Errorf("read %+v", a)
	}
	if c, err := a.Config(); err != nil || c.Validate() != nil || c.Target != nil {
		t.Error(err, c.Validate())
	}
}

// TestGivenSpeed has a file say how fast a switch reduces, whatever does.
func TestGivenSpeed(t *testing.T) {
	const text = "version: 1\nswitch: s\nmeasure: false\ncapability: {speed: {bytes: 12G, packets: 0}}\n"
	a, err := settings.ReadAgent(strings.NewReader(text), "f")
	if want := (topology.Speed{Bytes: 12e9, Packets: topology.NoSpeed}); err != nil || a.Measure || a.Capability.Speed != want {
		t.Fatalf("%+v, %v", a, err)
	}
	hardware, err := settings.ReadAgent(strings.NewReader(strings.Replace(text, "12G, packets: 0", "line-rate", 1)), "f")
	if err != nil || !hardware.Capability.Speed.AtLineRate() {
		t.Errorf("%+v, %v", hardware, err)
	}
	for _, p := range []string{settings.PipelineAuto, settings.PipelineSoft, settings.PipelineKernel, settings.PipelineP4} {
		a.Pipeline = p
		if c, _ := a.Config(); c.Capability.Speed != a.Capability.Speed || c.Measure {
			t.Errorf("pipeline %s: %+v", p, c.Capability)
		}
	}
}

// TestPortsAndRoutesByHand are those of a target whose ports are no interfaces here,
// and beside interfaces.
// The examples' comments are settings, too.
func TestCommentedSettings(t *testing.T) {
	for _, file := range []string{"manager.yaml", "agent.yaml"} {
		text, err := os.ReadFile(examples + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tls:", "  certificate:", "  key:", "  authority:", "  revoked:", "plaintext:", "admin:", "  listen:", "  profiles:", "connections:",
			"lldp:", "  mode:", "  interval:", "  interfaces:", "  exclude:",
			"membership:", "  name:", "  bootstrap:", "  keys:", "  encrypt:", "  state:",
			"  management:", "  timing:", "    grace:", "    health:", "    stealth:", "  hierarchy:", "    delegates:", "    supervisors:"} {
			text = bytes.ReplaceAll(text, []byte("\n# "+name), []byte("\n"+name))
		}
		path := filepath.Join(examples, file)
		if file == "agent.yaml" {
			a, err := settings.ReadAgent(bytes.NewReader(text), path)
			if err != nil || a.TLS.Key != filepath.Clean(examples+"certs/agent-leaf-0-key.pem") || a.TLS.Revoked != filepath.Clean(examples+"certs/revoked.pem") || a.Admin.Listen != "127.0.0.1:7481" || a.Admin.Profiles != "127.0.0.1:7491" || a.Serving.Streams != 256 {
				t.Errorf("%s: %+v, %v", file, a, err)
			}
			if want := (settings.LLDP{
				Mode: settings.LLDPRequired, Interval: 500 * time.Millisecond, Interfaces: []string{"eth*"}, Exclude: []string{"eth0"},
				Management: []netip.Addr{netip.MustParseAddr("10.0.9.2")},
			}); !reflect.DeepEqual(a.LLDP, want) {
				t.Errorf("%s: LLDP %+v, want %+v", file, a.LLDP, want)
			}
			continue
		}
		m, err := settings.ReadManager(bytes.NewReader(text), path)
		if err != nil || !m.TLS.Given() || !m.Plaintext || m.Admin.Listen != "127.0.0.1:7480" || m.Admin.Profiles != "127.0.0.1:7490" || m.Serving != (rpc.Limits{Connections: 16384, OfSource: 512, Streams: 256}) {
			t.Errorf("%s: %+v, %v", file, m, err)
		}
		if z := m.Membership; !z.Given() || len(z.Bootstrap) != 3 || !z.Encrypt || z.Keys != filepath.Join(examples, "membership.keys") ||
			!z.Management || z.Timing != (membership.Timing{Grace: 375 * time.Millisecond, Health: 8, Stealth: 1}) || z.Hierarchy != (membership.Hierarchy{Delegates: 2, Supervisors: 2}) {
			t.Errorf("%s: membership %+v", file, z)
		}
	}
}

func TestLeast(t *testing.T) {
	m, err := settings.ReadManager(strings.NewReader("version: 1\ntopology: four-switches:2\n"), "f")
	if err != nil || m.Listen != settings.DefaultManagerListen || m.Store != "" || m.Log != (settings.Log{Level: "info", Format: "text"}) {
		t.Errorf("%+v, %v", m, err)
	}
	a, err := settings.ReadAgent(strings.NewReader(`{"version": 1, "switch": "A", "capability": {"functions": ["sum", "max"], "types": "none"}}`), "f")
	if err != nil || a.Listen != settings.DefaultAgentListen || a.Capability.Types != 0 ||
		a.Capability.Functions != topology.FunctionsOf(reduce.Sum, reduce.Max) || a.Capability.Slots != topology.DefaultSlots {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestMembershipSettings: all that a file says of the membership is in the node's
// configuration.
// TestDiscoverySettings: all that a file says of discovery is in its configuration; without
// a topology the fabric begins with nothing.
func TestDiscoverySettings(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "secret"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = `version: 1
agents: {leaf-0: 10.0.0.1:7410}
discovery:
  seeds: [10.0.0.1:7410, seed.example:7410]
  allow: [10.0.0.0/24, 10.0.1.7]
  port: 9339
  targets:
    - {addresses: [10.0.1.7], username: admin, password-file: secret, plaintext: true}
  limits: {dials: 7, targets: 8, ports: 9, neighbours: 10, flaps: 11, updates: 12}
  periods: {batch: 1ms, settle: 2ms, confirm: 3ms, forget: 4ms, hold: 5ms, hold-max: 6ms, retry-min: 7ms, retry-max: 8ms}
`
	m, err := settings.ReadManager(strings.NewReader(text), filepath.Join(directory, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Graph == nil || m.Graph.Nodes() != 0 || m.Agents["leaf-0"] == "" {
		t.Errorf("%+v", m)
	}
	c, err := m.Discovery.Config()
	want := &discoverer.Config{
		Core: discovery.Config{
			Seeds: []string{"10.0.0.1:7410", "seed.example:7410"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.0.1.7/32")}, Port: 9339,
			Batch: time.Millisecond, Settle: 2 * time.Millisecond, Confirm: 3 * time.Millisecond, Forget: 4 * time.Millisecond, Hold: 5 * time.Millisecond, MaxHold: 6 * time.Millisecond,
			DialRate: 7, MaxTargets: 8, MaxPorts: 9, MaxNeighbors: 10, Flaps: 11,
		},
		Limits: collector.Limits{Rate: 12, MinRetry: 7 * time.Millisecond, MaxRetry: 8 * time.Millisecond},
		Others: []discoverer.Other{{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.1.7/32")}, Username: "admin", Password: "s3cret", Plaintext: true}},
	}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, %v; want %+v", c, err, want)
	}
	secret := filepath.Join(directory, "secret")
	if err := os.WriteFile(secret, []byte("\ns3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Discovery.Config(); err == nil || !strings.Contains(err.Error(), "discovery.targets[0].password-file: the first line of ") {
		t.Errorf("an empty password: %v", err)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Discovery.Config(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "discovery.targets[0].password-file") {
		t.Errorf("without the file: %v", err)
	}
}

// TestNode reads the example, and a file with a name.
// TestMembershipKeys reads what a file of keys has when the configuration of a
// node is made.
func check(t *testing.T, tests []wrong, schema []byte, read func(io.Reader, string) error) {
	t.Helper()
	compiled := compile(t, schema)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := read(strings.NewReader(test.text), "f")
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(test.messages) {
				t.Fatalf("%d errors, want %d:\n%v", len(lines), len(test.messages), err)
			}
			for i, want := range test.messages {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("error %d is %q, want %q", i, lines[i], want)
				}
			}
			var value any
			if test.schema && yaml.Unmarshal([]byte(test.text), &value) == nil && compiled.Validate(value) == nil {
				t.Error("the schema has nothing against it")
			}
		})
	}
}

func compile(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", value); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("schema.json")
}

func TestManagerErrors(t *testing.T) {
	const head = "version: 1\ntopology: leaf-spine:2,2,2\n"
	tests := []wrong{
		{"empty", "", topology.ErrSyntax, []string{"f: neither YAML nor JSON: the file is empty"}, false},
		{"syntax", "version: 1\nagents: {a\n", topology.ErrSyntax, []string{"f:"}, false},
		{"two documents", head + "---\nversion: 1\n", topology.ErrSyntax, []string{"f:"}, false},
		{"a list", "- 1\n", topology.ErrField, []string{"f:1: must be an object", "f:1: version is missing", "f:1: topology is missing"}, true},
		{"nothing", "{}", topology.ErrField, []string{"f:1: version is missing", "f:1: topology is missing"}, true},
		{"version", "version: 2\ntopology: fat-tree:4\n", topology.ErrField, []string{"f:1: version: version 2 of the format is not known: this program reads 1"}, true},
		{"unknown fields", head + "stores: a\nlimits: {group: 1}\nperiods:\n  leases: 1s\n", topology.ErrUnknownField,
			[]string{"f:3: stores: unknown field; known here: admin, agents,", "f:4: limits.group: ", "f:6: periods.leases: "}, true},
		{"field twice", head + "listen: localhost:1\nlisten: localhost:2\n", topology.ErrField, []string{"f:4: listen: the field is there twice"}, false},
		{"no such file", "version: 1\ntopology: nowhere.yaml\n", topology.ErrField, []string{`f:2: topology: "nowhere.yaml" is neither a specification`}, false},
		{"specification", "version: 1\ntopology: fat-tree:5\n", topology.ErrSpec, []string{"f:2: topology: "}, false},
		{"topology's type", "version: 1\ntopology: 7\n", topology.ErrField, []string{"f:2: topology: must be a string, not a number (put it in quotes)"}, true},
		{"unknown switch", head + "agents:\n  leaf-0: a:1\n  leaf-7: b:1\n", topology.ErrUnknownNode, []string{`f:5: agents.leaf-7: the topology has no switch "leaf-7"`}, false},
		{"agent of a host", head + "agents: {h0: 'a:1'}\n", topology.ErrUnknownNode, []string{`f:3: agents.h0: the topology has no switch`}, false},
		{"one address twice", head + "agents:\n  leaf-0: a:1\n  leaf-1: a:1\n", topology.ErrField, []string{"f:5: agents.leaf-1: a:1 is the address of leaf-0, too"}, false},
		{"addresses", head + "listen: localhost\nadmin: {listen: 'a:70000'}\nagents: {leaf-0: 5}\n", topology.ErrField,
			[]string{`f:3: listen: "localhost" is not of the form host:port`, `f:4: admin.listen: "a:70000" has no port`, "f:5: agents.leaf-0: must be a string"}, true},
		{"agents are a list", head + "agents: [a]\n", topology.ErrField, []string{"f:3: agents: must be an object"}, true},
		{"tls in part", head + "tls: {certificate: a.pem, key: b.pem}\n", topology.ErrField, []string{"f:3: tls: certificate, key and authority"}, true},
		{"admin without address", head + "admin: {remote: true}\n", topology.ErrField, []string{"f:3: admin: listen is missing"}, true},
		{"plaintext", head + "plaintext: maybe\n", topology.ErrField, []string{"f:3: plaintext: must be true or false, not a string"}, true},
		{"log", head + "log: {level: loud, format: xml}\n", topology.ErrField,
			[]string{`f:3: log.level: "loud" is not one of debug, info, warn, error`, `f:3: log.format: "xml" is not`}, true},
		{"periods", head + "periods: {lease: 30, abandon: -1s, answer: soon, call: 0s}\n", topology.ErrField,
			[]string{"f:3: periods.lease: must be a string", `f:3: periods.abandon: "-1s"`, `f:3: periods.answer: "soon"`, `f:3: periods.call: "0s"`}, true},
		{"retries", head + "periods:\n  retry-min: 10s\n  retry-max: 1s\n", topology.ErrField, []string{"f:3: periods: manager: invalid configuration"}, false},
		{"limits", head + "limits: {groups: 0, members: 1.5, window: 100000}\n", topology.ErrField,
			[]string{"f:3: limits.groups: 0 is not within", "f:3: limits.members: must be a whole number", "f:3: limits.window: 100000 is not"}, true},
		{"quotas", head + "quotas: {all: {groups: 1}, host: {plans: 0}, labels: {a: {groups: 3}, b: {hosts: [], weight: 5000}, c: {hosts: h1}}}\n", topology.ErrField,
			[]string{"f:3: quotas.all.groups: unknown field", "f:3: quotas.host.plans: 0 is not within", "f:3: quotas.labels.a: hosts is missing",
				"f:3: quotas.labels.b.weight: 5000 is not within", "f:3: quotas.labels.c.hosts: must be a list"}, true},
		{"a label of nobody", head + "quotas: {labels: {a: {hosts: []}}}\n", topology.ErrField, []string{"f:3: quotas: quota: invalid limits: label a has no hosts"}, true},
		{"a label's pattern", head + "quotas: {labels: {a: {hosts: [\"h[\"]}}}\n", topology.ErrField, []string{"f:3: quotas: quota: invalid limits: label a: \"h[\": syntax error in pattern"}, false},
		{"planning", head + "planning: {hosts: always, forward: perhaps, models: a}\n", topology.ErrField,
			[]string{`f:3: planning.hosts: "always" is not one of where-faster, never`, `f:3: planning.forward: "perhaps" is not one of never, needed, better`, "f:3: planning.models: unknown field"}, true},
		{"model", head + "planning: {model: nowhere.yaml}\n", topology.ErrField, []string{`f:3: planning.model: there is no file "nowhere.yaml"`}, false},
		{"membership", head + "membership: {name: m, listen: here, bootstrap: [a], zone: -1}\n", topology.ErrField,
			[]string{"f:3: membership.listen: ", "f:3: membership.bootstrap[0]: ", "f:3: membership.zone: -1 is not within"}, true},
		{"membership without a name", head + "membership: {listen: \"127.0.0.1:1\"}\n", topology.ErrField, []string{"f:3: membership: name is missing"}, true},
		{"encryption without keys", head + "membership: {name: m, listen: \"127.0.0.1:1\", encrypt: true}\n", topology.ErrField, []string{"f:3: membership: encrypt needs keys"}, false},
		{"member's name", head + "membership: {name: m@n, listen: \"127.0.0.1:1\"}\n", topology.ErrField, []string{"f:3: membership: membership: invalid configuration: the name"}, false},
		{"membership's timing", head + "membership: {name: m, listen: \"127.0.0.1:1\", timing: {theta: 0, tau: 0s, health: 0, loud: 1}, hierarchy: {silence: 1, beat: 1}}\n", topology.ErrField,
			[]string{"f:3: membership.timing.theta: 0 is not within", "f:3: membership.timing.tau: ", "f:3: membership.timing.health: 0 is not within", "f:3: membership.timing.loud: unknown field",
				"f:3: membership.hierarchy.silence: 1 is not within", "f:3: membership.hierarchy.beat: must be a string"}, true},
		{"membership's theta", head + "membership: {name: m, listen: \"127.0.0.1:1\", timing: {theta: 3, successors: 2}}\n", topology.ErrField, []string{"f:3: membership: membership: invalid configuration: timing: "}, false},
		{"management in a zone", head + "membership: {name: m, listen: \"127.0.0.1:1\", zone: 3, management: true}\n", topology.ErrField, []string{"f:3: membership: membership: invalid configuration: zone 3"}, false},
		{"window", head + "limits: {window: 100}\n", topology.ErrField, []string{"f:3: limits: manager: invalid configuration: windows"}, false},
		{"alias", head + "listen: &a a:1\nstore: *a\n", topology.ErrSyntax, []string{"f:4: neither YAML nor JSON: aliases (*name) are not supported"}, false},
		{"discovery", head + "discovery: {seeds: [here], allow: [10.0.0.1/8, none], port: 0, limits: {dials: 0}, periods: {hold: -1s}}\n", topology.ErrField,
			[]string{`f:3: discovery.seeds[0]: "here" is not of the form`, `f:3: discovery.allow[0]: "10.0.0.1/8" has bits beyond its length: write 10.0.0.0/8`, `f:3: discovery.allow[1]: "none" is neither`,
				"f:3: discovery.port: 0 is not within",
				"f:3: discovery.limits.dials: 0 is not within", "f:3: discovery.periods.hold: "}, true},
		{"discovery of nothing", "version: 1\ndiscovery: {seeds: [], allow: [10.0.0.0/8]}\n", topology.ErrField, []string{"f:2: discovery: seeds needs an address"}, true},
		{"discovery's bounds", "version: 1\ndiscovery: {seeds: [\"a:1\"]}\n", topology.ErrField, []string{"f:2: discovery: allow is missing"}, true},
		{"a target's password", head + "discovery: {seeds: [\"a:1\"], allow: [10.0.0.0/8], targets: [{addresses: [10.0.0.9], username: u, password-file: p}, {username: u}]}\n", topology.ErrField,
			[]string{"f:3: discovery.targets[0]: the password would be sent without encryption", "f:3: discovery.targets[1]: addresses is missing"}, false},
		{"in one line", "{version: 1, topology: nowhere.yaml}", topology.ErrField, []string{`f:1: topology: "nowhere.yaml" is neither a specification`}, false},
		{"too many", head + "agents: {" + strings.Repeat("1: 1, 2: 2, ", 12) + "}\n", topology.ErrField, nil, false},
	}
	tests[len(tests)-1].messages = append(repeat("f:3: agents.", 20), "f: and ")
	check(t, tests, schema(t, "manager.schema.json"), func(r io.Reader, name string) error {
		_, err := settings.ReadManager(r, name)
		return err
	})
}

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestAgentErrors(t *testing.T) {
	const head = "version: 1\nswitch: leaf-0\n"
	check(t, []wrong{
		{"nothing", "{}", topology.ErrField, []string{"f:1: version is missing", "f:1: switch is missing"}, true},
		{"no name", "version: 1\nswitch: ''\n", topology.ErrField, []string{"f:2: switch: must not be empty"}, true},
		{"a manager", head + "manager: a:1\n", topology.ErrUnknownField, []string{"f:3: manager: unknown field"}, true},
		{"data", head + "data: leaf-0.example\n", topology.ErrField, []string{`f:3: data: "leaf-0.example" is not an IP address`}, false},
		{"multicast", head + "data: 224.0.0.1\n", topology.ErrField, []string{"f:3: data: "}, false},
		{"capability", head + "capability:\n  functions: [sum, mean, sum]\n  types: [int7, 3]\n  slots: -1\n  children: many\n", topology.ErrField,
			[]string{`f:4: capability.functions[1]: "mean" is not among`, `f:4: capability.functions[2]: "sum" is there twice`,
				`f:5: capability.types[0]: "int7" is not among`, "f:5: capability.types[1]: must be a string", "f:6: capability.slots: -1", "f:7: capability.children: must be"}, true},
		{"sets", head + "capability: {functions: most, types: {a: 1}, window: -1}\n", topology.ErrField,
			[]string{"f:3: capability.functions: must be all, none, or a list", "f:3: capability.types: must be all", "f:3: capability.window: -1 is not within"}, true},
		{"pipeline", head + "pipeline: fpga\n", topology.ErrField, []string{`f:3: pipeline: "fpga" is not one of auto, soft, kernel, p4`}, true},
		{"no target", head + "p4runtime: {}\n", topology.ErrField, []string{"f:3: p4runtime: address is missing"}, true},
		{"target", head + "p4runtime: {address: here, device: -1, replace: perhaps}\n", topology.ErrField,
			[]string{"f:3: p4runtime.address: ", "f:3: p4runtime.device: -1 is not within", "f:3: p4runtime.replace: must be true or false"}, true},
		{"target's TLS", head + "p4runtime: {address: \"a:1\", tls: {certificate: c, name: 3}}\n", topology.ErrField,
			[]string{"f:3: p4runtime.tls.name: must be a string"}, true},
		{"target's authority", head + "p4runtime: {address: \"a:1\", tls: {certificate: c, key: k}}\n", topology.ErrField, []string{"f:3: p4runtime.tls: authority is missing"}, true},
		{"target's password", head + "p4runtime: {address: \"a:1\", login: {user: u}}\n", topology.ErrField, []string{"f:3: p4runtime.login: password is missing"}, true},
		{"target's key", head + "p4runtime: {address: \"a:1\", tls: {authority: a, certificate: c}}\n", topology.ErrField, []string{"f:3: p4runtime.tls: certificate and key are needed together"}, false},
		{"ports", head + "ports:\n  - {number: 508, address: 10.0.0.256, mac: '02'}\n  - {number: 1, address: 'fd00::1'}\n  - {number: 1, address: 10.0.0.1}\n  - none\n", topology.ErrField,
			[]string{"f:4: ports[0].number: 508", `f:4: ports[0].address: "10.0.0.256" is not an IPv4 address`, `f:4: ports[0].mac: "02" is not a hardware address`,
				`f:5: ports[1].address: "fd00::1" is not`, "f:6: ports[2]: portmap: invalid port: without an interface it needs number, address and mac", "f:7: ports[3]: must be an object"}, true},
		{"ports that contradict", head + "ports:\n  - {number: 1, address: 10.0.0.1, mac: '02:00:00:00:00:01'}\n  - {number: 1, address: 10.0.0.2, mac: '02:00:00:00:00:02'}\n", topology.ErrField,
			[]string{"f:5: ports[1]: p4: invalid state: port 1 twice"}, false},
		{"a pattern with a number", head + "ports:\n  - {interface: 'eth*', number: 1}\n", topology.ErrField,
			[]string{`f:4: ports[0]: portmap: invalid port: "eth*" is a pattern, and number, address and mac are of one port`}, false},
		{"an interface's number twice", head + "ports:\n  - {interface: eth1, number: 7}\n  - {interface: eth2, number: 7}\n", topology.ErrField,
			[]string{"f:5: ports[1]: portmap: invalid port: port 7 twice"}, false},
		{"routes", head + "routes:\n  - {prefix: 10.0.0.1/8, port: 0, mac: '02:00:00:00:00:01'}\n  - {port: 1, mac: '02:00:00:00:00:01'}\nports: {a: 1}\n", topology.ErrField,
			[]string{"f:6: ports: must be a list", `f:4: routes[0].prefix: "10.0.0.1/8" is not an IPv4 prefix`, "f:4: routes[0].port: 0 is not within", "f:5: routes[1]: prefix is missing"}, true},
		{"a route to nowhere", head + "routes: [{prefix: 10.0.0.0/8, port: 3, mac: '02:00:00:00:00:01'}]\n", topology.ErrField,
			[]string{"f:3: routes[0]: p4: invalid state: route to 10.0.0.0/8 by port 3, which has no address"}, false},
		{"LLDP", head + "lldp: {mode: 'on', interval: 0s, interfaces: eth0, exclude: ['['], management: [here]}\n", topology.ErrField,
			[]string{`f:3: lldp.mode: "on" is not one of auto, required, off`, "f:3: lldp.interval: ", "f:3: lldp.interfaces: must be a list",
				`f:3: lldp.exclude[0]: "[" is not a pattern`, `f:3: lldp.management[0]: "here" is not an IP address`}, true},
		{"speed", head + "capability: {speed: {bytes: fast, packets: -1}}\nmeasure: often\n", topology.ErrField,
			[]string{"f:3: capability.speed.bytes: must be a number a second", "f:3: capability.speed.packets: must be a number a second", "f:4: measure: must be true or false"}, true},
		{"without", head + "without: speed\n", topology.ErrField, []string{`f:3: without: "speed": `}, true},
		{"buffer", head + "receive-buffer: 0\nprepare-lease: 0s\n", topology.ErrField, []string{"f:3: receive-buffer: ", "f:4: prepare-lease: "}, true},
	}, schema(t, "agent.schema.json"), func(r io.Reader, name string) error {
		_, err := settings.ReadAgent(r, name)
		return err
	})
}

func TestSchemasTakeTheExamples(t *testing.T) {
	for file, schema := range map[string][]byte{
		"manager.yaml": schema(t, "manager.schema.json"), "agent.yaml": schema(t, "agent.schema.json"), "agent-p4.yaml": schema(t, "agent.schema.json"),
	} {
		text, err := os.ReadFile(examples + file)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(asJSON)); err != nil {
			t.Fatal(err)
		}
		if err := compile(t, schema).Validate(value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestErrorsInTheTopologyHaveItsPlace(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{
		"fabric.yaml": "version: 1\nhosts: [a, a]\n", "manager.yaml": "version: 1\ntopology: fabric.yaml\n",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := settings.ReadManagerFile(filepath.Join(directory, "manager.yaml"))
	if want := filepath.Join(directory, "fabric.yaml") + ":2: hosts[1]: "; err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, topology.ErrDuplicateName) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := settings.ReadManagerFile(filepath.Join(directory, "absent.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestPlanning(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{
		"model.yaml":  "host_message: 0s\nswitch_reduce: 1e9\nbandwidth: 25000000000\n",
		"wrong.yaml":  "host_message: soon\nswitch_reduce: fast\nbandwith: 1\n",
		"none.yaml":   "bandwidth: 0\n",
		"manager.yml": "version: 1\ntopology: leaf-spine:1,2,1\nperiods: {settle: 5s}\nplanning: {hosts: never, forward: better, model: model.yaml}\n",
		"wrong.yml":   "version: 1\ntopology: leaf-spine:1,2,1\nplanning: {model: wrong.yaml}\n",
		"none.yml":    "version: 1\ntopology: leaf-spine:1,2,1\nplanning: {model: none.yaml}\n",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := settings.ReadManagerFile(filepath.Join(directory, "manager.yml"))
	if err != nil {
		t.Fatal(err)
	}
	want := pathsel.DefaultModel()
	want.HostMessage, want.SwitchReduce, want.Bandwidth = 0, 1e9, 25e9
	c := m.Config()
	if c.Model != want || !c.Core.NoHosts || c.Core.NoForward || !c.Core.Slim || c.Core.Settle != 5*time.Second || c.Validate() != nil {
		t.Errorf("read %+v, %v", c, c.Validate())
	}
	_, err = settings.ReadManagerFile(filepath.Join(directory, "wrong.yml"))
	for _, says := range []string{"wrong.yaml:1: host_message: ", "wrong.yaml:2: switch_reduce: ", "wrong.yaml:3: bandwith: unknown field"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
	if _, err = settings.ReadManagerFile(filepath.Join(directory, "none.yml")); !errors.Is(err, pathsel.ErrModel) {
		t.Errorf("no bandwidth: %v", err)
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	l, err := settings.Log{Level: "warn", Format: "json"}.Logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	l.Info("no")
	l.Warn("yes")
	var line struct{ Msg string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Msg != "yes" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if _, err := (settings.Log{Level: "loud"}).Logger(&out); err == nil {
		t.Error("loud is a level")
	}
}

func FuzzRead(f *testing.F) {
	for _, file := range []string{"manager.yaml", "agent.yaml", "agent-p4.yaml"} {
		text, err := os.ReadFile(examples + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("version: 1\nagents: {? [a] : b}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "tree:") || strings.Contains(text, "spine:") || strings.Contains(text, "switches:") {
			return // a large fabric takes long
		}
		if m, err := settings.ReadManager(strings.NewReader(text), "f"); err == nil {
			if err := m.Config().Validate(); err != nil {
				t.Errorf("it was taken, but %v", err)
			}
		}
		a, err := settings.ReadAgent(strings.NewReader(text), "f")
		if err != nil || !a.Data.IsLoopback() {
			return
		}
		// What a target lacks a flag may give.
		if c, err := a.Config(); err == nil {
			c.AllowPlaintext = true
			if err := c.Validate(); err != nil {
				t.Errorf("it was taken, but %v", err)
			}
		}
	})
}

func TestVerify(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "periods: {verify: off}": -1, "periods: {verify: 2s}": 2 * time.Second} {
		m, err := settings.ReadManager(strings.NewReader("version: 1\ntopology: leaf-spine:2,2,2\n"+text), "f")
		if err != nil || m.Verify != want || m.Config().Verify != want {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
	if _, err := settings.ReadManager(strings.NewReader("version: 1\ntopology: leaf-spine:2,2,2\nperiods: {verify: never}"), "f"); !errors.Is(err, topology.ErrField) {
		t.Errorf("never: %v", err)
	}
}

// TestTargetGNMI is for targets that report their ports themselves.
// TestTargetTLS reads the files of a target's TLS, anew for each connection, and its
// password, and says which cannot be read.
func schema(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
