package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/membership"
)

// zoneOfThree is what a monitor sees of which one neighbour is suspected.
func zoneOfThree() membership.Status {
	member := func(name, addr string, minor uint32) membership.Member {
		return membership.Member{
			Name: name, Addr: netip.MustParseAddrPort(addr),
			Version: membership.Version{Incarnation: uint64(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()), Minor: minor},
		}
	}
	self := member("manager", "10.0.0.1:7946", 1)
	return membership.Status{
		Taken: time.Date(2030, 1, 2, 4, 0, 0, 0, time.UTC), Self: self, Zone: 7, Gone: 2,
		Members: []membership.StatusLine{
			{Member: member("h0", "10.0.0.2:7946", 3), Neighbour: true, Watched: true, Suspected: []string{"h1", "manager"}},
			{Member: member("h1", "10.0.0.3:7946", 1), Delegate: true, WatchesMe: true},
			{Member: self, Monitor: true},
		},
		Zones: []membership.Zone{{Number: 7, Size: 3, Delegates: 1, Supervisors: []string{"s0", "s1"}}},
	}
}

// page serves a status, or another answer.
func page(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+membership.StatusPage, h)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func serveStatus(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(zoneOfThree())
}

// command runs the command line with a context.
func command(ctx context.Context, args ...string) (string, error) {
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func TestMembers(t *testing.T) {
	node := page(t, serveStatus)
	out, err := command(t.Context(), "members", "--node", node)
	if err != nil {
		t.Fatal(err)
	}
	const want = `Zone 7 as manager sees it at 04:00:00: 3 members (1 suspected), 1 monitors, 2 gone, health 0

ZONE   MEMBERS   DELEGATES   SUPERVISORS
7      3         1           s0 s1

MEMBER    ADDRESS         STARTED                MINOR   DEATHS   IS                     SUSPECTED BY
h0        10.0.0.2:7946   2030-01-02T03:04:05Z   3       0        neighbour, watched     h1 manager
h1        10.0.0.3:7946   2030-01-02T03:04:05Z   1       0        delegate, watches it   -
manager   10.0.0.1:7946   2030-01-02T03:04:05Z   1       0        itself, monitor        -
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	out, err = command(t.Context(), "members", "--node", node, "--format", "json")
	var s membership.Status
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	if err != nil || len(s.Members) != 3 || s.Members[0].Suspected[1] != "manager" {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}

// TestMembersWatch sees a node go away and come back, until it is interrupted.
func TestMembersWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	node := page(t, func(w http.ResponseWriter, r *http.Request) {
		switch asked++; asked {
		case 2:
			http.Error(w, "membership: the node is closed", http.StatusServiceUnavailable)
		case 4:
			cancel()
		default:
			serveStatus(w, r)
		}
	})
	out, err := command(ctx, "members", "--node", node, "--watch", "--every", "1ms")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(out, "Zone 7") != 2 || !strings.Contains(out, "the node is closed") || strings.Contains(out, home) {
		t.Errorf("got\n%s", out)
	}
}

func TestMembersErrors(t *testing.T) {
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	garbage := page(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{")) })
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no node":    {nil, "--node is missing"},
		"no address": {[]string{"--node", "here"}, "--node"},
		"no zone":    {[]string{"--node", strings.TrimPrefix(none.URL, "http://")}, "no node of a zone"},
		"garbage":    {[]string{"--node", garbage}, garbage},
		"no time":    {[]string{"--node", garbage, "--every", "0s", "--watch"}, "--every"},
		"format":     {[]string{"--node", garbage, "--format", "svg"}, "--format"},
	} {
		out, err := command(t.Context(), append([]string{"members"}, test.args...)...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q\n%s", name, err, test.want, out)
		}
	}
	if _, err := command(t.Context(), "members", "--node", "x"); !errors.Is(err, errUsage) {
		t.Errorf("a wrong flag: %v", err)
	}
}

// TestMembersJoin runs two nodes of a zone, and a management node above them, asks
// each, and ends them.
func TestMembersJoin(t *testing.T) {
	host := loopback.Address(t)
	address := func(port string) string {
		h, _, _ := net.SplitHostPort(host)
		return net.JoinHostPort(h, port)
	}
	file := filepath.Join(t.TempDir(), "node.yaml")
	text := fmt.Sprintf("version: 1\nmembership: {listen: %q, management: true}\nadmin: {listen: %q}\n", address("4801"), address("4802"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(t.TempDir(), "base.yaml")
	text = fmt.Sprintf("version: 1\nmembership: {bootstrap: [%q], supervisors: [%q], zone: 4}\n", address("4803"), address("4801"))
	if err := os.WriteFile(base, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	for _, args := range [][]string{
		{"--config", file, "--name", "above"},
		{"--config", base, "--name", "a", "--listen", address("4803"), "--admin", address("4804")},
		{"--config", base, "--name", "b", "--listen", address("4805")},
	} {
		go func() {
			_, err := command(ctx, append([]string{"members", "join"}, args...)...)
			ended <- err
		}()
	}
	shows := func(admin string, all ...string) {
		t.Helper()
		var out string
		var err error
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			out, err = command(within, "members", "--node", admin)
			missing := false
			for _, want := range all {
				missing = missing || !strings.Contains(strings.Join(strings.Fields(out), " "), want)
			}
			if err == nil && !missing {
				tick.Stop()
				return
			}
			select {
			case <-tick.C:
			case <-within.Done():
				t.Fatalf("%s, %v; want %q", out, err, all)
			}
		}
	}
	shows(address("4804"), "Zone 4 as a sees it", "2 members", "b "+address("4805"), "delegate")
	shows(address("4802"), "Management zone as above sees it", "ZONE MEMBERS DELEGATES SUPERVISORS 4 2 2 above")
	stop()
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestManagersIncarnation is kept beside the store, unless its file is given.
func TestManagersIncarnation(t *testing.T) {
	for _, c := range []struct{ store, state, want string }{{"", "", ""}, {"m.db", "", "m.db.incarnation"}, {"m.db", "s", "s"}} {
		zone, err := zoneOf(&settings.Manager{Store: c.store, Membership: settings.Membership{Name: "m", State: c.state}})
		if err != nil || zone.State != c.want {
			t.Errorf("%+v: %q, %v", c, zone.State, err)
		}
	}
}

// check refuses what join does, and leaves nothing behind.
func TestMembersCheck(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "node.yaml")
	for _, c := range []struct{ text, says string }{
		{"membership: {name: h3, listen: '127.0.0.1:0', state: last}\nadmin: {listen: '127.0.0.1:0'}\n", ""},
		{"membership: {listen: '192.0.2.1:0'}\n", "listening at 192.0.2.1:0"},
		{"membership: {listen: '127.0.0.1:0', bootstrap: ['198.51.100.7:7946']}\n", "where 198.51.100.7:7946 cannot reach it"},
		{"membership: {listen: '127.0.0.1:0', state: nowhere/last}\n", "nowhere/last"},
		{"membership: {listen: '127.0.0.1:0', state: .}\n", "is a directory"},
		{"membership: {listen: '127.0.0.1:70000'}\n", "70000"},
		{"membership: {listen: '127.0.0.1:0'}\nadmin: {listen: '0.0.0.0:0'}\n", "admin"},
	} {
		if err := os.WriteFile(path, []byte("version: 1\n"+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"members", "check", path}, {"members", "join", "--config", path}} {
			if c.says == "" && args[1] == "join" {
				continue
			}
			out, err := command(t.Context(), args...)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s of %q: %q, %v, want %q", args[1], c.text, out, err, c.says)
			}
			if all, err := os.ReadDir(directory); err != nil || len(all) != 1 {
				t.Errorf("%s of %q left %v, %v", args[1], c.text, all, err)
			}
		}
	}
}
