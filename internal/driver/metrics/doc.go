// Package metrics makes Prometheus collectors. A Set names the metrics of one part of a
// process, and passes on their values when they are collected. Durations counts
// durations by how long they were; to count one allocates nothing and takes no lock.
package metrics
