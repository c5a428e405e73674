package store_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
)

// equalRecords compares records with addresses in them.
var equalRecords = cmp.Options{cmpopts.EquateComparable(netip.AddrPort{}), cmpopts.IgnoreUnexported(manager.Tree{})}

func TestWhatWasSavedIsLoaded(t *testing.T) {
	path := pathOf(t)
	s := open(t, path)
	if all := load(t, s); len(all) != 0 {
		t.Errorf("a new store has %v", all)
	}
	want := []manager.Record{fleet(1, 7, "leaf-0"), spec(2, 7, "h0", "h1"), trees(3, 7, 12), spec(4, 8, "h1", "h2")}
	save(t, s, want[:3]...)
	save(t, s, want[3], spec(5, 9, "h2", "h3"))
	save(t, s, manager.Record{Seq: 6, Kind: manager.SpecRecord, Group: 9, Delete: true})
	close(t, s)
	close(t, s)

	again := open(t, path)
	if diff := cmp.Diff(want, load(t, again), equalRecords); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: the groups' secrets are in it", info.Mode(), err)
	}
	if rest, err := filepath.Glob(path + "?*"); err != nil || len(rest) != 0 {
		t.Errorf("beside it are %v", rest)
	}
}

func TestASaveIsWholeOrNot(t *testing.T) {
	s := open(t, pathOf(t))
	save(t, s, fleet(1, 1))
	bad := manager.Record{Seq: 3, Kind: manager.SpecRecord, Group: 1} // without its value
	if err := s.Save([]manager.Record{fleet(2, 2), bad}); err == nil || !strings.Contains(err.Error(), "number 3") {
		t.Errorf("saved: %v", err)
	}
	if diff := cmp.Diff([]manager.Record{fleet(1, 1)}, load(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, pathOf(t))
	close(t, s)
	if _, err := s.Load(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("loaded: %v", err)
	}
	if err := s.Save(nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("saved: %v", err)
	}
}

// A store is like managerd.Memory, whatever is done with it.
func TestIsLikeMemory(t *testing.T) {
	directory := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		path := filepath.Join(directory, "manager.db")
		if err := os.RemoveAll(path); err != nil {
			r.Fatal(err)
		}
		s, err := store.Open(path)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { s.Close() }()
		var model managerd.Memory
		for seq := range uint64(rapid.IntRange(1, 6).Draw(r, "saves")) {
			batch := batches.Draw(r, "batch")
			for i := range batch {
				batch[i].Seq = 100*seq + uint64(i)
			}
			if err := errors.Join(s.Save(batch), model.Save(batch)); err != nil {
				r.Fatal(err)
			}
			if rapid.Bool().Draw(r, "reopen") {
				if err := s.Close(); err != nil {
					r.Fatal(err)
				}
				if s, err = store.Open(path); err != nil {
					r.Fatal(err)
				}
			}
		}
		got, err := s.Load()
		want, _ := model.Load()
		if diff := cmp.Diff(want, sorted(got), cmpopts.EquateEmpty(), equalRecords); err != nil || diff != "" {
			r.Fatal(err, diff)
		}
	})
}

var batches = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) manager.Record {
	group := rapid.Uint32Range(1, 5).Draw(r, "group")
	members := strings.Fields(strings.Repeat("host ", rapid.SampledFrom([]int{2, 3, 2000}).Draw(r, "members")))
	record := rapid.SampledFrom([]manager.Record{spec(0, group, members...), trees(0, group, group), fleet(0, group)}).Draw(r, "record")
	if rapid.IntRange(0, 3).Draw(r, "delete") == 0 {
		record = manager.Record{Kind: record.Kind, Group: record.Group, Delete: true}
	}
	return record
}), 1, 8)

func TestOneManagerAtATime(t *testing.T) {
	path := pathOf(t)
	s := open(t, path)
	refused(t, path, store.ErrHeld)
	save(t, s, fleet(1, 1))
	close(t, s)
	if all := load(t, open(t, path)); len(all) != 1 {
		t.Errorf("loaded %v", all)
	}
}

func TestOpensOnlyWhatItCanWrite(t *testing.T) {
	if _, err := store.Open(filepath.Join(t.TempDir(), "nowhere", "manager.db")); !errors.Is(err, store.ErrWrite) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}
