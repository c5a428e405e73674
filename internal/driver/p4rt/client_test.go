package p4rt

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/p4"
)

// sameState compares states as sets.
func sameState(t testing.TB, got, want p4.Program) {
	t.Helper()
	want, err := toySchema(t).Normal(want)
	if err != nil {
		t.Fatal(err)
	}
	sets := cmp.Options{
		cmpopts.SortSlices(func(a, b p4.Entry) bool { return entryKey(&a) < entryKey(&b) }),
		cmpopts.SortSlices(func(a, b p4.Group) bool { return a.ID < b.ID }),
		cmpopts.EquateEmpty(),
	}
	if d := cmp.Diff(want, got, sets); d != "" {
		t.Errorf("state (-want +got):\n%s", d)
	}
}

func TestPushAndReconcile(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := dial(t, configOf(server.Address()))
	if e := c.next(); e.Kind != Primary || !errors.Is(e.Err, ErrNoPipeline) || errors.Is(e.Err, ErrRestarted) {
		t.Fatalf("first event: %+v, want primary without a program", e)
	}
	if _, err := c.Reconcile(ctx, someState()); !errors.Is(err, ErrNoPipeline) {
		t.Fatalf("reconcile without a program: %v", err)
	}
	cookie, err := c.Push(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if uint32(cookie>>32) != toy.fingerprint() {
		t.Errorf("cookie %#x does not begin with the fingerprint %#x", cookie, toy.fingerprint())
	}
	want := someState()
	report, err := c.Reconcile(ctx, want)
	if all := len(want.Entries) + len(want.Groups); err != nil || report != (Report{Inserted: all, Cookie: cookie}) {
		t.Fatalf("first reconcile: %+v, %v; want %d inserted", report, err, all)
	}
	got, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, want)
}

func TestReconcileWritesTheDifferenceAlone(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	have := someState()
	if _, err := c.Reconcile(ctx, have); err != nil {
		t.Fatal(err)
	}
	server.Updates()
	if report, err := c.Reconcile(ctx, have); err != nil || report.Kept != len(have.Entries)+len(have.Groups) || len(server.Updates()) != 0 {
		t.Fatalf("nothing to do: %+v, %v", report, err)
	}
	want := someState()
	want.Entries[0] = route("10.0.0.0/8", 3)                                                                 // modified
	want.Entries = slices.Delete(want.Entries, 3, 4)                                                         // guard(5, 10) goes
	want.Entries = append(want.Entries, pair(6))                                                             // comes
	want.Groups[0].Replicas = []p4.Replica{{Port: 2, Instance: 2}, {Port: 1, Instance: 1}}                   // the same set
	want.Groups[1] = p4.Group{ID: 3, Replicas: []p4.Replica{{Port: 4, Instance: 4}, {Port: 4, Instance: 5}}} // 2 goes, 3 comes
	report, err := c.Reconcile(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	report.Cookie = 0
	if d := cmp.Diff(Report{Inserted: 2, Modified: 1, Deleted: 2, Kept: 5}, report); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	if n := len(server.Updates()); n != 5 {
		t.Errorf("%d updates, want 5", n)
	}
	got, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, want)
}

func TestPortsAsBytesFromVersion1_4(t *testing.T) {
	for version, wantBytes := range map[string]bool{"1.3.0": false, "1.4.0-rc.5": true, "2.0.0": true, "": false, "new": false} {
		server := target(t)
		server.SetVersion(version)
		c := newPrimary(t, configOf(server.Address()))
		if _, err := c.Reconcile(testContext(t), someState()); err != nil {
			t.Fatalf("version %q: %v", version, err)
		}
		_, asBytes := server.Groups()[0].GetReplicas()[0].GetPortKind().(*p4v1.Replica_Port)
		if asBytes != wantBytes {
			t.Errorf("version %q: ports as bytes: %v, want %v", version, asBytes, wantBytes)
		}
	}
}

func TestTargetWithoutCapabilities(t *testing.T) {
	server := target(t)
	server.Fail(p4rttest.Capabilities, codes.Unimplemented, "unknown method")
	newPrimary(t, configOf(server.Address()))
}

