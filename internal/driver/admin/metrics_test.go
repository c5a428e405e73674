package admin_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.yaml.in/yaml/v3"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/admin"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// system is a fabric of one switch with two hosts.
type system struct {
	manager *managerd.Daemon
	agent   *agentd.Daemon
	hosts   []*hostlib.Host
	node    *membership.Node
	server  *scoll.Node
	rails   *rail.Node
	metrics *prometheus.Registry
}

func newSystem(ctx context.Context, t *testing.T) *system {
	t.Helper()
	g, err := topology.LeafSpine(2, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &system{metrics: prometheus.NewPedanticRegistry()}
	addresses := map[string]string{}
	for i := range g.Switches() {
		name := g.Name(g.Switch(i))
		a, err := agentd.Start(agentd.Config{
			Switch: name, Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1"),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Kill)
		addresses[name] = a.Addr()
		if strings.HasPrefix(name, "leaf") {
			s.agent = a
		}
	}
	s.manager, err = managerd.Start(managerd.Config{
		Topology: g, Agents: addresses, Listen: "127.0.0.1:0", Core: manager.Config{ReleaseGrace: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.manager.Kill)
	for n := range topology.NodeID(g.Hosts()) {
		h, err := hostlib.Join(ctx, hostlib.Config{Name: g.Name(n), Manager: s.manager.Addr(), OfferWait: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close(context.Background()) })
		s.hosts = append(s.hosts, h)
	}
	node, err := membership.Join(ctx, membership.Config{Name: "node"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close(context.Background()) })
	s.node = node
	server, err := scoll.On(s.hosts[0], scoll.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	if s.rails, err = rail.On(s.hosts[0], rail.Config{}); err != nil {
		t.Fatal(err)
	}
	s.metrics.MustRegister(s.manager.Collector(), s.agent.Collector(), s.hosts[0].Collector(), node.Collector(), server.Collector(), s.rails.Collector())
	for { // a tree that is planned before has no switches to choose from
		if _, now := s.samples(t); now["tributary_manager_connected_switches"] == 2 {
			return s
		}
		if err := ctx.Err(); err != nil {
			t.Fatalf("the manager is not connected with both agents: %v", err)
		}
	}
}

// communicators forms a group of all hosts.
func (s *system) communicators(ctx context.Context, t *testing.T) []*hostlib.Communicator {
	t.Helper()
	var members []hostlib.Member
	for _, h := range s.hosts {
		members = append(members, h.Member())
	}
	all := make([]*hostlib.Communicator, len(s.hosts))
	together(t, len(all), func(rank int) (err error) {
		all[rank], err = s.hosts[rank].Communicator(ctx, "job", members)
		return err
	})
	return all
}

// together calls f for every rank at once.
func together(t *testing.T, ranks int, f func(rank int) error) {
	t.Helper()
	errs := make(chan error, ranks)
	for rank := range ranks {
		go func() { errs <- f(rank) }()
	}
	for range ranks {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

// family is a metric as the document reports it.
type family struct{ kind, labels string }

// samples returns what is exported: the kinds and labels of metrics by name,
// and their values by name and labels.
func (s *system) samples(t *testing.T) (map[string]family, map[string]float64) {
	t.Helper()
	gathered, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families, values := map[string]family{}, map[string]float64{}
	for _, f := range gathered {
		kind := strings.ToLower(f.GetType().String())
		for _, m := range f.GetMetric() {
			var names []string
			id := f.GetName()
			for _, l := range m.GetLabel() {
				names = append(names, l.GetName())
				id += " " + l.GetValue()
			}
			families[f.GetName()] = family{kind, strings.Join(names, ", ")}
			values[id] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	problems, err := promlint.NewWithMetricFamilies(gathered).Lint()
	if err != nil || len(problems) != 0 {
		t.Errorf("conventions: %v, %v", problems, err)
	}
	return families, values
}

// described returns the labels of all metrics that collectors may export, by
// name.
func (s *system) described(t *testing.T) map[string]string {
	t.Helper()
	form := regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)
	all := map[string]string{}
	for _, c := range []prometheus.Collector{s.manager.Collector(), s.agent.Collector(), s.hosts[0].Collector(), s.node.Collector(), s.server.Collector(), s.rails.Collector()} {
		to := make(chan *prometheus.Desc)
		go func() { c.Describe(to); close(to) }()
		for d := range to {
			parts := form.FindStringSubmatch(d.String())
			if parts == nil {
				t.Fatalf("%v has another form", d)
			}
			all[parts[1]] = strings.ReplaceAll(parts[2], ",", ", ")
		}
	}
	return all
}

// documented returns the tables of docs/metrics.md.
func documented(t *testing.T) map[string]family {
	t.Helper()
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(tributary_[a-z_]+)` \\| ([a-z]+) \\| ?(.*?) ?\\| [^|]+ \\|$")
	all := map[string]family{}
	for _, parts := range row.FindAllStringSubmatch(string(text), -1) {
		if _, twice := all[parts[1]]; twice {
			t.Errorf("%s is notified twice", parts[1])
		}
		all[parts[1]] = family{parts[2], strings.ReplaceAll(parts[3], "`", "")}
	}
	return all
}

func TestMetricsAreThoseOfTheDocument(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newSystem(ctx, t)
	documented := documented(t)
	labels := map[string]string{}
	for name, f := range documented {
		labels[name] = f.labels
	}
	if diff := cmp.Diff(s.described(t), labels); diff != "" {
		t.Errorf("the code (-) and docs/metrics.md (+) differ in metrics or labels:\n%s", diff)
	}
	families, _ := s.samples(t)
	for name, f := range families {
		if documented[name].kind != f.kind {
			t.Errorf("%s is a %s; docs/metrics.md says %q", name, f.kind, documented[name].kind)
		}
	}
	if missing := len(documented) - len(families); missing > 15 { // refusals, drops and mismatches, of which there are none, the ends of two certificates and of their lists, discovery, measures of rails, and an audit log
		t.Errorf("%d metrics have no value", missing)
	}
}

// Every rule for alerts asks for metrics and labels that there are, and says what
// to do.
func TestAlertsAskForMetricsOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/examples/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%d groups, %v", len(file.Groups), err)
	}
	documented := documented(t)
	metric := regexp.MustCompile(`(tributary_[a-z_]+)(?:\{([a-z]+)(?:=|!=|=~)"([^"]+)"\})?`)
	kinds := map[string]string{} // of discovery's alarms: the rule about them
	for _, r := range file.Groups[0].Rules {
		asked := metric.FindAllStringSubmatch(r.Expr, -1)
		if len(asked) == 0 || r.Alert == "" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" || r.Labels["severity"] == "" {
			t.Errorf("the rule %+v is not whole", r)
		}
		for _, m := range asked {
			if f, there := documented[m[1]]; !there || !strings.Contains(f.labels, m[2]) {
				t.Errorf("%s asks for %s, of which docs/metrics.md says %+v", r.Alert, m[0], f)
			}
			if m[1] != "tributary_manager_discovery_alarms" {
				continue
			}
			for _, kind := range strings.Split(m[3], "|") {
				form, isUsed := regexp.MustCompile("^(?:"+kind+")$"), false
				for k := discovery.AlarmKind(1); k.String() != "unknown"; k++ {
					if form.MatchString(k.String()) {
						if kinds[k.String()] != "" {
							t.Errorf("%s and %s are about alarms %v", r.Alert, kinds[k.String()], k)
						}
						isUsed, kinds[k.String()] = true, r.Alert
					}
				}
				if !isUsed {
					t.Errorf("%s asks for alarms %s, which there are not", r.Alert, kind)
				}
			}
		}
	}
	text, err = os.ReadFile("../../../docs/discovery.md")
	if err != nil {
		t.Fatal(err)
	}
	for k := discovery.AlarmKind(1); k.String() != "unknown"; k++ {
		if kinds[k.String()] == "" && k != discovery.Unreachable { // of that discovery_targets says more
			t.Errorf("no rule is about alarms %v", k)
		}
		if !regexp.MustCompile("(?m)^\\| .*`" + k.String() + "`.* \\|").Match(text) {
			t.Errorf("docs/discovery.md does not say what to do about alarms %v", k)
		}
	}
}

func TestMetricsNotifyWhatHappened(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := newSystem(ctx, t)
	comms := s.communicators(ctx, t)
	vectors := [2][]uint32{{1, 2}, {3, 4}}
	together(t, 2, func(rank int) error {
		_, err := hostlib.Allreduce(ctx, comms[rank], reduce.Sum, vectors[rank], vectors[rank])
		return err
	})
	_, during := s.samples(t)
	for id, want := range map[string]float64{
		"tributary_manager_groups active":                   1,
		"tributary_manager_trees active":                    1,
		"tributary_manager_switches":                        2,
		"tributary_manager_epochs_total":                    1,
		"tributary_agent_trees":                             1,
		"tributary_agent_slots":                             topology.DefaultSlots,
		"tributary_agent_slots_used":                        float64(2 * manager.DefaultConfig().StartWindow),
		"tributary_host_communicators":                      1,
		"tributary_host_operations_total allreduce offload": 1,
		"tributary_host_epochs_entered_total offload":       1,
		"tributary_host_operation_duration_seconds offload": 1,
	} {
		if during[id] != want {
			t.Errorf("%s is %v, want %v", id, during[id], want)
		}
	}
	for _, id := range []string{
		"tributary_agent_contributions_total", "tributary_agent_results_total", "tributary_agent_packets_total in", "tributary_agent_bytes_total out",
		"tributary_host_contributions_total", "tributary_host_results_total tree", "tributary_host_packets_total out", "tributary_host_frames_total in",
		"tributary_manager_plans_total chosen", "tributary_manager_plan_duration_seconds",
	} {
		if during[id] == 0 {
			t.Errorf("%s is 0", id)
		}
	}

	together(t, 2, func(rank int) error { return comms[rank].Leave(ctx) })
	for _, c := range comms {
		<-c.Done()
	}
	after := during
	for after["tributary_agent_trees"] != 0 || after["tributary_manager_groups releasing"]+after["tributary_manager_groups active"] != 0 {
		if err := ctx.Err(); err != nil {
			t.Fatalf("the tree stays: %v", err)
		}
		_, after = s.samples(t)
	}
	if after["tributary_host_communicators"] != 0 || after["tributary_agent_slots_used"] != 0 {
		t.Errorf("something is left: %v", after)
	}
	for id, n := range during {
		if strings.HasPrefix(id, "tributary_host_rail_delay_seconds") {
			continue // of the last probe
		}
		if (strings.Contains(id, "_total") || strings.Contains(id, "_seconds")) && after[id] < n {
			t.Errorf("%s fell from %v to %v", id, n, after[id])
		}
	}
}

// broken is a collector that can say nothing.
type broken struct{ *prometheus.Desc }

func (b broken) Describe(to chan<- *prometheus.Desc) { to <- b.Desc }

func (b broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(b.Desc, errors.New("it is broken"))
}

func TestOneBrokenCollectorDoesNotHideTheOthers(t *testing.T) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "apples_total", Help: "Apples."})
	counter.Add(7)
	var log bytes.Buffer
	page, err := admin.NewMetrics(slog.New(slog.NewTextHandler(&log, nil)), counter, broken{prometheus.NewDesc("pears", "Pears.", nil, nil)})
	if err != nil {
		t.Fatal(err)
	}
	_, text := get(t, start(t, admin.Config{Metrics: page}), "/metrics")
	for _, name := range []string{"apples_total 7\n", "go_goroutines ", "process_start_time_seconds ", "go_build_info"} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("there is no %q", name)
		}
	}
	if !strings.Contains(log.String(), "it is broken") {
		t.Errorf("the log says %q", log.String())
	}
	if _, err := admin.NewMetrics(nil, counter, counter); err == nil || !strings.Contains(err.Error(), "duplicate") {
		t.Errorf("a collector twice: %v", err)
	}
}
