package main

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openconfig/gnmic/pkg/api"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/topology"
)

// TestGnmic has the library of gnmic read an agent, and drain it.
func TestGnmic(t *testing.T) {
	var source nic.Fake
	port := nic.Interface{Name: "port1", Index: 1, Enabled: true, Up: true}
	source.Set([]nic.Interface{port}, nil)
	d, err := agentd.Start(agentd.Config{
		Switch: "leaf-0", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1"), Interfaces: &source,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	target, err := api.NewTarget(api.Name("leaf-0"), api.Address(d.Addr()), api.Insecure(true), api.Timeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := target.CreateGNMIClient(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	caps, err := target.Capabilities(ctx)
	if err != nil || caps.GetGNMIVersion() == "" {
		t.Errorf("%v, %v", caps, err)
	}
	for _, encoding := range []string{"json", "json_ietf", "proto"} {
		request, err := api.NewGetRequest(api.Path("/interfaces/interface[name=port1]/state/oper-status"), api.Encoding(encoding))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := target.Get(ctx, request)
		if err != nil || len(answer.GetNotification()) != 1 {
			t.Errorf("%s: %v, %v", encoding, answer, err)
		}
	}
	request, err := api.NewSubscribeRequest(api.SubscriptionListModeSTREAM(), api.Encoding("proto"),
		api.Subscription(api.Path("/interfaces/interface/state/oper-status"), api.SubscriptionModeON_CHANGE()),
		api.Subscription(api.Path("/tributary/state/drain"), api.SubscriptionModeON_CHANGE()),
	)
	if err != nil {
		t.Fatal(err)
	}
	go target.Subscribe(ctx, request, "changes")
	responses, errs := target.ReadSubscriptions()
	await := func(want string) {
		t.Helper()
		for {
			select {
			case r := <-responses:
				for _, u := range r.Response.GetUpdate().GetUpdate() {
					e := u.GetPath().GetElem()
					if got := fmt.Sprint(e[len(e)-1].GetName(), "=", u.GetVal().GetStringVal(), u.GetVal().GetBoolVal()); got == want {
						return
					}
				}
			case err := <-errs:
				t.Fatal(err)
			case <-ctx.Done():
				t.Fatalf("%s has not come", want)
			}
		}
	}
	await("oper-status=UPfalse")
	port.Up = false
	source.Set([]nic.Interface{port}, nil)
	await("oper-status=DOWNfalse")
	set, err := api.NewSetRequest(api.Update(api.Path("/tributary/config/drain"), api.Value(true, "json_ietf")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Set(ctx, set); err != nil {
		t.Fatal(err)
	}
	await("drain=true")
}