func TestCounters(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	want := p4.Program{Entries: []p4.Entry{route("10.0.0.0/8", 1), route("10.1.0.0/16", 2)}}
	if _, err := c.Reconcile(ctx, want); err != nil {
		t.Fatal(err)
	}
	server.Count(seen, 2, 5, 700)
	cells, err := c.Counter(ctx, seen)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Count{{}, {}, {Packets: 5, Bytes: 700}, {}}, cells); d != "" {
		t.Errorf("cells (-want +got):\n%s", d)
	}
	if err := errOf(c.Counter(ctx, 1)); !errors.Is(err, ErrEntry) {
		t.Errorf("unknown counter: %v", err)
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestPackets(t *testing.T) {
	server := target(t)
	ctx := testContext(t)
	c := newPrimary(t, configOf(server.Address()))
	if err := server.Punt([]byte("frame"), 3, 0, 1<<31); err != nil {
		t.Fatal(err)
	}
	in, err := c.Packets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []Packet{{Header: []Meta{{1, 3}, {2, 0}, {3, 1 << 31}}, Payload: []byte("frame"), Session: 1}}
	if d := cmp.Diff(want, in); d != "" {
		t.Errorf("packet in (-want +got):\n%s", d)
	}
	if err := c.PacketOut(Packet{Header: []Meta{{3, 77}}, Payload: []byte("back")}); err != nil {
		t.Fatal(err)
	}
	out, err := server.PacketsOut(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p := out[0]; string(p.Payload) != "back" || len(p.Metadata) != 3 || p.Metadata[2].MetadataId != 3 || string(p.Metadata[2].Value) != "M" {
		t.Errorf("packet out: %v", p)
	}
	for name, p := range map[string]Packet{
		"too wide":      {Header: []Meta{{1, 1 << 9}}},
		"unknown field": {Header: []Meta{{4, 0}}},
		"twice":         {Header: []Meta{{1, 1}, {1, 1}}},
	} {
		if err := c.PacketOut(p); !errors.Is(err, ErrEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := c.Stats(); s != (Stats{Sessions: 1, In: 1, Out: 1}) {
		t.Errorf("stats: %+v", s)
	}
}

func TestPacketsBeyondTheRoomAreCounted(t *testing.T) {
	server := target(t)
	config := configOf(server.Address())
	config.Packets = 2
	c := newPrimary(t, config)
	for range 5 {
		if err := server.Punt(nil, 1, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	// The error comes on the same stream, after the packets.
	if err := server.Notify(streamError("end of the packets")); err != nil {
		t.Fatal(err)
	}
	c.await(Fault)
	if s := c.Stats(); s.In != 5 || s.Dropped != 3 {
		t.Errorf("stats: %+v, want 5 packets and 3 dropped", s)
	}
	if in, err := c.Packets(testContext(t)); err != nil || len(in) != 2 {
		t.Errorf("%d packets, %v; want 2", len(in), err)
	}
}

func streamError(message string) *p4v1.StreamMessageResponse {
	return &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Error{
		Error: &p4v1.StreamError{CanonicalCode: int32(codes.InvalidArgument), Message: message},
	}}
}

func TestClose(t *testing.T) {
	server := target(t)
	c := newPrimary(t, configOf(server.Address()))
	hung := server.Hang(p4rttest.Write)
	defer hung.Release()
	failed := make(chan error)
	go func() { failed <- c.Write(context.Background(), []Update{{Op: Insert, Entry: new(pair(1))}}) }()
	<-hung.Reached()
	c.Close()
	if err := <-failed; err == nil {
		t.Error("a write of a closed client succeeded")
	}
	for name, err := range map[string]error{
		"events":     errOf(c.Events(testContext(t))),
		"packets":    errOf(c.Packets(testContext(t))),
		"read":       errOf(c.Read(testContext(t))),
		"push":       errOf(c.Push(testContext(t))),
		"packet out": c.PacketOut(Packet{}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Close() // again
}

func TestOverTCP(t *testing.T) {
	c := configOf("127.0.0.1:1") // nobody listens there
	o := dial(t, c)
	if e := o.next(); e.Kind != Lost || !errors.Is(e.Err, ErrUnavailable) {
		t.Errorf("event: %+v, want lost", e)
	}
	if err := o.Write(testContext(t), nil); !errors.Is(err, ErrUnavailable) {
		t.Errorf("write: %v", err)
	}
}

func TestCallersDeadline(t *testing.T) {
	server := target(t)
	c := newPrimary(t, configOf(server.Address()))
	defer server.Hang(p4rttest.Read).Release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Read(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrWedged) {
		t.Errorf("read: %v, want the caller's own deadline", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Read(gone); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("read: %v, want that the caller gave up", err)
	}
}
