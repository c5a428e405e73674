package store_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// child names the environment's variable that makes the test binary one of the
// children of process_test.go.
const child = "TRIBUTARY_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(child); what != "" {
		runChild(what)
		return
	}
	os.Exit(m.Run())
}

func pathOf(t testing.TB) string { return filepath.Join(t.TempDir(), "manager.db") }

func open(t testing.TB, path string) *store.File {
	t.Helper()
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(t, s) })
	return s
}

func close(t testing.TB, s *store.File) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func save(t testing.TB, s *store.File, records ...manager.Record) {
	t.Helper()
	if err := s.Save(records); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, s *store.File) []manager.Record {
	t.Helper()
	all, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	return sorted(all)
}

func sorted(all []manager.Record) []manager.Record {
	slices.SortFunc(all, func(a, b manager.Record) int { return int(a.Seq) - int(b.Seq) })
	return all
}

// refused reports whether Open refuses path for this reason, and names it.
func refused(t testing.TB, path string, why error) *store.Error {
	t.Helper()
	s, err := store.Open(path)
	if err == nil {
		close(t, s)
	}
	var e *store.Error
	if !errors.Is(err, why) || !errors.As(err, &e) || e.Path != path || e.WayOut() == "" {
		t.Fatalf("opened with %v, want %v", err, why)
	}
	return e
}

func spec(seq uint64, group uint32, members ...string) manager.Record {
	return manager.Record{Seq: seq, Kind: manager.SpecRecord, Group: group, Spec: &manager.Spec{
		Name: "job", Members: members, ChunkBytes: 1432, Window: 64,
		Functions: 8190, Types: 510, Purpose: pathsel.Purpose{Collective: pathsel.Allreduce, Bytes: 4096, Criterion: pathsel.LeastLoad},
		Bundle: manager.Bundle{Name: "job", Kind: manager.Stripes, Index: 1, Count: 2}, Secret: [32]byte{1, 2, 31: 255},
	}}
}

func fleet(seq uint64, last uint32, drained ...string) manager.Record {
	return manager.Record{Seq: seq, Kind: manager.FleetRecord, Fleet: &manager.Fleet{LastGroup: last, Drained: drained}}
}

func kept(seq uint64, kind manager.RecordKind, text string) manager.Record {
	return manager.Record{Seq: seq, Kind: kind, Kept: []byte(text)}
}

func trees(seq uint64, group, epoch uint32) manager.Record {
	return manager.Record{Seq: seq, Kind: manager.TreesRecord, Group: group, Trees: &manager.Trees{
		Epoch: epoch,
		Live: []manager.Tree{{
			Epoch: epoch, Window: 8,
			Plan: pathsel.Plan{
				Tree: pathsel.Tree{
					Vertices: []pathsel.Vertex{{Switch: 4, Parent: -1, Up: topology.NoLink}},
					Leaves:   []pathsel.Leaf{{Host: 0, Vertex: 0, Link: 2}, {Host: 1, Vertex: 0, Link: 3}},
				},
				Figures: pathsel.Figures{Hops: 2, Depth: 1, Use: 3, Latency: 2500, Bandwidth: 50e9, Price: 1.25, Share: 0.5}, Criterion: pathsel.LeastLoad, Default: true,
				Because: "it was given", Method: pathsel.ByLevels, Exact: true, Reason: "least load", Tried: 2, Shared: 3,
				Rivals: []pathsel.Rival{{Root: 5, Method: pathsel.BySteiner, Figures: pathsel.Figures{Hops: 4, Depth: 2}, Lost: "2 more hops"}},
			},
			Switches: []manager.Site{{Name: "s", Incarnation: 1<<64 - 1, Addr: netip.MustParseAddrPort("10.0.0.1:9000")}},
			Links:    map[topology.LinkID]string{2: "h0:1--s:1", 3: "h1:1--s:2"}, Roots: map[topology.NodeID]string{5: "t"},
			Members: []netip.AddrPort{netip.MustParseAddrPort("10.0.1.1:1"), netip.MustParseAddrPort("[fd00::1]:2")},
		}},
	}}
}
