package metrics

import "github.com/prometheus/client_golang/prometheus"

// Set is metrics whose names begin alike.
type Set struct {
	prefix string
	all    []*prometheus.Desc
}

// NewSet returns a set without metrics.
func NewSet(prefix string) *Set { return &Set{prefix: prefix} }

// New adds a metric, whose values differ by labels.
func (s *Set) New(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(s.prefix+name, help, labels, nil)
	s.all = append(s.all, d)
	return d
}

// Collector returns what has read give the set's values whenever they are
// collected, which may be several times at once.
func (s *Set) Collector(read func(Values)) prometheus.Collector { return collector{s, read} }

type collector struct {
	set  *Set
	read func(Values)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.set.all {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) { c.read(to) }

// Values takes the values of one collection.
type Values chan<- prometheus.Metric

// Counter gives what was counted so far.
func (v Values) Counter(d *prometheus.Desc, n uint64, labels ...string) {
	v <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// Directions gives a counter whose last label is the direction.
func (v Values) Directions(d *prometheus.Desc, in, out uint64) {
	v.Counter(d, in, "in")
	v.Counter(d, out, "out")
}

// Gauge gives what is now.
func (v Values) Gauge(d *prometheus.Desc, x float64, labels ...string) {
	v <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, labels...)
}

// Count is Gauge for a number of things.
func (v Values) Count(d *prometheus.Desc, n int, labels ...string) { v.Gauge(d, float64(n), labels...) }

// Durations gives a histogram.
func (v Values) Durations(d *prometheus.Desc, of *Durations, labels ...string) {
	count, seconds, within := of.Snapshot()
	v <- prometheus.MustNewConstHistogram(d, count, seconds, within, labels...)
}

// Failed reports why nothing can be had of a metric.
func (v Values) Failed(d *prometheus.Desc, why error) { v <- prometheus.NewInvalidMetric(d, why) }
