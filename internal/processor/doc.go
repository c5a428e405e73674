// Package processor tells how busy a machine's processors are. [System] asks the
// kernel; on other systems than Linux it can tell nothing, and says so. [Fake] is
// for tests.
package processor
