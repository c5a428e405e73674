package rail

import "testing"

// TestCounters: each message is counted once, where it is sent and where it is received.
func TestCounters(t *testing.T) {
	_, a, b := pair(t, 2, Config{Eager: 64})
	exchange(t, a, b, 20, []int{8, 64, 65, 1000})
	m, err := b.node.Register(ReadWrite, make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	ctx := background(t)
	if err := a.Get(ctx, m.Key(), 0, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := a.Put(ctx, m.Key(), 0, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	_ = a.Get(ctx, Key{}, 0, make([]byte, 1))
	m.Release()
	want := func(t *testing.T, what string, got, want Traffic) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	await(t, "all to be counted", func() bool { return b.Counters().Get.Sent.Messages == 1 && b.Counters().Put.Received.Messages == 1 })
	for _, p := range []*Peer{a, b} {
		c := p.node.Counters()
		want(t, "eager", c.Eager.Sent, Traffic{10, 5 * (8 + 64)})
		want(t, "eager", c.Eager.Received, Traffic{10, 5 * (8 + 64)})
		want(t, "rendezvous", c.Rendezvous.Sent, Traffic{10, 5 * (65 + 1000)})
		want(t, "rendezvous", c.Rendezvous.Received, Traffic{10, 5 * (65 + 1000)})
		if c.Requests != 0 || c.Unexpected != 0 || c.Bytes != 0 || c.Peers != 1 || c.Fragments == 0 {
			t.Errorf("%+v", c)
		}
	}
	ca, cb := a.Counters(), b.Counters()
	want(t, "get", ca.Get.Received, Traffic{1, 10})
	want(t, "get", cb.Get.Sent, Traffic{1, 10})
	want(t, "put", ca.Put.Sent, Traffic{1, 20})
	want(t, "put", cb.Put.Received, Traffic{1, 20})
	if cb.Refused != 1 {
		t.Errorf("%d accesses are refused", cb.Refused)
	}
}
