package hostlib

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/reduce"
)

// loopback is a machine that has 127.0.0.1 to 127.0.0.9.
func loopback() *nic.Fake {
	var addresses []string
	for i := range 9 {
		addresses = append(addresses, fmt.Sprint("127.0.0.", i+1))
	}
	source := &nic.Fake{}
	source.Set([]nic.Interface{lo(addresses...)}, nil)
	return source
}

// railsAt returns rails on loopback addresses, of names that begin alike.
func railsAt(prefix string, addresses ...string) []Rail {
	var all []Rail
	for i, a := range addresses {
		all = append(all, Rail{Name: fmt.Sprint(prefix, i), Address: a})
	}
	return all
}

// twoHosts joins two hosts with these rails.
func twoHosts(t *testing.T, a, b []Rail) ([]*Host, []Member) {
	t.Helper()
	source := loopback()
	hosts := []*Host{joinRails(t, "h0", source, Config{Rails: a}), joinRails(t, "h1", source, Config{Rails: b})}
	return hosts, []Member{hosts[0].Member(), hosts[1].Member()}
}

// addUp runs an allreduce over all, and checks its result.
func addUp(t *testing.T, comms []*Communicator, elements int) {
	t.Helper()
	each(len(comms), func(i int) {
		vector := make([]int32, elements)
		for k := range vector {
			vector[k] = int32(k + i)
		}
		if _, err := Allreduce(within(t), comms[i], reduce.Sum, vector, vector); err != nil {
			t.Error(err)
			return
		}
		for k, x := range vector {
			if want := int32(len(comms)*k + len(comms)*(len(comms)-1)/2); x != want {
				t.Errorf("element %d is %d, want %d", k, x, want)
				return
			}
		}
	})
}

// joined lists the pairs of rails between a host and another one, and how their paths are.
func joined(h *Host, peer string) []string {
	var all []string
	for _, p := range h.Paths(peer) {
		all = append(all, fmt.Sprintf("%s-%s %v", p.Rail, p.PeerRail, p.State))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestRailStatus: the host's rails have the sums of their paths, also as metrics and as a page;
// a communicator shows which rails its links use.
func TestRailStatus(t *testing.T) {
	hosts, members := twoHosts(t, railsAt("a", "127.0.0.1", "127.0.0.2"), railsAt("b", "127.0.0.3", "127.0.0.4"))
	comms := form(t, "c", hosts, members, OnTree())
	both := []string{"a0-b0 up", "a1-b1 up"}
	until(within(t), t, "both rails are used", func() bool {
		addUp(t, comms, 100_000)
		rails := hosts[0].Rails()
		hasData := slices.ContainsFunc(hosts[0].Paths("h1"), func(p PathStatus) bool { return fmt.Sprint(p.Class) == "data" })
		return hasData && slices.Equal(joined(hosts[0], "h1"), both) && rails[0].BytesOut > 0 && rails[1].BytesOut > 0 && rails[0].Missing+rails[1].Missing == 0
	})
	rails := hosts[0].Rails()
	for i, r := range rails {
		if r.Peers != 1 || r.Paths == 0 || r.Lost != 0 || r.LastLoss != nil || !r.Up || !strings.HasPrefix(r.Address, fmt.Sprintf("127.0.0.%d:", i+1)) {
			t.Errorf("%+v", r)
		}
	}
	if len(hosts[0].Paths("h7")) != 0 {
		t.Error("there are paths to a host that is not there")
	}

	tree := comms[1].HostTree()
	if len(tree) != 1 || tree[0].Rank != 0 || tree[0].Host != "h0" || !tree[0].IsParent || len(tree[0].Paths) < 2 || tree[0].Paths[0].Rail != "b0" {
		t.Errorf("%+v", tree)
	}
	if tree := comms[0].HostTree(); len(tree) != 1 || tree[0].Rank != 1 || tree[0].IsParent {
		t.Errorf("%+v", tree)
	}

	var page bytes.Buffer
	if err := hosts[0].WriteRails(&page, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a0 ", "127.0.0.2:", "up", "PEER", "h1 ", "data", "b1"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, &page)
		}
	}

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(hosts[0].Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "tributary_host_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for _, r := range rails {
		if values["rail_up "+r.Name] != 1 || values["rail_paths "+"up "+r.Name]+values["rail_paths "+r.Name+" up"] != float64(r.Paths) {
			t.Errorf("%s: %v", r.Name, values)
		}
		if out := values["rail_bytes_total out "+r.Name]; out < float64(r.BytesOut) {
			t.Errorf("%s has sent %v bytes, want %d", r.Name, out, r.BytesOut)
		}
	}
}

// TestRailsDiffer: hosts with different numbers of rails use all of them; the fewer ones
// several times.
func TestRailsDiffer(t *testing.T) {
	for name, test := range map[string]struct {
		a, b []Rail
		want []string
	}{
		"1 and 3": {railsAt("a", "127.0.0.1"), railsAt("b", "127.0.0.2", "127.0.0.3", "127.0.0.4"), []string{"a0-b0 up", "a0-b1 up", "a0-b2 up"}},
		"2 and 3": {railsAt("a", "127.0.0.1", "127.0.0.5"), railsAt("b", "127.0.0.2", "127.0.0.3", "127.0.0.4"), []string{"a0-b0 up", "a0-b2 up", "a1-b1 up"}},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, members := twoHosts(t, test.a, test.b)
			comms := form(t, "c", hosts, members, OnTree())
			until(within(t), t, "all pairs are used", func() bool {
				addUp(t, comms, 10_000)
				for _, h := range hosts {
					if slices.ContainsFunc(h.Rails(), func(r RailStatus) bool { return r.Paths == 0 || r.Missing > 0 }) {
						return false
					}
				}
				return slices.Equal(joined(hosts[0], "h1"), test.want) && len(joined(hosts[1], "h0")) == len(test.want)
			})
		})
	}
}
