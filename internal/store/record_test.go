package store_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/store"
)

// What is in a store of this version must be read by all managers of this
// version: where this test fails, the schema needs a new one.
func TestRecordsOfVersion1(t *testing.T) {
	const golden = "testdata/records-1.json"
	var got bytes.Buffer
	for _, r := range []manager.Record{fleet(1, 7, "leaf-0"), spec(2, 7, "h0", "h1"), trees(3, 7, 12)} {
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
	if store.Version != 1 || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("records of version %d are written as\n%s\nand not as in %s", store.Version, &got, golden)
	}
}
