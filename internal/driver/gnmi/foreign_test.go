package gnmi

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openconfig/gnmi/cli"
	"github.com/openconfig/gnmi/client"
	clientgnmi "github.com/openconfig/gnmi/client/gnmi"
	pb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// The tests of this file have openconfig's own client library, that of gnmi_cli, read
// from the target.

func (t *target) query(of client.Type, as pb.Encoding, path ...string) client.Query {
	return client.Query{
		Addrs: []string{t.addr}, Target: "leaf-0", Timeout: patience, Type: of, Queries: []client.Path{path}, Encoding: as,
	}
}

// TestForeignDisplay is what gnmi_cli prints.
func TestForeignDisplay(t *testing.T) {
	for _, as := range []pb.Encoding{pb.Encoding_JSON, pb.Encoding_JSON_IETF, pb.Encoding_PROTO} {
		for _, of := range []client.Type{client.Once, client.Poll} {
			g := newTarget(t)
			var shown []string
			err := cli.QueryDisplay(g.ctx, g.query(of, as, "interfaces", "interface[name=eth0]", "state", "ifindex"), &cli.Config{
				DisplayType: "group", Delimiter: "/", Count: 1, ClientTypes: []string{clientgnmi.Type},
				Display: func(b []byte) { shown = append(shown, string(b)) },
			})
			all := strings.Join(shown, "\n")
			want := `"ifindex": 1`
			if as != pb.Encoding_PROTO { // how it prints JSON
				want = `"ifindex": {Deprecated TypedValue_` + map[pb.Encoding]string{pb.Encoding_JSON: "JsonVal", pb.Encoding_JSON_IETF: "JsonIetfVal"}[as] + ` 1}`
			}
			if err != nil || !strings.Contains(all, `"leaf-0"`) || !strings.Contains(all, want) {
				t.Errorf("%v as %v: %s, %v", of, as, all, err)
			}
		}
	}
}

// TestForeignStream: a client that keeps what it was sent has what there is.
func TestForeignStream(t *testing.T) {
	g := newTarget(t)
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	c := client.New()
	q := g.query(client.Stream, pb.Encoding_PROTO, "interfaces", "interface", "state", "oper-status")
	seen := make(chan client.Notification)
	q.NotificationHandler = func(n client.Notification) error {
		select {
		case seen <- n:
		case <-ctx.Done():
		}
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Subscribe(ctx, q, clientgnmi.Type) // ends with the context
	}()
	defer func() { cancel(); <-ended }()
	await := func(want string) {
		t.Helper()
		for {
			select {
			case n := <-seen:
				got := ""
				switch n := n.(type) {
				case client.Update:
					if text, ok := n.Val.(string); ok {
						got = strings.Join(n.Path, "/") + "=" + text
					}
				case client.Delete:
					got = "-" + strings.Join(n.Path, "/")
				case client.Sync:
					got = "sync"
				}
				if got == want {
					return
				}
			case <-g.ctx.Done():
				t.Fatalf("%s has not come", want)
			}
		}
	}
	await("leaf-0/interfaces/interface/eth1/state/oper-status=UP")
	await("sync")
	g.change(func(d *openconfig.Device) { d.Interfaces["eth1"].Oper = openconfig.Down })
	await("leaf-0/interfaces/interface/eth1/state/oper-status=DOWN")
	g.change(func(d *openconfig.Device) { delete(d.Interfaces, "eth1") })
	await("-leaf-0/interfaces/interface/eth1/state/oper-status")
}

// TestForeignPoll: each poll has what there is then.
func TestForeignPoll(t *testing.T) {
	g := newTarget(t)
	c := client.New()
	defer func() { _ = c.Close() }()
	q := g.query(client.Poll, pb.Encoding_PROTO, "interfaces", "interface[name=eth0]", "state", "counters", "in-octets")
	if err := c.Subscribe(g.ctx, q, clientgnmi.Type); err != nil {
		t.Fatal(err)
	}
	var last uint64
	for range 3 {
		if err := c.Poll(); err != nil {
			t.Fatal(err)
		}
		leaves := c.Leaves()
		if len(leaves) != 1 || leaves[0].Val.(uint64) <= last || leaves[0].TS.After(time.Now()) {
			t.Fatalf("%v after %d", leaves, last)
		}
		last = leaves[0].Val.(uint64)
	}
}

// TestForeignCalls are the calls that are no subscription.
func TestForeignCalls(t *testing.T) {
	g := newTarget(t)
	impl, err := clientgnmi.New(g.ctx, client.Destination{Addrs: []string{g.addr}, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	c := impl.(*clientgnmi.Client)
	defer func() { _ = c.Close() }()
	caps, err := c.Capabilities(g.ctx, &pb.CapabilityRequest{})
	if err != nil || !slices.Contains(caps.GetSupportedEncodings(), pb.Encoding_JSON_IETF) {
		t.Errorf("%v, %v", caps, err)
	}
	if _, err := c.Set(g.ctx, &pb.SetRequest{Update: []*pb.Update{{
		Path: g.path("/tributary/config/drain"), Val: &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: true}},
	}}}); err != nil {
		t.Error(err)
	}
	answer, err := c.Get(g.ctx, &pb.GetRequest{Path: g.paths("/tributary/config/drain"), Encoding: pb.Encoding_JSON_IETF})
	if err != nil || len(answer.GetNotification()) != 1 {
		t.Errorf("%v, %v", answer, err)
	}
}
