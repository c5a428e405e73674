// Package report reports what measurements have found: as CSV, as JSON, in words,
// and as the tables of docs/benchmarks.md.
package report
