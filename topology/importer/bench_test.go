package importer

import (
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/topology"
)

// BenchmarkImport imports the dump of a fat-tree of 65,536 hosts.
func BenchmarkImport(b *testing.B) {
	g, err := topology.FatTree(64)
	if err != nil {
		b.Fatal(err)
	}
	text := dumped(b, g)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Import(strings.NewReader(text), "f", IBNetDiscover, DefaultConfig()); err != nil {
			b.Fatal(err)
		}
	}
}
