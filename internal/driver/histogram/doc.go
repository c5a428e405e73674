// Package histogram counts durations by how long they were, for metrics. To
// count one allocates nothing and takes no lock.
package histogram
