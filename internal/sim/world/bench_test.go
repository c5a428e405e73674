package world

import "testing"

// BenchmarkRandomOperations reports random stories until they have seen b.N
// operations, and what came of them: see "Measure" in issue 2.
//
//	go test -run '^$' -bench RandomOperations -benchtime 10000x ./internal/sim/world
func BenchmarkRandomOperations(b *testing.B) {
	var all tally
	hangs := 0
	for seed := uint64(1_000_001); all.operations < b.N; seed++ {
		s := newStory(seed, false, nil)
		if err := s.run(&all.verdict); err != nil {
			b.Error(err)
			if isHang(err) {
				hangs++
			}
		}
		all.add(s)
	}
	b.ReportMetric(float64(all.operations), "operations")
	b.ReportMetric(float64(all.wrong), "wrong")
	b.ReportMetric(float64(hangs), "hangs")
	b.ReportMetric(float64(all.disagreements), "disagreements")
	b.ReportMetric(float64(all.steps)/b.Elapsed().Seconds(), "steps/s")
	b.Logf("%+v", all)
}
