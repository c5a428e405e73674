package store_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
)

// written returns the bytes of a store that has been in use for groups, and what
// is in it.
func written(t testing.TB, groups uint32) ([]byte, []manager.Record) {
	t.Helper()
	path := pathOf(t)
	s := open(t, path)
	seq := uint64(0)
	next := func() uint64 { seq++; return seq }
	for group := range groups { // several pages, some of them free again
		members := make([]string, 20+30*(group%7))
		for i := range members {
			members[i] = "host-" + strconv.Itoa(i)
		}
		save(t, s, fleet(next(), group+1), spec(next(), group+1, members...), trees(next(), group+1, 2))
	}
	for group := range groups / 2 {
		save(t, s, manager.Record{Seq: next(), Kind: manager.SpecRecord, Group: 2 * group, Delete: true}, trees(next(), 2*group, 4))
	}
	all := load(t, s)
	close(t, s)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, all
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// valid opens a file of that content: it has what it had, or it says that it is
// damaged.
func valid(t testing.TB, path string, data []byte, want []manager.Record) (opened bool) {
	t.Helper()
	put(t, path, data)
	s, err := store.Open(path)
	if err != nil {
		if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNotStore) || !strings.Contains(err.Error(), path) {
			t.Fatalf("opened with %v", err)
		}
		return false
	}
	defer close(t, s)
	got := load(t, s)
	if len(want) > 0 && !reflect.DeepEqual(want, got) {
		if diff := cmp.Diff(want, got, equalRecords); diff != "" {
			t.Fatalf("it has lost something without a word:\n%s", diff)
		}
	}
	return true
}

// used saves something in a store.
func used(t testing.TB, path string) {
	t.Helper()
	s := open(t, path)
	save(t, s, fleet(1000, 1), spec(1001, 3, "a", "b"))
	if all := load(t, s); len(all) == 0 || all[len(all)-1].Seq != 1001 {
		t.Fatalf("it has %v", all)
	}
	close(t, s)
}

func TestFlippedBits(t *testing.T) {
	data, want := written(t, 40)
	path := pathOf(t)
	random := rand.New(rand.NewPCG(3, 1))
	refusedOnes := 0
	for i := range 1000 {
		at, bit := random.IntN(len(data)), byte(1)<<random.IntN(8)
		if i < 600 { // the pages' heads and first elements more closely
			at = i%(len(data)/4096)*4096 + random.IntN(128)
		}
		data[at] ^= bit
		if !valid(t, path, data, want) {
			refusedOnes++
		} else if i%20 == 0 {
			used(t, path)
		}
		data[at] ^= bit
	}
	if refusedOnes < 100 {
		t.Errorf("only %d of the damages were seen", refusedOnes)
	}
}

func TestLostPages(t *testing.T) {
	data, want := written(t, 40)
	path := pathOf(t)
	blank := make([]byte, 4096)
	for at := 0; at+len(blank) <= len(data); at += len(blank) {
		for other := range 3 { // blank, another page, a piece moved
			spoiled := bytes.Clone(data)
			copy(spoiled[at:], [][]byte{blank, data[(at+5*4096)%len(data)/4096*4096:][:4096], data[at+100:]}[other])
			if bytes.Equal(spoiled, data) {
				continue
			}
			valid(t, path, spoiled, want)
		}
	}
}

func TestTruncated(t *testing.T) {
	data, want := written(t, 40)
	path := pathOf(t)
	for _, size := range []int{1, 15, 16, 79, 80, 100, 4095, 4096, 4176, 8192, 16384, len(data) / 2, len(data) / 4096 / 2 * 4096} {
		if valid(t, path, data[:size], want) {
			t.Errorf("%d of its %d bytes were enough", size, len(data))
		}
	}
}

func TestWhatIsNoStore(t *testing.T) {
	path := pathOf(t)
	for _, text := range []string{"", "x", "version: 1\n", strings.Repeat("not a database\n", 2000)} {
		put(t, path, []byte(text))
		refused(t, path, store.ErrNotStore)
		if left, err := os.ReadFile(path); err != nil || string(left) != text {
			t.Errorf("it was changed to %q, %v", left, err)
		}
	}
	other := filepath.Join(t.TempDir(), "other.db")
	edit(t, other, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("recipes")); return err })
	refused(t, other, store.ErrNotStore)
	if _, err := store.Open(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
}

// edit changes a file behind the store's back.
func edit(t *testing.T, path string, f func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestVersions(t *testing.T) {
	for version, why := range map[int]error{store.Version + 1: store.ErrNewer, 99: store.ErrNewer, 0: store.ErrOlder} {
		path := pathOf(t)
		close(t, open(t, path))
		edit(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("store")).Put([]byte("version"), store.Seal([]byte("version"), []byte(strconv.Itoa(version))))
		})
		if e := refused(t, path, why); !strings.Contains(e.Error(), "version "+strconv.Itoa(version)) {
			t.Errorf("it says %v", e)
		}
	}
}

func TestRecordsThatAreNone(t *testing.T) {
	key := []byte{byte(manager.FleetRecord), 0, 0, 0, 0}
	for name, change := range map[string]func(*bbolt.Bucket) error{
		"text":          func(b *bbolt.Bucket) error { return b.Put(key, store.Seal(key, []byte("{"))) },
		"unknown field": func(b *bbolt.Bucket) error { return b.Put(key, store.Seal(key, []byte(`{"seq":1,"fleat":{}}`))) },
		"no value":      func(b *bbolt.Bucket) error { return b.Put(key, store.Seal(key, []byte(`{"seq":1}`))) },
		"another kind": func(b *bbolt.Bucket) error {
			k := []byte{9, 0, 0, 0, 0}
			return b.Put(k, store.Seal(k, []byte(`{"fleet":{}}`)))
		},
		"a short key": func(b *bbolt.Bucket) error { k := []byte{3}; return b.Put(k, store.Seal(k, []byte(`{"fleet":{}}`))) },
		"no checksum": func(b *bbolt.Bucket) error { return b.Put(key, []byte("{}")) },
		"deleted":     func(b *bbolt.Bucket) error { return b.Delete(key) },
		"a bucket":    func(b *bbolt.Bucket) error { _, err := b.CreateBucket([]byte("b")); return err },
		"one more than was": func(b *bbolt.Bucket) error {
			k := []byte{3, 0, 0, 0, 1}
			return b.Put(k, store.Seal(k, []byte(`{"fleet":{}}`)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := pathOf(t)
			s := open(t, path)
			save(t, s, fleet(1, 1))
			close(t, s)
			edit(t, path, func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte("records"))) })
			refused(t, path, store.ErrCorrupt)
		})
	}
}

func FuzzOpen(f *testing.F) {
	data, _ := written(f, 4)
	f.Add(data[:5*4096], uint(4096), byte(1))
	f.Add(data, uint(2*4096+10), byte(0xFF))
	f.Add([]byte("text"), uint(0), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, at uint, flip byte) {
		if len(data) == 0 || len(data) > 1<<20 {
			return
		}
		data = bytes.Clone(data) // which is the engine's
		data[at%uint(len(data))] ^= flip
		if path := filepath.Join(t.TempDir(), "manager.db"); valid(t, path, data, nil) {
			used(t, path)
		}
	})
}
