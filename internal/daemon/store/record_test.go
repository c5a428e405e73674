package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
	"github.com/tributary-fabric/tributary/pathsel"
)

// What is in a store of this version must be read by all managers of this
// version: where this test fails, the schema needs a new one.
func TestRecordsOfThisVersion(t *testing.T) {
	const golden = "testdata/records-7.json"
	var got bytes.Buffer
	for _, r := range []manager.Record{fleet(1, 7, "leaf-0"), spec(2, 7, "h0", "h1"), trees(3, 7, 12), kept(4, manager.OperatorRecord, "operator"), kept(5, manager.MapRecord, "map"), kept(6, manager.HistoryRecord, "history")} {
		text, err := store.Encode(&r)
		if err == nil {
			err = json.Indent(&got, text, "", "  ")
		}
		if err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if store.Version != 7 || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("records of version %d are written as\n%s\nand not as in %s", store.Version, &got, golden)
	}
}

// storeOf makes a store of an earlier version, with the records that its managers
// wrote.
func storeOf(t *testing.T, version int) string {
	t.Helper()
	return storeWith(t, version, recordsOf(t, version))
}

// recordsOf returns the records that managers of an earlier version wrote.
func recordsOf(t *testing.T, version int) []byte {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("testdata/records-%d.json", version))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// storeWith makes a store of an earlier version with these records.
func storeWith(t *testing.T, version int, data []byte) string {
	t.Helper()
	path := pathOf(t)
	close(t, open(t, path))
	edit(t, path, func(tx *bbolt.Tx) error {
		head, records := tx.Bucket([]byte("store")), tx.Bucket([]byte("records"))
		decoder, sum, count := json.NewDecoder(bytes.NewReader(data)), uint32(0), 0
		keys := [][]byte{{byte(manager.FleetRecord), 0, 0, 0, 0}, {byte(manager.SpecRecord), 0, 0, 0, 7}, {byte(manager.TreesRecord), 0, 0, 0, 7}}
		if version >= 4 {
			keys = append(keys, []byte{byte(manager.OperatorRecord), 0, 0, 0, 0}, []byte{byte(manager.MapRecord), 0, 0, 0, 0})
		}
		if version >= 5 {
			keys = append(keys, []byte{byte(manager.HistoryRecord), 0, 0, 0, 0})
		}
		for _, key := range keys {
			var text json.RawMessage
			if err := decoder.Decode(&text); err != nil {
				return err
			}
			table := crc32.MakeTable(crc32.Castagnoli)
			sum, count = sum^crc32.Update(crc32.Checksum(key, table), table, text), count+1
			if err := records.Put(key, store.Seal(key, text)); err != nil {
				return err
			}
		}
		if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
			t.Errorf("there is more in the file: %v", err)
		}
		digest := []byte(`{"records":` + strconv.Itoa(count) + `,"sum":` + strconv.FormatUint(uint64(sum), 10) + `}`)
		return errors.Join(head.Put([]byte("digest"), store.Seal([]byte("digest"), digest)),
			head.Put([]byte("version"), store.Seal([]byte("version"), []byte(strconv.Itoa(version)))))
	})
	return path
}

// A store of an earlier version is made one of this version, and has what it had.
func TestUpgrade(t *testing.T) {
	for version := 1; version < store.Version; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) { upgrade(t, version) })
	}
}

func upgrade(t *testing.T, version int) {
	path := storeOf(t, version)
	for range 2 { // it is upgraded by the first
		s := open(t, path)
		all := load(t, s)
		close(t, s)
		wantSpec, want := spec(2, 7, "h0", "h1"), trees(3, 7, 12)
		var more []manager.Record
		want.Trees.Live[0].Plan.Default = version >= 7 // before, no tree was chosen by default
		if version < 4 {
			want.Trees.Live[0].Links, want.Trees.Live[0].Roots = nil, nil
		} else {
			more = []manager.Record{kept(4, manager.OperatorRecord, "operator"), kept(5, manager.MapRecord, "map")}
		}
		if version >= 5 {
			more = append(more, kept(6, manager.HistoryRecord, "history"))
		}
		if version < 3 {
			wantSpec.Spec.Bundle, want.Trees.Live[0].Plan.Shared = manager.Bundle{}, 0
		}
		if version == 1 {
			wantSpec.Spec.Purpose = pathsel.Purpose{}
			p := &want.Trees.Live[0].Plan
			p.Figures = pathsel.Figures{Hops: 2, Depth: 1, Use: 3}
			p.Criterion, p.Because, p.Method, p.Exact, p.Reason = pathsel.FewestHops, "an earlier version knew no other", pathsel.ByShortestPaths, false, "fewest hops"
			p.Rivals[0].Method = pathsel.ByShortestPaths
		}
		if diff := cmp.Diff(append([]manager.Record{fleet(1, 7, "leaf-0"), wantSpec, want}, more...), all, equalRecords); diff != "" {
			t.Errorf("it has (-want +got):\n%s", diff)
		}
	}
	s := open(t, path)
	before := len(load(t, s))
	save(t, s, trees(6, 7, 14))
	if all := load(t, s); len(all) != before {
		t.Errorf("it has %v", all)
	}
	close(t, s)
}

// Weights of fewer or more criteria than there are now are read.
func TestUpgradeOfOtherWeights(t *testing.T) {
	for weights, want := range map[string]pathsel.Weights{
		"[0, 1, 0, 2.5]":           {pathsel.FewestHops: 1, pathsel.WidestLink: 2.5},
		"[0, 1, 0, 0, 0, 0, 0, 0]": {pathsel.FewestHops: 1},
		"[0, 0, 0, 0, 0, 0.5, 0]":  {pathsel.MostCapable: 0.5},
		"[]":                       {},
	} {
		records := regexp.MustCompile(`(?s)"Criterion": 4,(\s+"Weights": )\[.*?\]`).ReplaceAll(recordsOf(t, 6), []byte(`"Criterion": 0,${1}`+weights))
		s := open(t, storeWith(t, 6, records))
		wantSpec := spec(2, 7, "h0", "h1")
		wantSpec.Spec.Purpose.Criterion, wantSpec.Spec.Purpose.Weights = pathsel.ByFunction, want
		if diff := cmp.Diff(wantSpec, load(t, s)[1], equalRecords); diff != "" {
			t.Errorf("%s: it has (-want +got):\n%s", weights, diff)
		}
	}
}

// One that is damaged is refused, and left as it is.
func TestUpgradeOfADamagedOne(t *testing.T) {
	path := storeOf(t, 1)
	edit(t, path, func(tx *bbolt.Tx) error {
		key := []byte{byte(manager.SpecRecord), 0, 0, 0, 7}
		return tx.Bucket([]byte("records")).Put(key, store.Seal(key, []byte(`{"seq":2,"speck":{}}`)))
	})
	refused(t, path, store.ErrCorrupt)
	edit(t, path, func(tx *bbolt.Tx) error {
		if v := tx.Bucket([]byte("store")).Get([]byte("version")); !bytes.HasSuffix(v, []byte(" 1")) {
			t.Errorf("its version is %q", v)
		}
		return nil
	})
}
