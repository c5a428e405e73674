package managerd_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/audit"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// auditLog opens an audit log, and returns what reads its records.
func auditLog(t *testing.T) (*audit.Log, func() []map[string]any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := audit.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, func() (all []map[string]any) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var x map[string]any
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, x)
		}
		return all
	}
}

// request asks something in a host's session, and returns the answer.
func request(t *testing.T, c *rpc.ManagerClient, in manager.Input) manager.Event {
	t.Helper()
	s, err := c.HostSession(testContext(t))
	if err == nil {
		err = s.Send(in)
	}
	var e manager.Event
	for err == nil && e.Reply == nil && e.Notice == nil {
		e, err = s.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAudit: the audit log has who has created, released, drained and edited what, from
// where, and what was denied, by the table of methods, by membership and by quota; over
// calls and in sessions.
func TestAudit(t *testing.T) {
	d := newTrust(t)
	log, records := auditLog(t)
	f, _ := newTrustedFabric(t, d, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Audit, c.Core.Quotas = log, quota.Config{Host: quota.Limits{Groups: 1}}
	})
	ctx := testContext(t)
	h0, h1 := d.dial(f, pki.Host, "h0"), d.dial(f, pki.Host, "h1")
	spec := f.spec("job")
	id, _, err := h0.CreateGroup(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	more := f.spec("more")
	if _, _, err := h0.CreateGroup(ctx, more); !errors.Is(err, quota.ErrQuota) {
		t.Errorf("beyond the quota: %v", err)
	}
	if e := request(t, h1, manager.Create{Req: 3, Name: "foreign", Members: []string{"h0", "h2"}, ChunkBytes: 1432, Window: 8}); e.Reply == nil || !errors.Is(e.Reply.Err, rpc.ErrDenied) {
		t.Errorf("a group of others: %+v", e)
	}
	if e := request(t, h1, manager.Watch{Group: id, Rank: 0, DataAddr: netip.MustParseAddrPort("127.0.0.1:9")}); e.Notice == nil || !errors.Is(e.Notice.Err, rpc.ErrDenied) {
		t.Errorf("another's rank: %+v", e)
	}
	inSession := f.spec("session")
	inSession.Req = 7
	if e := request(t, h1, inSession); e.Reply == nil || e.Reply.Err != nil {
		t.Errorf("a group in a session: %+v", e)
	}
	if err := h1.DrainSwitch(ctx, "leaf-0", true); !errors.Is(err, rpc.ErrDenied) {
		t.Errorf("a host drains: %v", err)
	}
	if err := f.client.DrainSwitch(ctx, "leaf-1", true); err != nil {
		t.Error(err)
	}
	edit := rpc.TopologyFile{Name: "patch.yaml", Content: []byte("down: [spine-1]\n")}
	if _, err := f.client.EditTopology(ctx, edit); err != nil {
		t.Error(err)
	}
	if _, err := f.client.EditTopology(ctx, rpc.TopologyFile{Name: "wrong.yaml", Content: []byte("down: [nowhere]\n")}); err == nil {
		t.Error("a wrong patch was taken")
	}
	if _, err := h1.EditTopology(ctx, edit); !errors.Is(err, rpc.ErrDenied) {
		t.Errorf("a host edits: %v", err)
	}
	if err := h0.ReleaseGroup(ctx, id); err != nil {
		t.Error(err)
	}
	all := records()
	group := float64(id)
	for _, want := range []map[string]any{
		{"msg": "CreateGroup", "role": "host", "name": "h0", "object": "job", "group": group, "detail": "members=4", "outcome": "done"},
		{"msg": "CreateGroup", "role": "host", "name": "h0", "object": "more", "outcome": "quota"},
		{"msg": "Create", "role": "host", "name": "h1", "object": "foreign", "outcome": "denied"},
		{"msg": "Create", "role": "host", "name": "h1", "object": "session", "detail": "members=4", "outcome": "done"},
		{"msg": "Watch", "role": "host", "name": "h1", "group": group, "detail": "rank=0 data=127.0.0.1:9", "outcome": "denied"},
		{"msg": "DrainSwitch", "role": "host", "name": "h1", "outcome": "denied"},
		{"msg": "DrainSwitch", "role": "operator", "name": "me", "object": "leaf-1", "detail": "on=true", "outcome": "done"},
		{"msg": "EditTopology", "role": "operator", "name": "me", "object": "patch.yaml", "detail": `version=1 dry-run=false changes=["spine-1 taken out of use"]`, "outcome": "done"},
		{"msg": "EditTopology", "role": "operator", "name": "me", "object": "wrong.yaml", "outcome": "failed"},
		{"msg": "EditTopology", "role": "host", "name": "h1", "outcome": "denied"},
		{"msg": "ReleaseGroup", "role": "host", "name": "h0", "group": group, "outcome": "done"},
	} {
		found := 0
		for _, r := range all {
			same := true
			for key, value := range want {
				same = same && r[key] == value
			}
			if !same {
				continue
			}
			found++
			address, _ := r["address"].(string)
			id, _ := r["request"].(string)
			text, _ := r["error"].(string)
			if !strings.HasPrefix(address, "127.0.0.1:") || id == "" || r["time"] == nil || (want["outcome"] == "done") != (text == "") {
				t.Errorf("record %v lacks something", r)
			}
		}
		if found != 1 {
			t.Errorf("%d records have %v", found, want)
		}
	}
	ids := map[any]bool{}
	for _, r := range all {
		if ids[r["request"]] && r["msg"] != "HostSession" {
			t.Errorf("two records have the request %v", r["request"])
		}
		ids[r["request"]] = true
	}
	if t.Failed() {
		for _, r := range all {
			t.Log(r)
		}
	}
}
