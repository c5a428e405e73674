package hierarchy

import "testing"

// BenchmarkManagement boots 1,024 supervisors with as many stub zones of a single
// node; boot-ms is the virtual time until each has the census of all.
//
//	go test -C bench -run xxx -bench Management -benchtime 1x ./hierarchy
func BenchmarkManagement(b *testing.B) {
	for b.Loop() {
		r, err := Boot(Management(1))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Boot.Milliseconds()), "boot-ms")
		b.ReportMetric(float64(r.Management.Milliseconds()), "views-ms")
		b.ReportMetric(float64(r.Load[1]), "zones-max")
	}
}
