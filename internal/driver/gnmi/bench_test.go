package gnmi

import (
	"fmt"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/protobuf/proto"

	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// BenchmarkResponses is a batch of counters, written and marshalled.
func BenchmarkResponses(b *testing.B) {
	var batch []telemetry.Entry
	for i := range 64 {
		for _, leaf := range []string{"in-octets", "in-pkts", "out-octets", "out-pkts"} {
			name := fmt.Sprintf("/interfaces/interface[name=port%d]/state/counters/%s", i, leaf)
			p, err := openconfig.ParsePath(name)
			if err != nil {
				b.Fatal(err)
			}
			l, _ := openconfig.Find(p)
			batch = append(batch, telemetry.Entry{Name: name, Path: p, Leaf: l, Value: openconfig.Number(1 << 40), At: 1})
		}
	}
	for _, as := range encodings {
		b.Run("encoding="+as.String(), func(b *testing.B) {
			w := &writer{encoding: as, shared: &written{}, reader: reader{prefix: &pb.Path{Target: "leaf-0"}}}
			b.ReportAllocs()
			for b.Loop() {
				for _, m := range w.responses(batch) {
					if _, err := proto.Marshal(m); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch)), "ns/update")
		})
	}
}
